"""That each statement of each policy is needed: without it a request of its function is answered in another way."""

import json
import uuid

import operations
from operations import CREATE, FIND, REQUESTS, World, of_game, of_players
from stack import FUNCTIONS


SCREENED = {
    "find-lobby": of_players("find", FIND, World.register),
    "join-lobby": of_players("join", {"lobby_id": str(uuid.UUID(int=1))}),
    "create-lobby": of_players("create", CREATE, World.register),
}
TAGGED = {**FIND, "tags": {"map": "harbour"}}
# Requests besides the first of each function.
MORE = {
    "find-lobby": [of_players("find", TAGGED, World.register)],
    "create-version": [of_game("POST", "/versions", {"display_name": "Screened", "config": operations.SCREENED})],
}


def steps(scene):
    stack = scene.stack

    def needs():
        """Without any one statement of its policy, a function no longer answers one of its requests as with it."""
        iam = scene.account.client("iam")
        shown, unshown = 0, []
        for function, binary in FUNCTIONS.items():
            role, policy, statements = stack.statements(function)
            if not statements:
                continue
            worlds = [(request, None) for request in (REQUESTS[binary], *MORE.get(binary, []))]
            worlds += [(SCREENED[binary], scene.game.screened_version())] if binary in SCREENED else []

            def ask(request, version, allowed):
                """How a request of a new namespace is answered while the role has these statements alone."""
                asked = request(World(scene.game, version))
                put = lambda some: iam.put_role_policy(
                    RoleName=role, PolicyName=policy, PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": some})
                )
                put(allowed)
                try:
                    return stack.api.code(*asked)
                finally:
                    put(statements)

            whole = [ask(request, version, statements) for request, version in worlds]
            assert whole[0] == "OK", (binary, whole)
            for statement in statements:
                less = [other for other in statements if other is not statement]
                for (request, version), expected in zip(worlds, whole):
                    if ask(request, version, less) != expected:
                        shown += 1
                        break
                else:
                    unshown.append(f"{binary} {statement['Sid']}")
        print(whole, unshown)
        return f"{shown} statements."

    return [("permissions", needs)]
