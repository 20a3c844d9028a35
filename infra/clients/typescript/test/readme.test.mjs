// The programs of the README, run as they stand on the running stack.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { test } from "node:test";
import { WebSocket } from "ws";
import { namespace, url } from "./stack.mjs";

/** Runs a block of code, whose constants a test needs, with the stack's values in place of the page's. */
async function run(block, name, values, exports) {
  const text = Object.entries(values).reduce((code, [from, to]) => {
    assert.ok(code.includes(from), `${name} has no ${from}`);
    return code.replaceAll(from, to);
  }, block);
  // Beside the tests, so that it imports the package as they do.
  const file = new URL(`readme-${name}.mjs`, import.meta.url);
  await writeFile(file, `${text}\nexport { ${exports} };\n`);
  try {
    return await import(file);
  } finally {
    await rm(file);
  }
}

test("the player and the game server of the README meet", async () => {
  const page = await readFile(new URL("../README.md", import.meta.url), "utf8");
  const [player, server] = [...page.matchAll(/```js\n(.*?)```/gs)].map(([, code]) => code);
  const tokens = await namespace({ duel: { regions: ["fra"], max_players: 2 } });
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address();
  listener.close();
  await once(listener, "close");

  process.env.MUSTER_SERVER_TOKEN = tokens.servers.token;
  const { server: running, sockets } = await run(server, "server", { "http://127.0.0.1:3000": url, 7777: port }, "server, sockets");
  // As a page has them, and Node from 22 on.
  globalThis.WebSocket ??= WebSocket;
  const drawn = [];
  let drew;
  globalThis.draw = (data) => {
    drawn.push(data);
    if (drawn.length === 2) drew();
  };
  globalThis.menu = () => {};
  const bothDrawn = new Promise((resolve) => { drew = resolve; });
  const { connection } = await run(player, "player", { "http://127.0.0.1:3000": url, "pub_…": tokens.players.token }, "connection");
  await bothDrawn;
  assert.deepEqual(drawn, ["welcome, 1 of 2", "hello"]);
  connection.close();
  await running.stop({ endLobbies: true });
  sockets.close();
});
