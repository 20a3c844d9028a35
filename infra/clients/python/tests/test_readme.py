"""The programs of the README, run as they stand on the running stack."""

import os
import re
import socket
import subprocess
import sys
import unittest
from pathlib import Path

from stack import URL, Namespace

README = Path(__file__).parent / "../README.md"


class Readme(unittest.TestCase):
    def program(self, code: str, values: dict[str, str], **environment: str) -> "subprocess.Popen[str]":
        """Starts a program of the page with the test's values in place of the page's."""
        for shown, value in values.items():
            self.assertIn(shown, code)
            code = code.replace(shown, value)
        started = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
        )
        self.addCleanup(started.wait)
        self.addCleanup(started.kill)
        assert started.stdout
        self.addCleanup(started.stdout.close)
        return started

    def test_the_player_and_the_game_server_of_the_readme_meet(self) -> None:
        server, player = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
        modes = {"duel": {"regions": ["fra"], "max_players": 2}}
        namespace = Namespace(modes)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        address = {"http://127.0.0.1:3000": URL}
        running = self.program(server, {**address, "7777": port}, MUSTER_SERVER_TOKEN=namespace.server)
        # The player's find waits for the game server.
        playing = self.program(player, {**address, "pub_…": namespace.public})
        assert running.stdout
        self.assertEqual(running.stdout.readline(), "a lobby of duel\n")
        self.assertEqual(playing.communicate()[0], "welcome Ada, 1 of 2\n\n")
        running.terminate()
        self.assertEqual(running.wait(), 0)


if __name__ == "__main__":
    unittest.main()
