#!/usr/bin/env python3
"""Makes the archives of a release in the folder OUT. The same files and commit make the same bytes.

Usage: archives.py OUT programs TARGET FOLDER: `muster-TARGET.tar.gz` from the programs in FOLDER
       archives.py OUT functions ARCHITECTURE FOLDER: `muster-aws-ARCHITECTURE.tar.gz` from FOLDER/NAME/bootstrap
       archives.py OUT bills FOLDER: `muster-bills-of-materials.tar.gz` from the files in FOLDER
       archives.py OUT finish: the npm packages of the programs there, checksums and a statement of provenance
"""

import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile

WORKSPACE = pathlib.Path(__file__).absolute().parent.parent
PROGRAMS = ("muster-local", "muster", "muster-example")
# Where a reader of the archives looks for them.
PAGES = ("LICENSE", "CHANGELOG.md")
DEPLOYED = ("samconfig.toml", *(f"infra/{name}.yaml" for name in ("deploy-role", "edge", "observability", "operator-policy")))
# What npm calls the platforms.
PLATFORMS = {
    "aarch64-apple-darwin": {"os": ["darwin"], "cpu": ["arm64"]},
    "aarch64-unknown-linux-gnu": {"os": ["linux"], "cpu": ["arm64"], "libc": ["glibc"]},
    "x86_64-apple-darwin": {"os": ["darwin"], "cpu": ["x64"]},
    "x86_64-unknown-linux-gnu": {"os": ["linux"], "cpu": ["x64"], "libc": ["glibc"]},
}
ARCHITECTURES = {"arm64": "aarch64-unknown-linux-gnu", "x86_64": "x86_64-unknown-linux-gnu"}
LEGAL = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)


def output(*command):
    return subprocess.run(command, cwd=WORKSPACE, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def read(path):
    return (WORKSPACE / path).read_bytes()


VERSION = tomllib.loads(read("Cargo.toml").decode())["workspace"]["package"]["version"]
TIME = int(output("git", "log", "-1", "--format=%ct"))


def pack(path, folder, files):
    """Writes a compressed archive of `files`, each with its bytes and whether it is a program."""
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, TIME) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for name, (data, is_program) in sorted(files.items()):
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime, entry.mode = len(data), TIME, 0o755 if is_program else 0o644
            archive.addfile(entry, io.BytesIO(data))


def zipped(binary):
    """A function as Lambda takes it."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        entry = zipfile.ZipInfo("bootstrap")
        # A regular file that everybody may run, made on Unix.
        entry.create_system, entry.external_attr, entry.compress_type = 3, 0o100755 << 16, zipfile.ZIP_DEFLATED
        archive.writestr(entry, binary)
    return memory.getvalue()


def notices(target, packages):
    """The licence texts of all crates in `packages`, each text once."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    metadata = json.loads(output(*command))
    by_id = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    found, todo = set(), [package["id"] for package in by_id.values() if package["name"] in packages]
    while todo:
        if (one := todo.pop()) not in found:
            found.add(one)
            kinds = ((dep["pkg"], {kind["kind"] for kind in dep["dep_kinds"]}) for dep in nodes[one]["deps"])
            todo += [package for package, of in kinds if None in of]
    names, texts = [], {}
    for package in (by_id[one] for one in found):
        if package["source"]:
            name = f"{package['name']} {package['version']} ({package['license']})"
            names.append(name)
            files = pathlib.Path(package["manifest_path"]).parent.rglob("*")
            for file in (file for file in files if LEGAL.match(file.name) and file.is_file()):
                texts.setdefault(file.read_text(errors="replace").strip(), set()).add(name)
    parts = ["Muster contains these crates:\n" + "\n".join(sorted(names))]
    parts += sorted("\n".join(sorted(owners)) + "\n\n" + text for text, owners in texts.items())
    return ("\n\n" + "-" * 80 + "\n\n").join(parts).encode() + b"\n"


def with_pages(files, target, packages):
    legal = {"THIRD-PARTY.txt": notices(target, packages), **{page: read(page) for page in PAGES}}
    return {**files, **{name: (data, False) for name, data in legal.items()}}


def programs(out, target, folder):
    files = {name: (pathlib.Path(folder, name).read_bytes(), True) for name in PROGRAMS}
    if "linux" in target:
        files["muster.service"] = (read("infra/local/muster.service"), False)
    pack(out / f"muster-{target}.tar.gz", f"muster-{target}", with_pages(files, target, PROGRAMS))


