"""Requests and responses of the API. Made from infra/openapi.json by `python3 write_types.py`."""

from typing import Any, Literal, TypeAlias, TypedDict


class CaptchaResponse(TypedDict):
    # What the captcha's provider gave the client.
    client_response: str


# The client's answers to captchas.
class Captcha(TypedDict, total=False):
    hcaptcha: CaptchaResponse | None
    turnstile: CaptchaResponse | None


# Any JSON.
Json: TypeAlias = Any


class _FindLobbyRequest(TypedDict):
    # Modes of the namespace's current version that the lobby may have; the first decides what is created.
    # Duplicates count once.
    game_modes: list[str]


class FindLobbyRequest(_FindLobbyRequest, total=False):
    # Regions that the lobby may be in, by `region_id`; a filter. None, or an empty list, means the
    # recommended one: the nearest to the player where the deployment knows it, else the first region of the
    # first mode.
    regions: list[str] | None
    # The client's latencies by `region_id`, in milliseconds, integers or decimals; null for a region that it
    # cannot reach. Other regions than these are not searched, and regions that the game lacks are ignored.
    # With `regions`, those limit and latencies order. None, or an empty object, means that nothing was
    # measured.
    latencies: dict[str, float | None] | None
    # Tags that the lobby must have; a lobby created gets them. Only for modes that take tags. Lengths are in
    # bytes of UTF-8.
    tags: dict[str, str] | None
    # Seats of a lobby created for this request, at most the mode's own maximum; does not filter. Only for
    # modes that allow it.
    max_players: int | None
    # Lobbies in which no seat is wanted, such as the one that the player just left.
    exclude_lobby_ids: list[str] | None
    # Whether to refuse rather than create a lobby.
    prevent_auto_create_lobby: bool | None
    # The version of the game that the client is made for. Another one than the namespace runs is refused.
    version_id: str | None
    captcha: Captcha | None
    # Passed to the studio's own verification exactly as it was sent; any content, at most 16 deep.
    verification_data: dict[str, Any] | None
    # Players who want seats of one lobby together, all or none: at most the mode's `party_size_max`.
    party_size: int | None
    # What the client says of its player, such as a name: any JSON of up to 512 bytes, at most 16 deep. It is
    # in the player token, readable by its holder, and passed to the game server and to the studio's own
    # verification exactly as it was sent. Of a party, it is the first player's.
    player_data: Json
    # The same of each player of a party, in the order of `players` in the response; null for one of whom
    # nothing is said. Not with `player_data`.
    players_data: list[Json] | None


class _JoinLobbyRequest(TypedDict):
    # The lobby: its identifier, or the code of one that a player created. Any case and blanks around it are
    # accepted.
    lobby_id: str


class JoinLobbyRequest(_JoinLobbyRequest, total=False):
    # The version of the game that the client is made for. Another one than the namespace runs is refused.
    version_id: str | None
    captcha: Captcha | None
    # Passed to the studio's own verification exactly as it was sent; any content, at most 16 deep.
    verification_data: dict[str, Any] | None
    # Players who want seats of one lobby together, all or none: at most the mode's `party_size_max`.
    party_size: int | None
    # What the client says of its player, such as a name: any JSON of up to 512 bytes, at most 16 deep. It is
    # in the player token, readable by its holder, and passed to the game server and to the studio's own
    # verification exactly as it was sent. Of a party, it is the first player's.
    player_data: Json
    # The same of each player of a party, in the order of `players` in the response; null for one of whom
    # nothing is said. Not with `player_data`.
    players_data: list[Json] | None


class _CreateLobbyRequest(TypedDict):
    # A mode of the namespace's current version.
    game_mode: str


