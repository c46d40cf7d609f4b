#!/usr/bin/env python3
"""Runs a command beside a web server on a free port of this machine, and ends both. Prints the
command's lines of JSON with the server's CPU time in them.

Of the command, @URL@ is the server, @ENDPOINT@ the same without the bucket."""

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONFIGURATION = """
daemon off;
{user}
worker_processes {workers};
worker_rlimit_nofile 65536;
pid {directory}/pid;
error_log {directory}/error.log;
events {{ worker_connections 8192; }}
http {{
  log_format bytes "$bytes_sent";
  access_log {log};
  sendfile on;
  tcp_nopush on;
  keepalive_requests 100000000;
  keepalive_timeout 600;
  open_file_cache max=10000 inactive=600s;
  open_file_cache_valid 600s;
  types {{ }}
  default_type application/octet-stream;
  server {{
    listen 127.0.0.1:{port} {listen} backlog=4096;
    {tls}
    root {root};
  }}
}}
"""
TLS = "ssl_certificate {0}/cert.pem; ssl_certificate_key {0}/key.pem; ssl_protocols TLSv1.3;"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_for(port):
    for _ in range(500):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.01)
    sys.exit("with_server.py: the server does not start")


def make_certificate(directory):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
         "subjectAltName=IP:127.0.0.1", "-keyout", f"{directory}/key.pem", "-out",
         f"{directory}/cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip


def start_nginx(directory, wanted):
    port = free_port()
    if wanted.tls:
        make_certificate(directory)
    text = CONFIGURATION.format(
        user="user root;" if os.geteuid() == 0 else "",
        workers=wanted.workers,
        directory=directory,
        port=port,
        listen="ssl" if wanted.tls else "",
        log=f"{directory}/sent.log bytes" if wanted.bytes else "off",
        tls=TLS.format(directory) if wanted.tls else "",
        root=wanted.root.resolve(),
    )
    configuration = Path(directory, "nginx.conf")
    configuration.write_text(text)
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if nginx is None:
        print("nginx: not installed", file=sys.stderr)
        sys.exit(77)
    return subprocess.Popen([nginx, "-p", directory, "-c", configuration]), port


def sent_bytes(directory):
    """By nginx, once it has ended: all of its answers with their headers."""
    return sum(map(int, Path(directory, "sent.log").read_text().split()))


def start_slow(wanted):
    server = subprocess.Popen(wanted.slow.split(), stdout=subprocess.PIPE, text=True)
    return server, int(server.stdout.readline())


def cpu_seconds(pid):
    """Of a process and its children."""
    total = 0
    for task in [pid, *Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]:
        fields = Path(f"/proc/{task}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=".", help="what nginx serves")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--workers", type=int, default=1, help="of nginx")
    parser.add_argument("--bytes", action="store_true", help="add how many nginx has sent")
    parser.add_argument("--slow", help="a command that serves instead, and prints its port")
    parser.add_argument("command", nargs="+")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        server, port = start_slow(wanted) if wanted.slow else start_nginx(directory, wanted)
        try:
            wait_for(port)
            endpoint = f"http{'s' if wanted.tls else ''}://127.0.0.1:{port}"
            words = [
                word.replace("@URL@", f"{endpoint}/bucket").replace("@ENDPOINT@", endpoint)
                for word in wanted.command
            ]
            before = cpu_seconds(server.pid)
            done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
            served = cpu_seconds(server.pid) - before
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()
        sent = {"bytes": sent_bytes(directory)} if wanted.bytes else {}
    for text in done.stdout.splitlines():
        if text.startswith("{"):
            line = {**json.loads(text), **sent}
            if count := line.get("objects") or line.get("images"):
                line["server_cpu_us"] = served / count * 1e6
            text = json.dumps(line)
        print(text)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
