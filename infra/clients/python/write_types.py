"""Writes src/muster_client/api.py, the types of requests and responses, from the OpenAPI document; with `--check`,
compares it."""

import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
TYPES = FOLDER / "src/muster_client/api.py"
COLUMNS = 110
# What the client sends and receives; schemas that these refer to come with them.
USED = [
    "FindLobbyRequest", "JoinLobbyRequest", "CreateLobbyRequest", "FindLobbyResponse", "ListLobbiesResponse",
    "ListRegionsResponse", "ConnectPlayerResponse", "RegisterServerResponse", "HeartbeatResponse", "ServerPorts",
]
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


class Types:
    """The text of the types, each behind those that it refers to."""

    def __init__(self, schemas: dict[str, Any]) -> None:
        self.schemas = schemas
        self.written: dict[str, str] = {}

    def add(self, name: str) -> str:
        if name not in self.written:
            self.written[name] = ""
            text = self.definition(name, self.schemas[name])
            del self.written[name]  # In the order in which they are complete.
            self.written[name] = text
        return name

    def definition(self, name: str, schema: dict[str, Any]) -> str:
        if "properties" in schema:
            return self.typed_dict(name, schema)
        return comment(schema, "") + f"{name}: TypeAlias = {self.type_of(name, schema)}\n"

    def typed_dict(self, name: str, schema: dict[str, Any]) -> str:
        required = schema.get("required", [])
        fields = {True: "", False: ""}
        for field, about in schema["properties"].items():
            named = name + "".join(part.title() for part in field.split("_"))
            line = f"    {field}: {self.type_of(named, about)}\n"
            fields[field in required] += comment(about, "    ") + line
        # `NotRequired` came with Python 3.11.
        if fields[True] and fields[False]:
            return (
                f"class _{name}(TypedDict):\n{fields[True]}\n\n"
                f"{comment(schema, '')}class {name}(_{name}, total=False):\n{fields[False]}"
            )
        total = "" if fields[True] else ", total=False"
        return f"{comment(schema, '')}class {name}(TypedDict{total}):\n{fields[True]}{fields[False]}"

    def type_of(self, name: str, schema: dict[str, Any]) -> str:
        """The type of a schema; one that needs a definition of its own gets it by `name`."""
        if "$ref" in schema:
            return self.add(schema["$ref"].rsplit("/", 1)[1])
        if "enum" in schema:
            return f"Literal[{', '.join(repr(value) for value in schema['enum'])}]".replace("'", '"')
        if any_of := schema.get("anyOf") or ("type" not in schema and schema.get("oneOf")):
            return " | ".join(self.type_of(name, one) for one in any_of)
        kinds = schema.get("type")
        if kinds is None:
            return "Any"
        return " | ".join(self.of_kind(name, kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds))

    def of_kind(self, name: str, kind: str, schema: dict[str, Any]) -> str:
        if kind == "array":
            return f"list[{self.type_of(name, schema['items'])}]"
        if kind != "object":
            return PLAIN[kind]
        if "properties" in schema:
            self.written[name] = self.typed_dict(name, schema)
            return name
        values = schema.get("additionalProperties", True)
        return f"dict[str, {self.type_of(name, values) if isinstance(values, dict) else 'Any'}]"


def comment(schema: dict[str, Any], indent: str) -> str:
    text = schema.get("description", "")
    return "".join(f"{line}\n" for line in textwrap.wrap(text, COLUMNS, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# "))


def main() -> None:
    schemas = json.loads((FOLDER / "../../openapi.json").read_text())["components"]["schemas"]
    # Only for requests with `muster-explain`, which this client does not send.
    del schemas["FindLobbyResponse"]["properties"]["explain"]
    # A response has these once, beside the lobby.
    for name in ("ports", "player"):
        del schemas["Lobby"]["properties"][name]
    # Any JSON, not only objects.
    schemas["Json"] = {"description": schemas["Json"].get("description", "")}
    types = Types(schemas)
    for name in USED:
        types.add(name)
    body = "\n\n".join(types.written.values())
    text = (
        '"""Requests and responses of the API. Made from infra/openapi.json by `python3 write_types.py`."""\n\n'
        f"from typing import Any, Literal, TypeAlias, TypedDict\n\n\n{body}"
    )
    text = re.sub(r"\n{3,}", "\n\n\n", text)
    if "--check" not in sys.argv[1:]:
        TYPES.write_text(text)
    elif text != TYPES.read_text():
        sys.exit("src/muster_client/api.py is not of infra/openapi.json: run write_types.py")


if __name__ == "__main__":
    main()
