"""Uses the files of a release as a newcomer does, with nothing of this machine but what the archives hold: no variable, no home and no
program on the path but Node.js, for the npm package.

Usage: release FILES TARGET: where they are, and the platform whose programs are run.
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
import zipfile

# How long anything here may take to become what it is waited for to be.
PATIENCE = 60
MODES = {"game_modes": {"arena": {"regions": ["fra"], "max_players": 10}}}


def run(*command, env=None, **more):
    """The output of a program, which must succeed."""
    done = subprocess.run([str(word) for word in command], env=env or {}, text=True, capture_output=True, timeout=PATIENCE, **more)
    assert done.returncode == 0, (command, done.returncode, done.stdout, done.stderr)
    return done.stdout.strip()


def ask(url, token, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


class Stack:
    """A local stack on a free port, which ends with the block when it is asked to."""

    def __init__(self, *command, **more):
        self.process = subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **more)
        self.text = ""
        for line in self.process.stdout:
            self.text += line
            if line.startswith("Ctrl-C"):
                break
        self.url = re.search(r"^Muster listens on (\S+)$", self.text, re.MULTILINE)[1]

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE)
        assert failure or status == 0, status


def unpack(path, folder):
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
    return folder / path.name.removesuffix(".tar.gz")


def is_whole(files):
    """Each file has its checksum and is a subject of the statement of provenance."""
    sums = dict(reversed(line.split("  ")) for line in (files / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {path.name for kind in ("*gz", "muster-image-*") for path in files.glob(kind)}, sums
    for name, digest in sums.items():
        assert hashlib.sha256((files / name).read_bytes()).hexdigest() == digest, name
    statement = json.loads((files / "provenance.json").read_text())
    assert {one["name"]: one["digest"]["sha256"] for one in statement["subject"]} == sums, statement
    return f"{len(sums)} files"


def is_deployable(archive, folder):
    """The template of an archive leads to functions that Lambda can run."""
    root = unpack(archive, folder)
    template = (root / "template.yaml").read_text()
    names = re.findall(r"^      CodeUri: (\S+)$", template, re.MULTILINE)
    assert len(names) == len(set(names)) > 40 and "BuildMethod" not in template, names
    assert f"    Default: {root.name.removeprefix('muster-aws-')}\n" in template
    for name in names:
        with zipfile.ZipFile(root / name) as function:
            (entry,) = function.infolist()
            assert entry.filename == "bootstrap" and entry.external_attr >> 16 == 0o100755, (name, entry)
    return f"{len(names)} functions"


def first_find(programs, folder):
    """A stack starts from the archive, and the find that it prints finds a lobby."""
    with Stack(programs / "muster-local", env={}, cwd=folder) as stack:
        url, token, body = re.search(r"^curl -s (\S+) \\\n +-H 'Authorization: Bearer (\S+)' \\\n +-d '(.+)'$", stack.text, re.M).groups()
        assert ask(url, token, json.loads(body))["player"]["token"]


def own_game(programs, folder):
    """A game of one's own, a game server in it and a find."""
    (folder / "arena.json").write_text(json.dumps(MODES))
    with Stack(programs / "muster-local", env={}, cwd=folder) as stack:
        muster = lambda *words: run(programs / "muster", *words, f"--local={stack.url}", cwd=folder)
        muster("game", "create", "my-game", "--region", "fra=Frankfurt@50.11,8.68", "--config", "arena.json")
        server, public = (muster("token", "create", kind, "my-game/prod") for kind in ("server", "public"))
        ports = {"default": {"hostname": "game.example", "port": 7777, "protocol": "udp"}}
        own = {"server_id": "by-hand", "region_id": "fra", "lease_seconds": 0, "ports": ports}
        ask(f"{stack.url}/matchmaker/servers/register", server, own)
        found = ask(f"{stack.url}/matchmaker/lobbies/find", public, {"game_modes": ["arena"]})
        assert found["ports"]["default"]["hostname"] == "game.example", found


