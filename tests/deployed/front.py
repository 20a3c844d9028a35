#!/usr/bin/env python3
"""The deployed API at a plain address of the loopback interface, as the local stack stands there for
`muster-example` and for the conformance check: it says where it listens, and `/_local/demo` tells of a game.
The environment says which API (`FRONT_API` at `FRONT_PORT`, with the authority `FRONT_AUTHORITY`) and the
game (`FRONT_DEMO`, a file)."""

import http.client
import http.server
import os
import pathlib
import ssl
import sys

HOST, PORT = os.environ["FRONT_API"], int(os.environ["FRONT_PORT"])
TLS = ssl.create_default_context(cafile=os.environ["FRONT_AUTHORITY"])
DEMO = pathlib.Path(os.environ["FRONT_DEMO"]).read_bytes()
# Each side keeps its own connection.
OF_THE_CONNECTION = {"host", "connection", "content-length", "transfer-encoding", "date", "server"}


class Front(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self.pass_on
        raise AttributeError(name)

    def log_message(self, *_):
        pass

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/_local/demo":
            return self.answer(200, [("content-type", "application/json")], DEMO)
        upstream = http.client.HTTPSConnection("127.0.0.1", PORT, timeout=60, context=TLS)
        kept = {name: value for name, value in self.headers.items() if name.lower() not in OF_THE_CONNECTION}
        upstream.request(self.command, self.path, body, {**kept, "host": HOST})
        answer = upstream.getresponse()
        content = answer.read()
        upstream.close()
        return self.answer(answer.status, answer.getheaders(), content)

    def answer(self, status, headers, content):
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in OF_THE_CONNECTION:
                self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Front)
    print(f"Muster listens on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