class CreateLobbyRequest(_CreateLobbyRequest, total=False):
    # Where the lobby is to run, by `region_id`. Without it the recommended region is taken: the nearest to
    # the player where the deployment knows it, else the first region of the mode.
    region: str | None
    # Whether the lobby may be found and listed, or only joined by its identifier or code.
    publicity: Literal["public", "private", None]
    # Tags of the lobby. Only for modes that take tags. Lengths are in bytes of UTF-8.
    tags: dict[str, str] | None
    # Seats of the lobby, at most the mode's own maximum. Only for modes that allow it.
    max_players: int | None
    # Passed to the game server with the lobby, exactly as it was sent: any JSON of up to 16 KiB, at most 16
    # deep. Numbers must be finite as doubles, and surrogates come in pairs.
    lobby_config: Json
    # The version of the game that the client is made for. Another one than the namespace runs is refused.
    version_id: str | None
    captcha: Captcha | None
    # Passed to the studio's own verification exactly as it was sent; any content, at most 16 deep.
    verification_data: dict[str, Any] | None
    # Players who want seats of one lobby together, all or none: at most the mode's `party_size_max`.
    party_size: int | None
    # What the client says of its player, such as a name: any JSON of up to 512 bytes, at most 16 deep. It is
    # in the player token, readable by its holder, and passed to the game server and to the studio's own
    # verification exactly as it was sent. Of a party, it is the first player's.
    player_data: Json
    # The same of each player of a party, in the order of `players` in the response; null for one of whom
    # nothing is said. Not with `player_data`.
    players_data: list[Json] | None


class Region(TypedDict):
    # Short name that requests use; not a UUID.
    region_id: str
    # Name that players read.
    display_name: str


class _Lobby(TypedDict):
    # Identifies the lobby; the nil UUID in mocks.
    lobby_id: str
    region: Region


class Lobby(_Lobby, total=False):
    # What friends type in place of the identifier, as long as the lobby lives; only in the response of
    # createLobby, to the lobby's maker.
    code: str


# Any port from `min` to `max`, both included.
class PortRange(TypedDict):
    min: int
    max: int


# A single port, with `port_range` null, or a range, with `host` and `port` null.
class Port(TypedDict):
    # Hostname and port: `hostname:port`.
    host: str | None
    # The host alone; an IPv6 address in brackets, as in URLs.
    hostname: str
    # The port.
    port: int | None
    port_range: PortRange | None
    # Whether to connect with TLS.
    is_tls: bool


# Where to connect, by label. The ports of one lobby are all TLS or all not.
Ports: TypeAlias = dict[str, Port]


class Player(TypedDict):
    # Opaque text that the client shows the lobby server, which validates it.
    token: str


class _FindLobbyResponse(TypedDict):
    lobby: Lobby
    ports: Ports
    # The player; of a party the first.
    player: Player


class FindLobbyResponse(_FindLobbyResponse, total=False):
    # All players of a party; absent for a player alone.
    players: list[Player]


# 1 to 64 letters, digits, hyphens and underscores.
Identifier: TypeAlias = str


class GameModeInfo(TypedDict):
    # The mode's name.
    game_mode_id: Identifier


class Coord(TypedDict):
    # Degrees north.
    latitude: float
    # Degrees east.
    longitude: float


# In a straight line over the globe; 0 where the player's place is unknown.
class Distance(TypedDict):
    kilometers: float
    miles: float


class _RegionInfo(TypedDict):
    # Short name that requests use; not a UUID.
    region_id: str
    # Name of the provider that runs the machines there.
    provider_display_name: str
    # Name that players read.
    region_display_name: str
    datacenter_coord: Coord
    datacenter_distance_from_client: Distance


class RegionInfo(_RegionInfo, total=False):
    # URL that a client calls to measure its latency, by https or wss, or by http or ws at localhost; absent
    # without one.
    probe: str


class _LobbyInfo(TypedDict):
    # Where it runs.
    region_id: Identifier
    # Its mode.
    game_mode_id: Identifier
    # Identifies the lobby.
    lobby_id: str
    # Seats that finds fill it up to.
    max_players_normal: int
    # Seats that joins fill it up to.
    max_players_direct: int
    # Seats that parties fill it up to, where that is more.
    max_players_party: int
    # Seats held: players who connected, or are expected to.
    total_player_count: int
    # Those of them whose players have connected.
    connected_player_count: int


