import { EventEmitter } from "node:events";
import { readFile, rm, writeFile } from "node:fs/promises";
import type { HeartbeatResponse, RegisterServerResponse, ServerPort } from "../api.js";
import { MusterError } from "../error.js";
import { type CallOptions, LONG_ATTEMPT_MS, send, systemWorld, type World } from "../http.js";
import { newKey } from "../intent.js";
import { attach, type AttachOptions, type OpenLobby, type WebSocketServerLike } from "./attach.js";
import { type Host, Lobby, type Player } from "./lobby.js";

export interface GameServerOptions extends Partial<World> {
  /** The API's address. */
  url: string;
  /** The namespace's server token. Never ship it with a client. */
  token: string;
  region: string;
  /** Lobbies that it runs at once; 1 by default. */
  capacity?: number;
  /** What players connect to, by label. */
  ports: Record<string, ServerPort>;
  /** Modes that it runs; all by default. */
  gameModes?: string[];
  /**
   * The build that it runs, any JSON, for versions whose `servers` name it; without it, for versions without
   * `servers`.
   */
  build?: unknown;
  /** Names the server over restarts; without it, its address does. */
  serverId?: string;
  /** A file that keeps `start_id` over a crash, for a server whose matches survive one. */
  startIdFile?: string;
  /** For how long players may come back after a crash, with `startIdFile`; 120 by default. */
  keepSeconds?: number;
  /** Seconds between heartbeats; 30 by default. The lease is three times that, and at least 30. */
  heartbeatSeconds?: number;
  /** Whether lobbies are ready at once; true by default. Without it, `heartbeatSeconds` has to be 1 or 2. */
  autoReady?: boolean;
  /** Whether SIGTERM drains the server: it gets no new lobbies, and stops with the last. */
  drainOnSigterm?: boolean;
}

interface Events {
  /** A lobby to run. */
  lobby: [Lobby];
  /** A lobby that has ended. */
  ended: [Lobby];
  /** The server is deregistered and has no lobby any more. */
  stop: [];
  /** A later start of the server has registered, so this process is to end. */
  exit: [MusterError];
  /**
   * A refused call; one without a response only where somebody listens, since the next heartbeat repeats
   * it.
   */
  error: [Error];
}

const LEASE_LEAST_SECONDS = 30;
/** How long the list of a heartbeat may lag behind the creation of a lobby. */
const LAG_MS = 2_000;
/** Pauses between looks for a lobby whose player arrives before it is listed. */
const LOOKS_MS = [0, 250, 500, 1_000];
/** The least time between two such looks, however many players arrive. */
const LOOK_PAUSE_MS = 250;

/** A game server: registers, renews its lease, learns of its lobbies and admits their players. */
export class GameServer extends EventEmitter<Events> {
  readonly #options: GameServerOptions;
  readonly #world: World;
  readonly #host: Host;
  readonly #lobbies = new Map<string, Lobby>();
  readonly #over = new AbortController();
  #serverId = "";
  #startId = "";
  /** Whether an earlier process of the same start had these lobbies, whose connections are gone. */
  #isReturning = false;
  #isStopping = false;
  #beating: Promise<void> | undefined;
  /** The one after that, for all who need what it does not know yet. */
  #next: Promise<void> | undefined;
  #looking: Promise<void> | undefined;
  #began = Number.NEGATIVE_INFINITY;

