"""A service that responds by a script, on an event loop whose time passes at once while everything waits."""

import asyncio
import functools
import json
import selectors
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx

RULES: dict[str, Any] = json.loads((Path(__file__).parent / "../../rules.json").read_text())
URL = "http://muster.example/"


class Waiting(selectors.DefaultSelector):
    """A selector that does not wait: it notes for how long it would have."""

    passed = 1_000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise AssertionError("nothing will ever happen")
        if not ready and timeout:
            self.passed += timeout
        return ready


class PassingTime(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._waiting = Waiting()
        super().__init__(self._waiting)

    def time(self) -> float:
        return self._waiting.passed


async def end() -> None:
    """Ends what a test left running."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)


def in_passing_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*given: Any) -> None:
        loop = PassingTime()
        problems: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _, problem: problems.append(problem))
        try:
            loop.run_until_complete(test(*given))
            loop.run_until_complete(end())
        finally:
            loop.close()
        assert problems == [], problems

    return run


def now() -> float:
    return asyncio.get_running_loop().time()


class Request:
    """A request that the client sent."""

    def __init__(self, sent: httpx.Request) -> None:
        self.at = now()
        self.path = sent.url.path.removeprefix("/matchmaker/")
        self.headers = sent.headers
        self.body = sent.content

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Answer = httpx.Response | Awaitable[httpx.Response]


class Script:
    """A transport that notes each request, and responds what `answer` makes of it and of the number of those before."""

    def __init__(self, answer: Callable[[Request, int], Answer]) -> None:
        self.requests: list[Request] = []
        self._answer = answer
        self.transport = httpx.MockTransport(self._handle)

    async def _handle(self, sent: httpx.Request) -> httpx.Response:
        request = Request(sent)
        self.requests.append(request)
        answer = self._answer(request, len(self.requests) - 1)
        return answer if isinstance(answer, httpx.Response) else await answer

    def sent(self, operation: str) -> list[Request]:
        return [request for request in self.requests if request.path.split("/")[1] == operation]


def response(given: dict[str, Any] | None) -> httpx.Response:
    """What a case of rules.json responds; `None` for a connection that breaks."""
    if given is None:
        raise httpx.ReadError("the connection broke")
    rest = {key: value for key, value in given.items() if key not in ("status", "code", "metadata", "retry_after", "body")}
    if "code" in given:
        rest = {"code": given["code"], "message": "in words", "ray_id": "ray", "metadata": given.get("metadata")}
    headers = {"retry-after": given["retry_after"]} if "retry_after" in given else {}
    return httpx.Response(given.get("status", 200), headers=headers, text=given.get("body", json.dumps(rest)))


def seat(players: int = 1, token: str = "player_first") -> dict[str, Any]:
    """The response of a find, with as many players."""
    tokens = [{"token": f"player_{index}" if index else token} for index in range(players)]
    port = {"host": "fra.example:443", "hostname": "fra.example", "port": 443, "port_range": None, "is_tls": True}
    wide = {"host": None, "hostname": "fra.example", "port": None, "port_range": {"min": 1, "max": 2}, "is_tls": True}
    return {
        "lobby": {"lobby_id": "6b0ff0c5-6d3c-4a0b-9a3d-000000000001", "region": {"region_id": "fra", "display_name": "Frankfurt"}},
        "ports": {"default": port, "voice": wide},
        "player": tokens[0],
        **({"players": tokens} if players > 1 else {}),
    }
