"""A game server's heartbeats and admissions: the cases of rules.json in passing time."""

import asyncio
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from muster_client.server import GameServer, Lobby, MusterError, ServerPort
from script import RULES, URL, Request, Script, in_passing_time, now, response

PORTS: dict[str, ServerPort] = {"default": {"hostname": "fra.example", "port": 443, "protocol": "https"}}
DETAILS = {"player_id": "ada", "replaced": True, "player_data": {"name": "Ada"}, "party_id": "p", "party_size": 2}


def lobby(name: str = "one") -> dict[str, Any]:
    seats = {"reserved": 1, "connected": 0}
    return {
        "lobby_id": name, "lobby_token": f"lobby_{name}", "game_mode": "arena", "region_id": "fra", "tags": {},
        "max_players": 2, "seats": seats, "created_at": "",
    }


class Running:
    """A game server whose service gives the answers of `answers` by operation, each an object or made of the request."""

    def __init__(self, answers: dict[str, Any], **options: Any) -> None:
        self.answers: dict[str, Any] = {"register": {"server_id": "s"}, "heartbeat": {"lobbies": []}, **answers}
        self.script = Script(self._answer)
        self.seen: list[Lobby] = []
        self.errors: list[str | None] = []
        #: How the loop over lobbies ended.
        self.end: str | None = None
        options = {"region": "fra", "ports": PORTS, "on_error": lambda error: self.errors.append(error.code), **options}
        self.server = GameServer(URL, "server_token", transport=self.script.transport, random=lambda: 0.5, **options)
        self.sent = self.script.sent
        self._looking = asyncio.create_task(self._look())

    def _answer(self, request: Request, before: int) -> httpx.Response:
        answer = self.answers.get(request.path.split("/")[1], {})
        return response(answer(request) if isinstance(answer, Callable) else answer)  # type: ignore[arg-type]

    async def _look(self) -> None:
        try:
            async for seen in self.server:
                self.seen.append(seen)
            self.end = "stop"
        except MusterError as error:
            self.end = f"exit {error.code}"

    @property
    def names(self) -> list[str]:
        return [f"{one.lobby_id}{' ended' if one.is_ended else ''}" for one in self.seen]


