"""What deploying itself promises: outputs, routes, versions, and what a deletion leaves."""

import json
import re

from account import HOST, REGION, WORKSPACE, until
from roles import Roles
from stack import FUNCTIONS, ROUTED, TEMPLATE, Stack, routes

# Of log groups.
KINDS = ("Function", "Access")
OUTPUTS = {
    "ApiUrl",
    "SigningKeySecretArn",
    *(f"{kind}LogsName" for kind in KINDS),
    *(
        f"{name}TableName"
        for name in ("Catalog", "Tokens", "Lobbies", "LobbyData", "Servers", "Ledger", "Secrets", "Clients")
    ),
}
# What a stack has only if its operator wishes.
WISHED = {"Budget", "Domain", "DomainMapping"}
ALARM = re.compile(r"AlarmName: !Sub \$\{(?:AWS::)?StackName\}-(\S+)")


def steps(account, build):
    dev, prod = Stack(account, "dev", build), Stack(account, "prod", build)

    def deploys():
        """`sam deploy` makes the stage dev with every documented output, a table each and a function for each
        route."""
        dev.deploy()
        assert set(dev.outputs) == OUTPUTS, dev.outputs
        assert not WISHED & set(dev.resources()), dev.resources()
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
        assert set(led.values()) == set(ROUTED), led
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

    def moves():
        """With `DomainName` and `CertificateArn`, `ApiUrl` is that host and leads to the API and its stage,
        `DomainTarget` is what its record must point to, and the API's own host is off. With `BudgetDollars`,
        a budget tells `AlarmEmail`."""
        certificate = account.client("acm").request_certificate(DomainName=HOST)["CertificateArn"]
        budget = {"AlarmEmail": "ops@studio.example", "BudgetDollars": 250}
        dev.deploy(DomainName=HOST, CertificateArn=certificate, **budget)
        assert set(dev.outputs) == OUTPUTS | {"DomainTarget"}, dev.outputs
        assert dev.outputs["ApiUrl"] == f"https://{HOST}", dev.outputs
        apis = account.client("apigatewayv2")
        (configuration,) = apis.get_domain_name(DomainName=HOST)["DomainNameConfigurations"]
        assert configuration["CertificateArn"] == certificate, configuration
        assert dev.outputs["DomainTarget"] == configuration["ApiGatewayDomainName"], configuration
        (mapping,) = apis.get_api_mappings(DomainName=HOST)["Items"]
        led = {"ApiId": dev.resources()["HttpApi"], "Stage": "$default", "ApiMappingKey": ""}
        assert led.items() <= mapping.items(), mapping
        assert_answers(dev, is_off=True)
        assert_told(dev, "ops@studio.example", 250)

    def moves_back():
        """Without a host of its own again, the API answers at its own URL. Another `AlarmEmail` is told of
        another sum, and the first of none."""
        budget = {"AlarmEmail": "on-call@studio.example", "BudgetDollars": 300}
        dev.deploy(DomainName='""', CertificateArn='""', **budget)
        own = f"https://{dev.resources()['HttpApi']}.execute-api.{REGION}.amazonaws.com"
        assert set(dev.outputs) == OUTPUTS and dev.outputs["ApiUrl"] == own, dev.outputs
        assert WISHED & set(dev.resources()) == {"Budget"}, dev.resources()
        assert account.client("apigatewayv2").get_domain_names()["Items"] == []
        assert_answers(dev, is_off=False)
        assert_told(dev, "on-call@studio.example", 300)

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
        """The stage prod has its dashboard and alarms besides, a topic that notifies `AlarmEmail`, and tables that
        refuse deletion, and keeps logs for 90 days."""
        prod.deploy(AlarmEmail="ops@studio.example")
        assert set(prod.outputs) == OUTPUTS | {"DashboardUrl", "AlarmTopicArn"}, prod.outputs
        topic = prod.outputs["AlarmTopicArn"]
        told = account.client("sns").list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
        assert [one["Endpoint"] for one in told] == ["ops@studio.example"], told
        alarms = account.client("cloudwatch").describe_alarms(AlarmNamePrefix=prod.name)["MetricAlarms"]
        nested = (WORKSPACE / "infra" / "observability.yaml").read_text()
        expected = {f"{prod.name}-{name}" for name in ALARM.findall(TEMPLATE + nested)}
        assert {alarm["AlarmName"] for alarm in alarms} == expected, alarms
        tables = account.client("dynamodb")
        for key, name in prod.tables().items():
            is_protected = tables.describe_table(TableName=name)["Table"]["DeletionProtectionEnabled"]
            assert is_protected == (key != "ClientsTable"), (key, is_protected)
        assert {one["retentionInDays"] for one in groups(prod)} == {90}, groups(prod)
        return f"{len(alarms)} alarms."

    def deletes():
        """A deleted stack leaves its tables but that of clients, the signing key and the logs; protected tables
        refuse until the protection is off."""
        return ", ".join(delete(stack) for stack in (dev, prod))

    return [
        ("dev", deploys),
        ("routes", leads),
        ("address", moves),
        ("no address", moves_back),
        ("workflow", deploys_from_a_workflow),
        ("prod", deploys_prod),
        ("deletion", deletes),
    ]


def assert_answers(stack, is_off):
    """That a request to `ApiUrl` reaches its function, and whether the API's own host is off."""
    resources, found = stack.resources(), stack.api.ask("GET", "/cloud/bootstrap")
    assert found["function"] == resources["GetBootstrapFunction"], found
    api = stack.account.client("apigatewayv2").get_api(ApiId=resources["HttpApi"])
    assert api["DisableExecuteApiEndpoint"] is is_off, api


def assert_told(stack, address, dollars):
    """That the stack's one budget, of so many dollars, tells this address."""
    client = stack.account.client("budgets")
    owner = {"AccountId": stack.account.client("sts").get_caller_identity()["Account"]}
    listed = client.describe_budgets(**owner)["Budgets"]
    (budget,) = (one for one in listed if one["BudgetName"].startswith(f"{stack.name}-"))
    assert budget["TimeUnit"] == "MONTHLY" and float(budget["BudgetLimit"]["Amount"]) == dollars, budget
    its, told = {**owner, "BudgetName": budget["BudgetName"]}, []
    for said in client.describe_notifications_for_budget(**its)["Notifications"]:
        subscribers = client.describe_subscribers_for_notification(**its, Notification=said)["Subscribers"]
        told += [(said["NotificationType"], said["Threshold"], one["Address"]) for one in subscribers]
    assert told == [("ACTUAL", 80, address), ("FORECASTED", 100, address)], told


def groups(stack):
    """The log groups that the stack names, as far as they are there."""
    logs, names = stack.account.client("logs"), [stack.outputs[f"{kind}LogsName"] for kind in KINDS]
    found = (logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"] for name in names)
    return [group for listed in found for group in listed if group["logGroupName"] in names]


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
    assert len(groups(stack)) == 2, groups(stack)
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
    return f"{stack.name}: {len(left)} tables, the key and the logs were left"
