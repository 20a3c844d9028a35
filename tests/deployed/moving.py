"""The way from one machine to AWS while players play, as the page on one machine tells it."""

import http.client
import json
import subprocess
import threading
import time
import uuid
from types import SimpleNamespace

from account import HOST, WORKSPACE, until
from api import Api
from deployment import delete
from operations import MODE, Game, Muster, World
from stack import Stack

# Seats outlast the deployment between the two runs.
CONFIG = {"game_modes": {"arena": {**MODE, "max_players": 10, "reservation_seconds": 600}}}
PLAYERS, SERVERS = 6, ("one", "two")
# Of so many visits of a player, one has a seat that is on the way, and one a player who stays: at most so many before
# the game moves, and from then on. All players have one address, which may hold a thousand seats.
EVERY, KEPT_BEFORE, KEPT = 8, 100, 900
# Seconds from one request of a server, or of one who is to retry, to the next.
PAUSE = 0.2
# The status of a command that refuses what it is asked.
REFUSED = 4


class Machine:
    """`muster-local serve`, which ends with the account."""

    def __init__(self, account, binaries):
        self.account, self.folder = account, account.folder / "machine"
        self.target = ("--data", self.folder)
        command = [binaries / "muster-local", "serve", "--data", self.folder, "--port", "0"]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True}
        pipes["stderr"] = (account.folder / "machine.log").open("w")
        process = subprocess.Popen([*command, "--status", "127.0.0.1:0"], env={}, **pipes)
        account.processes.append(process)
        told = iter(process.stdout.readline, "")
        self.api = Plain(next(line.split()[-1] for line in told if line.startswith("Muster listens on ")))


class Plain(Api):
    """An API at an address of the loopback interface."""

    def __init__(self, url):
        super().__init__(None, url)
        self.host = url.removeprefix("http://")

    def connection(self):
        return http.client.HTTPConnection(self.host, timeout=60)


class Name(Api):
    """The host name that players use: an API that becomes another one. Who gets 503 retries, as clients do."""

    def __init__(self, api):
        self.api, self.refused = api, 0

    def send(self, *asked, **more):
        while (answer := self.api.send(*asked, **more))[0] == 503:
            assert "retry-after" in answer[1], answer
            self.refused += 1
            time.sleep(PAUSE)
        return answer


class Scene:
    """Players and game servers of a world, for the block that this is used in; each answer must be 200."""

    def __init__(self, world):
        self.world, self.end, self.problems = world, threading.Event(), []
        # Of each lobby, the first token that its server got.
        self.tokens = {}
        # Seats of players who stay connected, and of those who are on the way.
        self.playing, self.coming = [], []
        self.visits, self.kept_max = [0] * PLAYERS, KEPT_BEFORE

    def __enter__(self):
        for server in SERVERS:
            self.world.register(server_id=server, capacity=50, lease_seconds=600)
        actors = [(self.serve, server) for server in SERVERS]
        actors += [(self.play, number) for number in range(PLAYERS)]
        self.threads = [threading.Thread(target=self.act, args=actor) for actor in actors]
        for thread in self.threads:
            thread.start()
        self.play_on()
        return self

    def __exit__(self, kind, *_):
        self.end.set()
        for thread in self.threads:
            thread.join()
        assert kind or not self.problems, self.problems

    def act(self, does, whose):
        try:
            while not self.end.is_set():
                does(whose)
        except BaseException as problem:
            self.problems.append(problem)

    def play_on(self):
        """Waits until each player has found twice more."""
        before = list(self.visits)
        more = lambda: all(now > then + 1 for now, then in zip(self.visits, before))
        until("players play", lambda: more() or self.problems)
        assert not self.problems, self.problems

    def post(self, path, body, token):
        return self.world.api.ask("POST", f"/matchmaker/{path}", body, token)

    def serve(self, server):
        """A heartbeat, and its further pages."""
        asked = {"server_id": server}
        while asked:
            answer = self.post("servers/heartbeat", asked, self.world.server)
            for lobby in answer["lobbies"]:
                self.tokens.setdefault(lobby["lobby_id"], lobby["lobby_token"])
            asked = {**asked, "cursor": answer["cursor"]} if answer.get("cursor") else None
        self.end.wait(PAUSE)

    def play(self, number):
        found = self.world.api.ask(
            "POST",
            "/matchmaker/lobbies/find",
            {"game_modes": ["arena"]},
            self.world.public,
            {"idempotency-key": str(uuid.uuid4())},
        )
        seat = SimpleNamespace(lobby=found["lobby"]["lobby_id"], player=found["player"]["token"])
        is_kept = len(self.playing) + len(self.coming) < self.kept_max
        kind = self.visits[number] % EVERY if is_kept else None
        self.visits[number] += 1
        if kind == 1:
            self.coming.append(seat)
            return
        until("its server knows the lobby", lambda: seat.lobby in self.tokens)
        self.enter("connected", seat)
        if kind == 2:
            self.playing.append(seat)
        else:
            self.enter("disconnected", seat)

    def enter(self, path, seat):
        self.post(f"players/{path}", {"player_token": seat.player}, self.tokens[seat.lobby])

    def lost(self, api, path, seats):
        """How the API refuses those whose seats are not there: they cannot connect, or disconnect."""
        asked = lambda seat: ({"player_token": seat.player}, self.tokens[seat.lobby])
        codes = (api.code("POST", f"/matchmaker/players/{path}", *asked(seat)) for seat in seats)
        return [code for code in codes if code != "OK"]


