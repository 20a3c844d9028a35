"""The matchmaker of one namespace, for players."""

import asyncio
import random as system_random
import secrets
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode

import httpx

from .api import CreateLobbyRequest, FindLobbyRequest, FindLobbyResponse, JoinLobbyRequest, ListLobbiesResponse, RegionInfo
from .http import DEADLINE, Call, Service, json_body, now
from .intent import Background, Intent
from .seat import Seat, seat_call

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class Muster:
    """The matchmaker of one namespace, for players. `url` is the API's address, `token` the namespace's public token.

    Each method takes a `deadline` in seconds, retries included. Cancelling the task of a find, join or create gives up
    the seat that it may have. Close the client at the end, as `async with` does: that waits until such seats are left.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        random: Callable[[], float] = system_random.random,
    ) -> None:
        self._service = Service(url, transport, random)
        self._headers = {"authorization": f"Bearer {token}"}
        self._background = Background()

    async def __aenter__(self) -> "Self":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self.settled()
        await self._service.close()

    async def settled(self) -> None:
        """Waits until nothing goes on in the background: seats of intents that were given up are left."""
        await self._background.settled()

    async def find(self, *, deadline: float = DEADLINE, **request: "Unpack[FindLobbyRequest]") -> Seat:
        """Finds a seat, in a lobby that fits or a new one."""
        return await self._take("find", request, deadline)

    async def join(self, *, deadline: float = DEADLINE, **request: "Unpack[JoinLobbyRequest]") -> Seat:
        """Takes a seat in a lobby, by its identifier or its code."""
        return await self._take("join", request, deadline)

    async def create(self, *, deadline: float = DEADLINE, **request: "Unpack[CreateLobbyRequest]") -> Seat:
        """Creates a lobby, private by default, and takes its first seat."""
        return await self._take("create", request, deadline)

    async def list(
        self,
        *,
        include_state: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
        deadline: float = DEADLINE,
    ) -> ListLobbiesResponse:
        """Public lobbies that are open, a page of them."""
        query = {"include_state": str(include_state).lower(), "limit": limit, "cursor": cursor}
        given = urlencode({name: value for name, value in query.items() if value is not None})
        return cast(ListLobbiesResponse, await self._get(f"lobbies/list?{given}", deadline))

    async def regions(self, *, deadline: float = DEADLINE) -> Sequence[RegionInfo]:
        """The game's regions, the nearest first."""
        return cast(Sequence[RegionInfo], (await self._get("regions", deadline))["regions"])

    async def seat(self, token: str, *, deadline: float = DEADLINE) -> Seat:
        """The seat of a token that was handed over, such as by the leader of a party, or kept over a restart."""
        sent_at = now()
        return Seat(self._service, await self._service.send(seat_call("rejoin", token), deadline), sent_at)

    async def _take(self, operation: str, request: object, deadline: float) -> Seat:
        headers = {**self._headers, "content-type": "application/json", "idempotency-key": secrets.token_hex(16)}
        call = Call("POST", f"lobbies/{operation}", headers, json_body(request))
        sent_at = now()
        answer = await Intent(self._service, call, self._give_back, self._background).take(deadline)
        return Seat(self._service, answer, sent_at)

    async def _give_back(self, answer: FindLobbyResponse) -> None:
        await asyncio.gather(*(seat.leave() for seat in Seat(self._service, answer, now()).party))

    async def _get(self, path: str, deadline: float) -> Any:
        return await self._service.send(Call("GET", path, self._headers), deadline)
