"""Client of Muster for game servers."""

import asyncio
import logging
import math
import random as system_random
import secrets
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import httpx

from .api import HeartbeatResponse, ServerLobby, ServerPort
from .error import MusterError
from .http import DEADLINE, LONG_ATTEMPT, Call, Service, json_body, now
from .intent import Background
from .lobby import Lobby, Player

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["GameServer", "Lobby", "MusterError", "Player", "ServerPort"]

LEASE_LEAST = 30
#: For so long the list of a heartbeat may lag behind the creation of a lobby.
LAG = 2.0
#: Pauses between looks for a lobby whose player arrives before it is listed.
LOOKS = (0.0, 0.25, 0.5, 1.0)
#: The least time between two such looks, however many players arrive.
LOOK_PAUSE = 0.25

log = logging.getLogger("muster_client")


class GameServer:
    """A game server: registers, renews its lease, learns of its lobbies and admits their players.

    `async with` registers it, and deregisters it at the end. `async for` gives each lobby that it gets: the loop ends
    when the server has stopped, and raises `MusterError` where a later start of the server has registered.

    - `url`: the API's address. `token`: the namespace's server token, which no client has.
    - `ports`: what players connect to, by label. `capacity`: lobbies that it runs at once.
    - `game_modes`: modes that it runs; all by default.
    - `build`: the build that it runs, any JSON, for versions whose `servers` name it; without it, for versions without
      `servers`.
    - `server_id`: names the server over restarts; without it, its address does.
    - `start_id_file`: keeps `start_id` over a crash, for a server whose matches survive one. Their players may come
      back for `keep_seconds`.
    - `heartbeat_seconds`: between heartbeats. The lease is three times that, and at least 30.
    - `auto_ready`: whether lobbies are ready at once. Without it, `heartbeat_seconds` has to be 1 or 2.
    - `drain_on_sigterm`: has SIGTERM stop the server as `stop` does.
    - `on_error`: gets the error of a heartbeat, or of a report that no caller waits for. By default it is logged.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        region: str,
        ports: Mapping[str, ServerPort],
        capacity: int = 1,
        game_modes: list[str] | None = None,
        build: Any = None,
        server_id: str | None = None,
        start_id_file: str | Path | None = None,
        keep_seconds: int = 120,
        heartbeat_seconds: float = 30,
        auto_ready: bool = True,
        drain_on_sigterm: bool = False,
        on_error: Callable[[MusterError], object] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        random: Callable[[], float] = system_random.random,
    ) -> None:
        self._service = Service(url, transport, random)
        self._headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        self._token = token
        lease = max(LEASE_LEAST, math.ceil(3 * heartbeat_seconds))
        # Of a heartbeat: two more fit into the lease.
        self._patience = lease / 3
        self._about = {
            "region_id": region,
            "capacity": capacity,
            "ports": ports,
            "game_modes": game_modes,
            "build": build,
            "auto_ready": auto_ready,
            "lease_seconds": lease,
        }
        self._server_id = server_id
        self._start_id_file = None if start_id_file is None else Path(start_id_file)
        self._keep_seconds = keep_seconds
        self._interval = heartbeat_seconds
        self._drains_on_sigterm = drain_on_sigterm
        self._on_error = on_error or (lambda error: log.warning("game server: %s", error))
        self._lobbies: dict[str, Lobby] = {}
        # Lobbies that the loop has not seen; `None` is its end.
        self._new: asyncio.Queue[Lobby | None] = asyncio.Queue()
        self._background = Background()
        self._loop: asyncio.Task[None] | None = None
        self._start_id = ""
        self._is_registered = False
        # Whether an earlier process of the same start had these lobbies, whose connections are gone.
        self._is_returning = False
        self._is_stopping = False
        self._over = asyncio.Event()
        # The error of a later start.
        self._exit: MusterError | None = None
        self._beating: asyncio.Task[None] | None = None
        # The one after that, for all who need what it does not know yet.
        self._next: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._began = -math.inf

    @property
    def lobbies(self) -> Mapping[str, Lobby]:
        """The lobbies that run, by their identifiers."""
        return self._lobbies

    async def __aenter__(self) -> "Self":
        try:
            await self.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # With a file, an error is a crash, which matches survive.
            if not self._over.is_set() and (error is None or self._start_id_file is None):
                await self.stop(end_lobbies=True)
        finally:
            await self.close()

    async def __aiter__(self) -> AsyncIterator[Lobby]:
        while lobby := await self._new.get():
            yield lobby
        # For the next loop, if there is one.
        self._new.put_nowait(None)
        if self._exit:
            raise self._exit

    async def start(self, *, deadline: float = DEADLINE) -> None:
        """Registers, and from then on sends heartbeats. Listen for players before.

        Raises `MusterError` where the registration is refused, or gets no response before the deadline.
        """
        self._start_id = self._name_start()
        await self._register(deadline)
        await self.beat()
        if self._drains_on_sigterm:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._drain)
        self._loop = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Ends heartbeats without a word, so that the lease expires. `stop` deregisters."""
        if self._loop:
            self._loop.cancel()
        if self._drains_on_sigterm:
            asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
        self._end()
        await self._background.settled()
        await self._service.close()

    async def stop(self, *, end_lobbies: bool = False) -> None:
        """Deregisters: no new lobbies come. Waits until the last lobby has ended, or ends them all."""
        self._is_stopping = True
        # The next process is another start.
        if self._start_id_file:
            self._start_id_file.unlink(missing_ok=True)
        try:
            await self._servers("deregister", {"end_lobbies": end_lobbies}, DEADLINE)
            if not end_lobbies:
                await self.beat()
        except MusterError as error:
            if not is_unknown(error):
                raise
            self._end()
        if end_lobbies:
            self._end()
        await self._over.wait()

    async def beat(self) -> None:
        """Sends a heartbeat now; during another one, when that is over: there is one at a time."""
        if self._next is None:
            if self._beating and not self._beating.done():
                self._next = self._background.start(self._beat_after(self._beating))
            else:
                self._beating = self._background.start(self._heartbeat())
        await asyncio.shield(self._next or cast("asyncio.Task[None]", self._beating))

    async def admit(self, lobby_id: str, token: str) -> Player:
        """Admits a player who shows lobby and token: looks for a lobby that is too young to be listed, and reports the
        player connected.

        Raises `MusterError` where the player is to be refused, by its `code`; `is_transient` where Muster cannot say.
        """
        return await (await self._look_for(lobby_id)).admit(token)

    def _drain(self) -> None:
        # The next signal ends the process.
        asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
        self._background.start(self._report(self.stop()))

    async def _run(self) -> None:
        while not self._over.is_set():
            await asyncio.sleep(self._interval)
            await self._report(self.beat())

    async def _beat_after(self, earlier: "asyncio.Task[None]") -> None:
        await asyncio.wait([earlier])
        self._beating, self._next = self._next, None
        await self._heartbeat()

    def _name_start(self) -> str:
        made = secrets.token_hex(16)
        if self._start_id_file:
            try:
                kept = self._start_id_file.read_text().strip()
                self._is_returning = True
                return kept
            except FileNotFoundError:
                self._start_id_file.write_text(made)
        return made

    async def _register(self, deadline: float) -> None:
        body = {**self._about, "server_id": self._server_id, "start_id": self._start_id}
        registered = await self._call("POST", "servers/register", self._token, body, deadline=deadline)
        self._server_id = registered["server_id"]
        self._is_registered = True

    async def _heartbeat(self) -> None:
        """Renews the leases of server and lobbies, page by page, and notes which lobbies there are."""
        began = self._began = now()
        listed = set()
        cursor = None
        while True:
            page = await self._page(cursor)
            for assigned in page["lobbies"]:
                listed.add(assigned["lobby_id"])
                if known := self._lobbies.get(assigned["lobby_id"]):
                    known.update(assigned)
                else:
                    await self._open(assigned)
            # The operator may have deregistered it, too.
            self._is_stopping |= page.get("draining", False)
            if page.get("stop"):
                return self._end()
            cursor = page.get("cursor")
            if cursor is None:
                break
        self._is_returning = False
        for lobby in list(self._lobbies.values()):
            # A young one with players may only be missing. Without players nothing is lost by a mistake.
            may_live = lobby.players and lobby.since + LAG >= began
            if lobby.lobby_id not in listed and not may_live:
                self._forget(lobby)

    async def _page(self, cursor: str | None) -> HeartbeatResponse:
        try:
            return cast(HeartbeatResponse, await self._servers("heartbeat", {"cursor": cursor}, self._patience))
        except MusterError as error:
            if not is_unknown(error):
                raise
        # It has drained, or registers again. Either way its lobbies are gone.
        if self._is_stopping:
            self._end()
        elif not self._over.is_set():
            try:
                await self._register(self._patience)
            except MusterError as error:
                if error.code != "MATCHMAKER_LOBBY_STATE_CONFLICT":
                    raise
                self._exit = error
                self._end()
        return {"lobbies": []}

    async def _open(self, assigned: ServerLobby) -> None:
        lobby = Lobby(
            assigned,
            call=self._call,
            end=self._end_lobby,
            emptied=lambda: self._background.start(self._report(self.beat())),
            background=self._background,
            since=now(),
        )
        if self._is_returning:
            await lobby.keep_everyone(self._keep_seconds)
        if self._over.is_set():
            return
        self._lobbies[lobby.lobby_id] = lobby
        self._new.put_nowait(lobby)

    async def _look_for(self, lobby_id: str) -> Lobby:
        if not self._is_registered:
            raise MusterError("the game server has not registered yet")
        for pause in LOOKS:
            if lobby_id in self._lobbies or self._over.is_set():
                break
            await asyncio.sleep(pause)
            if self._looking is None or self._looking.done():
                self._looking = self._background.start(self._look())
            await asyncio.shield(self._looking)
        lobby = self._lobbies.get(lobby_id)
        if lobby is None:
            message = "the game server does not run this lobby"
            raise MusterError(message, status=400, code="MATCHMAKER_LOBBY_NOT_FOUND")
        return lobby

    async def _look(self) -> None:
        """A heartbeat for all who arrive meanwhile, not too soon after the last one."""
        await asyncio.sleep(max(0.0, self._began + LOOK_PAUSE - now()))
        await self.beat()

    async def _end_lobby(self, lobby: Lobby) -> None:
        await self._call("POST", "servers/end-lobby", self._token, {"lobby_id": lobby.lobby_id})
        self._forget(lobby)
        if self._is_stopping:
            await self.beat()

    def _forget(self, lobby: Lobby) -> None:
        self._lobbies.pop(lobby.lobby_id, None)
        lobby.set_ended()

    def _end(self) -> None:
        if self._over.is_set():
            return
        self._over.set()
        for lobby in list(self._lobbies.values()):
            self._forget(lobby)
        self._new.put_nowait(None)

    async def _report(self, work: Any) -> None:
        try:
            await work
        except MusterError as error:
            self._on_error(error)

    async def _servers(self, operation: str, body: dict[str, object], deadline: float) -> Any:
        named = {"server_id": self._server_id, "start_id": self._start_id, **body}
        return await self._call("POST", f"servers/{operation}", self._token, named, deadline=deadline)

    async def _call(
        self, method: str, path: str, token: str, body: object, *, deadline: float | None = None
    ) -> Any:
        headers = {**self._headers, "authorization": f"Bearer {token}"}
        call = Call(method, path, headers, json_body(body))
        return await self._service.send(call, DEADLINE if deadline is None else deadline, LONG_ATTEMPT)


def is_unknown(error: MusterError) -> bool:
    return error.code == "MATCHMAKER_SERVER_NOT_FOUND"