class LobbyInfo(_LobbyInfo, total=False):
    # Its state, null when none was ever set; only when the request asks for states, and while those of the
    # page so far fit into 256 KB. getLobbyState returns it, too.
    state: Json


class _ListLobbiesResponse(TypedDict):
    # The listable modes of the namespace's current version.
    game_modes: list[GameModeInfo]
    # The game's regions, the nearest to the player first.
    regions: list[RegionInfo]
    # Public lobbies of these modes, those with a free seat first.
    lobbies: list[LobbyInfo]


class ListLobbiesResponse(_ListLobbiesResponse, total=False):
    # Present, and true, when there are more lobbies than all pages may have.
    is_truncated: bool
    # Present when there is another page: the query parameter `cursor` that requests it.
    next_cursor: str


class ListRegionsResponse(TypedDict):
    # The nearest to the player first.
    regions: list[RegionInfo]


# Empty, unless the request asks for `details`.
class ConnectPlayerResponse(TypedDict, total=False):
    # The player's name within the lobby, the same for as long as the player has the seat, also for a player
    # who came back.
    player_id: str
    # How many tokens of the seat there were before the one that was shown: 0 unless the player came back.
    generation: int
    # True if another connection of the player may still be open: drop it. Absent otherwise.
    replaced: bool
    # The name of the player's party within the lobby: the `player_id` of its first player. Absent for a
    # player alone.
    party_id: str
    # How many players took their seats with the player; present with `party_id`.
    party_size: int
    # The `player_data` of the request that took the seat, exactly as it was sent; absent when it had none.
    # Players claim it of themselves.
    player_data: Json


# RFC 3339 in UTC with milliseconds.
Time: TypeAlias = str


class RegisterServerResponse(TypedDict):
    # Identifies the game server in its namespace.
    server_id: Identifier
    # When the lease lapses unless a heartbeat extends it; null without lease.
    lease_expires_at: Time | None


# Its seats that are held.
class ServerLobbySeats(TypedDict):
    # Players on their way.
    reserved: int
    # Players who connected.
    connected: int


class _ServerLobby(TypedDict):
    # Identifies the lobby.
    lobby_id: str
    # The lobby's own token, for its state, readiness and players.
    lobby_token: str
    # Its mode.
    game_mode: Identifier
    # Where it runs.
    region_id: Identifier
    # Its tags.
    tags: dict[str, str]
    # Seats that finds fill it up to.
    max_players: int
    # Its seats that are held.
    seats: ServerLobbySeats
    # When it was created.
    created_at: Time


class ServerLobby(_ServerLobby, total=False):
    # What createLobby was given for it; absent when nothing was.
    lobby_config: Json


class _HeartbeatResponse(TypedDict):
    # The lobbies that the game server runs, oldest first.
    lobbies: list[ServerLobby]


class HeartbeatResponse(_HeartbeatResponse, total=False):
    # When the lease lapses unless another heartbeat extends it; absent without lease.
    lease_expires_at: Time
    # Present and true when the game server deregistered: it gets no lobby any more, and is unknown once these
    # have ended.
    draining: bool
    # True when Muster had it started and it had no lobbies for its idle time: it is to end. Absent otherwise.
    stop: bool
    # Present when there are more lobbies.
    cursor: str


class _ServerPort(TypedDict):
    # The host that players connect to: a name, an IPv4 address, or an IPv6 address, with or without brackets.
    # Not an address on which programs only listen, such as `0.0.0.0`. Clients get it in brackets, and an
    # international name in its ASCII form.
    hostname: str
    # The protocol there; `https` and `tcp_tls` use TLS.
    protocol: Literal["http", "https", "tcp", "tcp_tls", "udp"]


# Where players connect: at a single port or at any of a range.
class ServerPort(_ServerPort, total=False):
    # The port.
    port: int | None
    port_range: PortRange | None


# Where players connect, by label. All use TLS or none does.
ServerPorts: TypeAlias = dict[str, ServerPort]
