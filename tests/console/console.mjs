// Drives the console in a real Chromium: against the local stack, and against `muster console`.
//
// Usage: node console.mjs BINARIES [--smoke | --only WORDS] [--pictures FOLDER], with the folder of muster-local, muster-example and
// muster. Exits with 77 where there is no Chromium.

import assert from "node:assert/strict";
import { access, mkdir, mkdtemp, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import puppeteer from "puppeteer-core";
import { emulatedAws } from "./aws.mjs";
import { foreignPage, rawStatus } from "./foreign.mjs";
import { measured, passing } from "./hour.mjs";
import { Program, Stack } from "./programs.mjs";

const { values: options, positionals: [binaries] } = parseArgs({ allowPositionals: true, options: { smoke: { type: "boolean" }, only: { type: "string" }, pictures: { type: "string" } } });
if (!binaries) {
  console.error("usage: node console.mjs BINARIES [--smoke | --only WORDS] [--pictures FOLDER]");
  process.exit(2);
}

const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const there = await Promise.all(CHROMIUM.map((path) => access(path).then(() => path, () => null)));
const executablePath = there.find(Boolean);
if (!executablePath) {
  console.log("there is no Chromium: the console was not looked at");
  process.exit(77);
}

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** How long a state is waited for. */
const PATIENCE_MS = 20_000;
const SIZES = { broad: [1600, 900], wide: [1280, 900], narrow: [400, 844] };

const browser = await puppeteer.launch({
  executablePath,
  // A name of somebody else's that leads here: a test asks for the console by it.
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--host-resolver-rules=MAP rebound.example 127.0.0.1"],
});
if (options.pictures) await mkdir(options.pictures, { recursive: true });

const checks = [];
const check = (name, body, { isSmoke = false } = {}) => { if ((isSmoke || !options.smoke) && name.includes(options.only ?? "")) checks.push([name, body]); };

/** Faults that no check expects: errors of the browser's console, requests to other hosts. */
const wrong = [];

/** A page whose errors and foreign requests are noted. */
async function open(url, { scheme = "light", size = "wide", expects = [], prepare = async () => {} } = {}) {
  const page = await browser.newPage();
  const { origin } = new URL(url);
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("console", (message) => { if (["error", "warn"].includes(message.type()) && !expects.some((text) => message.text().includes(text))) wrong.push(`console: ${message.text()}`); });
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("request", (request) => { if (new URL(request.url()).origin !== origin && !request.url().startsWith("data:")) wrong.push(`request to ${request.url()}`); });
  await page.setViewport({ width: SIZES[size][0], height: SIZES[size][1] });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await prepare(page);
  await page.goto(url);
  return page;
}

const text = (page, selector) => page.$eval(selector, (element) => element.textContent);
const click = async (page, selector, label) => {
  const handle = await page.waitForFunction((where, said) => [...document.querySelectorAll(where)].find((element) => element.textContent.trim() === said && !element.disabled), {}, selector, label);
  await handle.asElement().click();
};
/** Waits until `selector` shows `said`. */
const shows = (page, selector, said) => page.waitForFunction((where, what) => [...document.querySelectorAll(where)].some((element) => element.textContent.includes(what)), {}, selector, said);

/** What axe finds on a page. */
async function violations(page) {
  await page.evaluate(axe);
  const { violations: found } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
}

const stack = await Stack.start(binaries);
const { base } = stack;
const demo = (screen, id) => `${base}/#/${[screen, "demo", "prod", id].filter(Boolean).join("/")}`;

check("an empty stack shows its game servers and says what to do next", async () => {
  const page = await open(base);
  await shows(page, ".server", "demo-fra");
  await shows(page, ".empty", "the first find creates one");
  assert.deepEqual(await violations(page), []);
  await page.close();
}, { isSmoke: true });

check("a find shows up as a bar, and a refused one with its reason", async () => {
  const page = await open(demo("live"));
  const found = await stack.find({ game_modes: ["duel"] });
  await page.waitForSelector(`.lobby[data-id="${found.lobby.lobby_id}"] .seat.reserved`);
  assert.equal((await page.$$(`.lobby[data-id="${found.lobby.lobby_id}"] .seat`)).length, 2);
  await stack.find({ game_modes: ["solo"], prevent_auto_create_lobby: true });
  await shows(page, ".tape", "MATCHMAKER_NO_AVAILABLE_LOBBIES");
  await shows(page, ".tape", "the request prevents the creation of solo in fra");
  await page.close();
}, { isSmoke: true });

check("a refused request links its code's row", async () => {
  const { documentation } = await stack.find({ game_modes: ["chess"] });
  for (const [scheme, size] of [["light", "wide"], ["dark", "narrow"]]) {
    const page = await open(documentation, { scheme, size });
    const row = await page.$eval("tr:has(:target)", (row) => ({ text: row.textContent, top: row.getBoundingClientRect().top, height: innerHeight }));
    assert.match(row.text, /^MATCHMAKER_GAME_MODE_NOT_FOUND400/);
    assert.ok(row.top >= 0 && row.top < row.height, `the row is at ${row.top}`);
    assert.deepEqual(await violations(page), [], scheme);
    await picture(page, `errors-${scheme}-${size}`);
    await page.close();
  }
}, { isSmoke: true });

check("faults are switched on and off, and shown while they are on", async () => {
  const page = await open(demo("live"));
  await shows(page, "footer", "Make faults");
  const seed = async () => (await (await fetch(`${base}/_local/faults`)).json()).seed;
  assert.equal(await page.$eval("#faulty", (shown) => shown.hidden), true);
  await page.$eval("#faults input[type=number]", (input) => { input.value = 7; });
  await page.click("#faults input[type=checkbox]");
  await shows(page, "#faulty:not([hidden])", "faults by seed 7");
  assert.equal(await seed(), 7);
  assert.deepEqual(await violations(page), []);
  await picture(page, "faults");
  await page.click("#faults input[type=checkbox]");
  await page.waitForSelector("#faulty[hidden]");
  assert.equal(await seed(), null);
  await page.close();
}, { isSmoke: true });

check("a session is played alone: find, connect, close, disconnect, end", async () => {
  const page = await open(demo("play"));
  await click(page, "form button", "Find a lobby");
  await shows(page, ".notice", "A seat is reserved.");
  await shows(page, ".why", "It looked for arena in fra.");
  await shows(page, ".why", "with Lambda and the HTTP API");
  const lobby = await page.$eval(".seats li", (row) => row.dataset.lobby);
  const seats = async (state) => (await stack.lobby(lobby))[state];
  await click(page, ".seats button", "Connect");
  await shows(page, ".seats .tag", "connected");
  assert.equal(await seats("connected"), 1);
  await click(page, ".seats button", "Close");
  await shows(page, ".seats button", "Reopen");
  await click(page, ".seats button", "Disconnect");
  await shows(page, ".seats .tag", "left");
  assert.equal(await seats("connected"), 0);
  await click(page, ".seats button", "End");
  await click(page, "dialog button", "End the lobby");
  await shows(page, ".seats .tag", "ended");
  assert.equal(await seats("stage"), "ended");
  await page.close();
}, { isSmoke: true });

check("a friend joins by the code that a player who created a lobby sees", async () => {
  const page = await open(demo("play"));
  await page.click("input[name=act][value=create]");
  await page.select("select[name=mode]", "arena");
  await click(page, "form button", "Create a lobby");
  await shows(page, ".notice", "A seat is reserved.");
  const { code, lobby } = await page.$eval(".seats li", (row) => ({ code: row.querySelector("code").textContent, lobby: row.dataset.lobby }));
  assert.match(code, /^[2-9A-HJKMNP-Z]{6}$/);
  await shows(page, ".card p", `with the code ${code}`);
  await page.click("input[name=act][value=join]");
  await page.type("input[name=lobby]", ` ${code.toLowerCase()} `);
  await click(page, "form button", "Join the lobby");
  await shows(page, ".seats li:nth-child(2)", code);
  assert.deepEqual(await page.$$eval(".seats li", (rows) => rows.map((row) => row.dataset.lobby)), [lobby, lobby]);
  await page.goto(demo("lobby", lobby));
  await shows(page, ".facts", code);
  await page.close();
});

check("a find that no game server has a place for says which servers there are", async () => {
  await stack.operator(["game", "create", "lonely", "--region", "fra=Frankfurt@50.11,8.68", "--config", stack.config]);
  const page = await open(`${base}/#/play/lonely/prod`);
  await click(page, "form button", "Find a lobby");
  await shows(page, ".notice", "MATCHMAKER_NO_SERVER_AVAILABLE");
  await shows(page, ".why", "`fra` has no game server");
  await page.goto(`${base}/#/live/lonely/prod`);
  await shows(page, ".empty", "No game server: no lobby can be created.");
  await page.close();
});

check("bars fill while the example's bots play", async () => {
  const page = await open(demo("live"));
  // So many that they still play when the page has found their namespace.
  const example = new Program(join(binaries, "muster-example"), ["--url", base, "--bots", "120"]);
  const option = await page.waitForFunction(() => [...document.querySelectorAll("#namespace option")].find((one) => one.value.includes("example"))?.value);
  await page.select("#namespace", await option.jsonValue());
  await page.waitForSelector(".lobby .seat.connected");
  await page.waitForFunction(() => document.querySelectorAll(".lobby .seat.connected").length >= 4);
  await shows(page, ".tape", "connect-player");
  await picture(page, "playing");
  await page.close();
  assert.equal(await example.ended(), 0);
});

check("a silent game server is marked", async () => {
  const page = await open(demo("live"));
  // The alphabet of identifiers allows what looks like an option.
  await stack.register({ server_id: "--help", lease_seconds: 1 });
  await page.waitForSelector('.server[data-id="--help"][data-state="free"]');
  await page.waitForSelector('.server[data-id="--help"][data-state="silent"]');
  await shows(page, ".server", "silent since");
  await page.goto(demo("server", "--help"));
  await shows(page, ".facts", "silent");
  await click(page, "button", "Remove");
  await click(page, "dialog button", "Remove it");
  await shows(page, ".notice", "out of service");
  await page.close();
});

check("a lobby is closed and ended from its own screen, seats and timeline with it", async () => {
  const { lobby: { lobby_id: id } } = await stack.find({ game_modes: ["solo"], regions: ["nyc"] });
  const page = await open(demo("lobby", id));
  await shows(page, "table", "reserved");
  await shows(page, ".timeline", "created");
  await click(page, "button", "Close");
  await shows(page, ".facts .tag", "closed");
  await shows(page, ".timeline", "closed");
  await click(page, "button", "End");
  await click(page, "dialog button", "Cancel");
  assert.equal((await stack.lobby(id)).stage, "ready");
  await click(page, "button", "End");
  await click(page, "dialog button", "End the lobby");
  await shows(page, ".facts .tag", "ended");
  await page.close();
});

check("the editor refuses at the line that is wrong, and makes what is valid", async () => {
  const page = await open(`${base}/#/game/demo/staging`);
  await page.waitForFunction(() => document.querySelector(".editor textarea")?.value.includes("game_modes"));
  const wrongLine = async (config) => {
    await page.$eval(".editor textarea", (editor, value) => { editor.value = value; editor.dispatchEvent(new Event("input")); }, config);
    return (await page.waitForSelector(".editor li.wrong")).evaluate((line) => line.textContent);
  };
  assert.equal(await wrongLine('{\n  "game_modes": {\n    "duel": {\n      "regions": ["moon"],\n      "max_players": 2\n    }\n  }\n}'), "4");
  await shows(page, ".why", "game_modes/duel/regions/not-found");
  assert.equal(await wrongLine('{\n  "game_modes": {\n    "duel": {\n      "regions": ["fra"],\n      "size": 2\n    }\n  }\n}'), "5");
  assert.equal(await wrongLine('{\n  "game_modes": {\n    oops\n'), "3");
  await page.$eval(".editor textarea", (editor) => { editor.value = '{"game_modes": {"duel": {"regions": ["fra"], "max_players": 3}}}'; editor.dispatchEvent(new Event("input")); });
  await page.type('[aria-label="Name of the new version"]', "three");
  await click(page, "button", "Make the version");
  await shows(page, "td b", "three");
  await shows(page, ".difference .added", '"max_players": 3');
  await page.close();
});

check("a namespace runs a version, and the one before again", async () => {
  const page = await open(`${base}/#/game/demo/staging`);
  await page.waitForSelector("table .tag");
  const running = () => page.$$eval("tr", (rows) => rows.find((row) => row.textContent.includes("running here")).querySelector("b").textContent);
  const before = await running();
  await click(page, "td button", "Run here");
  await click(page, "dialog button", "Run it");
  await page.waitForFunction((name) => [...document.querySelectorAll("tr")].some((row) => row.textContent.includes("running here") && row.querySelector("b").textContent !== name), {}, before);
  await click(page, "button", `Take back: run ${before} again`);
  await click(page, "dialog button", "Run it");
  await page.waitForFunction((name) => [...document.querySelectorAll("tr")].some((row) => row.textContent.includes("running here") && row.querySelector("b").textContent === name), {}, before);
  await page.close();
});

check("a namespace is made beside another one", async () => {
  const page = await open(`${base}/#/game/demo/prod`);
  await (await page.waitForSelector('[aria-label="Name of the new namespace"]')).type("beside");
  await click(page, "form button", "Make the namespace");
  await shows(page, "h2", "Limits of demo/beside");
  await page.goto(`${base}/#/play/demo/beside`);
  await page.waitForSelector("form");
  await page.close();
});

check("a token is shown in the moment of its making, and never again", async () => {
  const page = await open(`${base}/#/game/demo/prod`);
  await click(page, "button", "Make a token");
  const made = await (await page.waitForFunction(() => [...document.querySelectorAll("pre")].find((shown) => shown.textContent.startsWith("pub_"))?.textContent)).jsonValue();
  assert.equal(await stack.finds(made), 200);
  await page.reload();
  await shows(page, "td", "public");
  for (const screen of ["game", "live", "play", "cost"]) {
    await page.goto(demo(screen));
    await page.waitForSelector(".card");
    assert.doesNotMatch(await page.content(), /(pub|server|cloud|lobby|player|dev)_[A-Za-z0-9]{20}/, screen);
  }
  await page.close();
});

check("the cost is shown by operation", async () => {
  await stack.find({ game_modes: ["duel"] });
  const page = await open(demo("cost"));
  await shows(page, "td", "find-lobby");
  assert.match(await text(page, ".figures"), /So far\$\d.*of it DynamoDB/);
  await click(page, ".hint a", "what a month costs");
  await shows(page, "h1", "What a month costs");
  assert.deepEqual(await violations(page), []);
  await page.close();
});

check("a figure is written out, and a month is guessed of ten minutes at least", async () => {
  const page = await open(demo("cost"));
  const [tiny, early, late] = await page.evaluate(async () => {
    const { dollars } = await import("/_console/elements.js");
    const { pace } = await import("/_console/cost.js");
    return [dollars(8.8e-7), pace(1, 39_000), pace(1, 30 * 60_000)];
  });
  assert.equal(tiny, "$0.00000088");
  assert.deepEqual(early, ["–", "39 s say nothing of a month; here in 9 min"]);
  assert.deepEqual(late, ["$1,440.00", "roughly: 30 days like the last 30 min"]);
  await page.close();
}, { isSmoke: true });

check("a full lobby is not called open, and is created once", async () => {
  const page = await open(demo("live"));
  await page.waitForSelector(".server");
  const { lobby: { lobby_id: id } } = await stack.find({ game_modes: ["solo"] });
  const row = `.lobby[data-id="${id}"]`;
  await shows(page, `${row} .tag`, "full");
  await page.select('[aria-label="State of lobbies"]', "full");
  await page.waitForSelector(row);
  await page.select('[aria-label="State of lobbies"]', "open");
  await page.waitForFunction((gone) => !document.querySelector(gone), {}, row);
  await page.select('[aria-label="State of lobbies"]', "");
  await (await page.waitForSelector(`${row} a`)).click();
  await shows(page, ".timeline", "created, solo in");
  assert.equal(await page.$$eval(".timeline li", (events) => events.filter((event) => event.textContent.includes("created")).length), 1);
  await page.close();
}, { isSmoke: true });

check("an address that names no screen says so, and leads on", async () => {
  const config = await stack.file("odd.json", '{"game_modes": {"constructor": {"regions": ["name"], "max_players": 2}}}');
  await stack.operator(["game", "create", "odd", "--region", "name=Name@50.11,8.68", "--config", config]);
  for (const address of ["%", "__proto__", "constructor", "live%", "toString/demo/prod"]) {
    const page = await open(`${base}/#/${address}`);
    await shows(page, "h1", "There is no such screen");
    await click(page, "#screens a", "Live");
    await page.waitForSelector(".server");
    await page.close();
  }
  for (const address of ["live/%/prod", "live/__proto__/prod", "game/demo/constructor"]) {
    const page = await open(`${base}/#/${address}`);
    await shows(page, "h1", "There is no such namespace");
    assert.equal(await page.$$eval("#screens a", (links) => links.length), 4);
    await page.close();
  }
  const page = await open(`${base}/#/live/odd/prod`);
  await shows(page, '[data-cell="constructor/name"]', "0/0 seats");
  await page.close();
}, { isSmoke: true });

check("events leave a page as large as those of the first minute did", async () => {
  const page = await open(demo("live"), { prepare: passing });
  await page.waitForSelector(".server");
  await page.evaluate(() => globalThis.minute());
  const first = await measured(page);
  const minutes = options.smoke ? 2 : 59;
  for (let more = 0; more < minutes; more += 1) await page.evaluate(() => globalThis.minute());
  const last = await measured(page);
  console.log(`        after ${minutes + 1} minutes ${last.nodes} nodes and ${last.heap} bytes, after the first ${first.nodes} and ${first.heap}`);
  assert.ok(last.nodes <= first.nodes * 1.1, "nodes");
  assert.ok(last.heap <= first.heap * 1.1, "heap");
  await page.close();
}, { isSmoke: true });

check("after a restart of the stack each open screen shows what is there now", async () => {
  let own = await Stack.start(binaries);
  const { lobby: { lobby_id: id } } = await own.find({ game_modes: ["duel"] });
  const expects = ["net::ERR_"];
  const at = (screen, of) => open(`${own.base}/#/${[screen, "demo", "prod", of].filter(Boolean).join("/")}`, { expects });
  const pages = { live: await at("live"), play: await at("play"), game: await at("game"), cost: await at("cost"), lobby: await at("lobby", id), server: await at("server", "demo-fra") };
  await pages.live.bringToFront();
  await pages.live.waitForSelector(`.lobby[data-id="${id}"]`);
  const drawn = Object.fromEntries(await Promise.all(Object.entries(pages).map(async ([name, page]) => [name, await page.waitForSelector("main > *")])));
  await own.end();
  await shows(pages.live, "#connection", "The host does not answer");
  own = await own.again();
  const recovers = async (name, proof) => {
    await pages[name].bringToFront();
    await pages[name].waitForFunction((before) => !before.isConnected && document.getElementById("connection").textContent === "", {}, drawn[name]);
    await proof(pages[name]);
    const said = await pages[name].$$eval(".notice.bad:not([hidden])", (notices) => notices.map((notice) => notice.textContent));
    assert.deepEqual(said, name === "lobby" ? [`there is no lobby ${id}`] : [], name);
  };
  await recovers("live", async (page) => {
    await shows(page, ".server", "demo-fra");
    const found = await own.find({ game_modes: ["duel"] });
    await page.waitForSelector(`.lobby[data-id="${found.lobby.lobby_id}"] .seat.reserved`);
    await shows(page, ".tape", found.lobby.lobby_id.slice(0, 8));
    assert.equal(await page.$(`.lobby[data-id="${id}"]`), null);
  });
  await recovers("play", async (page) => {
    await click(page, "form button", "Find a lobby");
    await shows(page, ".notice", "A seat is reserved.");
  });
  await recovers("game", async (page) => {
    await click(page, "button", "Make a token");
    const made = await (await page.waitForFunction(() => [...document.querySelectorAll("pre")].find((shown) => shown.textContent.startsWith("pub_"))?.textContent)).jsonValue();
    assert.equal(await own.finds(made), 200);
  });
  await recovers("cost", async (page) => shows(page, ".figure b", String((await own.read("cost")).operations.reduce((sum, { requests }) => sum + requests, 0))));
  await recovers("lobby", async (page) => {
    await shows(page, ".notice", "there is no lobby");
    assert.equal(await page.$("main h1"), null);
  });
  await recovers("server", async (page) => shows(page, ".facts", "fra"));
  for (const page of Object.values(pages)) await page.close();
  await own.end();
}, { isSmoke: true });

check("after a restart with its data an open page goes on with the requests of the new run", async () => {
  const data = ["--data", join(await mkdtemp(join(tmpdir(), "muster-console-")), "data")];
  let own = await Stack.start(binaries, ["--port", "0", ...data]);
  const page = await open(`${own.base}/#/live/demo/prod`, { expects: ["net::ERR_"] });
  for (let count = 0; count < 5; count += 1) await own.find({ game_modes: ["duel"] });
  await shows(page, ".tape", "find-lobby");
  await own.end();
  own = await own.again(data);
  const found = await own.find({ game_modes: ["solo"] });
  await shows(page, ".tape", found.lobby.lobby_id.slice(0, 8));
  await page.close();
  await own.end();
});

check("an identifier leads to its screen", async () => {
  const found = await stack.post("/matchmaker/lobbies/find", stack.demo.tokens.public, { game_modes: ["solo"] });
  const { lobby: { lobby_id: id } } = await found.json();
  const refused = await stack.post("/matchmaker/lobbies/find", stack.demo.tokens.public, { game_modes: ["chess"] });
  const page = await open(base);
  /** From the bars: another search may have led to the same heading, and its screen empties the field when it comes. */
  const search = async (text, heading) => {
    await page.goto(demo("live"));
    await page.waitForSelector(`.lobby[data-id="${id}"]`);
    await page.$eval("#searched", (field, value) => { field.value = value; }, text);
    await page.focus("#searched");
    await page.keyboard.press("Enter");
    await shows(page, "h1", heading);
  };
  await search(id, `Lobby ${id}`);
  const seat = await (await page.waitForSelector("td code")).evaluate((shown) => shown.textContent);
  await search(id.slice(0, 8), `Lobby ${id}`);
  await search(seat, `Lobby ${id}`);
  await search("demo-nyc", "Game server demo-nyc");
  await search(found.headers.get("x-request-id"), "Request");
  await shows(page, ".facts a", id);
  await search(refused.headers.get("x-request-id"), "Request");
  await shows(page, ".facts", "MATCHMAKER_GAME_MODE_NOT_FOUND");
  assert.deepEqual(await violations(page), []);
  await search("<b>nothing%", "Search: <b>nothing%");
  await shows(page, ".card", "Nothing found");
  assert.deepEqual(await violations(page), []);
  await page.close();
}, { isSmoke: true });

check("one seat is freed from its lobby's screen, after a question", async () => {
  const { lobby: { lobby_id: id }, player } = await stack.find({ game_modes: ["solo"], regions: ["nyc"] });
  await stack.call("connected", id, { player_token: player.token });
  const page = await open(demo("lobby", id));
  await shows(page, "td .tag", "connected");
  await click(page, "td button", "Free");
  await click(page, "dialog button", "Cancel");
  assert.equal((await stack.lobby(id)).connected, 1);
  await click(page, "td button", "Free");
  await click(page, "dialog button", "Free the seat");
  await shows(page, "p", "No seat is taken.");
  assert.equal((await stack.lobby(id)).connected, 0);
  await page.close();
});

check("a session that may only look changes nothing, and has no button for it", async () => {
  const { lobby: { lobby_id: id } } = await stack.find({ game_modes: ["arena"] });
  const program = new Program(join(binaries, "muster"), ["console", `--local=${base}`, "--no-browser", "--read-only"]);
  const page = await open((await program.says(/once: (\S+)$/))[1]);
  const own = new URL(page.url()).origin;
  await page.waitForSelector(".server");
  const buttons = () => page.$$eval("main button:not(.cell), main form button", (all) => all.map((button) => button.textContent));
  for (const [screen, of, ready] of [["live", "", ".lobby"], ["game", "", "td b"], ["cost", "", ".card"], ["lobby", id, "td code"], ["server", "demo-fra", ".facts"], ["play", "", "h1"]]) {
    await page.goto(`${own}/#/${[screen, "demo", "prod", of].filter(Boolean).join("/")}`);
    await page.waitForSelector(ready);
    if (screen === "game") await shows(page, "td", "public");
    assert.deepEqual(await buttons(), [], screen);
  }
  assert.deepEqual(await page.$$eval("#screens a", (links) => links.map((link) => link.textContent)), ["Live", "Game", "Cost"]);
  const named = { game: stack.demo.game_id, namespace: stack.demo.namespace_id };
  const posts = [["command", { words: ["lobby", "end", id] }], ["command", { words: ["server", "remove", "demo/prod", "demo-fra"] }], ["command", { words: ["token", "create", "public", "demo/prod"] }],
    ...["find", "join", "create"].map((act) => ["call", { ...named, act, request: { game_modes: ["arena"], lobby_id: id } }]),
    ...["ready", "connected", "disconnected", "closed", "end"].map((act) => ["call", { ...named, act, lobby: id, request: {} }]), ["call", { ...named, act: "free", lobby: id, seat: id }]];
  const said = await page.evaluate((all) => Promise.all(all.map(async ([name, body]) => (await (await fetch(`/_console/${name}`, { method: "POST", headers: { "muster-console": "1" }, body: JSON.stringify(body) })).json()).refused?.message)), posts);
  assert.deepEqual(said, posts.map(() => "this console may only look"));
  assert.equal((await stack.lobby(id)).stage, "ready");
  await page.close();
  await program.end();
}, { isSmoke: true });

check("no screen has what axe finds, light or dark, wide or narrow", async () => {
  const { lobby: { lobby_id: id } } = await stack.find({ game_modes: ["arena"] });
  const screens = { live: demo("live"), play: demo("play"), lobby: demo("lobby", id), server: demo("server", "demo-fra"), game: demo("game"), cost: demo("cost") };
  for (const [scheme, size] of [["light", "wide"], ["dark", "broad"], ["light", "narrow"], ["dark", "narrow"]]) {
    for (const [name, url] of Object.entries(screens)) {
      const page = await open(url, { scheme, size });
      await page.waitForSelector(".card");
      if (name === "play") {
        await click(page, "form button", "Find a lobby");
        await page.waitForSelector(".why li");
      }
      if (name === "game") await shows(page, ".why", "It is valid.");
      if (name === "live") await page.waitForSelector(".lobby");
      assert.deepEqual(await violations(page), [], `${name}, ${scheme}, ${size}`);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, `${name} is wider than a ${size} screen`);
      const cut = await page.$$eval("main :is(button, td, dd, small, .tape span)", (all) => all.filter((one) => {
        const { right, width } = one.getBoundingClientRect();
        return width > 0 && (right > innerWidth || getComputedStyle(one).textOverflow === "ellipsis");
      }).map((one) => one.textContent));
      assert.deepEqual(cut, [], `${name}, ${size}: cut off`);
      await picture(page, `${name}-${scheme}-${size}`);
      await page.close();
    }
  }
});

