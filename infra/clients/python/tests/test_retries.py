"""What a client repeats, when, and what it leaves behind: the cases of rules.json in passing time."""

import asyncio
import sys
import unittest
from typing import Any

import httpx

from muster_client import Muster, MusterError
from script import RULES, URL, Answer, Request, Script, in_passing_time, now, response, seat

MOST = 1 - sys.float_info.epsilon
DEADLINE = RULES["deadline"]["default"] / 1_000
BOUNDS = [bound / 1_000 for bound in RULES["backoff"]["bounds"]]
WITHIN = RULES["given_up"]["within"] / 1_000


def muster(script: Script, random: float = 0.5) -> Muster:
    return Muster(URL, "pub_token", transport=script.transport, random=lambda: random)


def attempt(said: Any) -> httpx.Response:
    """What a case of `given_up` says of an attempt."""
    if said == "seat":
        return response(seat(2))
    if said == "none":
        return response(None)
    return response({"status": said, "code": "API_BAD_BODY"} if isinstance(said, int) else {"status": 503, "code": said})


class Retries(unittest.TestCase):
    def test_each_response_is_retried_with_the_same_key_and_body_or_is_the_end(self) -> None:
        for case in RULES["responses"]:
            for bound, random in enumerate((0.0, MOST)):
                with self.subTest(case["name"], random=random):
                    self.check_response(case, bound, random)

    @in_passing_time
    async def check_response(self, case: dict[str, Any], bound: int, random: float) -> None:
        given = case["response"]
        script = Script(lambda _, before: response(seat() if before else given))
        client = muster(script, random)
        if not case["is_retried"]:
            with self.assertRaises(MusterError) as refused:
                await client.find(game_modes=["arena"])
            error = refused.exception
            expected = (given["status"], given.get("code"), given.get("metadata", {}))
            self.assertEqual((error.status, error.code, error.metadata), expected)
            self.assertEqual(len(script.requests), 1)
            return
        found = await client.find(game_modes=["arena"])
        self.assertEqual(found.token, "player_first")
        first, second = script.requests
        self.assertAlmostEqual(second.at - first.at, case["wait"][bound] / 1_000, places=3)
        self.assertRegex(first.headers["idempotency-key"], "^[!-~]{1,64}$")
        self.assertEqual(first.headers["authorization"], "Bearer pub_token")
        self.assertEqual((second.headers, second.body), (first.headers, first.body))

    @in_passing_time
    async def test_delays_double_up_to_their_last_bound_for_at_least_35_seconds(self) -> None:
        script = Script(lambda *_: response(None))
        began = now()
        with self.assertRaises(MusterError) as given_up:
            await muster(script, MOST).find(game_modes=["arena"])
        self.assertEqual(given_up.exception.status, 0)
        self.assertLessEqual(now() - began, DEADLINE)
        times = [request.at for request in script.requests]
        waits = [round(later - earlier, 3) for earlier, later in zip(times, times[1:])]
        self.assertEqual(waits[: len(BOUNDS)], BOUNDS)
        self.assertGreater(times[-1] - began, RULES["deadline"]["default_at_least"] / 1_000)

    @in_passing_time
    async def test_an_attempt_may_take_as_long_as_the_service_takes(self) -> None:
        async def late() -> httpx.Response:
            await asyncio.sleep(1_000)
            return response(seat())

        script = Script(lambda _, before: response(seat()) if before else late())
        await muster(script, 0.0).find(game_modes=["arena"])
        first, second = script.requests
        self.assertAlmostEqual(second.at - first.at, RULES["attempt"]["seating"] / 1_000)

    @in_passing_time
    async def test_each_intent_has_a_key_of_its_own_and_a_body_that_later_changes_do_not_reach(self) -> None:
        script = Script(lambda _, before: response(seat() if before else None))
        client = muster(script)
        data = {"name": "Ada"}
        finding = asyncio.create_task(client.find(game_modes=["arena"], player_data=data))
        await asyncio.sleep(0.1)
        data["name"] = "Grace"
        await finding
        await client.find(game_modes=["arena"], player_data=data)
        first, second, third = script.requests
        self.assertEqual(first.body, second.body)
        self.assertNotEqual(second.body, third.body)
        self.assertNotEqual(second.headers["idempotency-key"], third.headers["idempotency-key"])

    def test_a_find_that_is_given_up_leaves_the_seats_that_it_may_have(self) -> None:
        for case in RULES["given_up"]["cases"]:
            for way in ("cancel", "deadline"):
                with self.subTest(case["name"], way=way):
                    self.check_given_up(case, way)

    @in_passing_time
    async def check_given_up(self, case: dict[str, Any], way: str) -> None:
        before, answers = case["before"], case["before"] + case["then"]
        responds = asyncio.Event()

        async def pending() -> httpx.Response:
            await responds.wait()
            return attempt(answers[0])

        def answer(request: Request, index: int) -> Answer:
            if request.path == "players/leave":
                return response({})
            return pending() if case["during"] == "attempt" and index == 0 else attempt(answers[index])

        script = Script(answer)
        client = muster(script, MOST)
        # Within the last wait, of which the bound is known.
        given_up = sum(BOUNDS[: len(before)]) - 0.01 if before else 0.01
        deadline = given_up if way == "deadline" else DEADLINE
        finding = asyncio.create_task(client.find(game_modes=["arena"], party_size=2, deadline=deadline))
        await asyncio.sleep(given_up)
        if way == "cancel":
            finding.cancel()
        with self.assertRaises(asyncio.CancelledError if way == "cancel" else MusterError):
            await finding
        responds.set()
        began = now()
        await client.settled()
        self.assertLessEqual(now() - began, WITHIN)
        finds = script.sent("find")
        self.assertEqual(len({(find.headers["idempotency-key"], find.body) for find in finds}), 1)
        left = sorted(leave.json["player_token"] for leave in script.sent("leave"))
        self.assertEqual(left, ["player_1", "player_first"] if case["leaves"] else [])
        self.assertEqual(len(finds), case["requests"])

    @in_passing_time
    async def test_a_find_that_is_cancelled_in_the_moment_of_its_answer_leaves_the_seat(self) -> None:
        responds = asyncio.Event()

        async def answer() -> httpx.Response:
            await responds.wait()
            return response(seat())

        script = Script(lambda request, _: answer() if request.path == "lobbies/find" else response({}))
        client = muster(script)
        for turns in range(20):
            finding = asyncio.create_task(client.find(game_modes=["arena"]))
            await asyncio.sleep(1)
            responds.set()
            for _ in range(turns):
                await asyncio.sleep(0)
            finding.cancel()
            has_seat = await asyncio.gather(finding, return_exceptions=True)
            await client.settled()
            left = len(script.sent("leave"))
            with self.subTest(turns=turns):
                self.assertEqual(left, 1 if isinstance(has_seat[0], asyncio.CancelledError) else 0)
            script.requests.clear()
            responds.clear()

    @in_passing_time
    async def test_what_is_given_up_is_looked_for_no_longer_than_its_limit(self) -> None:
        for given in (None, {"status": 503, "retry_after": "3600", "body": ""}):
            script = Script(lambda *_, given=given: response(given))
            client = muster(script)
            finding = asyncio.create_task(client.find(game_modes=["arena"]))
            await asyncio.sleep(0.1)
            finding.cancel()
            began = now()
            await client.settled()
            self.assertLessEqual(now() - began, WITHIN)
            self.assertTrue(all(request.at - began <= WITHIN for request in script.requests))
            await asyncio.gather(finding, return_exceptions=True)

    @in_passing_time
    async def test_closing_waits_until_seats_are_left(self) -> None:
        script = Script(lambda request, before: response(None if before == 0 else seat()))
        async with muster(script) as client:
            finding = asyncio.create_task(client.find(game_modes=["arena"]))
            await asyncio.sleep(0.01)
            finding.cancel()
        self.assertEqual(script.requests[-1].path, "players/leave")

    @in_passing_time
    async def test_an_address_without_its_scheme_is_an_error_at_once(self) -> None:
        began = now()
        with self.assertRaises(httpx.UnsupportedProtocol):
            await Muster("muster.example", "pub_token").find(game_modes=["arena"])
        self.assertEqual(now(), began)

    @in_passing_time
    async def test_a_seat_expires_by_the_clients_own_clock_and_knows_its_ports(self) -> None:
        found = await muster(Script(lambda *_: response(seat()))).find(game_modes=["arena"])
        self.assertEqual(found.expires_at, now() + RULES["token_life"] / 1_000)
        self.assertEqual((found.url(), found.url("default", "http")), ("wss://fra.example:443", "https://fra.example:443"))
        self.assertEqual(found.address(), ("fra.example", 443))
        found.ports["six"] = {**found.ports["default"], "host": "[2001:db8::7]:443", "hostname": "[2001:db8::7]"}
        self.assertEqual((found.address("six"), found.url("six")), (("2001:db8::7", 443), "wss://[2001:db8::7]:443"))
        for label in ("voice", "none"):
            with self.assertRaises(LookupError):
                found.url(label)

    @in_passing_time
    async def test_a_body_is_as_short_as_that_of_other_clients(self) -> None:
        script = Script(lambda *_: response(seat()))
        await muster(script).find(game_modes=["arena"], player_data="é")
        self.assertEqual(script.requests[0].body.decode(), '{"game_modes":["arena"],"player_data":"é"}')


if __name__ == "__main__":
    unittest.main()
