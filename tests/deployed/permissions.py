"""That each statement of each policy is needed: without it a call of its function is refused, or its answer is
another one."""

import json
import os

from operations import (
    CREATE,
    FIND,
    REGISTRATION,
    REQUESTS,
    World,
    disconnects,
    of_game,
    of_players,
    of_servers,
    reads,
    screened,
)
from stack import ROUTED

# A policy must have a statement.
NOTHING = {"Effect": "Allow", "Action": "dynamodb:DescribeLimits", "Resource": "*"}
# Requests besides the first of each function, with the configuration of the version, where it is another.
MORE = {
    "find-lobby": [
        (of_players("find", {**FIND, "tags": {"map": "harbour"}}, World.register), None),
        (of_players("find", FIND), screened("find")),
    ],
    "join-lobby": [
        (of_players("join", lambda found: {"lobby_id": found[0]}, World.created), None),
        (of_players("join", lambda found: {"lobby_id": found[0]}, World.found), screened("join")),
    ],
    "create-lobby": [(of_players("create", CREATE), screened("create"))],
    "list-lobbies": [(reads("lobbies/list?include_state=true", World.stated), None)],
    "disconnect-player": [(disconnects(World.created), None)],
    "register-server": [
        (of_servers("register", {**REGISTRATION, "start_id": "second"}, World.created), None)
    ],
    "heartbeat-server": [(of_servers("heartbeat", {"server_id": "one"}, World.created), None)],
    "end-lobby": [(of_servers("end-lobby", lambda found: {"lobby_id": found[0]}, World.created), None)],
    "deregister-server": [(of_servers("deregister", {"server_id": "one"}, World.created), None)],
    "create-version": [
        (of_game("POST", "/versions", {"display_name": "Own", "config": screened("find")}), None)
    ],
}
# What no request here needs but these tests of `it` do, which write down what they need.
LATE = (
    "lifecycle::data::a_lobby_that_is_ready_too_late_goes_with_its_configuration_and_its_deregistered_server"
)
DEAD = "seating::cap::a_join_frees_what_its_client_held_on_a_server_that_died"
LEFT = "lifecycle::data::every_end_of_a_lobby_deletes_its_configuration"
REMOVED = (
    "seating::removed::a_removed_player_leaves_a_seat_for_others_or_takes_an_empty_lobby_along"
)
SHORT = "seating::standing::joins_count_like_finds_while_lobbies_run_short"
TESTED = {
    "join-lobby LobbyData": DEAD,
    "join-lobby Servers": DEAD,
    "join-lobby ServerIndexes": SHORT,
    "join-lobby Ledger": SHORT,
    "create-lobby LobbyIndexes": "lifecycle::joining::each_lobby_of_players_own_is_a_new_one_up_to_the_cap",
    "create-lobby Ledger": LEFT,
    "set-lobby-ready LobbyData": LATE,
    "set-lobby-ready Servers": LATE,
    "set-lobby-ready Ledger": LATE,
    "set-lobby-closed Ledger": "lifecycle::session::a_lobby_is_found_filled_closed_reopened_left_and_ended",
    "set-lobby-publicity Ledger": "lifecycle::publicity::a_private_lobby_opens_when_the_friends_are_there",
    "disconnect-player Ledger": "lifecycle::players::a_full_lobby_is_found_again_as_soon_as_a_player_left",
    "remove-player LobbyData": REMOVED,
    "remove-player Ledger": REMOVED,
    "leave-lobby Catalog": "agreement::each_function_with_a_table_may_open_its_connection",
    "leave-lobby Ledger": "lifecycle::players::a_seat_given_up_is_free_at_once_and_its_lobby_serves_the_next_find",
    "end-lobby Ledger": "lifecycle::allotment::a_server_that_is_gone_holds_nothing_of_the_cap",
    "deregister-server LobbyData": LEFT,
    "deregister-server Ledger": LEFT,
}
# For the race that the benchmark `permissions` names.
RACE = "heartbeat-server Ledger"


def steps(scene):
    account, stack = scene.account, scene.stack
    iam = account.client("iam")

    def ask(request, config, role, policy, statements, allowed):
        """How a request of a new namespace is answered while the role has these statements alone, and whether
        a call of its is refused."""
        asked = request(World(scene.game, config))

        def put(some):
            document = json.dumps({"Version": "2012-10-17", "Statement": some})
            iam.put_role_policy(RoleName=role, PolicyName=policy, PolicyDocument=document)

        put(allowed)
        logged = account.log.stat().st_size
        try:
            code = stack.api.code(*asked)
        finally:
            put(statements)
        with account.log.open() as log:
            log.seek(logged)
            return code, any(line.startswith("refused ") and f"/{role}/" in line for line in log)

    def needs():
        """Without any one statement of its policy, a call of the function is refused or its answer is another
        one."""
        shown, unshown = 0, {}
        for function, binary in ROUTED.items():
            role, policy, statements = stack.statements(function)
            requests = [(REQUESTS[binary], None), *MORE.get(binary, [])] if statements else []
            whole = [ask(*request, role, policy, statements, statements) for request in requests]
            assert not any(is_refused for _, is_refused in whole), (binary, whole)
            for statement in statements:
                less = [other for other in statements if other is not statement] or [NOTHING]
                answers = (ask(*request, role, policy, statements, less) for request in requests)
                if any(answer != expected for answer, expected in zip(answers, whole)):
                    shown += 1
                else:
                    unshown[f"{binary} {statement['Sid']}"] = set(granted(binary, statement))
        assert set(unshown) == {*TESTED, RACE}, set(unshown) ^ {*TESTED, RACE}
        needed = recorded()
        unneeded = [name for name in TESTED if not unshown[name] & needed]
        assert not unneeded, unneeded
        tests = "".join(f"\n          {name}: {test}" for name, test in TESTED.items())
        return f"{shown} statements. Tests of `it` need {len(TESTED)} others, and a race {RACE}:{tests}"

    def granted(binary, statement):
        """What a statement grants, as the tests' record has it."""
        logical = {name: table for table, name in stack.tables().items()}
        listed = lambda value: value if isinstance(value, list) else [value]
        for action in listed(statement["Action"]):
            for resource in listed(statement["Resource"]):
                name, *index = resource.split(":table/")[1].split("/", 1)
                yield " ".join([binary, action.removeprefix("dynamodb:"), "/".join([logical[name], *index])])

    def recorded():
        """What the named tests need."""
        record = account.folder / "permissions.txt"
        environment = {**os.environ, "MUSTER_PERMISSIONS_RECORD": str(record)}
        command = [
            "cargo",
            "test",
            "--locked",
            "--workspace",
            "--test",
            "it",
            "--",
            "--exact",
            *set(TESTED.values()),
        ]
        said = account.run(*command, env=environment).stdout
        assert f"{len(set(TESTED.values()))} passed" in said, said
        return set(record.read_text().splitlines())

    return [("permissions", needs)]
