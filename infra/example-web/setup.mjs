// Tokens for the game: those of the environment, or of a namespace that this makes in the demo game of the
// local stack.

import { readFile, writeFile } from "node:fs/promises";

const NAME = "splash";
/** Keeps the tokens: a game server that starts again is the same one by its address and its token. */
const KEPT = new URL(".tokens.json", import.meta.url);

/** `{url, server, players}`: the API's address, and a token of each kind. */
export async function setup() {
  const { MUSTER_URL: url = "http://127.0.0.1:3000", MUSTER_SERVER_TOKEN: server, MUSTER_PUBLIC_TOKEN: players } = process.env;
  if (server && players) return { url, server, players };
  const demo = await answered(await fetch(`${url}/_local/demo`));
  const cloud = async (path, body) => answered(await fetch(`${url}/cloud/games/${demo.game_id}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${demo.tokens.cloud}` },
    body: JSON.stringify(body ?? {}),
  }));
  const kept = await readFile(KEPT, "utf8").then(JSON.parse, () => ({}));
  if (kept.game === demo.game_id) return { ...kept, url };
  const config = JSON.parse(await readFile(new URL("version.json", import.meta.url), "utf8"));
  const { version_id } = await cloud("/versions", { display_name: NAME, config });
  const { namespace_id } = await cloud("/namespaces", { display_name: "Splash", name_id: `${NAME}-${Date.now().toString(36)}`, version_id });
  const token = async (kind) => (await cloud(`/namespaces/${namespace_id}/tokens/${kind}`)).token;
  const made = { url, game: demo.game_id, server: await token("server"), players: await token("public") };
  await writeFile(KEPT, JSON.stringify(made), { mode: 0o600 });
  return made;
}

async function answered(response) {
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.message);
  return answer;
}