check("the keyboard reaches every screen", async () => {
  const page = await open(demo("live"));
  await page.waitForSelector(".server");
  for (const name of ["Play", "Game", "Cost"]) {
    await page.keyboard.press("Tab");
    while (await page.evaluate((label) => document.activeElement.textContent !== label, name)) await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.waitForFunction((label) => document.title.startsWith(label), {}, name);
    await page.evaluate(() => document.activeElement.blur());
  }
  await page.close();
});

check("nothing shifts while lobbies come", async () => {
  await stack.find({ game_modes: ["duel"] });
  const page = await open(demo("live"));
  await page.waitForSelector(".lobby");
  await page.evaluate(() => {
    globalThis.shifted = 0;
    new PerformanceObserver((list) => { for (const entry of list.getEntries()) globalThis.shifted += entry.value; }).observe({ type: "layout-shift" });
  });
  const { lobby: { lobby_id: id } } = await stack.find({ game_modes: ["solo"] });
  await page.waitForSelector(`.lobby[data-id="${id}"]`);
  const shifted = await page.evaluate(() => globalThis.shifted);
  assert.ok(shifted < 0.1, `a layout shift of ${shifted}`);
  await page.close();
});

check("a foreign page can neither read nor change anything, whatever it tries", async () => {
  const { endpoint } = await stack.store();
  for (const host of ["127.0.0.1", "localhost", "rebound.example"]) {
    const foreign = await foreignPage(base, stack.demo, endpoint);
    const page = await browser.newPage();
    await page.goto(`http://${host}:${foreign.port}/`);
    const tried = await page.evaluate(() => globalThis.tried);
    assert.ok(Object.keys(tried).length >= 8, JSON.stringify(tried));
    for (const [way, came] of Object.entries(tried)) assert.equal(came, "kept out", `${way} from ${host}`);
    await page.close();
    foreign.close();
  }
  const names = (await stack.read("deployment")).games.flatMap(({ namespaces }) => namespaces.map(({ name_id }) => name_id));
  assert.ok(!names.includes("foreign"), names.join());
  assert.deepEqual(await stack.ask("GetItem", { TableName: "TokensTable", Key: { digest: { S: "foreign" } } }), {});
}, { isSmoke: true });

