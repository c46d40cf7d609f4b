# A web server on loopback with objects in memory, which speaks as much of the S3 interface as
# reading needs: GET with ranges, HEAD, and lists. It counts, and believes every signature.
import collections
import hashlib
import http.server
import re
import threading
import urllib.parse
from xml.sax.saxutils import escape


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.wbufsize = 1 << 16

    def log_message(self, *_):
        pass

    def answer(self, status, body, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        store = self.server.store
        with store.mutex:
            store.requests[urllib.parse.unquote(self.path)] += 1
            if self.command == "GET":
                store.bytes_of_parts += len(body) if status == 206 else 0
                store.wholes += status == 200

    def do_GET(self):
        target = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(target.query)
        path = urllib.parse.unquote(target.path)
        if query.get("list-type") == ["2"]:
            return self.list(path.strip("/"), query)
        content = self.server.store.objects.get(path)
        if content is None:
            return self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        headers = [("ETag", '"' + hashlib.md5(content).hexdigest() + '"'), ("Accept-Ranges", "bytes")]
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not wanted:
            return self.answer(200, content, headers)
        first = int(wanted[1])
        last = min(int(wanted[2] or len(content)), len(content) - 1)
        if first > last:
            return self.answer(416, b"", [("Content-Range", f"bytes */{len(content)}")])
        headers.append(("Content-Range", f"bytes {first}-{last}/{len(content)}"))
        self.answer(206, content[first:last + 1], headers)

    do_HEAD = do_GET

    def list(self, bucket, query):
        prefix = query.get("prefix", [""])[0]
        after = query.get("continuation-token", [""])[0]
        below = f"/{bucket}/{prefix}"
        keys = sorted(k[len(bucket) + 2:] for k in self.server.store.objects if k.startswith(below))
        keys = [k for k in keys if k > after]
        page, rest = keys[:100], keys[100:]
        text = "".join(
            f"<Contents><Key>{escape(k)}</Key><Size>{len(self.server.store.objects[f'/{bucket}/{k}'])}"
            f"</Size><ETag>&quot;{i}&quot;</ETag></Contents>" for i, k in enumerate(page))
        more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if rest else ""
        self.answer(200, (f"<ListBucketResult><IsTruncated>{'true' if rest else 'false'}</IsTruncated>"
                          f"{more}{text}</ListBucketResult>").encode())


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, *_):  # a client that was killed
        pass


class WebStore:
    """Serves `objects`, bytes by path ("/bucket/key"), until close()."""

    def __init__(self, objects):
        self.objects = objects
        self.mutex = threading.Lock()
        self.requests = collections.Counter()
        self.bytes_of_parts = 0
        self.wholes = 0
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.store = self
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
