"""What the operator sees of a stack while it is played, by the operators' policy: the console and a tail."""

import json
import re
import signal
import subprocess
import urllib.parse
import urllib.request

from account import PATIENCE
from operations import Muster, World

OWN_PAGE = {"muster-console": "1"}

# The exit status of a command whose credentials may not do it.
NOT_ALLOWED = 6


class Running:
    """A verb that goes on until Ctrl-C, for the block that it is used in."""

    def __init__(self, muster, *words):
        self.command = [muster.program, *words, "--stack", muster.stack.name]
        self.environment = muster.environment

    def __enter__(self):
        self.process = subprocess.Popen(
            self.command, env=self.environment, stdout=subprocess.PIPE, text=True
        )
        return self

    def says(self, pattern):
        """The first line with it, from here on."""
        for line in self.process.stdout:
            if found := re.search(pattern, line):
                return found
        raise AssertionError(f"{self.command} ended without {pattern}")

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(PATIENCE) == 0, self.command


class Page:
    """The console as its own page asks it."""

    def __init__(self, address, token):
        self.address, self.cookie = address, ""
        self.cookie = self.send("session", {"token": token}).headers["set-cookie"].split(";")[0]

    def send(self, name, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {**OWN_PAGE, "cookie": self.cookie}
        asked = urllib.request.Request(f"{self.address}/_console/{name}", data, headers)
        return urllib.request.urlopen(asked, timeout=PATIENCE)

    def read(self, name):
        answer = json.load(self.send(name))
        assert "refused" not in answer, answer
        return answer

    def events(self, name, question):
        """The values of a kind of event, as they come."""
        query = urllib.parse.quote(json.dumps(question))
        for line in self.send(f"events?q={query}"):
            kind, _, text = line.decode().strip().partition(": ")
            if kind == "event":
                is_asked = text == name
            elif kind == "data" and is_asked:
                yield json.loads(text)


def steps(scene):
    muster = scene.muster

    def shows():
        """`muster console` shows the stack's games, a lobby as a player finds it, the finds of ten minutes
        and the bill of this month."""
        world = World(scene.game)
        lobby, _ = world.found()
        with Running(muster, "console", "--no-browser") as console:
            page = Page(*console.says(r"once: (http\S+)/#token=(\S+)").groups())
            shown = page.read("deployment")
            assert shown["kind"] == "aws" and scene.game.id in [game["game_id"] for game in shown["games"]]
            everything = {"mode": None, "region": None, "state": None, "page": 0}
            question = {"game": scene.game.id, "namespace": world.id, "filter": everything}
            rows = next(page.events("rows", question))
            assert rows["order"] == [lobby], rows
            assert len(page.read("finds")["minutes"]) == 10
            bill = page.read("bill")
            items = {item["item"]: item for item in bill["bill"]["items"]}
            assert len(items) == 16 and items["secrets, months"]["units"] > 0, bill
        return f"The bill took {bill['metrics']} metrics of CloudWatch."

    def tails():
        """`muster tail` has a line for a lobby that a player's find creates, and one for its end."""
        world = World(scene.game)
        with Running(muster, "tail", f"{scene.game.name}/{world.name}") as tail:
            tail.says("read units a minute")
            lobby, _ = world.found()
            tail.says(f"lobby {lobby} created, arena in fra")
            muster.run("lobby", "end", lobby, "--yes")
            tail.says(f"lobby {lobby} ended")

    def looks():
        """By the output `LookerPolicyArn` alone, each command that only shows does its work, the console and
        the tail among them; `doctor` warns of the secrets that it may not read. What writes or signs is refused,
        and changes nothing."""
        looker, world = Muster(scene.stack, muster.program), World(scene.game)
        looker.environment = scene.looker
        game, namespace = scene.game.name, f"{scene.game.name}/{world.name}"
        lobby, _ = world.found()
        shown = [
            *(["game", "list"], ["game", "show", game], ["game", "export", game], ["region", "list", game]),
            *(["version", "list", game], ["version", "show", game, "1"], ["version", "history", namespace]),
            *(["namespace", "list", game], ["namespace", "show", namespace], ["token", "list", game]),
            *(["domain", "list", namespace], ["cdn", "user", "list", namespace], ["server", "list", namespace]),
            *(["lobby", "list", namespace], ["lobby", "show", lobby], ["cost"]),
            ["lobby", "explain", namespace, "--mode", "arena"],
        ]
        for words in shown:
            looker.run(*words)
        unread = [item for item in looker("cost")["items"] if "not_read" in item]
        assert unread == [item for item in muster("cost")["items"] if "not_read" in item], unread
        warnings = looker("doctor")["warnings"]
        assert len([one for one in warnings if "may not read it" in one]) >= 2, warnings
        with Running(looker, "tail", namespace) as tail:
            tail.says("read units a minute")
        with Running(looker, "console", "--no-browser") as console:
            page = Page(*console.says(r"once: (http\S+)/#token=(\S+)").groups())
            assert scene.game.id in [one["game_id"] for one in page.read("deployment")["games"]]
            assert len(page.read("finds")["minutes"]) == 10 and page.read("bill")["bill"]
        refused = (
            ["lobby", "end", lobby, "--yes"],
            ["token", "create", "server", namespace],
            ["mm-config", namespace, "--lobby-count-max", "7"],
            ["region", "add", game, "syd=Sydney@-33.9,151.2"],
        )
        for words in refused:
            assert looker.run(*words, check=False).returncode == NOT_ALLOWED, words
        assert lobby in muster.run("lobby", "list", namespace).stdout
        assert "Sydney" not in muster.run("region", "list", game).stdout
        return f"{len(shown) + 3} commands."

    return [("console", shows), ("tail", tails), ("looker", looks)]
