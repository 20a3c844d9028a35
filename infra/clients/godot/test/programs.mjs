// Runs the addon in Godot on local stacks of its own: its tests, the programs of its README, its sample by each
// transport, and a game of a Godot player and a TypeScript player on the Python server of the quickstart.
//
// Usage: node programs.mjs MUSTER_LOCAL GODOT

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Muster } from "../../typescript/dist/index.js";

const [musterLocal, godot] = process.argv.slice(2);
const PROJECT = fileURLToPath(new URL("..", import.meta.url));
const HEADLESS = ["--headless", "--no-header", "--path", PROJECT];
/** A Python with the library of the Python client, which is not installed itself. */
const PYTHON = process.env.MUSTER_PYTHON ?? "python3";
const PYTHON_PATH = fileURLToPath(new URL("../../python/src", import.meta.url));
/** How long a program may take, in milliseconds. */
const PATIENCE_MS = 600_000;
/** What Godot prints of an error in a script, which does not end it. */
const SCRIPT_ERROR = "SCRIPT ERROR";

const read = (path) => readFile(new URL(path, import.meta.url), "utf8");
const quickstart = await read("../../../docs/quickstart.md");
const readme = await read("../addons/muster/README.md");

/** The block of a page that has a text, with other values than the page's. */
function block(page, language, text, values = {}) {
  const found = [...page.matchAll(new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, "gs"))].find(([, code]) => code.includes(text));
  assert.ok(found, `no page has ${text}`);
  return Object.entries(values).reduce((code, [from, to]) => {
    assert.ok(code.includes(from), `the program has no ${from}`);
    return code.replaceAll(from, to);
  }, found[1]);
}

/** Every program that runs, to end them all. */
const running = new Set();

class Program {
  lines = [];
  errors = "";

  constructor(command, args, options = {}) {
    this.name = [command, ...args.slice(-2)].join(" ");
    this.process = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
    running.add(this);
    this.process.stderr.on("data", (text) => { this.errors += text; });
    const printed = createInterface({ input: this.process.stdout });
    printed.on("line", (line) => this.lines.push(line));
    this.printed = printed;
    this.ended = once(this.process, "close").then(([status]) => {
      running.delete(this);
      return status;
    });
  }

  /** Waits for a line with a text. */
  async line(text) {
    for (;;) {
      const found = this.lines.find((line) => line.includes(text));
      if (found) return found;
      const ended = await Promise.race([once(this.printed, "line"), this.ended.then((status) => ({ status }))]);
      if ("status" in ended) throw new Error(`${this.name} ended with ${ended.status} before "${text}"\n${this.errors}`);
    }
  }

  /** Waits for its end, which has to be a good one. */
  async end() {
    const status = await this.ended;
    assert.ok(status === 0 && !this.errors.includes(SCRIPT_ERROR), `${this.name} ended with ${status}\n${this.lines.join("\n")}\n${this.errors}`);
    return this.lines;
  }

  async stop() {
    this.process.kill();
    await this.ended;
    assert.ok(!this.errors.includes(SCRIPT_ERROR), `${this.name}\n${this.errors}`);
  }
}

async function freePort() {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address();
  listener.close();
  await once(listener, "close");
  return port;
}

/** Plays with a stack of a version file, by default the quickstart's, in a folder of its own. */
async function withStack(play, game = block(quickstart, "json", '"dice"')) {
  const folder = await mkdtemp(join(tmpdir(), "muster-godot-"));
  const config = join(folder, "game.json");
  await writeFile(config, game);
  const stack = new Program(musterLocal, ["--port", "0", "--config", config]);
  const [url] = (await stack.line("Muster listens on")).match(/http\S+/);
  const { tokens } = await (await fetch(`${url}/_local/demo`)).json();
  await play({ folder, url, tokens, env: { ...process.env, API_URL: url, SERVER_TOKEN: tokens.server, PUBLIC_TOKEN: tokens.public } });
  await stack.stop();
  await rm(folder, { recursive: true });
}

/** Two players have seats in one lobby, and see the same rolls. */
function compare(players, names) {
  const [[seat, rolls], other] = players;
  assert.match(seat, /^a seat in lobby /);
  assert.match(rolls, new RegExp(`^${names[0]} rolled [1-6], ${names[1]} rolled [1-6]$`));
  assert.deepEqual(other, [seat, rolls]);
}