def steps(scene):
    account, binaries, build = scene.account, scene.binaries, scene.stack.build
    stack = Stack(account, "prod", build)

    def move(*options, **more):
        library = account.folder / "hosts.so"
        cc = ["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library]
        account.run(*cc, WORKSPACE / "tests" / "deployed" / "hosts.c", "-ldl")
        hosts = {"LD_PRELOAD": str(library), "HOSTS_PORT": str(account.port)}
        muster, machine = Muster(stack, binaries / "muster"), scene.machine
        return muster.run(
            "move", machine.folder, "--yes", *options, env={**account.environment, **hosts}, **more
        )

    def holders(world, token):
        """A request with each kind of token."""
        find = "POST", "/matchmaker/lobbies/find", {"game_modes": ["arena"]}
        host = {"hostname": "127.0.0.1", "ports": {"default": {"port": 7777, "protocol": "http"}}}
        player = world.find()["player"]["token"]
        return {
            "public": (*find, world.public),
            "server": ("POST", "/matchmaker/servers/heartbeat", {"server_id": "one"}, world.server),
            "lobby": ("POST", "/matchmaker/lobbies/ready", None, token),
            "player": ("POST", "/matchmaker/players/leave", {"player_token": player}),
            "cloud": ("GET", world.path, None, world.game.token),
            "development": (*find, world.cloud("POST", "/tokens/development", host)["token"]),
        }

    def moves():
        """`muster move` puts a machine's key into the secret of a new stack, whose host name still leads to
        the machine. Until a deployment gives it to the functions, they refuse each kind of token, and the
        command refuses to move. Then it moves while players find, connect and leave without pause: each kind
        of token is good there, who played plays on, and each other answered seat connects. Before, none of
        these seats was there."""
        certificate = account.client("acm").request_certificate(DomainName=HOST)["CertificateArn"]
        domain = {"DomainName": HOST, "CertificateArn": certificate}
        stack.deploy(**domain)
        scene.machine = machine = Machine(account, binaries)
        world = World(Game(Muster(machine, binaries / "muster"), "moved"), CONFIG)
        world.api = world.game.api = name = Name(machine.api)
        secrets, arn = account.client("secretsmanager"), stack.outputs["SigningKeySecretArn"]
        with Scene(world) as playing:
            seats = lambda: playing.playing[:1] + playing.coming[:1]
            until("seats are kept", lambda: len(seats()) == 2)
            asked = holders(world, playing.tokens[playing.playing[0].lobby])
            codes = lambda: {kind: stack.api.code(*request) for kind, request in asked.items()}
            for _ in range(2):
                refused = move(check=False)
                assert refused.returncode == REFUSED and "raise MUSTER_REVISION" in refused.stderr, refused
                key = secrets.get_secret_value(SecretId=arn)["SecretString"]
                assert key == (machine.folder / "signing-key").read_text(), arn
                assert {code.split()[-1] for code in codes().values()} == {"TOKEN_INVALID"}, codes()
            build.raise_revision()
            stack.deploy(**domain)
            # Its functions know the key, but nothing else.
            lost = [playing.lost(stack.api, path, seats()) for path in ("connected", "disconnected")]
            assert [len(one) for one in lost] == [2, 2], lost
            playing.kept_max = KEPT
            playing.play_on()
            before = len(playing.playing) + len(playing.coming)
            report = json.loads(move("--json").stdout)
            assert report["games"] == ["moved"], report
            assert machine.api.code(*asked["public"]).startswith("503 "), machine.api.code(*asked["public"])
            around = len(playing.playing) + len(playing.coming) - before
            name.api = stack.api
            playing.play_on()
        assert set(codes().values()) == {"OK"}, codes()
        lost = playing.lost(stack.api, "disconnected", playing.playing)
        lost += playing.lost(stack.api, "connected", playing.coming)
        assert not lost, lost
        delete(stack)
        return (
            f"{report['items']} items, {report['copied_during_pause']} of them in a pause of {report['pause_seconds']:.1f} s; "
            f"{len(playing.playing)} seats of players and {len(playing.coming)} of those on the way, {around} of them "
            f"found during the move; {sum(playing.visits)} visits; {name.refused} requests repeated."
        )

    return [("move", moves)]