def example(programs, folder):
    """The example game server and its bots play."""
    with Stack(programs / "muster-local", env={}, cwd=folder) as stack:
        run(programs / "muster-example", "--url", stack.url, "--bots", "3", cwd=folder)


def of_npm(files, folder):
    """The npm packages install without a registry and start the programs, which end when they are asked to."""
    node = shutil.which("node")
    if not node or not shutil.which("npm"):
        return "left out, no Node.js"
    # npm itself needs a shell and finds Node.js on the path.
    environment = {"PATH": f"{pathlib.Path(node).parent}:/usr/bin:/bin", "HOME": str(folder), "npm_config_offline": "true"}
    packages = sorted(str(path) for path in files.glob("*.tgz"))
    run(shutil.which("npm"), "install", "--ignore-scripts", "--no-audit", "--no-fund", *packages, env=environment, cwd=folder)
    only_node = folder / "only-node"
    only_node.mkdir()
    os.symlink(node, only_node / "node")
    started = {"cwd": folder, "env": {"PATH": str(only_node)}}
    with Stack(node, folder / "node_modules/.bin/muster-local", **started) as stack:
        listed = run(node, folder / "node_modules/.bin/muster", "game", "list", f"--local={stack.url}", **started)
        assert "demo" in listed, listed


def of_image(image, folder):
    """The image's files are enough for its own command, as its user; without a container runtime, in a root of their own."""
    root = folder / "image"
    packer = pathlib.Path(__file__).absolute().parents[2] / ".ci/image.py"
    config = json.loads(run(sys.executable, packer, "--unpack", image, root))
    listed = image.with_suffix(".txt").read_text().split("\n\n")[0].splitlines()
    assert {f"/{path.relative_to(root)}" for path in root.rglob("*") if path.is_file()} == {line.split()[-1] for line in listed}
    chroot = shutil.which("chroot")
    if os.geteuid() or not chroot:
        return "unpacked, not run: that needs root"
    run(chroot, root, "/usr/local/bin/muster", "--version")
    command = [chroot, f"--userspec={config['User']}", root, f"/usr/local/bin/{config['Entrypoint'][0]}", *config["Cmd"]]
    served = subprocess.Popen([*command, "--port", "0", "--status", "127.0.0.1:0"], env={}, stdout=subprocess.PIPE, text=True)
    try:
        text = served.stdout.readline() + served.stdout.readline()
        with urllib.request.urlopen(re.search(r"http://\S+/health", text)[0], timeout=PATIENCE) as answer:
            assert json.load(answer)["status"] == "ok"
    finally:
        served.send_signal(signal.SIGTERM)
    assert served.wait(PATIENCE) == 0
    return f"served as {config['User']}, {len(listed)} files"


def in_container(image):
    """A container runtime runs the image, if there is podman; for root in a network of its own."""
    if not shutil.which("podman"):
        return "left out, no podman"
    network = [] if os.geteuid() else ["unshare", "--net"]
    script = pathlib.Path(__file__).with_name("container.py")
    return run(*network, sys.executable, script, image, env=dict(os.environ))


def main(files, target):
    files = pathlib.Path(files).absolute()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        programs = unpack(files / f"muster-{target}.tar.gz", folder)
        steps = [
            ("checksums", lambda: is_whole(files)),
            *((path.name, lambda path=path: is_deployable(path, folder)) for path in sorted(files.glob("muster-aws-*.tar.gz"))),
            ("first find", lambda: first_find(programs, folder)),
            ("own game", lambda: own_game(programs, folder)),
            ("example", lambda: example(programs, folder)),
            ("npm", lambda: of_npm(files, folder)),
            *((path.name, lambda path=path: of_image(path, folder)) for path in files.glob("muster-image-*.tar")),
            *(("container", lambda path=path: in_container(path)) for path in files.glob("muster-image-*.tar")),
        ]
        for name, step in steps:
            began = time.monotonic()
            found = step()
            print(f"{time.monotonic() - began:6.1f} s  {name}{f': {found}' if found else ''}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
