// A match in one lobby: who is on which side, when it begins, what its players see.

import { Game } from "./game.mjs";

const TICK_MS = 50;
const COUNTDOWN_SECONDS = 3;

/** The side of each player, 1 or 2: parties stay together, and both sides are as even as that allows. */
export function sidesOf(players) {
  const groups = new Map();
  for (const { playerId, partyId = playerId } of players) groups.set(partyId, [...groups.get(partyId) ?? [], playerId]);
  const sizes = [0, 0];
  return [...groups.values()].sort((one, other) => other.length - one.length).flatMap((group) => {
    const index = sizes[0] <= sizes[1] ? 0 : 1;
    sizes[index] += group.length;
    return group.map((id) => [id, index + 1]);
  });
}

/** The handler of a lobby. While it is not full, those who are there paint for practice. */
export class Match {
  #lobby;
  #players;
  #game = new Game();
  #stage = "waiting";
  #seconds = 0;
  #length;
  #timer;

  constructor(lobby, players, seconds) {
    this.#lobby = lobby;
    this.#players = players;
    this.#length = seconds;
    this.#timer = setInterval(() => this.#tick(TICK_MS / 1_000), TICK_MS);
  }

  joined(player) {
    this.#game.add(player.playerId, 1);
    for (const [id, side] of sidesOf(this.#players.values())) this.#game.brushes.get(id).side = side;
    this.#tellNames();
    if (this.#players.size === this.#lobby.maxPlayers) return this.#begin();
    for (const other of this.#players.values()) this.#tell(other);
  }

  back(player) {
    this.#tell(player);
    this.#tellNames();
  }

  lost(player) {
    this.#game.steer(player.playerId, 0, 0);
    this.#tellNames();
  }

  left(player) {
    this.#game.remove(player.playerId);
    this.#tellNames();
    const isDeserted = new Set([...this.#game.brushes.values()].map(({ side }) => side)).size < 2;
    if (this.#stage !== "waiting" && isDeserted) this.#end();
  }

  message(player, data) {
    let steering;
    try {
      steering = JSON.parse(data);
    } catch {
      return;
    }
    if (Array.isArray(steering)) this.#game.steer(player.playerId, ...steering);
  }

  ended() {
    clearInterval(this.#timer);
  }

  #begin() {
    // muster
    void this.#lobby.close();
    // muster end
    this.#game = new Game();
    for (const [id, side] of sidesOf(this.#players.values())) this.#game.add(id, side);
    this.#stage = "ready";
    this.#seconds = COUNTDOWN_SECONDS;
    for (const player of this.#players.values()) this.#tell(player);
  }

  #tick(seconds) {
    this.#seconds -= seconds;
    if (this.#stage !== "ready") this.#game.step(seconds);
    if (this.#stage === "ready" && this.#seconds <= 0) {
      this.#stage = "playing";
      this.#seconds = this.#length;
    }
    const brushes = [...this.#game.brushes].map(([id, { side, x, y }]) => [id, side, Number(x.toFixed(2)), Number(y.toFixed(2))]);
    const { drops } = this.#game;
    this.#tellAll({ stage: this.#stage, left: Math.max(0, Math.ceil(this.#seconds)), brushes, drops, painted: this.#game.painted(), scores: this.#game.scores() });
    if (this.#stage === "playing" && this.#seconds <= 0) this.#end();
  }

  #end() {
    clearInterval(this.#timer);
    this.#stage = "over";
    const present = new Set([...this.#game.brushes.values()].map(({ side }) => side));
    const scores = this.#game.scores();
    const [first, second] = present.size < 2 ? [present.has(1), present.has(2)] : scores;
    this.#tellAll({ stage: "over", scores, winner: first === second ? 0 : first > second ? 1 : 2 });
    // muster
    void this.#lobby.end();
    // muster end
  }

  /** All that a player needs who comes, or comes back. */
  #tell(player) {
    player.send(JSON.stringify({ you: player.playerId, side: this.#game.brushes.get(player.playerId).side, board: this.#game.board.join("") }));
  }

  #tellNames() {
    const names = [...this.#players.values()].map(({ playerId, data, isConnected }) => [playerId, String(data?.name ?? "a player").slice(0, 16), isConnected]);
    this.#tellAll({ names, of: this.#lobby.maxPlayers });
  }

  #tellAll(said) {
    const text = JSON.stringify(said);
    for (const player of this.#players.values()) player.send(text);
  }
}
