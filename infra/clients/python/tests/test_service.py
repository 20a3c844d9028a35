"""Players and game servers on the running stack."""

import asyncio
import contextlib
import os
import signal
import tempfile
import unittest
from pathlib import Path
from typing import Any

from muster_client import Muster, MusterError, Seat
from muster_client.server import GameServer, Lobby, ServerPort
from stack import URL, Lossy, Namespace

MODES = {
    "arena": {
        "regions": ["fra"], "max_players": 4, "party_size_max": 2, "keep_seconds": 60,
        "actions": {"create": {"enabled": True}},
    },
}
ARENA: Any = {"game_modes": ["arena"]}
PORTS: dict[str, ServerPort] = {"default": {"hostname": "127.0.0.1", "port": 7777, "protocol": "tcp"}}


class Service(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.namespace = Namespace(MODES)
        self.open = contextlib.AsyncExitStack()
        self.players = await self.open.enter_async_context(self.muster())

    async def asyncTearDown(self) -> None:
        await self.open.aclose()

    def muster(self, **options: Any) -> Muster:
        return Muster(URL, self.namespace.public, **options)

    def game_server(self, **options: Any) -> GameServer:
        return GameServer(URL, self.namespace.server, region="fra", capacity=20, **{"ports": PORTS, **options})

    async def start(self, **options: Any) -> GameServer:
        return await self.open.enter_async_context(self.game_server(**options))

    async def seats(self, server: GameServer, lobby_id: str) -> int:
        """The seats of a lobby as the service counts them now."""
        await server.beat()
        lobby = server.lobbies.get(lobby_id)
        return lobby.seats["reserved"] + lobby.seats["connected"] if lobby else 0

    async def refused(self, code: str, work: Any) -> MusterError:
        with self.assertRaises(MusterError) as refused:
            await work
        self.assertEqual(refused.exception.code, code)
        return refused.exception

    async def test_players_meet_one_leaves_one_comes_back_and_the_match_ends(self) -> None:
        async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            lobby_id, token = (await reader.readline()).decode().split()
            async with await server.admit(lobby_id, token) as player:
                writer.write(f"welcome {player.data}, {len(player.lobby.players)} here\n".encode())
                await reader.read()
            writer.close()

        listener = await asyncio.start_server(play, "127.0.0.1", 0)
        self.open.push_async_callback(listener.wait_closed)
        self.open.callback(listener.close)
        port: ServerPort = {"hostname": "127.0.0.1", "port": listener.sockets[0].getsockname()[1], "protocol": "tcp"}
        server = await self.start(ports={"default": port})

        async def connect(seat: Seat) -> tuple[str, asyncio.StreamWriter]:
            reader, writer = await asyncio.open_connection(*seat.address())
            writer.write(f"{seat.lobby_id} {seat.token}\n".encode())
            return (await reader.readline()).decode().strip(), writer

        ada = await self.players.find(**ARENA, player_data="Ada")
        grace = await self.players.find(**ARENA, player_data="Grace")
        self.assertEqual(ada.lobby_id, grace.lobby_id)
        said, of_ada = await connect(ada)
        self.assertEqual(said, "welcome Ada, 1 here")
        said, of_grace = await connect(grace)
        self.assertEqual(said, "welcome Grace, 2 here")
        lobby = server.lobbies[ada.lobby_id]

        of_ada.close()
        while len(lobby.players) > 1:
            await asyncio.sleep(0)
        before = ada.token
        await ada.rejoin()
        self.assertEqual(await self.seats(server, ada.lobby_id), 2)
        said, of_ada = await connect(ada)
        self.assertEqual((said, ada.token == before), ("welcome Ada, 2 here", False))

        ended = asyncio.create_task(lobby.ended())
        await lobby.end()
        await ended
        await self.refused("MATCHMAKER_LOBBY_STOPPED", grace.rejoin())
        of_ada.close()
        of_grace.close()

    async def test_a_token_of_a_seat_that_was_left_is_refused(self) -> None:
        server = await self.start()
        seat, other = await self.players.find(**ARENA), await self.players.find(**ARENA)
        await seat.leave()
        await self.refused("MATCHMAKER_PLAYER_REMOVED", server.admit(seat.lobby_id, seat.token))
        self.assertEqual(await self.seats(server, other.lobby_id), 1)

    async def test_friends_join_by_a_code_and_a_private_lobby_takes_no_strangers(self) -> None:
        await self.start()
        host = await self.players.create(game_mode="arena")
        assert host.code is not None
        friend = await self.players.join(lobby_id=f" {host.code.lower()} ")
        self.assertEqual(friend.lobby_id, host.lobby_id)
        find = self.players.find(**ARENA, prevent_auto_create_lobby=True)
        error = await self.refused("MATCHMAKER_NO_AVAILABLE_LOBBIES", find)
        self.assertEqual((error.status, bool(error.ray_id), bool(error.documentation)), (400, True, True))

    async def test_a_party_has_a_seat_for_each_whose_token_a_member_takes_over(self) -> None:
        server = await self.start()
        leader = await self.players.find(**ARENA, party_size=2, players_data=["Ada", "Grace"])
        self.assertEqual((len(leader.party), leader.party[0]), (2, leader))
        member = await self.players.seat(leader.party[1].token)
        self.assertEqual((member.lobby_id, member.ports), (leader.lobby_id, leader.ports))
        player = await server.admit(member.lobby_id, member.token)
        self.assertEqual((player.data, player.party_size), ("Grace", 2))
        await leader.leave()
        self.assertEqual(await self.seats(server, leader.lobby_id), 1)

    async def test_a_find_whose_request_or_response_is_lost_has_one_seat_after_the_retry(self) -> None:
        server = await self.start()
        for fault in ("request", "response"):
            network = Lossy([fault])
            async with self.muster(transport=network, random=lambda: 0.0) as players:
                seat = await players.find(**ARENA)
                self.assertEqual((network.faults, await self.seats(server, seat.lobby_id)), ([], 1))
                await seat.leave()

    async def test_a_find_that_is_cancelled_after_its_response_was_lost_leaves_nothing_behind(self) -> None:
        server = await self.start()
        mine = await self.players.find(**ARENA)
        network = Lossy(["response"])
        async with self.muster(transport=network, random=lambda: 0.5) as players:
            finding = asyncio.create_task(players.find(**ARENA))
            while await self.seats(server, mine.lobby_id) < 2:
                await asyncio.sleep(0)
            finding.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await finding
        self.assertEqual(await self.seats(server, mine.lobby_id), 1)

    async def test_lists_and_regions_are_those_of_the_namespace(self) -> None:
        await self.start()
        mine = await self.players.create(game_mode="arena", publicity="public")
        page = await self.players.list(include_state=True, limit=10)
        listed = [(lobby["lobby_id"], lobby["state"]) for lobby in page["lobbies"]]
        self.assertEqual(listed, [(mine.lobby_id, None)])
        self.assertIn("fra", [region["region_id"] for region in await self.players.regions()])

    async def test_a_lobby_is_closed_opened_made_private_given_a_state_and_rid_of_a_player(self) -> None:
        server = await self.start()
        seat = await self.players.find(**ARENA)
        player = await server.admit(seat.lobby_id, seat.token)
        lobby = player.lobby
        find = {**ARENA, "prevent_auto_create_lobby": True}
        await lobby.close()
        await self.refused("MATCHMAKER_NO_AVAILABLE_LOBBIES", self.players.find(**find))
        await lobby.open()
        await lobby.publicity("private")
        await self.refused("MATCHMAKER_NO_AVAILABLE_LOBBIES", self.players.find(**find))
        await lobby.publicity("public")
        await lobby.state({"map": "harbour"})
        self.assertEqual((await self.players.find(**find)).lobby_id, seat.lobby_id)
        await player.remove()
        await self.refused("MATCHMAKER_PLAYER_REMOVED", seat.rejoin())

    async def test_a_lobby_waits_until_it_is_ready(self) -> None:
        server = await self.start(auto_ready=False, heartbeat_seconds=1)

        async def make_ready() -> Lobby:
            async for lobby in server:
                await lobby.ready()
                return lobby
            raise AssertionError

        seat, lobby = await asyncio.gather(self.players.find(**ARENA), make_ready())
        self.assertEqual(seat.lobby_id, lobby.lobby_id)

    async def test_the_matches_of_a_server_that_crashes_go_on_with_the_same_players(self) -> None:
        file = Path(tempfile.mkdtemp()) / "start"
        with self.assertRaises(ZeroDivisionError):
            async with self.game_server(start_id_file=file) as crashed:
                seat = await self.players.find(**ARENA)
                before = await crashed.admit(seat.lobby_id, seat.token)
                raise ZeroDivisionError
        server = await self.start(start_id_file=file)
        await seat.rejoin()
        back = await server.admit(seat.lobby_id, seat.token)
        self.assertEqual(back.player_id, before.player_id)

    async def test_a_later_start_ends_the_loop_of_the_older_and_sigterm_drains_with_the_last_player(self) -> None:
        older = await self.start(server_id="one")
        later = await self.start(server_id="one", drain_on_sigterm=True)
        await older.beat()
        with self.assertRaises(MusterError) as ended:
            async for _ in older:
                pass
        self.assertEqual(ended.exception.code, "MATCHMAKER_LOBBY_STATE_CONFLICT")

        seat = await self.players.find(**ARENA)
        player = await later.admit(seat.lobby_id, seat.token)
        os.kill(os.getpid(), signal.SIGTERM)
        # Its lobby is closed to finds, and it gets no other.
        code = None
        while code != "MATCHMAKER_NO_SERVER_AVAILABLE":
            try:
                # Not so long that it would be retried.
                await (await self.players.find(**ARENA, deadline=5)).leave()
            except MusterError as error:
                code = error.code
        self.assertFalse(player.lobby.is_ended)
        await player.disconnected(keep_seconds=0)
        self.assertEqual([lobby async for lobby in later], [player.lobby])
        self.assertTrue(player.lobby.is_ended)


if __name__ == "__main__":
    unittest.main()
