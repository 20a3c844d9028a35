"""Requests: one attempt, and attempts until there is a response that stays. Times are in seconds of the event loop's
clock."""

import asyncio
import itertools
import json
import random as system_random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from .error import MusterError

#: After so long an attempt without a response counts as lost.
ATTEMPT = 11.0
#: The same of a call that seats players or changes game servers, which may take 29 seconds.
LONG_ATTEMPT = 31.0
DEADLINE = 60.0
#: The bound of the first random delay, which doubles up to the last.
BACKOFF = 0.5
BACKOFF_MAX = 8.0


@dataclass(frozen=True)
class Call:
    """A request as it is sent, the same in each attempt."""

    method: str
    #: Below `/matchmaker`.
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None


def now() -> float:
    return asyncio.get_running_loop().time()


def json_body(value: object) -> bytes:
    # As short as it can be: what is limited counts bytes.
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


class Service:
    """The API at an address."""

    def __init__(
        self,
        url: str,
        transport: httpx.AsyncBaseTransport | None = None,
        random: Callable[[], float] = system_random.random,
    ) -> None:
        self._url = f"{url.rstrip('/')}/matchmaker"
        # Attempts have limits of their own, in which none waits for the connection of another.
        self._http = httpx.AsyncClient(transport=transport, timeout=None, limits=httpx.Limits(max_connections=None))
        self._random = random

    async def close(self) -> None:
        await self._http.aclose()

    def delay(self, failures: int, retry_after: int | None) -> float:
        """The time before the next attempt: what the service asks for, and a full jitter."""
        return (retry_after or 0) + self._random() * min(BACKOFF_MAX, BACKOFF * 2.0**failures)

    async def attempt(self, call: Call, limit: float) -> Any:
        """Sends a request once.

        Raises `MusterError` where it is refused or gets no whole response.
        """
        request = self._http.request(call.method, f"{self._url}/{call.path}", headers=call.headers, content=call.body)
        try:
            response = await asyncio.wait_for(request, limit)
            if not response.is_success:
                raise refusal(response)
            return response.json()
        except httpx.UnsupportedProtocol:
            raise
        except (httpx.HTTPError, asyncio.TimeoutError, ValueError) as error:
            # A body that was cut off is no response either.
            raise MusterError("no response of the matchmaker") from error

    async def send(self, call: Call, deadline: float = DEADLINE, limit: float = ATTEMPT) -> Any:
        """Sends a request that changes nothing when it is repeated, until it gets a response that stays."""
        end = now() + deadline
        for failures in itertools.count():
            try:
                return await self.attempt(call, min(limit, end - now()))
            except MusterError as error:
                wait = self.delay(failures, error.retry_after)
                if not error.is_transient or now() + wait >= end:
                    raise
            await asyncio.sleep(wait)


def refusal(response: httpx.Response) -> MusterError:
    try:
        body = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        # The gateway's own responses may have no body.
        body = {}
    seconds = response.headers.get("retry-after", "")
    return MusterError(
        body.get("message", f"status {response.status_code}"),
        status=response.status_code,
        code=body.get("code"),
        # A date would compare two clocks.
        retry_after=int(seconds) if seconds.isascii() and seconds.isdecimal() else None,
        ray_id=body.get("ray_id") or response.headers.get("x-request-id"),
        documentation=body.get("documentation"),
        metadata=body.get("metadata"),
    )
