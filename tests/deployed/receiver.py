"""A studio's receiver of webhooks: starts a process of `game_server.py` for each start. It prints its port,
reads the signing secret, then prints each webhook that it verified, with its response. Its game servers end
with it.

Run with a Python that has `standardwebhooks`. The environment has the certificate of this address
(`RECEIVER_CERTIFICATE` with `RECEIVER_KEY`), and where game servers find the API.
"""

import http.server
import json
import os
import pathlib
import signal
import ssl
import subprocess
import sys
import threading

from standardwebhooks import Webhook, WebhookVerificationError

CERTIFICATE, KEY = os.environ["RECEIVER_CERTIFICATE"], os.environ["RECEIVER_KEY"]
GAME_SERVER = [sys.executable, "-B", pathlib.Path(__file__).with_name("game_server.py")]
ADDRESS = {name: os.environ[name] for name in ("API_PORT", "API_AUTHORITY")}
# Seconds that a process has for its end: Muster waits ten for the response.
PATIENCE = 8


class Receiver(http.server.BaseHTTPRequestHandler):
    webhook = None
    # By the start that each is of.
    processes = {}

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            event = self.webhook.verify(body, headers)
        except WebhookVerificationError as problem:
            print(f"a webhook is refused: {problem}", file=sys.stderr, flush=True)
            return self.answer(401, {})
        answer = {"server.start": self.start, "server.stop": self.stop}[event["type"]](event)
        received = {"id": headers["webhook-id"], "body": body.decode(), "answer": answer}
        print(json.dumps(received), flush=True)
        return self.answer(*answer)

    def start(self, event):
        start = event["start_id"]
        if start not in self.processes:
            environment = {**ADDRESS, **event["environment"]}
            self.processes[start] = subprocess.Popen(GAME_SERVER, env=environment, stdin=subprocess.DEVNULL)
        return 200, {"handle": f"process-{self.processes[start].pid}"}

    def stop(self, event):
        process = self.processes.get(event["start_id"])
        if process is None:
            return 404, {}
        try:
            # Its last heartbeat has told it to end.
            return 200, {"status": process.wait(PATIENCE)}
        except subprocess.TimeoutExpired:
            return 503, {}

    def answer(self, status, body):
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def main():
    server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(CERTIFICATE, KEY)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    print(server.server_port, flush=True)
    Receiver.webhook = Webhook(sys.stdin.readline().strip())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        sys.stdin.read()
    finally:
        for process in Receiver.processes.values():
            process.kill()
            process.wait()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to end"))
    main()