def template(architecture):
    """The template with functions that are built, and their names."""
    text = read("template.yaml").decode()
    names = re.findall(r"^      CodeUri: functions/(\S+)$", text, re.MULTILINE)
    for wanted, replacement, count in (
        (r"^(      CodeUri: functions/\S+)$", r"\1.zip", len(names)),
        (r"^    Metadata:\n      BuildMethod: rust-cargolambda\n", "", len(names)),
        (r"^(  Architecture:\n(?:    .*\n)*?    Default: )\S+$", rf"\g<1>{architecture}", 1),
    ):
        text, changed = re.subn(wanted, replacement, text, flags=re.MULTILINE)
        assert changed == count > 0, (wanted, changed, count)
    return text.encode(), names


def functions(out, architecture, folder):
    text, names = template(architecture)
    files = {f"functions/{name}.zip": (zipped(pathlib.Path(folder, name, "bootstrap").read_bytes()), False) for name in names}
    files |= {"template.yaml": (text, False), **{path: (read(path), False) for path in DEPLOYED}}
    name = f"muster-aws-{architecture}"
    pack(out / f"{name}.tar.gz", name, with_pages(files, ARCHITECTURES[architecture], names))


def bills(out, folder):
    # They name the crates of the workspace by where it is.
    read_there = lambda path: path.read_bytes().replace(bytes(WORKSPACE), b"/muster")
    files = {path.name: (read_there(path), False) for path in pathlib.Path(folder).glob("*.cdx.json")}
    assert files, f"{folder} has no bill of materials"
    pack(out / "muster-bills-of-materials.tar.gz", "muster-bills-of-materials", files)


def npm(out, manifest, files):
    text = json.dumps(manifest, indent=2) + "\n"
    files = {**files, "package.json": (text.encode(), False), "LICENSE": (read("LICENSE"), False)}
    pack(out / f"{manifest['name']}-{manifest['version']}.tgz", "package", files)


def packages(out):
    """A package for each platform, of which npm installs the fitting one with the package that users name."""
    own = json.loads(read("infra/npm/package.json")) | {"version": VERSION}
    for target, platform in PLATFORMS.items():
        archive = out / f"muster-{target}.tar.gz"
        if archive.exists():
            name = f"{own['name']}-{platform['os'][0]}-{platform['cpu'][0]}"
            own["optionalDependencies"][name] = VERSION
            kept = {"version": VERSION, "description": f"The programs of {own['name']} for {target}", "license": own["license"]}
            with tarfile.open(archive) as packed:
                data = {pathlib.Path(entry.name).name: (entry, packed.extractfile(entry).read()) for entry in packed}
            in_package = lambda name, entry: f"bin/{name}" if entry.mode & 0o100 else name
            files = {in_package(one, entry): (text, bool(entry.mode & 0o100)) for one, (entry, text) in data.items()}
            npm(out, {"name": name, **kept, **platform, "preferUnplugged": True}, files)
    source = WORKSPACE / "infra" / "npm"
    paths = (path for path in source.rglob("*") if path.is_file() and path.name != "package.json")
    npm(out, own, {str(path.relative_to(source)): (path.read_bytes(), path.parent.name == "bin") for path in paths})


def provenance(sums):
    """What was built from what by whom: an in-toto statement with SLSA's predicate. It is not signed."""
    commit, run = output("git", "rev-parse", "HEAD"), os.environ.get("GITHUB_RUN_ID")
    source = f"{os.environ['GITHUB_SERVER_URL']}/{os.environ['GITHUB_REPOSITORY']}" if run else "local"
    inputs = ("Cargo.lock", ".ci/requirements.txt")
    materials = [{"uri": f"git+{source}", "digest": {"gitCommit": commit}}]
    materials += [{"uri": path, "digest": {"sha256": hashlib.sha256(read(path)).hexdigest()}} for path in inputs]
    details = {"builder": {"id": f"{source}/.github/workflows/release.yml" if run else source}}
    if run:
        details["metadata"] = {"invocationId": f"{source}/actions/runs/{run}"}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in sums.items()],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{source}/.ci/release",
                "externalParameters": {"version": VERSION},
                "internalParameters": {"rustc": output("rustc", "--version")},
                "resolvedDependencies": materials,
            },
            "runDetails": details,
        },
    }


def finish(out):
    packages(out)
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted([*out.glob("muster-*gz"), *out.glob("muster-image-*")])}
    (out / "SHA256SUMS").write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))
    (out / "provenance.json").write_text(json.dumps(provenance(sums), indent=2) + "\n")


if __name__ == "__main__":
    folder, step, *rest = sys.argv[1:]
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    {"programs": programs, "functions": functions, "bills": bills, "finish": finish}[step](pathlib.Path(folder).absolute(), *rest)
