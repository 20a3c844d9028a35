// A local stack of the kit's own, its one game server, and the truth about seats.

import { spawn } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const GAME = fileURLToPath(new URL("game.json", import.meta.url));
/** How often a call of the game server is sent: of so many attempts, one comes through. */
const ATTEMPTS = 100;
/** Operations that clients call; all others are the kit's own. */
const OF_CLIENTS = /\/lobbies\/(find|join|create)$|\/players\/(leave|rejoin)$/;

export class Stack {
  #process;
  #demo;
  /** The lobbies' tokens. */
  #tokens = new Map();

  /** Starts the program `path`, or what `cargo run` builds. */
  static async start(path) {
    const stack = new Stack();
    const [command, ...first] = path ? [path] : ["cargo", "run", "--quiet", "--bin", "muster-local", "--"];
    stack.#process = spawn(command, [...first, "--port", "0", "--config", GAME], {
      cwd: path ? undefined : ROOT, stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, MUSTER_LOG: "error,dynoxide=off" },
    });
    const url = await new Promise((resolve, reject) => {
      let printed = "";
      stack.#process.on("error", reject);
      stack.#process.on("exit", (code) => reject(new Error(`muster-local ended with status ${code}\n${printed}`)));
      stack.#process.stdout.on("data", (text) => {
        printed += text;
        const found = printed.match(/Muster listens on (\S+)/);
        if (found) resolve(found[1]);
      });
    });
    stack.#demo = { ...(await (await fetch(`${url}/_local/demo`)).json()), base_url: url };
    await stack.#call("servers/register", {
      server_id: "kit", start_id: "kit", region_id: "fra", capacity: 1000, lease_seconds: 86_400,
      ports: { default: { hostname: "127.0.0.1", port: 7777, protocol: "http" } },
    });
    return stack;
  }

  get url() {
    return this.#demo.base_url;
  }

  get publicToken() {
    return this.#demo.tokens.public;
  }

  end() {
    this.#process.removeAllListeners("exit");
    this.#process.kill();
  }

  /** Begins the faults of a seed, or ends them with null. Returns how many requests clients have sent since the last time. */
  async makeFaults(seed) {
    const before = await (await fetch(`${this.url}/_local/faults`)).json();
    const response = await fetch(`${this.url}/_local/faults`, { method: "PUT", body: JSON.stringify({ seed }) });
    if (!response.ok) throw new Error(await response.text());
    return Object.entries(before.requests).reduce((sum, [route, count]) => sum + (OF_CLIENTS.test(route) ? count : 0), 0);
  }

  /** Connects a player as a game server does. Returns the player's identifier, the seat's; null where it is refused. */
  async connect(lobbyId, token) {
    if (!this.#tokens.has(lobbyId)) await this.#lobbies();
    if (!this.#tokens.has(lobbyId)) return null;
    const { code, player_id, metadata } = await this.#call("players/connected", { player_token: token, details: true }, this.#tokens.get(lobbyId));
    // The response of an earlier attempt was lost.
    if (code === "MATCHMAKER_PLAYER_ALREADY_CONNECTED") return metadata.player_id;
    return player_id ?? null;
  }

  /** All seats that are held: a map from each game mode to a map from seat to lobby. */
  async seats() {
    const { game_id } = this.#demo;
    const seats = new Map();
    await Promise.all((await this.#lobbies()).map(async ({ lobby_id, game_mode }) => {
      const query = encodeURIComponent(JSON.stringify({ game: game_id, lobby: lobby_id }));
      const response = await fetch(`${this.url}/_console/lobby?q=${query}`, { headers: { "muster-console": "1" } });
      const lobby = await response.json();
      if (!lobby.seats) throw new Error(`no seats of ${lobby_id}: ${JSON.stringify(lobby)}`);
      if (!seats.has(game_mode)) seats.set(game_mode, new Map());
      for (const { seat_id, state } of lobby.seats) if (state !== "lapsed") seats.get(game_mode).set(seat_id, lobby_id);
    }));
    return seats;
  }

  /** Ends every lobby, and with it every seat. */
  async endLobbies() {
    await Promise.all((await this.#lobbies()).map(({ lobby_id }) => this.#call("servers/end-lobby", { lobby_id })));
  }

  async #lobbies() {
    const lobbies = [];
    let cursor;
    do {
      const page = await this.#call("servers/heartbeat", { server_id: "kit", start_id: "kit", ...(cursor && { cursor }) });
      lobbies.push(...page.lobbies);
      cursor = page.cursor;
    } while (cursor);
    this.#tokens = new Map(lobbies.map(({ lobby_id, lobby_token }) => [lobby_id, lobby_token]));
    return lobbies;
  }

  /** Calls an operation until it gets a response that stays; all of the game server's calls may be repeated. */
  async #call(operation, body, token = this.#demo.tokens.server) {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      try {
        const response = await fetch(`${this.url}/matchmaker/${operation}`, {
          method: "POST", headers: { authorization: `Bearer ${token}` }, body: JSON.stringify(body),
        });
        const answer = await response.json();
        if (response.status < 500 && response.status !== 429) return answer;
      } catch {
        // No response, or half of one.
      }
      await pause(2);
    }
    throw new Error(`${operation} got no response`);
  }
}
