// Writes Runtime/Api.cs, the types of requests and responses, from the OpenAPI document; with `--check`, compares it.

import { readFile, writeFile } from "node:fs/promises";

const DOCUMENT = new URL("../../../openapi.json", import.meta.url);
const TYPES = new URL("../Runtime/Api.cs", import.meta.url);
/** What the client sends, and what it receives; schemas that these refer to come with them. */
const SENT = ["FindLobbyRequest", "JoinLobbyRequest", "CreateLobbyRequest", "RegisterServerRequest"];
const RECEIVED = ["FindLobbyResponse", "ListLobbiesResponse", "ListRegionsResponse", "ConnectPlayerResponse",
  "RegisterServerResponse", "HeartbeatResponse"];
/** What only the client itself reads and writes. */
const INTERNAL = ["FindLobbyResponse", "Lobby", "Player", "ListRegionsResponse", "ConnectPlayerResponse", "RegisterServerRequest",
  "RegisterServerResponse", "HeartbeatResponse", "ServerLobby"];
const COLUMNS_MAX = 110;
/** A property cannot have the name of its class. */
const RENAMED = { "Port.port": "Number" };

const { schemas } = JSON.parse(await readFile(DOCUMENT, "utf8")).components;
// Only for requests with `muster-explain`, which this client does not send.
delete schemas.FindLobbyResponse.properties.explain;

const pascal = (name) => name.replace(/(?:^|_)(.)/g, (_, first) => first.toUpperCase());
const resolve = (schema) => schema.$ref ? { ...schemas[schema.$ref.split("/").at(-1)], name: schema.$ref.split("/").at(-1) } : schema;
const classes = new Map();

/** What C# makes of a schema: its type, whether it is a value type, and how a value is read. */
function typeOf(given, name, use) {
  const choices = given.anyOf ?? given.oneOf;
  const schema = resolve(choices && !given.properties ? choices.find(({ type }) => type !== "null") : given);
  const type = [schema.type].flat().find((one) => one !== "null");
  if (type === "string") return { type: "string", read: "Json.Text" };
  if (type === "integer") return { type: "int", isValue: true, read: "Json.Integer" };
  if (type === "number") return { type: "double", isValue: true, read: "Json.Number" };
  if (type === "boolean") return { type: "bool", isValue: true, read: "Json.Flag" };
  if (type === "array") {
    const item = typeOf(schema.items, `${name}Item`, use);
    return { type: `IList<${item.type}>`, read: `Json.List(${item.read})` };
  }
  if (schema.properties) {
    const own = schema.name ?? name;
    add(own, schema, use);
    return { type: own, read: `Json.Object(${own}.Of)` };
  }
  if (schema.additionalProperties && schema.additionalProperties !== true) {
    const item = typeOf(schema.additionalProperties, `${name}Item`, use);
    const isNullable = [schema.additionalProperties.type].flat().includes("null");
    return { type: `IDictionary<string, ${item.type}${item.isValue && isNullable ? "?" : ""}>`, read: `Json.Map(${item.read})` };
  }
  return { type: "object", read: "Json.Any" };
}

function add(name, schema, use) {
  const known = classes.get(name) ?? { uses: new Set(), description: schema.description };
  if (known.uses.has(use)) return;
  known.uses.add(use);
  classes.set(name, known);
  known.fields = Object.entries(schema.properties).map(([field, given]) => {
    const isOptional = !schema.required?.includes(field) || [given.type].flat().includes("null");
    return { field, isOptional, description: given.description, ...typeOf(given, name + pascal(field), use) };
  });
}

function comment(description, indent) {
  if (!description) return "";
  const words = `<summary>${description.replaceAll("&", "&amp;").replaceAll("<", "&lt;")}</summary>`.split(" ");
  const lines = [];
  for (const word of words) {
    const longer = lines.length > 0 ? `${lines.at(-1)} ${word}` : "";
    if (longer && longer.length <= COLUMNS_MAX) lines[lines.length - 1] = longer;
    else lines.push(`${indent}/// ${word}`);
  }
  return `${lines.join("\n")}\n`;
}

function source([name, { uses, description, fields }]) {
  const named = (field) => RENAMED[`${name}.${field}`] ?? pascal(field);
  const property = ({ field, type, isValue, isOptional, description: about }) =>
    `${comment(about, "        ")}        public ${type}${isValue && isOptional ? "?" : ""} ${named(field)} { get; set; }\n`;
  let text = `${comment(description, "    ")}    ${INTERNAL.includes(name) ? "internal" : "public"} sealed class ${name}${uses.has("sent") ? " : IFields" : ""}\n    {\n${fields.map(property).join("\n")}`;
  if (uses.has("received")) {
    const read = ({ field, isValue, isOptional, read }) => {
      const convert = isValue && !isOptional ? `Json.Required(json, "${field}", ${read})` : `${isValue ? "Json.Value" : "Json.Field"}(json, "${field}", ${read})`;
      return `            ${named(field)} = ${convert},\n`;
    };
    text += `\n        internal static ${name} Of(IDictionary<string, object> json) => new ${name}\n        {\n${fields.map(read).join("")}        };\n`;
  }
  if (uses.has("sent")) {
    const write = ({ field }) => `            yield return new KeyValuePair<string, object>("${field}", ${named(field)});\n`;
    text += `\n        IEnumerable<KeyValuePair<string, object>> IFields.Fields()\n        {\n${fields.map(write).join("")}        }\n`;
  }
  return `${text}    }\n`;
}

for (const name of SENT) add(name, schemas[name], "sent");
for (const name of RECEIVED) add(name, schemas[name], "received");
const text = `// Made from infra/openapi.json by \`node Tests~/types.mjs\`.

using System.Collections.Generic;

namespace Muster.Api
{
${[...classes].map(source).join("\n")}}
`;
if (!process.argv.includes("--check")) {
  await writeFile(TYPES, text);
} else if (text !== await readFile(TYPES, "utf8")) {
  console.error("Runtime/Api.cs is not of infra/openapi.json: node Tests~/types.mjs");
  process.exit(1);
}
