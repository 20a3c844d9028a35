"""What `muster --stack` does: every verb, and a game's way out and in."""

import json
import re

from account import until
from operations import REGISTRATION, screened
from serving import Front

CAPTCHA = {
    "requests_before_reverify": 30,
    "verification_ttl": 3_600_000,
    "turnstile": {"site_key": "site", "secret_key": "placeholder"},
}


class Verbs:
    """Runs verbs and remembers which."""

    def __init__(self, muster):
        self.muster, self.used = muster, set()

    def __call__(self, verb, *words, **more):
        """What it says, in one line."""
        self.used.add(verb)
        return self.muster.run(*verb.split(), *words, **more).stdout

    def known(self, *topic):
        """Every verb that the command has: what its help lists below each topic, down to what lists nothing
        more."""
        said = self.muster.stack.account.run(self.muster.program, *topic, "--help").stdout
        listed = re.search(r"^Commands:\n((?:  .*\n)+)", said, re.MULTILINE)
        names = [line.split()[0] for line in listed[1].splitlines()] if listed else []
        found = {verb for name in names if name != "help" for verb in self.known(*topic, name)}
        return found or {" ".join(topic)}


def steps(scene):
    account, muster = scene.account, scene.muster

    def administers():
        """Every verb of the command does its work by the stack's name, in the tables that the outputs
        tell."""
        verb, folder = Verbs(muster), account.folder
        plain, guarded = folder / "plain.json", folder / "guarded.json"
        plain.write_text(json.dumps({"game_modes": {"arena": {"regions": ["fra"], "max_players": 4}}}))
        guarded.write_text(json.dumps({**screened("find"), "captcha": CAPTCHA}))
        cloud = "cloud_"
        assert cloud in verb("game create", "kart", "--region", "fra=Frankfurt@50.11,8.68", "--config", plain)
        assert "kart" in verb("game list") and "staging" in verb("game show", "kart")
        verb("region add", "kart", "nyc=New York@40.7,-74")
        verb("region probe", "kart", "nyc", "https://nyc.example/probe")
        listed = verb("region list", "kart")
        assert "New York" in listed and "nyc.example/probe" in listed, listed
        verb("version validate", guarded, "--game", "kart")
        verb("version create", "kart", guarded, "--name", "screened")
        assert "screened" in verb("version list", "kart")
        assert "placeholder" not in verb("version show", "kart", "screened")
        verb("namespace create", "kart/cup", "--version", "screened")
        assert "cup" in verb("namespace list", "kart") and "screened" not in verb(
            "namespace show", "kart/cup", "--json"
        )
        verb("version set", "kart/cup", "1")
        assert len(verb("version history", "kart/cup").splitlines()) == 3
        verb("mm-config", "kart/cup", "--lobby-count-max", "200", "--max-players-per-client", "1000")
        assert cloud in verb("token create cloud", "kart")
        verb("token create development", "kart/cup", "--port", "default=7777/udp")
        server = verb("token create server", "kart/cup").strip()
        public = verb("token create public", "kart/cup").strip()
        scene.stack.api.ask("POST", "/matchmaker/servers/register", REGISTRATION, server)
        find = lambda token: scene.stack.api.code(
            "POST", "/matchmaker/lobbies/find", {"game_modes": ["arena"]}, token
        )
        lobby = scene.stack.api.ask("POST", "/matchmaker/lobbies/find", {"game_modes": ["arena"]}, public)[
            "lobby"
        ]["lobby_id"]
        assert lobby in verb("lobby list", "kart/cup") and lobby in verb("lobby show", lobby)
        assert lobby in verb("lobby explain", "kart/cup", "--mode", "arena")
        verb("lobby end", lobby, "--yes")
        assert "one" in verb("server list", "kart/cup")
        assert "kart/cup" in verb("doctor")
        # The emulator counts no requests but those that are sent to a function itself.
        function = scene.stack.resources()["GetBootstrapFunction"]
        account.client("lambda").invoke(FunctionName=function, Payload=b"{}")
        costs = {item["item"]: item for item in json.loads(verb("cost", "--json"))["items"]}
        assert len(costs) == 16 and all("units" in item or item["not_read"] for item in costs.values()), costs
        assert costs["Lambda, requests"]["units"] > 0, costs
        verb("server remove", "kart/cup", "one", "--alive", "--yes")
        verb("domain add", "kart/cup", "play.example.com")
        assert "play.example.com" in verb("domain list", "kart/cup")
        verb("domain public-auth", "kart/cup", "on")
        verb("domain remove", "kart/cup", "play.example.com", "--yes")
        verb("cdn auth", "kart/cup", "basic")
        verb("cdn user set", "kart/cup", "tester", input="a placeholder\n")
        assert "tester" in verb("cdn user list", "kart/cup")
        verb("cdn user remove", "kart/cup", "tester", "--yes")
        listed = json.loads(verb("token list", "kart", "--json"))["tokens"]
        of_players = next(token for token in listed if token["kind"] == "public")
        verb("token revoke", "kart", of_players["token_id"], "--yes")
        # Instances know a namespace's settings for half a minute.
        until("a revoked token is refused", lambda: find(public) == "401 TOKEN_REVOKED")
        verb("token revoke-all", "kart/cup", "server", "--yes")
        assert "token revoke-all kart/cup server" in verb("history", "kart")
        verb("version delete", "kart", "screened", "--yes", check=False)
        verb("version delete", "kart", "screened", "--cancel")
        exported = folder / "kart.json"
        exported.write_text(verb("game export", "kart"))
        # These need no deployment.
        for words in (["version", "schema"], ["completions", "bash"]):
            assert account.run(muster.program, *words).stdout
        verb.used |= {"version schema", "completions"}
        known = verb.known()
        # These have steps of their own; the agent calls the API alone.
        elsewhere = {"agent run", "console", "game import", "load", "move", "region start", "region stop"}
        elsewhere |= {"restore", "tail"}
        assert verb.used ^ known == elsewhere, verb.used ^ known ^ elsewhere
        return f"{len(known)} verbs."

    def exchanges():
        """An exported game is refused while its secrets are missing; with them it is imported, and its
        namespaces run it."""
        exported = json.loads((account.folder / "kart.json").read_text())
        blank = account.folder / "blank.json"
        blank.write_text(json.dumps({**exported, "name_id": "kart-2"}))
        refused = muster.run("game", "import", blank, check=False)
        assert refused.returncode == 4 and "secret_key" in refused.stderr, refused
        filled = account.folder / "filled.json"
        filled.write_text(blank.read_text().replace("null", '"placeholder"'))
        game = muster("game", "import", filled)
        shown = muster("namespace", "show", "kart-2/cup")
        assert "200" in json.dumps(shown), shown
        ask = lambda path, body: scene.stack.api.ask(
            "POST", f"/cloud/games/{game['game_id']}{path}", body, game["cloud_token"]
        )
        cup = game["namespaces"]["cup"]
        server = ask(f"/namespaces/{cup}/tokens/server", {})["token"]
        public = ask(f"/namespaces/{cup}/tokens/public", {})["token"]
        scene.stack.api.ask("POST", "/matchmaker/servers/register", REGISTRATION, server)
        scene.stack.api.ask("POST", "/matchmaker/lobbies/find", {"game_modes": ["arena"]}, public)

    def loads():
        """A load plays its players in a namespace of its own, says what they cost, and leaves no game server
        and no lobby. Without agreement it does not begin."""
        muster.run("namespace", "create", "kart/load", "--version", "1")
        muster.run("mm-config", "kart/load", "--max-players-per-client", "1001")
        with Front(scene) as front:
            load = ["load", "kart/load", "--api-url", front.url, "--rate", "2", "--seconds", "2"]
            load += ["--connect-seconds", "1", "--stay-seconds", "0"]
            refused = muster.run(*load, check=False)
            assert refused.returncode == 4 and "--yes" in refused.stderr, refused
            report = muster(*load, "--yes")
        assert report["results"]["disconnect-player"] == {"200": 4}, report
        assert 0 < report["dollars"] < 0.01 and not report["left_behind"], report
        assert muster("server", "list", "kart/load")["servers"] == []
        assert muster("lobby", "list", "kart/load")["lobbies"] == []
        return f"${report['dollars']:.6f} for {report['players']['came']} players."

    return [("operator", administers), ("exchange", exchanges), ("load", loads)]
