"""Our handler behind the standard library's HTTP server, so that it can be called as the other routers are.

`python -m workbench.bench.served` prints its port and serves until its standard input closes. The server is a plain
one and slower than theirs: the comparison leans their way.
"""

from __future__ import annotations

import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from functions.handlers.route import handler
from workbench.bench import scene
from workbench.bench.caller import LambdaContext


class Door(BaseHTTPRequestHandler):
    """Each POST becomes a gateway event with its own body and path."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """One call."""
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        answer = handler({**scene.event(), "rawPath": self.path, "body": body}, LambdaContext())
        data = str(answer["body"]).encode()
        head = [f"HTTP/1.1 {answer['statusCode']} -", f"content-length: {len(data)}", "content-type: application/json"]
        self.wfile.write("\r\n".join([*head, "", ""]).encode() + data)

    def log_message(self, *_: object) -> None:
        """Nothing: the handler writes its receipts."""


def main() -> None:
    """Serve on a free port until standard input closes."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.stdin.read()


if __name__ == "__main__":
    main()