class Heartbeats(unittest.TestCase):
    @in_passing_time
    async def test_the_lease_is_three_times_the_pause_between_heartbeats_and_at_least_30_seconds(self) -> None:
        for case in RULES["heartbeats"]["lease"]:
            every = case["every_seconds"]
            running = Running({}, heartbeat_seconds=every)
            await running.server.start()
            await asyncio.sleep(3 * every + 0.5)
            [register] = running.sent("register")
            self.assertEqual(register.json["lease_seconds"], case["lease_seconds"])
            beats = running.sent("heartbeat")
            self.assertEqual([round(beat.at - beats[0].at, 3) for beat in beats], [0, every, 2 * every, 3 * every])
            names = {(beat.json["server_id"], beat.json["start_id"]) for beat in beats}
            self.assertEqual(names, {("s", register.json["start_id"])})
            await running.server.close()

    @in_passing_time
    async def test_a_registration_has_the_build_if_there_is_one(self) -> None:
        for options in ({}, {"build": {"image": "game:7"}}):
            running = Running({}, **options)
            await running.server.start()
            [register] = running.sent("register")
            self.assertEqual(register.json["build"], options.get("build"))
            await running.server.close()

    def test_after_each_response_to_a_heartbeat(self) -> None:
        for case in RULES["heartbeats"]["responses"]:
            with self.subTest(case["name"]):
                self.check_heartbeat(case)

    @in_passing_time
    async def check_heartbeat(self, case: dict[str, Any]) -> None:
        then, given = case["then"], case["response"]
        answer: dict[str, Any] = {"lobbies": [lobby()]}
        running = Running({"heartbeat": lambda sent: {"lobbies": [lobby("two")]} if sent.json["cursor"] else answer})
        await running.server.start()
        stopping = asyncio.create_task(running.server.stop()) if case.get("is_draining") else None
        await asyncio.sleep(25)
        before = len(running.sent("heartbeat"))
        answer.update(given)
        running.answers["register"] = case.get("registration", {"server_id": "s"})
        await asyncio.sleep(5.5)
        ended = ["one ended"]
        names = {"beat": ["one", "two"], "register": ended, "exit": ended, "stop": ended, "error": ["one"]}
        self.assertEqual(running.names, names[then])
        ends = {"exit": "exit MATCHMAKER_LOBBY_STATE_CONFLICT", "stop": "stop"}
        self.assertEqual(running.end, ends.get(then))
        self.assertEqual(running.errors, [given["code"]] if then == "error" else [])
        self.assertEqual(len(running.sent("heartbeat")) - before, 2 if then == "beat" else 1)
        registered = [register.json["start_id"] for register in running.sent("register")]
        self.assertEqual(registered, registered[:1] * (2 if then in ("register", "exit") else 1))
        if then in ("exit", "stop"):
            await asyncio.sleep(300)
            self.assertEqual(len(running.sent("heartbeat")) - before, 1)
        if stopping:
            await stopping

    @in_passing_time
    async def test_heartbeats_come_one_at_a_time_and_those_that_are_wanted_meanwhile_are_one(self) -> None:
        at_once = [0, 0]

        async def slow(request: Request) -> httpx.Response:
            at_once[0] += 1
            at_once[1] = max(at_once)
            await asyncio.sleep(0.1)
            at_once[0] -= 1
            return response({"lobbies": []})

        script = Script(lambda sent, _: response({"server_id": "s"}) if sent.path == "servers/register" else slow(sent))
        server = GameServer(URL, "server_token", region="fra", ports=PORTS, transport=script.transport)
        await server.start()
        before = len(script.requests)

        async def want(is_first: bool) -> None:
            await server.beat()
            # Who asks in the moment between the two shares the second.
            if is_first:
                await server.beat()

        await asyncio.gather(*(want(index == 0) for index in range(5)))
        self.assertEqual((at_once[1], len(script.requests) - before), (1, 2))
        await server.close()

    @in_passing_time
    async def test_a_server_whose_heartbeats_get_no_response_keeps_its_lobbies_and_goes_on(self) -> None:
        running = Running({"heartbeat": {"lobbies": [lobby()]}})
        await running.server.start()
        running.answers["heartbeat"] = None
        await asyncio.sleep(120)
        self.assertEqual((running.names, set(running.errors)), (["one"], {None}))
        self.assertGreater(len(running.sent("heartbeat")), 8)

    @in_passing_time
    async def test_a_heartbeat_may_take_a_third_of_the_lease_however_often_they_are_sent(self) -> None:
        async def slow() -> httpx.Response:
            await asyncio.sleep(9)
            return response({"lobbies": []})

        script = Script(lambda sent, _: response({"server_id": "s"}) if sent.path == "servers/register" else slow())
        transport = script.transport
        async with GameServer(URL, "", region="fra", ports=PORTS, transport=transport, heartbeat_seconds=1):
            await asyncio.sleep(20)
        self.assertEqual([request.path for request in script.requests][1:4], ["servers/heartbeat"] * 3)

    @in_passing_time
    async def test_a_lobby_that_a_list_lacks_has_ended_unless_it_has_players_and_is_young(self) -> None:
        listed = [lobby("old")]
        running = Running({"heartbeat": lambda _: {"lobbies": listed}, "connected": lambda sent: {"player_id": "ada"}})
        await running.server.start()
        await running.server.admit("old", "player_a")
        await asyncio.sleep(29)
        listed.extend([lobby("young"), lobby("empty")])
        await running.server.beat()
        await running.server.admit("young", "player_b")
        listed.clear()
        await asyncio.sleep(1.5)
        self.assertEqual(running.names, ["old ended", "young", "empty ended"])
        await asyncio.sleep(30)
        self.assertEqual(running.names[1], "young ended")

    @in_passing_time
    async def test_a_start_that_is_kept_has_every_seat_kept_before_it_runs_the_lobbies(self) -> None:
        file = Path(tempfile.mkdtemp()) / "start"
        answers = {"heartbeat": {"lobbies": [lobby()]}}
        first = Running(answers, start_id_file=file)
        with self.assertRaises(ZeroDivisionError):
            async with first.server:
                raise ZeroDivisionError
        self.assertEqual([first.sent(operation) for operation in ("disconnected", "deregister")], [[], []])
        second = Running(answers, start_id_file=file, keep_seconds=60)
        await second.server.start()
        start = second.sent("register")[0].json["start_id"]
        self.assertEqual(start, first.sent("register")[0].json["start_id"])
        self.assertEqual(second.sent("disconnected")[0].json, {"everyone": True, "keep_seconds": 60})
        paths = [request.path for request in second.script.requests]
        self.assertEqual(paths, ["servers/register", "servers/heartbeat", "players/disconnected"])
        await second.server.stop(end_lobbies=True)
        await asyncio.sleep(0)
        self.assertEqual((second.names, second.end), (["one ended"], "stop"))
        third = Running(answers, start_id_file=file)
        await third.server.start()
        self.assertNotEqual(third.sent("register")[0].json["start_id"], start)

    @in_passing_time
    async def test_a_server_that_is_left_ends_its_lobbies(self) -> None:
        running = Running({"heartbeat": {"lobbies": [lobby()]}})
        async with running.server as server:
            self.assertEqual(list(server.lobbies), ["one"])
        self.assertIs(running.sent("deregister")[0].json["end_lobbies"], True)
        self.assertEqual(running.names, ["one ended"])


