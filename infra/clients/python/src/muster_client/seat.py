"""A player's place in a lobby."""

from .api import FindLobbyResponse, Player, Port, Region
from .http import DEADLINE, Call, Service, json_body, now

#: For so long a player token is valid, in seconds.
TOKEN_LIFE = 9 * 3_600.0


def seat_call(operation: str, token: str) -> Call:
    """A call about a seat: its token is the right."""
    return Call("POST", f"players/{operation}", body=json_body({"player_token": token}))


class Seat:
    """A player's place in a lobby."""

    def __init__(self, service: Service, answer: FindLobbyResponse, sent_at: float) -> None:
        lobby = answer["lobby"]
        self._service = service
        self.lobby_id: str = lobby["lobby_id"]
        self.region: Region = lobby["region"]
        #: What friends give `join` in place of `lobby_id`, in a lobby that this player created.
        self.code: str | None = lobby.get("code")
        #: By label, what the game server registered.
        self.ports: dict[str, Port] = answer["ports"]
        #: What the player shows the game server: the seat's newest player token.
        self.token: str = answer["player"]["token"]
        #: When the token expires, in seconds of the event loop's clock. Connect at once: before that, the seat is held
        #: only for the game mode's `reservation_seconds`.
        self.expires_at = sent_at + TOKEN_LIFE
        #: The seats of a party in the order of `players_data`, this one first; this one alone without a party.
        self.party: list[Seat] = [self, *(self._of(other, answer, sent_at) for other in answer.get("players", [])[1:])]

    def _of(self, player: Player, answer: FindLobbyResponse, sent_at: float) -> "Seat":
        return Seat(self._service, {"lobby": answer["lobby"], "ports": answer["ports"], "player": player}, sent_at)

    def address(self, label: str | None = None) -> tuple[str, int]:
        """Host and port as sockets take them, of the first port by default.

        Raises `LookupError` where there is no single port of that label.
        """
        port = self._port(label)
        assert port["port"] is not None
        return port["hostname"].strip("[]"), port["port"]

    def url(self, label: str | None = None, scheme: str = "ws") -> str:
        """The URL of a port, of the first one by default: `ws:` or `wss:`, and `http:` or `https:` with that scheme.

        Raises `LookupError` where there is no single port of that label.
        """
        port = self._port(label)
        return f"{scheme}{'s' if port['is_tls'] else ''}://{port['host']}"

    def _port(self, label: str | None) -> Port:
        port = self.ports.get(next(iter(self.ports)) if label is None else label)
        if port is None or port["port"] is None:
            raise LookupError(f"no single port {label!r} among {', '.join(self.ports)}")
        return port

    async def leave(self, *, deadline: float = DEADLINE) -> None:
        """Gives the seat up. Once the player is connected, the game server frees it."""
        await self._service.send(seat_call("leave", self.token), deadline)

    async def rejoin(self, *, deadline: float = DEADLINE) -> None:
        """Comes back to the seat: gets its newest token, a fresh one where that has connected."""
        sent_at = now()
        answer: FindLobbyResponse = await self._service.send(seat_call("rejoin", self.token), deadline)
        self.token = answer["player"]["token"]
        self.ports = answer["ports"]
        self.expires_at = sent_at + TOKEN_LIFE
