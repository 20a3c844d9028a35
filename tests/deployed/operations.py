"""Every operation, asked once with what it needs: a request for each function, in a namespace that no
instance knows yet."""

import json
import uuid

from account import WORKSPACE

MODE = {"regions": ["fra"], "max_players": 4, "taggable": True, "actions": {"create": {"enabled": True}}}
CONFIG = {"game_modes": {"arena": MODE, "other": MODE}}
# Whose answer never comes: no name below `.invalid` is known.
VERIFICATION = {"url": "https://backend.invalid/may-play", "headers": {"authorization": "Bearer placeholder"}}


def screened(*actions):
    """A configuration whose players a backend decides about."""
    verified = {action: {"enabled": True, "verification": VERIFICATION} for action in actions}
    return {"game_modes": {"arena": {**MODE, "actions": {**MODE["actions"], **verified}}}}


# A user with the hash of a password.
USER = json.loads(
    json.loads((WORKSPACE / "tests" / "events" / "update-cdn-auth-user.json").read_text())["body"]
)


class Muster:
    """The operator's command, of a stack or a machine."""

    def __init__(self, stack, program):
        self.stack, self.program, self.environment = stack, program, stack.account.environment

    def __call__(self, *words, **more):
        """What it prints as JSON."""
        return json.loads(self.run(*words, "--json", **more).stdout)

    def run(self, *words, **more):
        return self.stack.account.run(
            self.program,
            *(*words, *self.stack.target),
            **{"stderr": -1, "env": self.environment, **more},
        )


class Game:
    """A game of the stack, with its cloud token."""

    def __init__(self, muster, name):
        self.muster, self.name, self.api = muster, name, muster.stack.api
        file = muster.stack.account.folder / f"{name}.json"
        file.write_text(json.dumps(CONFIG))
        regions = ["--region", "fra=Frankfurt@50.11,8.68", "--region", "nyc=New York@40.7,-74"]
        made = muster("game", "create", name, *regions, "--config", file)
        self.id, self.token, self.version, self.namespaces = (
            made[key] for key in ("game_id", "cloud_token", "version_id", "namespaces")
        )
        self.path = f"/cloud/games/{self.id}"

    def ask(self, method, path, body=None):
        return self.api.ask(method, self.path + path, body, self.token)


class World:
    """A namespace with its tokens and, once asked for, a game server and lobbies."""

    def __init__(self, game, config=None):
        """With this configuration it runs a version of its own."""
        self.game, self.api = game, game.api
        version = game.version
        if config:
            body = {"display_name": "Own", "config": config}
            version = game.ask("POST", "/versions", body)["version_id"]
        self.name = f"n-{uuid.uuid4().hex[:12]}"
        body = {"display_name": "World", "version_id": version, "name_id": self.name}
        self.id = game.ask("POST", "/namespaces", body)["namespace_id"]
        self.path = f"{game.path}/namespaces/{self.id}"
        # So many that none is refused, and few enough that each is noted.
        self.cloud("POST", "/mm-config", {"lobby_count_max": 100, "max_players": 1000})
        self.public = self.cloud("POST", "/tokens/public", {})["token"]
        self.server = self.cloud("POST", "/tokens/server", {})["token"]
        # No instance knows this one either.
        self.fresh = game.ask("POST", "/tokens/cloud", {})["token"]

    def cloud(self, method, path, body=None):
        return self.api.ask(method, self.path + path, body, self.game.token)

    def register(self, **more):
        body = {"server_id": "one", "region_id": "fra", "capacity": 10, "lease_seconds": 300, **more}
        body["ports"] = {"default": {"hostname": "game.example", "port": 7777, "protocol": "udp"}}
        return self.api.ask("POST", "/matchmaker/servers/register", body, self.server)

    def find(self, **more):
        return self.api.ask(
            "POST", "/matchmaker/lobbies/find", {"game_modes": ["arena"], **more}, self.public
        )

    def found(self, **more):
        """The lobby and the player of a find, once a server is there."""
        self.register(**more)
        found = self.find()
        return found["lobby"]["lobby_id"], found["player"]["token"]

    def created(self, **more):
        """The lobby and the player of a creation with tags and a configuration."""
        self.register(**more)
        made = self.api.ask("POST", "/matchmaker/lobbies/create", CREATE, self.public)
        return made["lobby"]["lobby_id"], made["player"]["token"]

    def stated(self):
        """A lobby with a state."""
        lobby, _ = self.created()
        self.api.ask("PUT", "/matchmaker/lobbies/state", {"round": 1}, self.lobby_token(lobby))

    def beat(self):
        return self.api.ask("POST", "/matchmaker/servers/heartbeat", {"server_id": "one"}, self.server)[
            "lobbies"
        ]

    def lobby_token(self, lobby):
        return next(listed["lobby_token"] for listed in self.beat() if listed["lobby_id"] == lobby)

    def connected(self, before):
        """A lobby with a connected player: its identifier, its token, the player's token."""
        lobby, player = before(self)
        token = self.lobby_token(lobby)
        self.api.ask("POST", "/matchmaker/players/connected", {"player_token": player}, token)
        return lobby, token, player


def of_players(path, body, before=None):
    """An operation of players, once `before` the namespace has what it needs."""

    def request(world):
        given = before(world) if before else None
        return "POST", f"/matchmaker/lobbies/{path}", body(given) if callable(body) else body, world.public

    return request


def of_lobby(method, path, body, before=World.found):
    def request(world):
        lobby, player = before(world)[:2]
        token = world.lobby_token(lobby)
        return method, f"/matchmaker/{path}", body(player) if callable(body) else body, token

    return request