  constructor(options: GameServerOptions) {
    super();
    const { fetch, now, sleep, random } = { ...systemWorld(), ...options };
    this.#world = { fetch, now, sleep, random };
    this.#options = { ...options, url: options.url.replace(/\/+$/, "") };
    this.#host = {
      call: (method, path, token, body, deadline) => this.#call(method, path, token, body, { deadline }),
      end: (lobby) => this.#endLobby(lobby),
      emptied: () => this.#report(this.beat()),
    };
  }

  /** The lobbies that run, by their identifiers. */
  get lobbies(): ReadonlyMap<string, Lobby> {
    return this.#lobbies;
  }

  /**
   * Registers, and from then on sends heartbeats. Listen for players before.
   *
   * @throws MusterError where the registration is refused, or gets no response before the deadline.
   */
  async start(options?: CallOptions): Promise<void> {
    this.#startId = await this.#nameStart();
    await this.#register(options);
    await this.beat();
    if (this.#options.drainOnSigterm) process.once("SIGTERM", () => this.#report(this.stop()));
    void this.#run();
  }

  /** Sends a heartbeat now; during another one, when that is over: there is one at a time. */
  beat(): Promise<void> {
    const beat = () => {
      this.#next = undefined;
      this.#beating = this.#heartbeat().finally(() => { this.#beating = undefined; });
      return this.#beating;
    };
    if (this.#beating) this.#next ??= this.#beating.then(beat, beat);
    return this.#next ?? beat();
  }

  /**
   * Admits a player who shows lobby and token: looks for a lobby that is too young to be listed, and
   * reports the player connected.
   *
   * @throws MusterError where the player is to be refused, by its code; `isTransient` where Muster cannot
   * say.
   */
  async admit({ lobbyId, token }: { lobbyId: string; token: string }): Promise<Player> {
    return (await this.#lookFor(lobbyId)).admit(token);
  }

  /**
   * Serves players who come by WebSocket, on a server of the package `ws`. `open` makes the handler of each
   * lobby when its first player comes.
   */
  attach(sockets: WebSocketServerLike, open: OpenLobby, options?: AttachOptions): void {
    attach(this, sockets, open, { ...options, report: (task) => void this.#report(task) });
  }

  /**
   * Deregisters: no new lobbies come. Resolves when the last lobby has ended, at once with `endLobbies`.
   */
  async stop({ endLobbies = false }: { endLobbies?: boolean } = {}): Promise<void> {
    this.#isStopping = true;
    const stopped = this.#over.signal.aborted ? undefined : new Promise((resolve) => this.#over.signal.addEventListener("abort", resolve));
    // The next process is another start.
    if (this.#options.startIdFile) await rm(this.#options.startIdFile, { force: true });
    try {
      await this.#servers("deregister", { end_lobbies: endLobbies });
      if (!endLobbies) await this.beat();
    } catch (error) {
      if (!isUnknown(error)) throw error;
      this.#finish();
    }
    if (endLobbies) this.#finish();
    await stopped;
  }

  async #run(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      await this.#world.sleep(this.#intervalMs, signal);
      if (!signal.aborted) await this.#report(this.beat());
    }
  }

  get #intervalMs(): number {
    return (this.#options.heartbeatSeconds ?? 30) * 1_000;
  }

  async #nameStart(): Promise<string> {
    const { startIdFile: file } = this.#options;
    if (file === undefined) return newKey();
    try {
      const kept = await readFile(file, "utf8");
      this.#isReturning = true;
      return kept.trim();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
    const made = newKey();
    await writeFile(file, made);
    return made;
  }

  async #register(options?: CallOptions): Promise<void> {
    const { region, capacity, ports, gameModes, build, serverId, autoReady } = this.#options;
    const lease = Math.max(LEASE_LEAST_SECONDS, Math.ceil(3 * this.#intervalMs / 1_000));
    const body = { server_id: serverId, start_id: this.#startId, region_id: region, capacity, ports, game_modes: gameModes, build, auto_ready: autoReady, lease_seconds: lease };
    const { server_id } = await this.#call<RegisterServerResponse>("POST", "servers/register", this.#options.token, body, options);
    this.#serverId = server_id;
  }

  /** Renews the leases of server and lobbies, page by page, and notes which lobbies there are. */
  async #heartbeat(): Promise<void> {
    const began = this.#began = this.#world.now();
    const listed = new Set<string>();
    let cursor: string | undefined;
    do {
      let page: HeartbeatResponse;
      try {
        page = await this.#servers<HeartbeatResponse>("heartbeat", { cursor });
      } catch (error) {
        if (!isUnknown(error)) throw error;
        page = await this.#forgotten();
      }
      for (const assigned of page.lobbies) {
        listed.add(assigned.lobby_id);
        const known = this.#lobbies.get(assigned.lobby_id);
        if (known) known.update(assigned);
        else await this.#open(new Lobby(this.#host, assigned, this.#world.now()));
      }
      // The operator may have deregistered it, too.
      this.#isStopping ||= page.draining ?? false;
      if (page.stop) return this.#finish();
      cursor = page.cursor;
    } while (cursor !== undefined);
    this.#isReturning = false;
    for (const lobby of this.#lobbies.values()) {
      // A young one with players may only be missing. Without players nothing is lost by a mistake.
      const mayLive = lobby.players.size > 0 && lobby.since + LAG_MS >= began;
      if (!listed.has(lobby.lobbyId) && !mayLive) this.#ended(lobby);
    }
  }

  /** Whom the service does not know has drained, or registers again. Either way its lobbies are gone. */
  async #forgotten(): Promise<HeartbeatResponse> {
    if (this.#isStopping) {
      this.#finish();
    } else {
      try {
        await this.#register({ deadline: this.#intervalMs });
      } catch (error) {
        if (!(error instanceof MusterError) || error.code !== "MATCHMAKER_LOBBY_STATE_CONFLICT") throw error;
        this.#close();
        this.emit("exit", error);
      }
    }
    return { lobbies: [] };
  }

  async #open(lobby: Lobby): Promise<void> {
    if (this.#isReturning) await lobby.keepEveryone(this.#options.keepSeconds ?? 120);
    this.#lobbies.set(lobby.lobbyId, lobby);
    this.emit("lobby", lobby);
  }

  async #lookFor(lobbyId: string): Promise<Lobby> {
    if (!this.#serverId) throw new MusterError("the game server has not registered yet", { status: 0 });
    for (const pause of LOOKS_MS) {
      if (this.#lobbies.has(lobbyId) || this.#over.signal.aborted) break;
      await this.#world.sleep(pause);
      this.#looking ??= this.#look().finally(() => { this.#looking = undefined; });
      await this.#looking;
    }
    const lobby = this.#lobbies.get(lobbyId);
    if (!lobby) throw new MusterError("the game server does not run this lobby", { status: 400, code: "MATCHMAKER_LOBBY_NOT_FOUND" });
    return lobby;
  }

  /** A heartbeat for all who arrive meanwhile, not too soon after the last one. */
  async #look(): Promise<void> {
    await this.#world.sleep(Math.max(0, this.#began + LOOK_PAUSE_MS - this.#world.now()));
    await this.beat();
  }

  async #endLobby(lobby: Lobby): Promise<void> {
    await this.#call("POST", "servers/end-lobby", this.#options.token, { lobby_id: lobby.lobbyId });
    this.#ended(lobby);
    if (this.#isStopping) await this.beat();
  }

  #ended(lobby: Lobby): void {
    if (!this.#lobbies.delete(lobby.lobbyId)) return;
    lobby.isEnded = true;
    this.emit("ended", lobby);
  }

  #close(): void {
    this.#over.abort();
    for (const lobby of this.#lobbies.values()) this.#ended(lobby);
  }

  #finish(): void {
    if (this.#over.signal.aborted) return;
    this.#close();
    this.emit("stop");
  }

  async #report(task: Promise<void>): Promise<void> {
    try {
      await task;
    } catch (error) {
      const isPassing = error instanceof MusterError && error.isTransient;
      if (!isPassing || this.listenerCount("error") > 0) this.emit("error", error as Error);
    }
  }

  #servers<T>(operation: string, body: object): Promise<T> {
    const named = { server_id: this.#serverId, start_id: this.#startId, ...body };
    return this.#call("POST", `servers/${operation}`, this.#options.token, named, { deadline: this.#intervalMs });
  }

  #call<T>(method: "POST" | "PUT", path: string, token: string, body: unknown, options?: CallOptions): Promise<T> {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const call = { method, url: `${this.#options.url}/matchmaker/${path}`, headers, body: JSON.stringify(body) };
    return send(this.#world, call, options, LONG_ATTEMPT_MS);
  }
}

function isUnknown(error: unknown): boolean {
  return error instanceof MusterError && error.code === "MATCHMAKER_SERVER_NOT_FOUND";
}
