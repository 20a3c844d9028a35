"""A game server that Muster has started: it registers with what its environment has, admits players who call
it, and ends when a heartbeat says so. The environment also says where the API is (`API_PORT`, with the
authority `API_AUTHORITY`)."""

import http.server
import json
import os
import ssl
import threading
import time
from types import SimpleNamespace

from api import Api

GIVEN = {name.removeprefix("MUSTER_").lower(): value for name, value in os.environ.items()}
TLS = ssl.create_default_context(cafile=os.environ["API_AUTHORITY"])
API = Api(SimpleNamespace(port=int(os.environ["API_PORT"]), tls=TLS), GIVEN["api_url"])
SERVER = {"server_id": GIVEN["server_id"], "start_id": GIVEN["start_id"]}
# Seconds from one heartbeat to the next.
PAUSE = 0.5


def ask(path, body, token=GIVEN["server_token"]):
    return API.ask("POST", f"/matchmaker/{path}", body, token)


def beat():
    return ask("servers/heartbeat", SERVER)


class Door(http.server.BaseHTTPRequestHandler):
    """Where players come, with their lobby and token, and leave."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        player = json.loads(self.rfile.read(int(self.headers["content-length"])))
        tokens = {lobby["lobby_id"]: lobby["lobby_token"] for lobby in beat()["lobbies"]}
        ask(f"players{self.path}", {"player_token": player["token"]}, tokens[player["lobby_id"]])
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()


def main():
    door = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Door)
    threading.Thread(target=door.serve_forever, daemon=True).start()
    registration = {
        **SERVER,
        "region_id": GIVEN["region_id"],
        "capacity": int(GIVEN["capacity"]),
        "lease_seconds": int(GIVEN["lease_seconds"]),
        # Without a host name it gets the address from which it registers.
        "ports": {"default": {"port": door.server_port, "protocol": "http"}},
    }
    ask("servers/register", registration)
    while not beat().get("stop"):
        time.sleep(PAUSE)
    ask("servers/deregister", SERVER)


if __name__ == "__main__":
    main()