async function test(name, run) {
  const began = performance.now();
  await run();
  console.log(`${name}: passed in ${((performance.now() - began) / 1_000).toFixed(1)} s`);
}

const timer = setTimeout(() => {
  console.error(`no end after ${PATIENCE_MS} ms`);
  end(1);
}, PATIENCE_MS);

function end(status) {
  clearTimeout(timer);
  for (const program of running) program.process.kill();
  process.exitCode = status;
}

try {
  await test("import", () => new Program(godot, [...HEADLESS, "--import"]).end());
  for (const suite of ["players", "servers", "admission"]) {
    await test(suite, async () => {
      const lines = await new Program(godot, [...HEADLESS, "--script", `test/${suite}_test.gd`]).end();
      console.log(lines.at(-1));
      assert.match(lines.at(-1), /^[1-9]\d* tests, [1-9]\d* checks, 0 failures$/);
    });
  }
  await test("programs of the README", () => withStack(async ({ folder, url, tokens, env }) => {
    const port = await freePort();
    const run = async (name, text, values) => {
      const file = join(folder, `${name}.gd`);
      await writeFile(file, block(readme, "gdscript", text, { "http://127.0.0.1:3000": url, ...values }));
      const args = [...HEADLESS, "res://test/program.tscn", "--", file];
      return new Program(godot, args, { env: { ...env, MUSTER_SERVER_TOKEN: tokens.server } });
    };
    const server = await run("server", "MusterServer.new()", {
      '"port": 7777': `"port": ${port}`,
      "peer.create_server(7777)": `peer.set_bind_ip("127.0.0.1")\n\tpeer.create_server(${port})`,
    });
    await server.line("registered");
    const player = await run("player", "Muster.find", { "pub_…": tokens.public });
    await player.line("admitted");
    await server.line("Ada is here");
    await player.stop();
    // A player whose process is killed comes back in the place of the earlier peer.
    const bob = ["--script", "test/returning_player.gd"];
    const killed = new Program(godot, [...HEADLESS, ...bob], { env });
    const token = await killed.line("player_");
    await server.line("Bob is here");
    await killed.stop();
    server.lines = [];
    const back = new Program(godot, [...HEADLESS, ...bob], { env: { ...env, SEAT_TOKEN: token } });
    await back.line("admitted");
    await server.line("Bob is here");
    assert.notEqual(back.lines[0], token);
    await back.stop();
    await server.stop();
  }, '{ "game_modes": { "duel": { "regions": ["fra"], "max_players": 2 } } }'));
  for (const TRANSPORT of ["enet", "websocket"]) {
    await test(`sample by ${TRANSPORT}`, () => withStack(async ({ env }) => {
      const options = { env: { ...env, TRANSPORT, PORT: await freePort() } };
      const server = new Program(godot, [...HEADLESS, "--", "server"], options);
      await server.line("registered");
      const players = ["Ada", "Bob"].map((name) => new Program(godot, [...HEADLESS, "--", "player", name], options));
      compare(await Promise.all(players.map((player) => player.end())), ["Ada", "Bob"]);
      await server.stop();
    }));
  }
  const isThere = spawnSync(PYTHON, ["-c", "import httpx"]).status === 0;
  if (!isThere) console.log("Godot and TypeScript in one lobby: left out, Python has no httpx");
  else await test("Godot and TypeScript in one lobby", () => withStack(async ({ folder, url, tokens, env }) => {
    const port = await freePort();
    await writeFile(join(folder, "server.py"), block(quickstart, "python", "from muster_client.server", { 7777: port }));
    const server = new Program(PYTHON, ["-B", "server.py"], { cwd: folder, env: { ...env, PYTHONPATH: PYTHON_PATH } });
    await server.line("registered");
    const theirs = new Program(godot, [...HEADLESS, "--script", "test/line_player.gd"], { env });
    const seat = await new Muster({ url, token: tokens.public }).find({ game_modes: ["dice"], player_data: "TypeScript" });
    const socket = connect(seat.ports.default.port, seat.ports.default.hostname);
    socket.write(`${seat.lobbyId} ${seat.token}\n`);
    const [rolls] = await once(createInterface({ input: socket }), "line");
    socket.end();
    compare([[`a seat in lobby ${seat.lobbyId}`, rolls], await theirs.end()], ["Godot", "TypeScript"]);
    await server.stop();
  }));
  end(0);
} catch (error) {
  console.error(error);
  end(1);
}