check("a name of somebody else's that leads here gets nothing", async () => {
  const page = await browser.newPage();
  const { port } = new URL(base);
  for (const path of ["/", "/_console/main.js", "/_console/deployment", "/_local/demo", "/_local/store"]) {
    const answer = await page.goto(`http://rebound.example:${port}${path}`);
    assert.equal(answer.status(), 403, path);
  }
  const { port: ofStore } = new URL((await stack.store()).endpoint);
  // Chromium takes a refusal without a body for no response.
  await assert.rejects(page.goto(`http://rebound.example:${ofStore}/`));
  assert.equal(await rawStatus(`http://127.0.0.1:${ofStore}`, "GET", "/", { host: "rebound.example" }), 403);
  await page.close();
  assert.equal(await rawStatus(base, "GET", "/", { host: "rebound.example" }), 403);
}, { isSmoke: true });

check("GET changes nothing, and what changes needs the page's own header", async () => {
  for (const path of ["/_console/command", "/_console/call", "/_console/session"]) {
    assert.equal(await rawStatus(base, "GET", path, { "muster-console": "1" }), 404, path);
    assert.equal(await rawStatus(base, "POST", path, {}), 403, path);
    assert.equal(await rawStatus(base, "POST", path, { "muster-console": "1", "sec-fetch-site": "same-site" }), 403, path);
  }
  const policy = (await fetch(base)).headers.get("content-security-policy");
  assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/);
  assert.doesNotMatch(policy, /unsafe|\*/);
  assert.equal((await fetch(`${base}/_console/deployment`, { headers: { "muster-console": "1", origin: "http://a.example" } })).headers.get("access-control-allow-origin"), null);
}, { isSmoke: true });

