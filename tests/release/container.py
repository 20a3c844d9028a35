"""Runs an image as the page on one machine says, by podman, in a storage and, for root, a network of its own: a find over a published port,
its lobby again after a restart, the operator's command, a stop.

Usage: container IMAGE
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

PATIENCE = 60
DATA = "/var/lib/muster"
GAME = {"game_modes": {"arena": {"regions": ["fra"], "max_players": 10}}}
SERVER = {
    "server_id": "by-hand",
    "region_id": "fra",
    "lease_seconds": 0,
    "ports": {"default": {"hostname": "game.example", "port": 7777, "protocol": "udp"}},
}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Podman:
    """In a folder of its own, which it leaves empty of containers."""

    def __init__(self, folder):
        self.own = ["--root", folder / "storage", "--runroot", folder / "run", "--tmpdir", folder / "tmp"]
        # No other program has to run for these.
        self.own += ["--cgroup-manager", "cgroupfs", "--events-backend", "file", "--log-level", "error"]
        # Where both kinds of control groups are mounted, crun refuses.
        self.own += ["--runtime", "runc"] if pathlib.Path("/sys/fs/cgroup/unified").exists() else []

    def __call__(self, *words):
        command = [str(word) for word in ("podman", *self.own, *words)]
        done = subprocess.run(command, text=True, capture_output=True, timeout=PATIENCE)
        assert done.returncode == 0, (command, done.returncode, done.stdout, done.stderr)
        return done.stdout.strip()

    def run(self, *words):
        """A container with limits that nobody needs a right for."""
        return self("run", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096", *words)


class Served:
    """A container that serves the volume `muster`, for the block that it is used in; it must stop by itself when asked to."""

    def __init__(self, podman, image, game):
        self.podman, self.image, port = podman, image, free_port()
        self.url = f"http://127.0.0.1:{port}"
        published = ["--publish", f"127.0.0.1:{port}:3000", "--volume", f"muster:{DATA}"]
        command = ["serve", "--data", DATA, "--host", "0.0.0.0", "--json", "--config", "/etc/muster/game.json"]
        mounted = ["--volume", f"{game}:/etc/muster/game.json:ro"]
        self.container = podman.run("--detach", *published, *mounted, image, *command)

    def __enter__(self):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self.muster("doctor")
                return self
            except AssertionError:
                if time.monotonic() > end:
                    raise AssertionError(self.podman("logs", self.container))

    def __exit__(self, *_):
        self.podman("stop", "--time", PATIENCE // 2, self.container)
        status = self.podman("inspect", "--format", "{{.State.ExitCode}}", self.container)
        logs = self.podman("logs", self.container)
        self.podman("rm", self.container)
        assert status == "0", (status, logs)

    def muster(self, *words):
        """What the command prints, in a second container with the network and the volume of this one."""
        beside = ["--network", f"container:{self.container}", "--volumes-from", self.container, "--entrypoint", "muster"]
        return self.podman.run("--rm", *beside, self.image, *words, "--data", DATA)

    def ask(self, path, token, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    def find(self, token):
        return self.ask("/matchmaker/lobbies/find", token, {"game_modes": ["arena"]})


def main(image):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        folder = pathlib.Path(folder)
        podman = Podman(folder)
        # A container's user reads it.
        game = folder / "game.json"
        game.write_text(json.dumps(GAME))
        folder.chmod(0o755)
        name = podman("load", "--input", image).split()[-1]
        assert podman.run("--rm", "--entrypoint", "muster", name, "--version") == name.rpartition("/")[2].replace(":", " "), name
        with Served(podman, name, game) as served:
            server, public = (served.muster("token", "create", kind, "my-game/prod") for kind in ("server", "public"))
            served.ask("/matchmaker/servers/register", server, SERVER)
            lobby = served.find(public)["lobby"]["lobby_id"]
        with Served(podman, name, game) as served:
            found = served.find(public)["lobby"]["lobby_id"]
        assert found == lobby, (found, lobby)
        podman("volume", "rm", "muster")
        podman("rmi", name)
        runtime = podman("info", "--format", "{{.Host.OCIRuntime.Name}}")
    print(f"{podman('--version')}, {runtime}, {'root' if os.geteuid() == 0 else 'rootless'}")


if __name__ == "__main__":
    if os.geteuid() == 0:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    main(*sys.argv[1:])
