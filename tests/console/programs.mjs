// The programs that the tests run, and the local stack as a client has it.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const PATIENCE_MS = 60_000;

/** A program, ended with this one at the latest. */
export class Program {
  constructor(path, given, variables = {}) {
    this.child = spawn(path, given, { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, MUSTER_LOG: "error,dynoxide=off", ...variables } });
    this.lines = [];
    this.end_ = once(this.child, "exit").then(([code]) => code);
    this.waiting = [];
    createInterface({ input: this.child.stdout }).on("line", (line) => {
      this.lines.push(line);
      this.waiting.forEach((look) => look());
    });
    process.on("exit", () => this.child.kill());
  }

  /** The match of the first line that fits. */
  says(form) {
    return new Promise((resolve, reject) => {
      const look = () => this.lines.map((line) => form.exec(line)).filter(Boolean).slice(0, 1).forEach((match) => { clearTimeout(limit); resolve(match); });
      const limit = setTimeout(() => reject(new Error(`${this.child.spawnfile} never said ${form}`)), PATIENCE_MS);
      this.waiting.push(look);
      look();
    });
  }

  ended() {
    return this.end_;
  }

  async end() {
    this.child.kill("SIGINT");
    await this.end_;
  }
}

async function answered(response) {
  const answer = await response.json();
  if (!response.ok) throw new Error(JSON.stringify(answer));
  return answer;
}

/** What game servers by hand name to get lobbies of the demo game. */
const BUILD = "example-server";

/** The local stack with its demo game, whose lobbies run on a game server by hand in each region. */
export class Stack {
  static async start(binaries, more = ["--port", "0"]) {
    const stack = new Stack();
    stack.binaries = binaries;
    stack.program = new Program(join(binaries, "muster-local"), more);
    [, stack.base] = await stack.program.says(/^Muster listens on (\S+)$/);
    stack.demo = await (await fetch(`${stack.base}/_local/demo`)).json();
    if (!more.includes("--config")) {
      for (const region of stack.demo.region_ids) {
        await stack.register({ server_id: `demo-${region}`, region_id: region, build: BUILD, capacity: 2_000, lease_seconds: 0 });
      }
    }
    stack.config = await stack.file("arena.json", '{"game_modes": {"arena": {"regions": ["fra"], "max_players": 10}}}');
    return stack;
  }

  /** Another run at the same address, with these options, once this one has ended. */
  again(more = []) {
    return Stack.start(this.binaries, ["--port", new URL(this.base).port, ...more]);
  }

  async file(name, text) {
    const path = join(await mkdtemp(join(tmpdir(), "muster-console-")), name);
    await writeFile(path, text);
    return path;
  }

  /** What the stack tells programs of its operator. */
  async store() {
    return answered(await fetch(`${this.base}/_local/store`));
  }

  post(path, token, body) {
    return fetch(this.base + path, { method: "POST", headers: { authorization: `Bearer ${token}` }, body: JSON.stringify(body) });
  }

  async find(request) {
    return (await this.post("/matchmaker/lobbies/find", this.demo.tokens.public, request)).json();
  }

  /** The status of a find with another token. */
  async finds(token) {
    return (await this.post("/matchmaker/lobbies/find", token, { game_modes: ["arena"] })).status;
  }

  async register(server) {
    const ports = { default: { hostname: "game.example", port: 7777, protocol: "udp" } };
    return answered(await this.post("/matchmaker/servers/register", this.demo.tokens.server, { region_id: "fra", capacity: 5, ports, ...server }));
  }

  /** The events that the console's page would receive. */
  async read(name, question = {}) {
    return answered(await fetch(`${this.base}/_console/${name}?q=${encodeURIComponent(JSON.stringify(question))}`, { headers: { "muster-console": "1" } }));
  }

  /** A lobby as stored: how many are connected, and its stage. */
  async lobby(id) {
    const { Item } = await this.ask("GetItem", { TableName: "LobbiesTable", Key: { lobby_id: { S: id } }, ConsistentRead: true });
    return { connected: Object.keys(Item.connected.M).length, stage: Item.stage.S };
  }

  /** A call of a lobby's server, by the console. */
  async call(act, lobby, request) {
    const { game_id: game, namespace_id: namespace } = this.demo;
    const headers = { "muster-console": "1" };
    return answered(await fetch(`${this.base}/_console/call`, { method: "POST", headers, body: JSON.stringify({ game, namespace, act, lobby, request }) }));
  }

  async operator(words) {
    const program = new Program(join(this.binaries, "muster"), [...words, `--local=${this.base}`]);
    const code = await program.ended();
    if (code !== 0) throw new Error(`muster ${words.join(" ")}: ${code}`);
  }

  /** Copies of one lobby of the demo, beside those that there are. */
  async seed(count) {
    const { lobby: { lobby_id: id } } = await this.find({ game_modes: ["arena"] });
    const { Item } = await this.ask("GetItem", { TableName: "LobbiesTable", Key: { lobby_id: { S: id } } });
    for (let at = 0; at < count; at += 25) {
      const puts = Array.from({ length: 25 }, (_, more) => ({ PutRequest: { Item: { ...Item, lobby_id: { S: crypto.randomUUID() }, created_at: { N: String(Number(Item.created_at.N) + at + more) } } } }));
      await this.ask("BatchWriteItem", { RequestItems: { LobbiesTable: puts } });
    }
  }

  async ask(operation, body) {
    const { origin, username: key } = new URL((await this.store()).endpoint);
    const headers = { "content-type": "application/x-amz-json-1.0", "x-amz-target": `DynamoDB_20120810.${operation}`, "x-amz-date": "20260101T000000Z", authorization: `AWS4-HMAC-SHA256 Credential=${key}/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=none` };
    return answered(await fetch(origin, { method: "POST", headers, body: JSON.stringify(body) }));
  }

  async end() {
    await this.program.end();
  }
}