def disconnects(before):
    def request(world):
        _, token, player = world.connected(before)
        return "POST", "/matchmaker/players/disconnected", {"player_token": player}, token

    return request


def state(world):
    lobby, _ = world.found()
    world.api.ask("PUT", "/matchmaker/lobbies/state", {"round": 1}, world.lobby_token(lobby))
    return "GET", f"/matchmaker/lobbies/{lobby}/state", None, world.public


def of_servers(path, body, before=World.found):
    def request(world):
        given = before(world)
        return "POST", f"/matchmaker/servers/{path}", body(given) if callable(body) else body, world.server

    return request


def reads(path, before=World.found):
    def request(world):
        before(world)
        return "GET", f"/matchmaker/{path}", None, world.public

    return request


def of_game(method, path, body=None):
    """A cloud operation of the game, of a token that is new."""

    def request(world):
        return method, world.game.path + path, body(world) if callable(body) else body, world.fresh

    return request


def of_namespace(method, path, body=None, before=None):
    def request(world):
        if before:
            world.cloud(*before)
        return method, world.path + path, body(world) if callable(body) else body, world.fresh

    return request


REGISTRATION = {
    "server_id": "one",
    "region_id": "fra",
    "capacity": 10,
    "lease_seconds": 60,
    "ports": {"default": {"hostname": "game.example", "port": 7777, "protocol": "udp"}},
}
FIND = {"game_modes": ["arena"]}
CREATE = {
    "game_mode": "arena",
    "publicity": "public",
    "lobby_config": {"friendly": True},
    "tags": {"map": "harbour"},
}
VERSION = {"display_name": "Next", "config": CONFIG}
LIMITS = {"lobby_count_max": 100, "max_players": 1000}

# For each function the request that it must answer with 200.
REQUESTS = {
    "find-lobby": of_players("find", FIND, World.register),
    "join-lobby": of_players("join", lambda found: {"lobby_id": found[0]}, World.found),
    "create-lobby": of_players("create", CREATE, World.register),
    "list-lobbies": reads("lobbies/list"),
    "get-lobby-state": state,
    "set-lobby-state": of_lobby("PUT", "lobbies/state", {"round": 2}),
    "set-lobby-ready": of_lobby("POST", "lobbies/ready", None),
    "set-lobby-closed": of_lobby("PUT", "lobbies/closed", {"is_closed": True}),
    "set-lobby-publicity": of_lobby("PUT", "lobbies/publicity", {"publicity": "private"}),
    "connect-player": of_lobby("POST", "players/connected", lambda player: {"player_token": player}),
    "disconnect-player": disconnects(World.found),
    "remove-player": of_lobby(
        "POST", "players/remove", lambda player: {"player_token": player, "exclude_seconds": 600}
    ),
    "rejoin-player": lambda world: (
        "POST",
        "/matchmaker/players/rejoin",
        {"player_token": world.found()[1]},
        None,
    ),
    "leave-lobby": lambda world: (
        "POST",
        "/matchmaker/players/leave",
        {"player_token": world.found()[1]},
        None,
    ),
    "get-player-statistics": reads("players/statistics"),
    "list-regions": reads("regions"),
    "register-server": of_servers("register", REGISTRATION, lambda world: None),
    "heartbeat-server": of_servers("heartbeat", {"server_id": "one"}),
    "end-lobby": of_servers("end-lobby", lambda found: {"lobby_id": found[0]}),
    "deregister-server": of_servers("deregister", {"server_id": "one"}),
    "get-bootstrap": lambda world: ("GET", "/cloud/bootstrap", None, None),
    "validate-matchmaker-config": of_namespace("POST", "/mm-config/validate", LIMITS),
    "set-cdn-auth-type": of_namespace("PUT", "/cdn-auth", {"auth_type": "basic"}),
    "update-cdn-auth-user": of_namespace("POST", "/auth-user", USER),
    "update-namespace-version": of_namespace(
        "PUT", "/version", lambda world: {"version_id": world.game.version}
    ),
    "create-version": of_game("POST", "/versions", VERSION),
    "create-namespace": of_game(
        "POST",
        "/namespaces",
        lambda world: {
            "display_name": "New",
            "version_id": world.game.version,
            "name_id": f"n-{uuid.uuid4().hex[:12]}",
        },
    ),
    "get-game": of_game("GET", ""),
    "validate-namespace": of_game("POST", "/namespaces/validate", {"display_name": "New", "name_id": "new"}),
    "get-namespace": of_namespace("GET", ""),
    "delete-cdn-auth-user": of_namespace(
        "DELETE", f"/auth-user/{USER['user']}", None, ("POST", "/auth-user", USER)
    ),
    "set-domain-public-auth": of_namespace("PUT", "/domain-public-auth", {"enabled": True}),
    "add-domain": of_namespace("POST", "/domains", lambda world: {"domain": f"{world.name}.example.com"}),
    "delete-domain": of_namespace("DELETE", "/domains/play.example.com", None),
    "get-version-history": of_namespace("GET", "/version-history"),
    "create-cloud-token": of_game("POST", "/tokens/cloud", {}),
    "validate-version": of_game("POST", "/versions/validate", VERSION),
    "get-version": lambda world: (
        "GET",
        f"{world.game.path}/versions/{world.game.version}",
        None,
        world.fresh,
    ),
    "update-matchmaker-config": of_namespace("POST", "/mm-config", LIMITS),
    "create-public-token": of_namespace("POST", "/tokens/public", {}),
    "create-development-token": of_namespace(
        "POST",
        "/tokens/development",
        {"hostname": "127.0.0.1", "ports": {"default": {"port": 7777, "protocol": "http"}}},
    ),
    "create-server-token": of_namespace("POST", "/tokens/server", {}),
}
