"""MiniStack, with what it lacks for Muster's template: each class or function below fills in one such thing.
The template stays as it is.

Run with the Python that MiniStack is installed for. The environment says where it listens (`GATEWAY_PORT`),
with which certificate (`MINISTACK_SSL_CERT`), and where Amazon's DynamoDB Local is (`DYNAMODB_LOCAL`; without
it, no item is read or written).
"""

import asyncio
import contextvars
import http.client
import json
import os
import re
import signal
import string
import sys
import threading
import time

from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack import app
from ministack.core import iam_evaluator
from ministack.core.concurrency import esm_wake
from ministack.services import apigateway, budgets, dynamodb, iam, lambda_svc
from ministack.services.cloudformation.provisioners import _REPLACING_PROPERTIES as REPLACING
from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS as RESOURCES

PORT, CERTIFICATE, KEY = (
    os.environ[name] for name in ("GATEWAY_PORT", "MINISTACK_SSL_CERT", "MINISTACK_SSL_KEY")
)
REGION = os.environ["MINISTACK_REGION"]


class Items:
    """Has DynamoDB Local keep the items, once MiniStack has judged a call by the caller's policies: a second
    implementation by DynamoDB's own makers. What is asked of tables themselves stays with MiniStack, and so
    do the readers of a table's stream: they get the records that DynamoDB Local writes."""

    ACTIONS = {
        *("GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "Scan"),
        *("BatchGetItem", "BatchWriteItem", "TransactGetItems", "TransactWriteItems"),
    }
    OF_TABLES, OF_STREAMS = "DynamoDB_20120810", "DynamoDBStreams_20120810"
    # Seconds after which a connection is not used again: it closes them after half a minute.
    IDLE = 10
    # Seconds from one look at a stream to the next.
    PAUSE = 0.2
    # It has a database for each access key and region.
    SIGNED = f"AWS4-HMAC-SHA256 Credential=muster/20260101/{REGION}/dynamodb/aws4_request, SignedHeaders=host, Signature=0"

    def __init__(self, address):
        self.address = address
        self.of_tables = dynamodb.handle_request
        self.connections = threading.local()
        self.making = threading.Lock()
        # The identifier of the table that the database was given under each name.
        self.made = {}

    async def handle(self, method, path, headers, body, query):
        action = headers.get("x-amz-target", "").split(".")[-1]
        asked = json.loads(body or b"{}")
        names = self.named(asked) if action in self.ACTIONS else set()
        if names and names <= set(dynamodb._tables):
            tables = {name: dynamodb._tables[name] for name in names}
            return await asyncio.to_thread(self.forward, action, body, tables)
        answer = await self.of_tables(method, path, headers, body, query)
        if action == "RestoreTableToPointInTime" and answer[0] == 200:
            source, target = asked["SourceTableName"], asked["TargetTableName"]
            tables = {name: dynamodb._tables[name] for name in (source, target)}
            await asyncio.to_thread(self.copy, source, target, tables)
        return answer

    @staticmethod
    def named(asked):
        if "RequestItems" in asked:
            return set(asked["RequestItems"])
        parts = [part for item in asked.get("TransactItems", []) for part in item.values()]
        return {part["TableName"] for part in parts or [asked] if "TableName" in part}

    def forward(self, action, body, tables):
        for name, table in tables.items():
            self.ensure(name, table)
        return self.send(action, body)

    def ensure(self, name, table):
        """A table's first call makes it; one that is made anew under the name of an earlier one is empty."""
        with self.making:
            if self.made.get(name) == table["TableId"]:
                return
            if name in self.made:
                self.ask("DeleteTable", {"TableName": name})
            indexes = [
                {key: index[key] for key in ("IndexName", "KeySchema", "Projection")}
                for index in table["GlobalSecondaryIndexes"] or []
            ]
            asked = {key: table[key] for key in ("TableName", "KeySchema", "AttributeDefinitions")}
            asked["BillingMode"] = "PAY_PER_REQUEST"
            if table.get("StreamSpecification"):
                asked["StreamSpecification"] = table["StreamSpecification"]
            made = self.ask("CreateTable", {**asked, "GlobalSecondaryIndexes": indexes} if indexes else asked)
            self.made[name] = table["TableId"]
            if stream := made["TableDescription"].get("LatestStreamArn"):
                # MiniStack knows by the context whose account it is.
                follow = contextvars.copy_context().run
                threading.Thread(target=follow, args=(self.follow, stream, table), daemon=True).start()

    def follow(self, stream, table):
        """Hands the records of a table's stream to MiniStack for as long as the table is there."""
        ask = lambda action, **asked: self.ask(action, asked, self.OF_STREAMS)
        name, streamed = table["TableName"], {"StreamArn": stream}
        # A shard is open for hours.
        (shard,) = ask("DescribeStream", **streamed)["StreamDescription"]["Shards"]
        start = {**streamed, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        place = None
        while self.made[name] == dynamodb._tables.get(name, {}).get("TableId") == table["TableId"]:
            place = place or ask("GetShardIterator", **start)["ShardIterator"]
            try:
                read = ask("GetRecords", ShardIterator=place)
            except RuntimeError as refused:
                # The place before a first record is lost when an item of another table is written.
                if "TrimmedDataAccessException" not in str(refused) or name in dynamodb._stream_records:
                    raise
                place = None
                continue
            place = read["NextShardIterator"]
            if read["Records"]:
                here = {"eventSourceARN": table["LatestStreamArn"]}
                records = [{**record, **here} for record in read["Records"]]
                dynamodb._stream_records.setdefault(name, []).extend(records)
                esm_wake.set()
            else:
                time.sleep(self.PAUSE)

    def copy(self, source, target, tables):
        """What a restore brings back: the items of now, as nothing here keeps those of earlier."""
        for name, table in tables.items():
            self.ensure(name, table)
        for item in self.ask("Scan", {"TableName": source})["Items"]:
            self.ask("PutItem", {"TableName": target, "Item": item})

    def ask(self, action, asked, service=OF_TABLES):
        status, _, answer = self.send(action, json.dumps(asked).encode(), service)
        if status != 200:
            raise RuntimeError(f"DynamoDB Local refused {action}: {answer}")
        return json.loads(answer)

    def send(self, action, body, service=OF_TABLES):
        headers = {
            "authorization": self.SIGNED,
            "x-amz-target": f"{service}.{action}",
            "content-type": "application/x-amz-json-1.0",
        }
        connection, used = getattr(self.connections, "kept", (None, 0))
        if time.monotonic() > used + self.IDLE:
            connection = http.client.HTTPConnection(self.address)
        self.connections.kept = None, 0
        connection.request("POST", "/", body, headers)
        answer = connection.getresponse()
        kept = {
            name: value
            for name, value in answer.getheaders()
            if name.lower() in ("content-type", "x-amz-crc32")
        }
        content = answer.read()
        self.connections.kept = connection, time.monotonic()
        return answer.status, kept, content


async def no_items(method, path, headers, body, query):
    """Where there is no DynamoDB Local, no call of an item is answered."""
    if headers.get("x-amz-target", "").split(".")[-1] in Items.ACTIONS:
        return 500, {}, b'{"__type": "InternalError", "message": "no items are kept here"}'
    return await TABLES_ALONE(method, path, headers, body, query)


TABLES_ALONE = dynamodb.handle_request


def nothing(kind):
    """A kind of resource that MiniStack does not know and that does nothing here. Updates of aliases, which
    deployment groups would guard, take effect at once."""
    made = lambda logical_id, properties, stack: (f"{stack}-{logical_id}", {})
    RESOURCES[kind] = {
        "create": made,
        "update": lambda physical_id, old, new, stack, logical_id=None: (physical_id, {}),
        "delete": lambda physical_id, properties: None,
    }


def budgets_of_templates():
    """Budgets, which MiniStack knows, but not in templates. As at AWS, other recipients take another budget,
    which is made before the earlier one is deleted."""

    def done(answer):
        if answer[0] != 200:
            raise ValueError(answer[2])

    def created(logical_id, properties, stack):
        done(budgets._create_budget(properties))
        return properties["Budget"]["BudgetName"], {}

    def updated(physical_id, old, new, stack):
        done(budgets._update_budget({"NewBudget": new["Budget"]}))
        return physical_id, {}

    def deleted(physical_id, properties):
        done(budgets._delete_budget({"BudgetName": physical_id}))

    RESOURCES["AWS::Budgets::Budget"] = {"create": created, "update": updated, "delete": deleted}
    REPLACING["AWS::Budgets::Budget"] = ("NotificationsWithSubscribers",)


def protection_of_tables():
    """Reads whether a table refuses deletion out of the text that a parameter gives; MiniStack takes any text
    for a yes."""
    table = RESOURCES["AWS::DynamoDB::Table"]
    create, update = table["create"], table["update"]

    def read(properties):
        is_protected = properties.get("DeletionProtectionEnabled", False)
        return {**properties, "DeletionProtectionEnabled": is_protected in (True, "true")}

    table["create"] = lambda logical_id, properties, stack: create(logical_id, read(properties), stack)
    table["update"] = lambda physical_id, old, new, *more, **named: update(
        physical_id, read(old), read(new), *more, **named
    )


def secrets_of_letters_and_digits():
    """Secrets that are generated without punctuation, which MiniStack adds all the same."""
    secret = RESOURCES["AWS::SecretsManager::Secret"]
    create, update = secret["create"], secret["update"]

    def read(properties):
        generated = properties.get("GenerateSecretString", {})
        if not generated.get("ExcludePunctuation"):
            return properties
        return {**properties, "GenerateSecretString": {**generated, "ExcludeCharacters": string.punctuation}}

    secret["create"] = lambda logical_id, properties, stack: create(logical_id, read(properties), stack)
    secret["update"] = lambda physical_id, old, new, *more, **named: update(
        physical_id, read(old), read(new), *more, **named
    )


def boundaries_of_roles():
    """A role's permissions boundary, by which MiniStack judges, but which it leaves unread in templates."""
    role = RESOURCES["AWS::IAM::Role"]
    create, update = role["create"], role["update"]

    def bound(made, properties):
        iam._roles[made[0]]["PermissionsBoundary"] = properties.get("PermissionsBoundary")
        return made

    role["create"] = lambda logical_id, properties, stack: bound(
        create(logical_id, properties, stack), properties
    )
    role["update"] = lambda physical_id, old, new, *more, **named: bound(
        update(physical_id, old, new, *more, **named), new
    )


def log_of_refusals():
    """Writes each call that a policy does not allow to the log, as CloudTrail would."""
    judge = iam_evaluator.enforce

    def enforce(key, action, *more, **named):
        refused = judge(key, action, *more, **named)
        if refused:
            principal = getattr(refused, "principal_arn", None)
            print(f"refused {action} to {principal} on {named.get('resource_arn')}", flush=True)
        return refused

    iam_evaluator.enforce = enforce


def alarms_over_expressions():
    """Alarms over an expression of several metrics, which MiniStack refuses, watch nothing here."""
    alarm = RESOURCES["AWS::CloudWatch::Alarm"]
    create, update = alarm["create"], alarm["update"]

    def plain(properties):
        if "Metrics" not in properties:
            return properties
        first = next(part["MetricStat"] for part in properties["Metrics"] if "MetricStat" in part)
        metric = first["Metric"]
        kept = {key: value for key, value in properties.items() if key != "Metrics"}
        named = {"Namespace": metric["Namespace"], "MetricName": metric["MetricName"]}
        return {**kept, **named, "Period": first["Period"], "Statistic": "Sum"}

    alarm["create"] = lambda logical_id, properties, stack: create(logical_id, plain(properties), stack)
    alarm["update"] = lambda physical_id, old, new, *more, **named: update(
        physical_id, plain(old), plain(new), *more, **named
    )


def routes_of_the_document():
    """Gives an HTTP API the routes, the cross-origin rules and whether its own host is off, as its OpenAPI
    document has them, which MiniStack leaves unread."""
    api = RESOURCES["AWS::ApiGatewayV2::Api"]
    create, update = api["create"], api["update"]

    def read(api_id, document):
        apigateway._routes[api_id], apigateway._integrations[api_id] = {}, {}
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                asked = operation["x-amazon-apigateway-integration"]
                asked = {
                    "integrationType": asked["type"].upper(),
                    "integrationMethod": asked["httpMethod"],
                    "integrationUri": asked["uri"],
                    "payloadFormatVersion": asked["payloadFormatVersion"],
                }
                made = json.loads(apigateway._create_integration(api_id, asked)[2])
                route = {
                    "routeKey": f"{method.upper()} {path}",
                    "target": f"integrations/{made['integrationId']}",
                }
                apigateway._create_route(api_id, route)
        kept = apigateway._apis[api_id]
        kept["corsConfiguration"] = document["x-amazon-apigateway-cors"]
        for server in document.get("servers", []):
            kept.update(server["x-amazon-apigateway-endpoint-configuration"])

    def created(logical_id, properties, stack):
        made = create(logical_id, properties, stack)
        read(made[0], properties["Body"])
        return made

    def updated(physical_id, old, new, *more, **named):
        made = update(physical_id, old, new, *more, **named)
        read(made[0], new["Body"])
        return made

    api["create"], api["update"] = created, updated


def address_of_dynamodb():
    """The region's DynamoDB is here. Functions sign with their roles' credentials over TLS alone. The one
    that has game servers started may call receivers of webhooks here: no template sets `MUSTER_REACH`."""
    environment = lambda_svc._provided_worker_env

    def with_address(*arguments):
        here = {"AWS_ENDPOINT_URL_DYNAMODB": f"https://127.0.0.1:{PORT}", "AWS_CA_BUNDLE": CERTIFICATE}
        made = environment(*arguments)
        if "MUSTER_STARTS_QUEUE_URL" in made:
            here |= {"MUSTER_REACH": "anywhere", "SSL_CERT_FILE": CERTIFICATE}
        return {**made, **here}

    lambda_svc._provided_worker_env = with_address


def address_of_the_api():
    """The API answers to the host of the output `ApiUrl`."""
    app._EXECUTE_API_RE = re.compile(
        r"^([a-f0-9]{8})\.execute-api\." + re.escape(REGION) + r"\.amazonaws\.com$"
    )


def end_with_whoever_started_it():
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def main():
    threading.Thread(target=end_with_whoever_started_it, daemon=True).start()
    address = os.environ.get("DYNAMODB_LOCAL")
    dynamodb.handle_request = Items(address).handle if address else no_items
    nothing("AWS::CodeDeploy::Application")
    nothing("AWS::CodeDeploy::DeploymentGroup")
    nothing("AWS::Logs::QueryDefinition")
    budgets_of_templates()
    protection_of_tables()
    secrets_of_letters_and_digits()
    boundaries_of_roles()
    log_of_refusals()
    alarms_over_expressions()
    routes_of_the_document()
    address_of_dynamodb()
    address_of_the_api()
    config = Config()
    config.bind = [f"127.0.0.1:{PORT}"]
    config.certfile, config.keyfile = CERTIFICATE, KEY
    # Seconds, as MiniStack itself has it: instances keep their connections.
    config.keep_alive_timeout = 75
    asyncio.run(serve(app.app, config))


if __name__ == "__main__":
    main()