class Admission(unittest.TestCase):
    def test_each_player_is_admitted_or_refused(self) -> None:
        for case in RULES["admission"]:
            with self.subTest(case["name"]):
                self.check_admission(case)

    @in_passing_time
    async def check_admission(self, case: dict[str, Any]) -> None:
        given = case.get("response", {})
        running = Running({"heartbeat": {"lobbies": [lobby()]}, "connected": DETAILS})
        await running.server.start()
        if case.get("is_shown"):
            await running.server.admit("one", "player_a")
        elif "status" in given:
            running.answers["connected"] = {**given, "metadata": DETAILS}
        if case["then"] == "refuse":
            with self.assertRaises(MusterError) as refused:
                await running.server.admit("one", "player_a")
            expected = given.get("code", "MATCHMAKER_PLAYER_ALREADY_CONNECTED")
            self.assertEqual((refused.exception.code, refused.exception.is_transient), (expected, False))
            return
        async with await running.server.admit("one", "player_a") as player:
            about = (player.player_id, player.replaced, player.data, player.party_id, player.party_size)
            self.assertEqual(about, ("ada", True, {"name": "Ada"}, "p", 2))
            [connected] = running.sent("connected")
            self.assertEqual((connected.headers["authorization"], connected.json["details"]), ("Bearer lobby_one", True))
            self.assertEqual(player.lobby.players, {"ada": player})
        [disconnected] = running.sent("disconnected")
        self.assertEqual(disconnected.json, {"player_token": "player_a", "keep_seconds": None})
        self.assertEqual(player.lobby.players, {})

    @in_passing_time
    async def test_the_player_of_a_lobby_that_is_not_listed_yet_waits_and_an_unknown_one_costs_few_heartbeats(self) -> None:
        listed: list[Any] = []
        running = Running({"heartbeat": lambda _: {"lobbies": listed}, "connected": DETAILS})
        await running.server.start()
        before = len(running.sent("heartbeat"))
        arriving = asyncio.create_task(running.server.admit("one", "player_a"))
        await asyncio.sleep(0.1)
        listed.append(lobby())
        self.assertEqual((await arriving).player_id, "ada")
        since = len(running.sent("heartbeat"))
        self.assertLessEqual(since - before, 2)
        began = now()

        async def come(index: int) -> None:
            await asyncio.sleep(index / 50)
            with self.assertRaises(MusterError) as refused:
                await running.server.admit("none", "player_b")
            self.assertEqual(refused.exception.code, "MATCHMAKER_LOBBY_NOT_FOUND")

        await asyncio.gather(*(come(index) for index in range(100)))
        # One in each quarter of a second.
        self.assertLessEqual(len(running.sent("heartbeat")) - since, 1 + (now() - began) / 0.25)

    @in_passing_time
    async def test_a_token_is_admitted_once_however_many_show_it_at_once(self) -> None:
        running = Running({"heartbeat": {"lobbies": [lobby()]}, "connected": DETAILS})
        await running.server.start()
        shown = [running.server.admit("one", "player_a") for _ in range(3)]
        outcomes = await asyncio.gather(*shown, return_exceptions=True)
        self.assertEqual(sum(isinstance(outcome, MusterError) for outcome in outcomes), 2)

    @in_passing_time
    async def test_a_player_whom_the_service_did_not_admit_in_time_shows_the_token_again(self) -> None:
        running = Running({"heartbeat": {"lobbies": [lobby()]}, "connected": None})
        await running.server.start()
        began = now()
        with self.assertRaises(MusterError) as failed:
            await running.server.admit("one", "player_a")
        self.assertTrue(failed.exception.is_transient)
        self.assertLess(now() - began, 10)
        running.answers["connected"] = DETAILS
        self.assertEqual((await running.server.admit("one", "player_a")).player_id, "ada")

    @in_passing_time
    async def test_a_player_whose_admission_is_cancelled_is_disconnected(self) -> None:
        async def late() -> httpx.Response:
            await asyncio.sleep(1)
            return response(DETAILS)

        answers: dict[str, Any] = {"register": {"server_id": "s"}, "heartbeat": {"lobbies": [lobby()]}, "disconnected": {}}
        script = Script(lambda sent, _: late() if sent.path == "players/connected" else response(answers[sent.path.split("/")[1]]))
        server = GameServer(URL, "server_token", region="fra", ports=PORTS, transport=script.transport)
        await server.start()
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(server.admit("one", "player_a"), 0.5)
        await asyncio.sleep(1)
        self.assertEqual(script.sent("disconnected")[0].json["player_token"], "player_a")
        # The token may be shown again.
        self.assertEqual((await server.admit("one", "player_a")).player_id, "ada")

    @in_passing_time
    async def test_a_player_who_comes_before_the_server_registered_is_to_come_again(self) -> None:
        running = Running({})
        with self.assertRaises(MusterError) as failed:
            await running.server.admit("one", "player_a")
        self.assertTrue(failed.exception.is_transient)
        self.assertEqual(running.script.requests, [])


if __name__ == "__main__":
    unittest.main()
