// Writes src/api.ts, the types of requests and responses, from the OpenAPI document; with `--check`, compares it.

import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const DOCUMENT = new URL("../../openapi.json", import.meta.url);
const TYPES = new URL("src/api.ts", import.meta.url);
/** What the client sends and receives; schemas that these refer to come with them. */
const USED = ["FindLobbyRequest", "JoinLobbyRequest", "CreateLobbyRequest", "FindLobbyResponse", "ListLobbiesResponse",
  "ListRegionsResponse", "ConnectPlayerResponse", "RegisterServerRequest", "RegisterServerResponse", "HeartbeatResponse"];

const { schemas: all } = JSON.parse(await readFile(DOCUMENT, "utf8")).components;
const schemas = {};
const add = (name) => {
  if (schemas[name]) return;
  schemas[name] = all[name];
  for (const [, other] of JSON.stringify(all[name]).matchAll(/"#\/components\/schemas\/(\w+)"/g)) add(other);
};
// Only for requests with `muster-explain`, which this client does not send.
delete all.FindLobbyResponse.properties.explain;
// Any JSON, not only objects.
delete all.Json.additionalProperties;
USED.forEach(add);

const document = { openapi: "3.1.0", info: { title: "", version: "" }, paths: {}, components: { schemas } };
const types = `// Made from infra/openapi.json by \`npm run types\`.\n\n${astToString(await openapiTS(document, { rootTypes: true, rootTypesNoSchemaPrefix: true, defaultNonNullable: false }))}`;
if (!process.argv.includes("--check")) {
  await writeFile(TYPES, types);
} else if (types !== await readFile(TYPES, "utf8")) {
  console.error("src/api.ts is not of infra/openapi.json: npm run types");
  process.exit(1);
}