check("`muster console --local` lets one page in, by its token, once", async () => {
  const program = new Program(join(binaries, "muster"), ["console", `--local=${base}`, "--no-browser"]);
  const url = (await program.says(/once: (\S+)$/))[1];
  const own = new URL(url).origin;
  assert.equal(await rawStatus(own, "GET", "/_console/deployment", { "muster-console": "1" }), 401);
  const page = await open(url);
  await shows(page, ".server", "demo-fra");
  assert.equal(new URL(page.url()).hash, "", "the token is not left in the address");
  const [cookie] = await browser.cookies();
  assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.path], [true, "Strict", "/_console"]);
  await click(page, "a", "Play");
  await click(page, "form button", "Find a lobby");
  await shows(page, ".notice", "A seat is reserved.");
  await page.reload();
  await page.waitForSelector("form");
  const context = await browser.createBrowserContext();
  const other = await context.newPage();
  await other.goto(url);
  await shows(other, ".notice", "no session");
  await context.close();
  await page.close();
  await program.end();
});

check("`muster console --stack` reads within its budget, and says what it costs", async () => {
  const aws = await emulatedAws(base, await stack.store());
  const program = new Program(join(binaries, "muster"), ["console", "--stack", "muster-dev", "--no-browser"], aws.variables);
  const page = await open((await program.says(/once: (\S+)$/))[1]);
  await shows(page, ".server", "demo-fra");
  await shows(page, "#pace", "read units in the last minute (at most 3,000), $");
  await stack.seed(1_000);
  await page.waitForFunction(() => Number(document.querySelectorAll(".figure b")[1].textContent.replace(",", "")) > 1_000, { timeout: 60_000 });
  // Several looks into the minute.
  const pacing = await page.waitForFunction(() => {
    const pace = document.getElementById("pace").textContent;
    const [, every, units] = /every ([\d.]+) s: ([\d,]+) read units/.exec(pace);
    return Number(units.replace(",", "")) > 2_000 && { pace, every: Number(every), units: Number(units.replace(",", "")) };
  }, { timeout: 90_000, polling: 500 });
  const { pace, every, units } = await pacing.jsonValue();
  assert.ok(every >= 9, pace);
  assert.ok(units <= 3_000, pace);
  console.log(`        1,000 lobbies: ${pace}`);
  await shows(page, ".figure small", "114 seated, 5 refused, 1 failed in a minute, all namespaces");
  assert.equal(await page.$$eval("svg.curve rect", (columns) => columns.length), 30);
  await picture(page, "deployed");
  assert.deepEqual(await violations(page), [], "live");
  const queries = () => aws.asked.filter((target) => target?.endsWith(".StartQuery")).length;
  await click(page, ".card button", "Search the logs");
  await shows(page, "dialog p", "The functions logged 22 MB in this time. A search scans it all: $0.00011.");
  assert.equal(queries(), 0);
  await click(page, "dialog button", "Search for $0.00011");
  await shows(page, "td code", "MATCHMAKER_NO_SERVER_AVAILABLE");
  await shows(page, "td code", "Kx9Xyz=");
  assert.equal(queries(), 1);
  assert.deepEqual(await violations(page), [], "refusals");
  await picture(page, "deployed-refusals");
  await click(page, "#screens a", "Cost");
  await click(page, ".card button", "Read this month's bill");
  await shows(page, "tbody td", "HTTP API, requests");
  await shows(page, "[role=status]", "of CloudWatch for $0.");
  await picture(page, "deployed-cost");
  assert.deepEqual(await violations(page), [], "cost");
  await page.close();
  await program.end();
  aws.close();
});

