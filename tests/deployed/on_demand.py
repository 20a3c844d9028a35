"""Game servers on demand: from a find that finds no place to the end of the process that it had started."""

import http.client
import json
import pathlib
import subprocess
import threading
import time
import uuid

from account import until
from operations import MODE, World

# Public, as the command demands it. In the region's record, the receiver's address takes its place.
ADDRESS = "https://starter.studio.example/muster"
CONCURRENCY = 5
SOURCES = ("StartsFromStream", "StartsFromQueue")
BUILD = {"image": "deployed:7"}
SERVERS = {"build": BUILD, "start_seconds": 60, "idle_seconds": 0}
CONFIG = {"game_modes": {"arena": {**MODE, "idle_seconds": 0}}, "servers": SERVERS}
# The status of a command that refuses what it is asked.
REFUSED = 4


class Studio:
    """A receiver of webhooks, which ends with the account; `webhooks` are those that it verified."""

    def __init__(self, account):
        environment = {
            **account.environment,
            "RECEIVER_CERTIFICATE": str(account.certificate),
            "RECEIVER_KEY": str(account.key),
            "API_PORT": str(account.port),
            "API_AUTHORITY": str(account.certificate),
        }
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        pipes["stderr"] = (account.folder / "receiver.log").open("w")
        program = pathlib.Path(__file__).with_name("receiver.py")
        self.process = subprocess.Popen([account.python, program], env=environment, **pipes)
        account.processes.append(self.process)
        self.port = int(self.process.stdout.readline())
        self.account, self.webhooks = account, []
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.webhooks.append(json.loads(line))

    def trust(self, secret):
        print(secret, file=self.process.stdin, flush=True)

    def post(self, body):
        """The status of a webhook that nobody signed."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.account.tls)
        connection.request("POST", "/muster", json.dumps(body))
        status = connection.getresponse().status
        connection.close()
        return status


def steps(scene):
    account, stack, muster = scene.account, scene.stack, scene.muster

    def sources():
        functions, resources = account.client("lambda"), stack.resources()
        mapping = lambda source: functions.get_event_source_mapping(UUID=resources[source])
        return [mapping(source)["State"] for source in SOURCES]

    def names_starter():
        """`muster region start` refuses a webhook while `ServerConcurrency` is 0. Once that is deployed, the
        sources of `start-server` are on, and the region has its starter, whose secret is shown."""
        start = ["region", "start", scene.game.name, "fra", "--webhook", ADDRESS]
        refused = muster.run(*start, check=False)
        assert refused.returncode == REFUSED and "ServerConcurrency" in refused.stderr, refused
        stack.deploy(ServerConcurrency=CONCURRENCY)
        assert sources() == ["Enabled"] * len(SOURCES), sources()
        scene.studio = Studio(account)
        scene.studio.trust(muster(*start)["secret"])
        listed = muster("region", "list", scene.game.name)["regions"]["fra"]
        assert listed["starter"] == "webhook", listed
        # No public address leads here, and the command takes no other.
        address = f"https://127.0.0.1:{scene.studio.port}/muster"
        account.client("dynamodb").update_item(
            TableName=stack.outputs["SecretsTableName"],
            Key={"version_id": {"S": f"starter/{scene.game.id}/fra"}},
            UpdateExpression="SET #starter.#url = :url",
            ConditionExpression="#starter.#url = :public",
            ExpressionAttributeNames={"#starter": "starter", "#url": "url"},
            ExpressionAttributeValues={":url": {"S": address}, ":public": {"S": ADDRESS}},
        )

    def seats():
        """A find that finds no place requests a server: the webhook is called once, by a body whose signature
        the published library verifies, the process that it starts registers, and the find or its repetition
        answers with a seat there. The next find gets the same server."""
        scene.logged, scene.world = account.log.stat().st_size, World(scene.game, CONFIG)
        began, key, waits = time.monotonic(), str(uuid.uuid4()), []

        def seat():
            asked = {"game_modes": ["arena"]}, scene.world.public, {"idempotency-key": key}
            status, answer = stack.api.try_("POST", "/matchmaker/lobbies/find", *asked)
            if status == 200:
                return answer
            assert answer["code"] == "MATCHMAKER_LOBBY_START_TIMEOUT", answer
            waits.append(answer["metadata"])

        scene.found = until("the find has a seat", seat)
        took = time.monotonic() - began
        webhooks = scene.studio.webhooks
        (called,) = until("the webhook is called", lambda: webhooks)
        body = json.loads(called["body"])
        assert called["answer"][0] == 200 and called["id"] == f"{body['start_id']}.start", called
        where = {"namespace_id": scene.world.id, "region_id": "fra"}
        assert {"type": "server.start", **where, "build": BUILD}.items() <= body.items(), body
        assert body["environment"]["MUSTER_API_URL"] == stack.outputs["ApiUrl"], body
        assert scene.studio.post(body) == 401
        (server,) = muster("server", "list", f"{scene.game.name}/{scene.world.name}")["servers"]
        assert server["server_id"] == body["server_id"], server
        again = scene.world.find()
        assert again["lobby"]["lobby_id"] == scene.found["lobby"]["lobby_id"], again
        assert webhooks == [called], webhooks
        scene.players = [scene.found, again]
        return f"The seat came after {took:.1f} s and {len(waits)} repetitions."

    def ends():
        """As soon as its players have left, a heartbeat tells the server to stop: it deregisters, its process
        ends by itself, the webhook is called once more, and no server is left. No call of `start-server` was
        refused to its role."""
        for path in ("/connected", "/disconnected"):
            for player in scene.players:
                enter(path, player)
        webhooks = scene.studio.webhooks
        until("the webhook is called again", lambda: len(webhooks) > 1)
        started, stopped = webhooks
        start, stop = (json.loads(webhook["body"]) for webhook in webhooks)
        assert stopped["id"] == f"{start['start_id']}.stop" and stop["type"] == "server.stop", stopped
        assert stopped["answer"] == [200, {"status": 0}], stopped
        assert stop["handle"] == started["answer"][1]["handle"] and "environment" not in stop, stop
        namespace = f"{scene.game.name}/{scene.world.name}"
        until("no server is left", lambda: muster("server", "list", namespace)["servers"] == [])
        assert muster("lobby", "list", namespace)["lobbies"] == []
        assert webhooks == [started, stopped], webhooks
        queue = {"QueueUrl": stack.resources()["FailedStartsQueue"], "AttributeNames": ["All"]}
        failed = account.client("sqs").get_queue_attributes(**queue)["Attributes"]
        assert failed["ApproximateNumberOfMessages"] == "0", failed
        role = stack.resources()["StartServerFunctionRole"]
        with account.log.open() as log:
            log.seek(scene.logged)
            refused = [line for line in log if line.startswith("refused ") and f"/{role}/" in line]
        assert not refused, refused

    def removes_starter():
        """Once no started server stands, `muster region stop` takes the starter away. With a
        `ServerConcurrency` of 0 again, the sources of `start-server` are off."""
        muster.run("region", "stop", scene.game.name, "fra")
        stack.deploy(ServerConcurrency=0)
        assert sources() == ["Disabled"] * len(SOURCES), sources()

    return [
        ("starter", names_starter),
        ("server on demand", seats),
        ("idle server", ends),
        ("no starter", removes_starter),
    ]


def enter(path, found):
    """A player comes to the address that the find answered, or leaves it."""
    port = found["ports"]["default"]
    connection = http.client.HTTPConnection(port["hostname"], port["port"], timeout=60)
    player = {"lobby_id": found["lobby"]["lobby_id"], "token": found["player"]["token"]}
    connection.request("POST", path, json.dumps(player))
    assert connection.getresponse().status == 200, (path, port)
    connection.close()
