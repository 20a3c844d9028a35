// The game in a real Chromium: two play, one reloads, both play again, four play by parties, the server
// starts anew.
//
// Usage: node browser.mjs BINARIES [PICTURE], with the folder of muster-local. Exits with 77 where there is
// no Chromium.

import assert from "node:assert/strict";
import { access } from "node:fs/promises";
import { createServer } from "node:net";
import { once } from "node:events";
import puppeteer from "puppeteer-core";
import { Program, Stack } from "../../../tests/console/programs.mjs";

const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const there = await Promise.all(CHROMIUM.map((path) => access(path).then(() => path, () => null)));
const executablePath = there.find(Boolean);
if (!executablePath) {
  console.log("there is no Chromium: the game was not played in it");
  process.exit(77);
}
const [binaries, picture] = process.argv.slice(2);

/** A port that nobody listens on. */
async function freePort() {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address();
  listener.close();
  await once(listener, "close");
  return port;
}

const stack = await Stack.start(binaries);
const port = await freePort();
const base = `http://127.0.0.1:${port}`;
const serve = async () => {
  const program = new Program("node", ["server.mjs"], { MUSTER_URL: stack.base, PORT: String(port), MATCH_SECONDS: "4" });
  await program.says(/^Play at/);
  return program;
};
let server = await serve();
// Without its stack, it would drain for as long as it is allowed to.
process.on("exit", () => server.child.kill("SIGKILL"));
const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
const faults = [];

/** A player's window, with a storage of its own. */
async function open(name, path = "/") {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.on("pageerror", (error) => faults.push(`${name}: ${error.message}`));
  await page.setViewport({ width: 1280, height: 860 });
  await page.goto(base + path);
  if (path === "/") {
    await stage(page, "menu");
    await page.$eval("#name", (input, value) => { input.value = value; }, name);
  }
  return page;
}
const stage = (page, ...wanted) => page.waitForFunction((stages) => stages.includes(document.body.dataset.stage), {}, wanted);
const press = (page, way) => page.click(`button[value="${way}"]`);
const text = (page, id) => page.$eval(`#${id}`, (element) => element.textContent);
const named = (page, ...names) => page.waitForFunction((all) => all.every((name) => document.getElementById("names").textContent.includes(name)), {}, names);

const ada = await open("Ada");
const grace = await open("Grace");
await press(ada, "find duel");
await stage(ada, "waiting");
await press(grace, "find duel");
await Promise.all([stage(ada, "playing"), stage(grace, "playing")]);
await Promise.all([named(ada, "Ada", "Grace"), named(grace, "Ada", "Grace")]);
// Whichever side she is on: that follows from who connects first.
const painted = (page) => page.evaluate(() => ["one", "two"].reduce((sum, id) => sum + Number(document.getElementById(id).textContent), 0));
const before = await painted(ada);
await ada.keyboard.down("ArrowUp");
await ada.waitForFunction((than) => ["one", "two"].reduce((sum, id) => sum + Number(document.getElementById(id).textContent), 0) > than + 20, {}, before);
if (picture) await ada.screenshot({ path: picture });
console.log("ok    two meet and paint");

await grace.reload();
await stage(grace, "playing");
await named(grace, "Ada", "Grace");
console.log("ok    one reloads, and is back in the match");

await Promise.all([stage(ada, "menu"), stage(grace, "menu")]);
const results = await Promise.all([text(ada, "result"), text(grace, "result")]);
assert.deepEqual(results, ["Your side wins!", "The other side wins."]);
await ada.keyboard.up("ArrowUp");
await Promise.all([press(ada, "find duel"), press(grace, "find duel")]);
await Promise.all([stage(ada, "ready", "playing"), stage(grace, "ready", "playing")]);
console.log("ok    the match ends, and both find another");

// Who leaves, loses.
await Promise.all([ada.click("#leave"), stage(ada, "menu"), stage(grace, "menu")]);
assert.equal(await text(grace, "result"), "Your side wins!");
await press(ada, "friend duel");
const challenge = await ada.waitForFunction(() => document.getElementById("link").value.split("#")[1]);
const friend = await open("Friend", `/#${await challenge.jsonValue()}`);
await Promise.all([stage(ada, "playing"), stage(friend, "playing")]);
console.log("ok    a friend comes by a link");

await Promise.all([stage(ada, "menu"), stage(friend, "menu")]);
await press(grace, "find teams");
await named(grace, "Grace");
await press(ada, "party teams");
const team = await ada.waitForFunction(() => document.body.dataset.stage === "waiting" && document.getElementById("link").value.split("#take=")[1]);
const mate = await open("Mate", `/#take=${await team.jsonValue()}`);
const other = await open("Other");
await press(other, "find teams");
const four = [ada, mate, grace, other];
await Promise.all(four.map((page) => stage(page, "menu")));
const outcomes = await Promise.all(four.map((page) => text(page, "result")));
assert.equal(outcomes[0], outcomes[1]);
assert.equal(outcomes[2], outcomes[3]);
console.log("ok    two friends play together against two others");

await Promise.all([press(ada, "find duel"), press(grace, "find duel")]);
await Promise.all([stage(ada, "playing"), stage(grace, "playing")]);
server.child.kill("SIGKILL");
await server.ended();
server = await serve();
await Promise.all([stage(ada, "ready"), stage(grace, "ready")]);
await Promise.all([stage(ada, "playing"), stage(grace, "playing")]);
console.log("ok    the server is killed, and both find a match on the next");

assert.deepEqual(faults, []);
await browser.close();
await stack.end();
process.exit(0);
