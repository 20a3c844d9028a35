#!/usr/bin/env python3
"""Makes an OCI image of the programs without a container engine: `muster-image-ARCHITECTURE.tar` in OUT, an image layout that `podman
load`, `skopeo` and `ctr image import` read, and beside it a list of what is in it. The same files and commit make the same bytes.

The programs need a C library. It is this machine's own, and the list names its packages.

Usage: image.py OUT FOLDER: from the programs in FOLDER, which are for this machine's processor
       image.py --unpack IMAGE FOLDER: lays the image's files out in FOLDER, as a runtime does
"""

import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import subprocess
import sys
import tarfile

from archives import PROGRAMS, TIME, VERSION, output, read

# A user of no system, as images without a distribution have it.
USER = 65532
DATA = "var/lib/muster"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
ACCOUNTS = {
    "etc/passwd": f"root:x:0:0::/:/sbin/nologin\nmuster:x:{USER}:{USER}::/{DATA}:/sbin/nologin\n",
    "etc/group": f"root:x:0:\nmuster:x:{USER}:\n",
}
# What verifies captchas, backends and AWS.
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"


def libraries(programs):
    """The shared libraries that programs load, by the path at which they look for them."""
    found = {}
    for line in "\n".join(output("ldd", str(program)) for program in programs).splitlines():
        words = line.split()
        path = next((word for word in words if word.startswith("/")), None)
        if path:
            found[path.removeprefix("/")] = pathlib.Path(path).read_bytes()
    assert any(path.rpartition("/")[2].startswith("ld-linux") for path in found), "the programs have no loader"
    return found


def package(path):
    """The package of a file of this machine, with its version."""
    for one in (path, os.path.realpath(path)):
        owner = subprocess.run(["dpkg", "-S", one], capture_output=True, text=True)
        if owner.returncode == 0:
            return output("dpkg-query", "--show", "--showformat", "${Package} ${Version}", owner.stdout.split(":")[0])
    return "of no package"


def layer(files, folders=()):
    """A compressed layer and the digest of what is in it."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        parents = {str(parent) for name in files for parent in pathlib.PurePath(name).parents} - {"."}
        for name in sorted({*parents, *folders, *files}):
            entry = tarfile.TarInfo(name)
            entry.mtime, entry.mode = TIME, 0o755
            if name in files:
                data, entry.mode = files[name]
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
            else:
                entry.type = tarfile.DIRTYPE
                if name in folders:
                    entry.uid = entry.gid = USER
                    entry.mode = 0o700
                archive.addfile(entry)
    packed = io.BytesIO()
    with gzip.GzipFile("", "wb", 6, packed, TIME) as zipped:
        zipped.write(raw.getvalue())
    return packed.getvalue(), digest(raw.getvalue())


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def image(out, folder):
    architecture = platform.machine()
    programs = {name: pathlib.Path(folder, name) for name in PROGRAMS}
    system = {path: (data, 0o755) for path, data in libraries(programs.values()).items()}
    system |= {path: (text.encode(), 0o644) for path, text in ACCOUNTS.items()}
    system["etc/ssl/certs/ca-certificates.crt"] = (pathlib.Path(AUTHORITIES).read_bytes(), 0o644)
    own = {f"usr/local/bin/{name}": (path.read_bytes(), 0o755) for name, path in programs.items()}
    own["usr/share/doc/muster/LICENSE"] = (read("LICENSE"), 0o644)
    # What changes least comes first: a new release fetches the second one alone.
    layers = [layer(system, [DATA]), layer(own)]
    config = {
        "created": output("git", "log", "-1", "--format=%cI"),
        "architecture": ARCHITECTURES[architecture],
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "Env": ["PATH=/usr/local/bin"],
            "Entrypoint": ["muster-local"],
            "Cmd": ["serve", "--data", f"/{DATA}", "--host", "0.0.0.0", "--json"],
            "ExposedPorts": {"3000/tcp": {}},
            "Volumes": {f"/{DATA}": {}},
            "WorkingDir": "/",
            "StopSignal": "SIGTERM",
        },
        "rootfs": {"type": "layers", "diff_ids": [of_content for _, of_content in layers]},
    }
    blobs = {}

    def blob(data, kind):
        blobs[digest(data)] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest(data), "size": len(data)}

    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(json.dumps(config).encode(), "config.v1+json"),
        "layers": [blob(data, "layer.v1.tar+gzip") for data, _ in layers],
        "annotations": {"org.opencontainers.image.version": VERSION, "org.opencontainers.image.licenses": "Apache-2.0"},
    }
    named = {"annotations": {"org.opencontainers.image.ref.name": f"muster:{VERSION}"}}
    index = {"schemaVersion": 2, "manifests": [blob(json.dumps(manifest).encode(), "manifest.v1+json") | named]}
    files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(index).encode()}
    files |= {f"blobs/{name.replace(':', '/')}": data for name, data in blobs.items()}
    name = f"muster-image-{architecture}"
    with tarfile.open(out / f"{name}.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
        for path, data in sorted(files.items()):
            entry = tarfile.TarInfo(path)
            entry.size, entry.mtime, entry.mode = len(data), TIME, 0o644
            archive.addfile(entry, io.BytesIO(data))
    rows = [f"{digest(data)}  {len(data):>10}  /{path}" for path, (data, _) in sorted({**system, **own}.items())]
    origins = sorted({f"{package('/' + path)}: /{path}" for path in system if path not in ACCOUNTS})
    (out / f"{name}.txt").write_text("\n".join([*rows, "", "Of this machine's packages:", *origins]) + "\n")


def unpack(path, folder):
    with tarfile.open(path) as archive:
        load = lambda name: archive.extractfile(name).read()
        blob = lambda of: load("blobs/" + of["digest"].replace(":", "/"))
        manifest = json.loads(blob(json.loads(load("index.json"))["manifests"][0]))
        for of in manifest["layers"]:
            with tarfile.open(fileobj=io.BytesIO(blob(of))) as files:
                files.extractall(folder, filter="tar", numeric_owner=True)
        print(json.dumps(json.loads(blob(manifest["config"]))["config"]))


if __name__ == "__main__":
    if sys.argv[1] == "--unpack":
        unpack(*sys.argv[2:])
    else:
        out, folder = map(pathlib.Path, sys.argv[1:])
        out.mkdir(parents=True, exist_ok=True)
        image(out, folder)
