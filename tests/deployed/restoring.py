"""A restore as documented: tables that come back under other names, copied into the stack's own."""

from account import until
from upgrading import ready

LOST = {"catalog": "CatalogTableName", "tokens": "TokensTableName", "secrets": "SecretsTableName"}


def steps(scene):
    account, stack = scene.account, scene.stack

    def restores():
        """After the loss of catalogue, tokens and secrets, `muster restore` copies the restored tables back:
        finds and cloud operations work under the tokens of before."""
        tables, world = account.client("dynamodb"), ready(scene)
        find = lambda: world.api.code(
            "POST", "/matchmaker/lobbies/find", {"game_modes": ["arena"]}, world.public
        )
        assert find() == "OK"
        items = {}
        for name, output in LOST.items():
            own = stack.outputs[output]
            to = ["--target-table-name", f"restored-{name}", "--restore-date-time", "2026-11-20T12:00:00Z"]
            account.run("aws", "dynamodb", "restore-table-to-point-in-time", "--source-table-name", own, *to)
            keys = [
                key["AttributeName"] for key in tables.describe_table(TableName=own)["Table"]["KeySchema"]
            ]
            lost = [
                item
                for page in tables.get_paginator("scan").paginate(TableName=own)
                for item in page["Items"]
            ]
            for item in lost:
                tables.delete_item(TableName=own, Key={key: item[key] for key in keys})
            items[name] = len(lost)
        # Instances know a namespace's settings for half a minute.
        until("finds are refused", lambda: find() != "OK")
        administrator = {"env": account.environment}
        assert scene.muster(
            "restore", *(f"{name}=restored-{name}" for name in LOST), "--yes", **administrator
        ) == items
        until("finds are answered", lambda: find() == "OK")
        world.cloud("GET", "")
        scene.muster.run("doctor")
        for name in LOST:
            account.run("aws", "dynamodb", "delete-table", "--table-name", f"restored-{name}")
        return f"{sum(items.values())} items."

    return [("restore", restores)]
