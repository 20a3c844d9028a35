"""Deploys Muster to an emulated AWS account and proves that what is deployed works. Each step says what it
proves, and its time.

Usage: deployed FOLDER PYTHON [BINARIES]: where it works, the Python that has MiniStack, and the folder of the
functions' binaries and of `muster` and `muster-example`. Without binaries, stub functions are deployed, and
no item of a table is read.
"""

import pathlib
import shutil
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import administration
import deployment
import moving
import on_demand
import permissions
import restoring
import serving
import upgrading
import watching
from account import Account
from operations import Game, Muster
from roles import operators
from stack import FUNCTIONS, Build, Stack

UNJUDGED = """\
What the emulator cannot judge: that a canary takes a tenth of the requests and rolls back, that items expire, restores to an earlier
point in time, throttles of routes, functions and tables, alarms over expressions, traces, the time of a cold start, indexes that lag,
`sam delete`, the rights with which CloudFormation itself acts, that an API's own host refuses once it has another, whether DNS and the
certificate fit that host, what is spent of a budget, mail; of game servers on demand the rights with which Lambda reads their stream and
queue, that a webhook's host has a public address, and tasks of ECS."""


def prove(name, step):
    began = time.monotonic()
    says = " ".join(step.__doc__.split())
    try:
        found = step()
    except BaseException:
        print(f"FAILED    {name}: {says}", flush=True)
        raise
    print(f"{time.monotonic() - began:6.1f} s  {name}: {says}{f' {found}' if found else ''}", flush=True)


def of_stubs(account):
    stub = pathlib.Path(__file__).with_name("stub.py")
    copied = lambda _, path: shutil.copy(stub, path)
    return deployment.steps(account, Build.of_release(account.folder / "stubs", copied))


def of_functions(account, binaries):
    def strip(binary, path):
        subprocess.run(["strip", "-o", path, binaries / binary], check=True)

    build = Build(account.folder / "functions", strip)
    stack = Stack(account, "dev", build)
    muster = Muster(stack, binaries / "muster")
    scene = SimpleNamespace(account=account, stack=stack, binaries=binaries, muster=muster)

    def deploys():
        """The real functions, built for this machine, are uploaded and deployed under the deploy roles'
        boundary, and the operator's command creates a game, from here on with the policy of
        `infra/operator-policy.yaml` alone."""
        build.package(account)
        stack.deploy(PermissionsBoundaryArn=account.boundary)
        muster.environment, scene.looker = operators(account, stack)
        scene.game = Game(muster, "game")
        return f"{len(FUNCTIONS)} functions."

    def deletes():
        """The stack in use is deleted like an idle one: its tables but that of clients are left, and the key
        and the logs."""
        return deployment.delete(stack)

    topics = (serving, administration, on_demand, watching, permissions, upgrading, moving, restoring)
    return [
        ("functions", deploys),
        *(step for topic in topics for step in topic.steps(scene)),
        ("end", deletes),
    ]


def main(folder, python, binaries=None):
    began = time.monotonic()
    with Account(
        pathlib.Path(folder).absolute(), pathlib.Path(python).absolute(), binaries is not None
    ) as account:
        print(f"{time.monotonic() - began:6.1f} s  account: the emulator listens on loopback", flush=True)
        steps = of_stubs(account)
        if binaries:
            steps += of_functions(account, pathlib.Path(binaries).absolute())
        for name, step in steps:
            prove(name, step)
    print(f"{time.monotonic() - began:6.1f} s  in all. {UNJUDGED}")


if __name__ == "__main__":
    # What was started ends, too, when this is asked to.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to end"))
    main(*sys.argv[1:])