check("10,000 lobbies open within a second, and the page stays responsive", async () => {
  await stack.seed(10_000);
  // The browser asks for an icon of an image, too.
  const page = await open(`${base}/_console/icon.svg`, { expects: ["404"] });
  const began = performance.now();
  const session = await page.createCDPSession();
  await session.send("Network.enable");
  let bytes = 0;
  session.on("Network.dataReceived", ({ encodedDataLength }) => { bytes += encodedDataLength; });
  await page.goto(demo("live"));
  await page.waitForSelector(".lobby");
  const opened = performance.now() - began;
  await page.waitForFunction(() => Number(document.querySelectorAll(".figure b")[1].textContent.replace(",", "")) >= 10_000, { timeout: 60_000 });
  const whole = performance.now() - began;
  const asked = performance.now();
  await page.waitForSelector('[data-cell="arena/fra"]');
  await page.click('[data-cell="arena/fra"]');
  await page.waitForSelector('[data-cell="arena/fra"][aria-pressed="true"]');
  await page.waitForSelector(".lobby");
  const answered = performance.now() - asked;
  console.log(`        lobbies shown after ${opened.toFixed(0)} ms, all of them counted after ${whole.toFixed(0)} ms, a filter answered after ${answered.toFixed(0)} ms, ${bytes} bytes`);
  assert.ok((await page.$$(".lobby")).length <= 60);
  assert.ok(opened < 1_000, `${opened} ms`);
  assert.ok(bytes < 300_000, `${bytes} bytes`);
  await picture(page, "10000");
  await page.close();
});

async function picture(page, name) {
  if (options.pictures) await page.screenshot({ path: join(options.pictures, `${name}.png`) });
}

let failed = 0;
for (const [name, body] of checks) {
  const before = wrong.length;
  try {
    await body();
    assert.deepEqual(wrong.slice(before), [], "what the browser's console says");
    console.log(`ok    ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL  ${name}\n${String(error?.stack ?? error).replace(/^/gm, "        ")}`);
  }
  for (const page of (await browser.pages()).slice(1)) await page.close();
}
await browser.close();
await stack.end();
console.log(`${checks.length - failed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
