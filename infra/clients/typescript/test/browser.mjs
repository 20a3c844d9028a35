// The client in a real Chromium: a find across origins, a game by WebSocket, a reload, a page that goes.
//
// Usage: node browser.mjs BINARIES, with the folder of muster-local. Exits with 77 where there is no Chromium.

import assert from "node:assert/strict";
import { once } from "node:events";
import { access } from "node:fs/promises";
import { createServer } from "node:http";
import { buildSync } from "esbuild";
import puppeteer from "puppeteer-core";
import { WebSocketServer } from "ws";
import { GameServer } from "muster-client/server";
import { Stack } from "../../../../tests/console/programs.mjs";

const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const there = await Promise.all(CHROMIUM.map((path) => access(path).then(() => path, () => null)));
const executablePath = there.find(Boolean);
if (!executablePath) {
  console.log("there is no Chromium: the client was not run in it");
  process.exit(77);
}

const stack = await Stack.start(process.argv[2]);
process.env.MUSTER_URL = stack.base;
const { namespace } = await import("./stack.mjs");
const tokens = await namespace({ arena: { regions: ["fra"], max_players: 4, keep_seconds: 60 } });

const { outputFiles: [bundle] } = buildSync({ entryPoints: ["test/page.js"], bundle: true, format: "esm", write: false });
const pages = createServer((request, response) => {
  const isScript = request.url === "/page.js";
  response.writeHead(200, { "content-type": isScript ? "text/javascript" : "text/html" });
  response.end(isScript ? bundle.text : '<!doctype html><title>page</title><link rel="icon" href="data:,"><script type="module" src="/page.js"></script>');
});
pages.listen(0, "127.0.0.1");
await once(pages, "listening");
const { port } = pages.address();

const server = new GameServer({ ...tokens.servers, capacity: 4, ports: { default: { hostname: "127.0.0.1", port, protocol: "http" } } });
const events = [];
server.attach(new WebSocketServer({ server: pages }), () => {
  const note = (event) => ({ playerId }) => events.push([event, playerId]);
  return { joined: (player) => player.send("welcome"), back: (player) => player.send("back"), lost: note("lost"), left: note("left"), message: (player, data) => player.send(data) };
});
await server.start();

const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
const faults = [];
const page = await browser.newPage();
page.on("console", (message) => { if (["error", "warn"].includes(message.type())) faults.push(message.text()); });
page.on("pageerror", (error) => faults.push(error.message));
const at = (hash) => `http://127.0.0.1:${port}/?${new URLSearchParams({ url: stack.base, token: tokens.players.token })}${hash}`;
const seats = async () => {
  await server.beat();
  return [...server.lobbies.values()].map(({ seats: { reserved, connected } }) => [reserved, connected]);
};

await page.goto(at(""));
const first = await page.evaluate(() => play());
await page.evaluate(() => connection.send("hello"));
await page.waitForFunction(() => messages.join() === "welcome,hello");
console.log("ok    a page finds, connects and plays");

await page.reload();
assert.deepEqual(await page.evaluate(() => play()), first);
await page.waitForFunction(() => messages.join() === "back");
assert.deepEqual(await seats(), [[0, 1]]);
assert.ok(events.every(([event]) => event === "lost"), JSON.stringify(events));
console.log("ok    a reload leads back to the seat, as the same player");

await page.evaluate(() => connection.close());
await page.evaluate(() => seat.leave());
assert.equal(await page.evaluate(() => sessionStorage.length), 0);
await page.goto("about:blank");
await page.goto(at("#leave"));
await page.evaluate(() => muster.find({ game_modes: ["arena"] }).then(() => {}));
assert.deepEqual(await seats(), [[1, 0]]);
await page.goto("about:blank");
let looks = 0;
while ((await seats()).some(([reserved]) => reserved > 0)) assert.ok((looks += 1) < 200, "the seat is still reserved");
console.log("ok    a page that goes leaves its seat by a beacon");

assert.deepEqual(faults, []);
await browser.close();
await server.stop({ endLobbies: true });
await stack.end();
process.exit(0);
