"""A lobby that the game server runs, and its players."""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from .api import ConnectPlayerResponse, ServerLobby
from .error import MusterError
from .intent import Background

if TYPE_CHECKING:
    from typing_extensions import Self

#: How long a player waits to be admitted. Other calls matter to nobody who waits, and are repeated for longer.
ADMISSION = 10.0
ALREADY_CONNECTED = "MATCHMAKER_PLAYER_ALREADY_CONNECTED"
#: What a lobby that has ended responds to its last calls.
OVER = ("MATCHMAKER_LOBBY_STOPPED", "MATCHMAKER_LOBBY_NOT_FOUND")


class LobbyCall(Protocol):
    """Sends a call of a lobby, `POST` or `PUT` a path below `/matchmaker`, under its token."""

    def __call__(
        self, method: str, path: str, token: str, body: object, *, deadline: float | None = None
    ) -> Awaitable[Any]: ...


class Lobby:
    """A lobby that the game server runs. Its calls raise `MusterError` where they are refused."""

    def __init__(
        self,
        assigned: ServerLobby,
        *,
        call: LobbyCall,
        end: "Callable[[Lobby], Awaitable[None]]",
        emptied: Callable[[], object],
        background: Background,
        since: float,
    ) -> None:
        self.lobby_id = assigned["lobby_id"]
        self.game_mode = assigned["game_mode"]
        self.region = assigned["region_id"]
        self.tags = assigned["tags"]
        #: Seats that finds fill it up to.
        self.max_players = assigned["max_players"]
        #: What `create` was given for it.
        self.config: Any = assigned.get("lobby_config")
        #: Seats that are held, as of the last heartbeat.
        self.seats = assigned["seats"]
        #: Connected players by `player_id`.
        self.players: dict[str, Player] = {}
        #: When this process learned of it, in seconds of the event loop's clock.
        self.since = since
        self._token = assigned["lobby_token"]
        self._send = call
        self._end = end
        # Has the game server look at whether the lobby ended, because nobody is in it.
        self._emptied = emptied
        self._background = background
        self._ended = asyncio.Event()
        # Tokens of players who are connected or about to be.
        self._shown: set[str] = set()

    @property
    def is_ended(self) -> bool:
        return self._ended.is_set()

    async def ended(self) -> None:
        """Waits for the lobby's end."""
        await self._ended.wait()

    def set_ended(self) -> None:
        self._ended.set()

    def update(self, assigned: ServerLobby) -> None:
        """Takes over what another heartbeat says."""
        self.seats = assigned["seats"]
        self._token = assigned["lobby_token"]

    async def admit(self, token: str) -> "Player":
        """Reports a player as connected. `GameServer.admit` finds the lobby first."""
        # The service distinguishes a token that is shown twice from a retry of this call by nothing.
        if token in self._shown:
            raise MusterError("this token is connected", status=400, code=ALREADY_CONNECTED)
        self._shown.add(token)
        connecting = asyncio.create_task(self._connect(token))
        try:
            player = await asyncio.shield(connecting)
        except asyncio.CancelledError:
            self._background.start(self._take_back(connecting, token))
            raise
        except Exception:
            self._shown.discard(token)
            raise
        self.players[player.player_id] = player
        return player

    async def _connect(self, token: str) -> "Player":
        body = {"player_token": token, "details": True}
        try:
            details = await self._call("POST", "players/connected", body, ADMISSION)
        except MusterError as error:
            if error.code != ALREADY_CONNECTED:
                raise
            # Nobody was admitted by it: the response to an earlier call was lost.
            details = error.metadata
        return Player(self, token, details)

    async def _take_back(self, connecting: "asyncio.Task[Player]", token: str) -> None:
        """The end of an admission that nobody waits for any more."""
        try:
            await self.disconnected(await connecting)
        except MusterError:
            self._shown.discard(token)

    async def disconnected(self, player: "Player", keep_seconds: int | None = None) -> None:
        """Reports the end of a player's connection."""
        self._shown.discard(player.token)
        if self.players.get(player.player_id) is player:
            del self.players[player.player_id]
        body = {"player_token": player.token, "keep_seconds": keep_seconds}
        await self._unless_over("POST", "players/disconnected", body)
        if not self.players and not self.is_ended:
            self._emptied()

    async def keep_everyone(self, keep_seconds: int) -> None:
        """Has the seats of all connected players kept: a process that starts anew has none of their connections."""
        await self._unless_over("POST", "players/disconnected", {"everyone": True, "keep_seconds": keep_seconds})

    async def remove(self, player: "Player", exclude_seconds: int | None = None) -> None:
        """Frees a player's seat, and keeps the player out for so long; 8 hours by default."""
        if self.players.get(player.player_id) is player:
            del self.players[player.player_id]
        body = {"player_token": player.token, "exclude_seconds": exclude_seconds}
        await self._unless_over("POST", "players/remove", body)

    async def ready(self) -> None:
        """Reports the lobby as ready, where the game server has `auto_ready=False`."""
        await self._call("POST", "lobbies/ready", {})

    async def close(self) -> None:
        """Hides the lobby from finds, such as when the match begins."""
        await self._unless_over("PUT", "lobbies/closed", {"is_closed": True})

    async def open(self) -> None:
        """Lets finds see the lobby again."""
        await self._call("PUT", "lobbies/closed", {"is_closed": False})

    async def publicity(self, publicity: Literal["public", "private"]) -> None:
        await self._call("PUT", "lobbies/publicity", {"publicity": publicity})

    async def state(self, state: Any) -> None:
        """Publishes any JSON in lists of lobbies."""
        await self._unless_over("PUT", "lobbies/state", state)

    async def end(self) -> None:
        """Ends the lobby: the match is over."""
        await self._end(self)

    async def _call(self, method: str, path: str, body: object, deadline: float | None = None) -> Any:
        return await self._send(method, path, self._token, body, deadline=deadline)

    async def _unless_over(self, method: str, path: str, body: object) -> None:
        if self.is_ended:
            return
        try:
            await self._call(method, path, body)
        except MusterError as error:
            if error.code not in OVER:
                raise


class Player:
    """A player whom the game server admitted. `async with` reports the end of the connection."""

    def __init__(self, lobby: Lobby, token: str, details: ConnectPlayerResponse) -> None:
        self.lobby = lobby
        self.token = token
        #: Names the player within the lobby, also after coming back.
        self.player_id = details.get("player_id", token)
        #: What the client says of its player; nobody has checked it.
        self.data: Any = details.get("player_data")
        #: Whether the player came back, and may have another connection: drop that.
        self.replaced = details.get("replaced", False)
        #: Names the player's party, and says how many came together; `None` for a player alone.
        self.party_id = details.get("party_id")
        self.party_size = details.get("party_size")

    async def __aenter__(self) -> "Self":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.disconnected()

    async def disconnected(self, *, keep_seconds: int | None = None) -> None:
        """Reports that the player's connection ended; the seat is kept for so long, by default as the mode says."""
        await self.lobby.disconnected(self, keep_seconds)

    async def remove(self, *, exclude_seconds: int | None = None) -> None:
        """Frees the player's seat, and keeps the player out of this lobby."""
        await self.lobby.remove(self, exclude_seconds)
