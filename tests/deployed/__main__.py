"""Deploys Muster to an emulated AWS account and proves that what is deployed works. Each step says what it proves, and its time.

Usage: deployed FOLDER PYTHON [BINARIES]: where it works, the Python that has MiniStack, and the folder of the functions' binaries and of
`muster` and `muster-example`. Without binaries, stub functions are deployed, and no item of a table is read.
"""

import pathlib
import shutil
import sys
import time

import deployment
from account import Account
from stack import Build

UNJUDGED = """\
What the emulator cannot judge: that a canary takes a tenth of the requests and rolls back, that items expire, restores to a point in
time, throttles of routes, functions and tables, alarms over expressions, tracing, the time of a cold start, indexes that lag."""


def prove(name, step):
    began = time.monotonic()
    try:
        found = step()
    except BaseException:
        print(f"FAILED  {name}: {step.__doc__}", flush=True)
        raise
    print(f"{time.monotonic() - began:6.1f} s  {name}: {step.__doc__}{f' {found}' if found else ''}", flush=True)


def stubs(account):
    stub = pathlib.Path(__file__).with_name("stub.py")
    return deployment.steps(account, Build(account.folder / "build", lambda _, path: shutil.copy(stub, path)))


def main(folder, python, binaries=None):
    began = time.monotonic()
    with Account(pathlib.Path(folder).absolute(), pathlib.Path(python).absolute(), binaries is not None) as account:
        print(f"{time.monotonic() - began:6.1f} s  account: the emulator listens on loopback", flush=True)
        for name, step in stubs(account):
            prove(name, step)
    print(f"{time.monotonic() - began:6.1f} s  in all. {UNJUDGED}")


if __name__ == "__main__":
    main(*sys.argv[1:])
