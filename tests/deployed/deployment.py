"""What deploying itself promises: outputs, routes, versions, and what a deletion leaves."""

import json

from account import until
from roles import Roles
from stack import FUNCTIONS, Stack, routes

OUTPUTS = {
    "ApiUrl",
    "SigningKeySecretArn",
    *(
        f"{name}TableName"
        for name in ("Catalog", "Tokens", "Lobbies", "LobbyData", "Servers", "Ledger", "Secrets", "Clients")
    ),
}


def steps(account, build):
    dev, prod = Stack(account, "dev", build), Stack(account, "prod", build)

    def deploys():
        """`sam deploy` makes the stage dev with every documented output, a table each and a function for each
        route."""
        dev.deploy()
        assert set(dev.outputs) == OUTPUTS, dev.outputs
        tables = account.client("dynamodb")
        for name in dev.tables().values():
            described = tables.describe_table(TableName=name)["Table"]
            assert described["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST", described
            assert not described["DeletionProtectionEnabled"], described
        assert set(dev.live().values()) == {1}, dev.live()
        return f"{len(dev.resources())} resources, {len(FUNCTIONS)} functions, {len(dev.tables())} tables."

    def leads():
        """Each route of the OpenAPI document leads to the function that is named after its operation, at its
        published version."""
        resources, led = dev.resources(), routes()
        assert set(led.values()) == set(FUNCTIONS), led
        for (method, path), function in led.items():
            answer = dev.api.ask(method, path.replace("{", "").replace("}", ""))
            expected = {"function": resources[function], "version": "1", "route": f"{method} {path}"}
            assert answer == expected, (answer, expected)
        asked = {
            "origin": "https://game.example",
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization",
        }
        status, headers, _ = dev.api.send("OPTIONS", "/matchmaker/lobbies/find", headers=asked)
        assert status in (200, 204) and headers["access-control-allow-origin"] == "*", (status, headers)
        return f"{len(led)} routes."

    def deploys_from_a_workflow():
        """A workflow of the repository deploys a raised `MUSTER_REVISION` with the roles of
        `infra/deploy-role.yaml`: each function has a new version, which serves, under their boundary. One of
        another repository gets no role."""
        roles, before = Roles(account, dev), dev.live()
        try:
            roles.assume("elsewhere/muster")
        except account.client("sts").exceptions.ClientError as error:
            assert error.response["Error"]["Code"] == "AccessDenied", error
        else:
            raise AssertionError("another repository's workflow got the role")
        build.raise_revision()
        account.boundary = roles.outputs["BoundaryArn"]
        dev.deploy(
            *("--role-arn", roles.outputs["StackRoleArn"]),
            environment=roles.assume("studio/muster"),
            PermissionsBoundaryArn=account.boundary,
        )
        assert dev.live() == {function: version + 1 for function, version in before.items()}, dev.live()
        assert dev.api.ask("GET", "/cloud/bootstrap")["version"] == "2"
        iam, resources = account.client("iam"), dev.resources()
        found = (iam.get_role(RoleName=resources[f"{function}Role"])["Role"] for function in FUNCTIONS)
        boundaries = {role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn") for role in found}
        assert boundaries == {account.boundary}, boundaries

    def deploys_prod():
        """The stage prod has its dashboard and topic besides, tables that refuse deletion, and keeps logs for
        90 days."""
        prod.deploy()
        assert set(prod.outputs) == OUTPUTS | {"DashboardUrl", "AlarmTopicArn"}, prod.outputs
        tables = account.client("dynamodb")
        for key, name in prod.tables().items():
            is_protected = tables.describe_table(TableName=name)["Table"]["DeletionProtectionEnabled"]
            assert is_protected == (key != "ClientsTable"), (key, is_protected)
        group = prod.resources()["FunctionLogs"]
        found = account.client("logs").describe_log_groups(logGroupNamePrefix=group)["logGroups"]
        assert [one["retentionInDays"] for one in found] == [90], found

    def deletes():
        """A deleted stack leaves its tables but that of clients, and the signing key; protected tables refuse
        until they are told."""
        return ", ".join(delete(stack) for stack in (dev, prod))

    return [
        ("dev", deploys),
        ("routes", leads),
        ("workflow", deploys_from_a_workflow),
        ("prod", deploys_prod),
        ("deletion", deletes),
    ]


def delete(stack):
    account = stack.account
    stacks, tables, secrets = (
        account.client(name) for name in ("cloudformation", "dynamodb", "secretsmanager")
    )
    names, key = stack.tables(), stack.outputs["SigningKeySecretArn"]
    # `sam delete` reads the addresses of the uploads, and knows none but S3's own.
    stacks.delete_stack(StackName=stack.name)
    gone = lambda: not [
        one
        for one in stacks.list_stacks()["StackSummaries"]
        if one["StackName"] == stack.name and one["StackStatus"] != "DELETE_COMPLETE"
    ]
    until(f"{stack.name} is deleted", gone)
    left = set(tables.list_tables()["TableNames"]) & set(names.values())
    assert left == set(names.values()) - {names["ClientsTable"]}, left
    functions = account.client("lambda").list_functions()["Functions"]
    assert not [one for one in functions if one["FunctionName"].startswith(f"{stack.name}-")], functions
    assert "DeletedDate" not in secrets.describe_secret(SecretId=key), key
    refused = 0
    for name in left:
        try:
            tables.delete_table(TableName=name)
        except tables.exceptions.ClientError as error:
            refused += 1
            assert (
                stack.stage == "prod" and "deletion protection" in json.dumps(error.response).lower()
            ), error
            tables.update_table(TableName=name, DeletionProtectionEnabled=False)
            tables.delete_table(TableName=name)
    assert refused == (len(left) if stack.stage == "prod" else 0), refused
    secrets.delete_secret(SecretId=key)
    return f"{stack.name}: {len(left)} tables and the key were left"
