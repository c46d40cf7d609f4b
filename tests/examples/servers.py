# Servers that are no part of lade, on loopback as long as a program needs them. A test whose server
# is not installed exits with 77.
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request

SUPPORT = pathlib.Path(__file__).resolve().parent.parent / "support"


def skip(why):
    print(why, file=sys.stderr)
    sys.exit(77)


def find_nginx():
    return shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:" + os.environ["PATH"])


class Nginx:
    """Serves `objects`, bytes by path, until close()."""

    def __init__(self, objects):
        program = find_nginx()
        if not program:
            skip("nginx is not installed")
        self.directory = tempfile.TemporaryDirectory()
        where = pathlib.Path(self.directory.name)
        for name, content in objects.items():
            path = where / "www" / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        # It inherits the socket: nobody can take the port, and connections may come before it serves.
        listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        listener.set_inheritable(True)
        port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        temporary = "".join(f"{each}_temp_path {where}/temporary;\n"
                            for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user root;\n" if os.geteuid() == 0 else ""
        (where / "config").write_text(
            f"{user}daemon off;\nworker_processes 1;\npid {where}/pid;\nerror_log {where}/errors;\n"
            "events { worker_connections 1024; }\nhttp {\nlog_format sent '$status $body_bytes_sent';\n"
            f"access_log {where}/log sent;\n{temporary}"
            f"server {{\nlisten 127.0.0.1:{port};\nroot {where}/www;\n}}\n}}\n")
        self.log = where / "log"
        self.process = subprocess.Popen(
            [program, "-e", f"{where}/errors", "-p", str(where), "-c", f"{where}/config"],
            env={"NGINX": f"{listener.fileno()};"}, pass_fds=[listener.fileno()])
        listener.close()

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()

    def bytes_of_parts(self):
        """How many bytes it has sent as parts of objects; after close()."""
        lines = [line.split() for line in self.log.read_text().splitlines()]
        return sum(int(sent) for status, sent in lines if status == "206")


class Swift:
    """An object store with an S3 interface, and the objects of a bucket, until close()."""

    keys = {"AWS_ACCESS_KEY_ID": "test:tester", "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": "us-east-1"}

    def __init__(self, bucket, objects):
        self.directory = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            ["/usr/bin/python3", str(SUPPORT / "swift_server.py"), f"{self.directory.name}/data",
             "100"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        port = self.process.stdout.readline().strip().decode()
        if not port:
            sys.exit(self.process.wait())  # 77 where it lacks something
        self.url = f"http://127.0.0.1:{port}"
        answer = self.request("GET", f"{self.url}/auth/v1.0",
                              {"X-Auth-User": "test:tester", "X-Auth-Key": "testing"})
        root = f"{answer.headers['X-Storage-Url']}/{bucket}"
        token = {"X-Auth-Token": answer.headers["X-Auth-Token"]}
        self.request("PUT", root, token)
        for name, content in objects.items():
            self.request("PUT", f"{root}/{urllib.request.quote(name)}", token, content)

    @staticmethod
    def request(method, url, headers, content=None):
        wanted = urllib.request.Request(url, content, headers, method=method)
        return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(wanted)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
