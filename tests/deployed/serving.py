"""What the deployed functions do over HTTP, each under its own role: the smoke test, every operation, a
session, the conformance check."""

import json
import re
import subprocess
from types import SimpleNamespace

from account import PATIENCE, WORKSPACE
from operations import CONFIG, REGISTRATION, REQUESTS, World
from stack import ROUTED

SMOKE = WORKSPACE / ".github" / "workflows" / "deploy-stage.yml"


def steps(scene):
    account, stack = scene.account, scene.stack

    def smokes():
        """The workflow's smoke test, word for word, passes against the output `ApiUrl`."""
        text = SMOKE.read_text().split("- name: Smoke test")[1].split("run: |\n")[1]
        script = "".join(line.removeprefix(" " * 10) for line in text.splitlines(keepends=True))
        # The API's host is here.
        (account.folder / ".curlrc").write_text(
            f'connect-to = "::127.0.0.1:{account.port}"\ncacert = "{account.certificate}"\n'
        )
        account.run("bash", "-eo", "pipefail", "-c", script, env={**account.environment, "STACK": stack.name})

    def begins():
        """README's check passes, and the quickstart's commands for a deployment make its game and two tokens
        here, with which a game server registers and a find gets a lobby."""
        rules, commands = quickstart(stack.name)
        path = f"{scene.binaries}:{account.environment['PATH']}"
        work = account.folder / "quickstart"
        work.mkdir()
        (work / "dice.json").write_text(rules)
        script = "\n".join([*commands, "echo $SERVER_TOKEN $PUBLIC_TOKEN"])
        environment = {**scene.muster.environment, "PATH": path}
        said = account.run("bash", "-euo", "pipefail", "-c", script, env=environment, cwd=work).stdout
        server, public = said.split()[-2:]
        stack.api.ask("POST", "/matchmaker/servers/register", {**REGISTRATION, "region_id": "local"}, server)
        found = stack.api.ask("POST", "/matchmaker/lobbies/find", {"game_modes": ["dice"]}, public)
        assert found["lobby"]["lobby_id"], found
        return f"{len(commands)} commands."

    def answers():
        """Each operation answers 200 out of a namespace that its function does not know yet, with the
        permissions of its role alone."""
        assert set(REQUESTS) == set(ROUTED.values()), set(REQUESTS) ^ set(ROUTED.values())
        for request in REQUESTS.values():
            stack.api.ask(*request(World(scene.game)))
        return f"{len(REQUESTS)} operations."

    def plays():
        """`muster-example` plays a whole session: its bots find, join, play and leave, and its lobbies
        end."""
        with Front(scene) as front:
            said = account.run(
                scene.binaries / "muster-example", "--url", front.url, timeout=2 * PATIENCE
            ).stdout
        return said.strip().splitlines()[-1]

    def conforms():
        """Schemathesis finds no server error, and no status, header or shape that the OpenAPI document lacks,
        with any kind of token."""
        conformance = WORKSPACE / ".ci" / "conformance"
        schemathesis = WORKSPACE / "target" / "ci-conformance-venv" / "bin" / "schemathesis"
        program = WORKSPACE / "tests" / "deployed" / "front.py"
        # The check registers a game server of this build, as for the local stack's demo.
        world = World(scene.game, {**CONFIG, "servers": {"build": "example-server"}})
        environment = {**account.environment, **surroundings(scene, world)}
        said = account.run(conformance, schemathesis, program, "1", env=environment).stdout
        asked = sum(int(number) for number in re.findall(r"(\d+) generated", said))
        assert asked > 1000, said
        return f"{asked} requests."

    return [
        ("smoke", smokes),
        ("quickstart", begins),
        ("operations", answers),
        ("session", plays),
        ("conformance", conforms),
    ]


def quickstart(stack):
    """The rules of the quickstart's game, and the commands that check a stack and make the game there."""
    text = (WORKSPACE / "infra" / "docs" / "quickstart.md").read_text()
    (rules,) = re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (create,) = re.findall(r"`(muster game create [^`]+)`", text)
    tokens = re.findall(r"^\$ (export \w+_TOKEN=.*)$", text, re.MULTILINE)
    assert len(tokens) == 2, tokens
    (check,) = re.findall(r"`(muster doctor --stack) \S+`", (WORKSPACE / "README.md").read_text())
    commands = [f"{check} {stack}", create.replace("NAME", stack)]
    return rules, [*commands, *(token.replace("--local", f"--stack {stack}") for token in tokens)]


def surroundings(scene, world):
    """The environment of a front, with a world's game as the local stack's demo."""
    world.cloud("POST", "/mm-config", {"lobby_count_max": 1000, "max_players": 1001})
    world.register(server_id="demo-fra", capacity=1000)
    host = {"hostname": "127.0.0.1", "ports": {"default": {"port": 7777, "protocol": "http"}}}
    tokens = {"public": world.public, "server": world.server, "cloud": scene.game.token}
    tokens["development"] = world.cloud("POST", "/tokens/development", host)["token"]
    demo = {
        "game_id": scene.game.id,
        "namespace_id": world.id,
        "version_ids": [scene.game.version],
        "tokens": tokens,
    }
    file = scene.account.folder / "demo.json"
    file.write_text(json.dumps(demo))
    account = scene.account
    where = {
        "FRONT_API": scene.stack.api.host,
        "FRONT_PORT": str(account.port),
        "FRONT_AUTHORITY": str(account.certificate),
    }
    return {**where, "FRONT_DEMO": str(file)}


class Front:
    """A plain address of the API, for the block that it is used in."""

    def __init__(self, scene):
        self.environment = {**scene.account.environment, **surroundings(scene, World(scene.game))}

    def __enter__(self):
        program = WORKSPACE / "tests" / "deployed" / "front.py"
        self.process = subprocess.Popen([program], env=self.environment, stdout=subprocess.PIPE, text=True)
        return SimpleNamespace(url=self.process.stdout.readline().split()[-1])

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(PATIENCE)
