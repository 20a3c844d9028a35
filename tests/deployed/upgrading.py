"""Deployments over a stack that is in use: a raised revision, the three steps of a changed signing key, a
later release and the way back."""

import threading
import time

from account import until
from operations import REQUESTS, World

# What a later release has in each record, which this one does not know.
LATER = "of_a_later_release"
# Maps whose keys are names that somebody gave, not fields.
BY_NAME = {
    "connected",
    "domains",
    "game_modes",
    "headers",
    "not_before",
    "obstacles",
    "ports",
    "regions",
    "reserved",
    "secrets",
    "tags",
    "users",
}


class Players:
    """Find, connect and leave without pause, for the block that this is used in; each answer must be 200."""

    def __init__(self, world, public=None):
        self.world, self.public = world, public or world.public
        self.visits, self.problems, self.end = 0, [], threading.Event()

    def __enter__(self):
        self.thread = threading.Thread(target=self.play)
        self.thread.start()
        until("players play", lambda: self.visits > 0 or self.problems)
        return self

    def __exit__(self, kind, *_):
        visits = self.visits
        if kind is None:
            until("players play on", lambda: self.visits > visits or self.problems)
        self.end.set()
        self.thread.join()
        assert not self.problems, self.problems

    def play(self):
        try:
            while not self.end.is_set():
                self.leave(self.connect(self.find()))
                self.visits += 1
        except BaseException as problem:
            self.problems.append(problem)

    def find(self):
        body = {"game_modes": ["arena"]}
        found = self.world.api.ask("POST", "/matchmaker/lobbies/find", body, self.public)
        return found["lobby"]["lobby_id"], found["player"]["token"]

    def connect(self, found):
        lobby, player = found
        token = self.world.lobby_token(lobby)
        self.world.api.ask("POST", "/matchmaker/players/connected", {"player_token": player}, token)
        return token, player

    def leave(self, connected):
        token, player = connected
        self.world.api.ask("POST", "/matchmaker/players/disconnected", {"player_token": player}, token)


def ready(scene):
    """A world with a game server that holds more lobbies than its players need."""
    world = World(scene.game)
    world.register(capacity=50, lease_seconds=600)
    return world


def extended(name, value):
    """A value of a record as a later release would have written it: one field more in each map of fields."""
    if "M" not in value:
        return value
    fields = {key: extended(key, inner) for key, inner in value["M"].items()}
    return {"M": fields if name in BY_NAME else {**fields, LATER: {"M": {"a": {"L": [{"BOOL": True}]}}}}}


def steps(scene):
    account, stack, build = scene.account, scene.stack, scene.stack.build

    def upgrades():
        """A deployment with a raised `MUSTER_REVISION` gives each function a new version while players play:
        each request is answered 200, and who found before it connects after it. The same template again
        changes nothing."""
        before, world = stack.live(), ready(scene)
        with Players(world) as players:
            waiting = players.find()
            build.raise_revision()
            stack.deploy()
            players.leave(players.connect(waiting))
        assert stack.live() == {function: version + 1 for function, version in before.items()}, (
            before,
            stack.live(),
        )
        stack.deploy()
        assert "No changes to deploy" in stack.said, stack.said[-2000:]
        return f"{players.visits} visits."

    def changes_key():
        """The signing key changes in the three documented steps while players play: none is refused, who
        found in one step connects in the next, and after the third no token of the old key is accepted."""
        secrets, arn = account.client("secretsmanager"), stack.outputs["SigningKeySecretArn"]
        old = secrets.get_secret_value(SecretId=arn)["SecretString"]
        new = "".join(reversed(old))
        world = ready(scene)

        def deploys(**parameters):
            build.raise_revision()
            stack.deploy(**parameters)

        with Players(world) as players:
            of_old = players.find()
            deploys(SigningKeyPrevious=new)
            between = players.find()
            account.run(
                "aws", "secretsmanager", "put-secret-value", "--secret-id", arn, "--secret-string", new
            )
            deploys(SigningKeyPrevious=old)
            for found in (of_old, between):
                players.leave(players.connect(found))
        visits, last = players.visits, players.find()
        refused = world.public
        world.public = world.cloud("POST", "/tokens/public", {})["token"]
        world.server = world.cloud("POST", "/tokens/server", {})["token"]
        with Players(world) as players:
            deploys(SigningKeyPrevious='""')
            players.leave(players.connect(last))
        code = world.api.code("POST", "/matchmaker/lobbies/find", {"game_modes": ["arena"]}, refused)
        assert code == "401 TOKEN_INVALID", code
        return f"{visits + players.visits} visits."

    def closes_side_door():
        """With `EdgeSecret` and `EdgeOnly`, find, join and create refuse with `API_FORBIDDEN` who shows
        another secret or none, and answer who shows it; without them again, they answer everybody."""
        secret, doors = "of-the-edge-" + 24 * "x", ("find-lobby", "join-lobby", "create-lobby")
        asked = [REQUESTS[door](World(scene.game)) for door in doors]
        code = lambda request, shown: stack.api.code(
            *request, headers={"x-muster-edge-secret": shown} if shown else None
        )
        build.raise_revision()
        stack.deploy(EdgeSecret=secret, EdgeOnly="true")
        for request in asked:
            found = [code(request, shown) for shown in (None, f"{secret}x", secret)]
            assert found == ["403 API_FORBIDDEN", "403 API_FORBIDDEN", "OK"], (request, found)
        build.raise_revision()
        stack.deploy(EdgeSecret='""', EdgeOnly="false")
        found = [code(request, None) for request in asked]
        assert found == ["OK"] * len(doors), found

    def goes_back():
        """With a field more in each map of each record, as a later release would leave it, this one still
        answers, and the operator's command too; so it does after a roll back to it, and what it did not know
        is kept."""
        world, tables = ready(scene), account.client("dynamodb")
        players = Players(world)
        build.raise_revision()
        stack.deploy()
        waiting = players.find()
        items = 0
        for name in stack.tables().values():
            for page in tables.get_paginator("scan").paginate(TableName=name):
                for item in page["Items"]:
                    tables.put_item(TableName=name, Item=extended("", {"M": item})["M"])
                    items += 1
        build.raise_revision(by=-1)
        stack.deploy()
        # Instances of both know settings for half a minute.
        began = time.monotonic()
        with players:
            players.leave(players.connect(waiting))
            until("settings are read again", lambda: time.monotonic() - began > 31)
        scene.game.ask("GET", "")
        for verb in (
            ["doctor"],
            ["game", "show", scene.game.name],
            ["version", "list", scene.game.name],
            ["token", "list", scene.game.name],
        ):
            scene.muster.run(*verb)
        namespace = tables.scan(TableName=stack.outputs["CatalogTableName"])["Items"]
        assert all(LATER in item for item in namespace), namespace
        exported = scene.muster("game", "export", scene.game.name)
        assert LATER in str(exported), exported
        return f"{items} items, {players.visits} visits."

    return [
        ("upgrade", upgrades),
        ("signing key", changes_key),
        ("edge", closes_side_door),
        ("roll back", goes_back),
    ]
