"""The running stack at MUSTER_URL, with namespaces of the tests' own."""

import os
import uuid
from typing import Any

import httpx

URL = os.environ.get("MUSTER_URL", "http://127.0.0.1:3000")


class Namespace:
    """A namespace of the demo game that runs these modes: its tokens."""

    def __init__(self, modes: dict[str, Any]) -> None:
        demo = answered(httpx.get(f"{URL}/_local/demo"))
        name = uuid.uuid4().hex[:8]

        def post(path: str, body: dict[str, Any]) -> Any:
            headers = {"authorization": f"Bearer {demo['tokens']['cloud']}"}
            return answered(httpx.post(f"{URL}/cloud/games/{demo['game_id']}/{path}", headers=headers, json=body))

        version = post("versions", {"display_name": name, "config": {"game_modes": modes}})["version_id"]
        about = {"display_name": name, "name_id": name, "version_id": version}
        namespace = post("namespaces", about)["namespace_id"]
        self.public = post(f"namespaces/{namespace}/tokens/public", {})["token"]
        self.server = post(f"namespaces/{namespace}/tokens/server", {})["token"]


def answered(response: httpx.Response) -> Any:
    assert response.is_success, response.text
    return response.json()


class Lossy(httpx.AsyncHTTPTransport):
    """A network that loses what `faults` says of the next calls, "request" or "response", then nothing."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__()
        self.faults = faults

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        fault = self.faults.pop(0) if self.faults else None
        if fault == "request":
            raise httpx.ConnectError("the request is lost")
        response = await super().handle_async_request(request)
        if fault == "response":
            await response.aread()
            raise httpx.ReadError("the response is lost")
        return response
