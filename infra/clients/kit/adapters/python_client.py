"""The Python package `muster-client`, of ../../python."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "../../python/src"))

from muster_client import Muster, MusterError, Seat


async def read() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def perform(muster: Muster, seats: dict[str, Seat], intent: dict[str, Any]) -> dict[str, Any]:
    name, act, of = intent["id"], intent["do"], intent.get("of", "")
    if act == "leave":
        await seats[of].leave()
        return {"id": name}
    if act == "rejoin":
        seats[name] = seats[of]
        await seats[name].rejoin()
    else:
        seats[name] = await getattr(muster, act)(**intent["request"])
    return {"id": name, "lobby_id": seats[name].lobby_id, "tokens": [member.token for member in seats[name].party]}


async def answer(muster: Muster, intent: dict[str, Any], performing: "asyncio.Task[dict[str, Any]]") -> None:
    try:
        outcome = await performing
    except asyncio.CancelledError:
        outcome = {"id": intent["id"], "aborted": True}
        await muster.settled()
    except MusterError as error:
        outcome = {"id": intent["id"], "error": str(error)}
        await muster.settled()
    print(json.dumps(outcome), flush=True)


async def main() -> None:
    seats: dict[str, Seat] = {}
    performing: dict[str, asyncio.Task[dict[str, Any]]] = {}
    answering: set[asyncio.Task[None]] = set()
    async with Muster(os.environ["MUSTER_URL"], os.environ["MUSTER_TOKEN"]) as muster:
        intents = await read()
        while line := await intents.readline():
            intent = json.loads(line)
            if intent["do"] == "abort":
                performing[intent["of"]].cancel()
                continue
            task = performing[intent["id"]] = asyncio.create_task(perform(muster, seats, intent))
            answering.add(asyncio.create_task(answer(muster, intent, task)))


asyncio.run(main())
