import type { FindLobbyResponse, Port, Region } from "./api.js";
import { Connection, type ConnectOptions, type WebSocketClass } from "./connection.js";
import { type Call, type CallOptions, send, type World } from "./http.js";
import type { KeptSeats } from "./storage.js";

/** How long a player token is valid. */
export const TOKEN_LIFE_MS = 9 * 3_600_000;

/** What a seat needs of the client that took it. */
export interface Service {
  world: World;
  url: string;
  kept: KeptSeats;
  /** Seats that are left when the page goes. */
  held: Set<Seat>;
  WebSocket: WebSocketClass | undefined;
}

/** A call about a seat: its token is the right. It needs no header, so that it also works while a page closes. */
export function seatCall(url: string, operation: "leave" | "rejoin", token: string): Call {
  const body = JSON.stringify({ player_token: token });
  return { method: "POST", url: `${url}/matchmaker/players/${operation}`, body, keepalive: operation === "leave" };
}

/** A player's place in a lobby. */
export class Seat {
  readonly lobbyId: string;
  readonly region: Region;
  /** What friends type in place of `lobbyId`, in a lobby that this player created. */
  readonly code: string | undefined;
  /** By label, what the game server registered. */
  ports: Record<string, Port>;
  /** What the player shows the game server: the seat's newest player token. */
  token: string;
  /**
   * When the token expires, in milliseconds of the client's own clock. Connect at once: before that, the seat is
   * held only for the game mode's `reservation_seconds`.
   */
  expiresAt: number;
  /** The seats of a party in the order of `players_data`, this one first; this one alone without a party. */
  readonly party: Seat[];
  readonly #service: Service;

  constructor(service: Service, { lobby, ports, player, players }: FindLobbyResponse, sentAt: number) {
    this.#service = service;
    this.lobbyId = lobby.lobby_id;
    this.region = lobby.region;
    this.code = lobby.code;
    this.ports = ports;
    this.token = player.token;
    this.expiresAt = sentAt + TOKEN_LIFE_MS;
    const others = players?.slice(1).map((other) => new Seat(service, { lobby, ports, player: other }, sentAt)) ?? [];
    this.party = [this, ...others];
  }

  /** Keeps the seat over a reload, and leaves it at the end of the page where the client is to. */
  keep(): this {
    const { kept, held } = this.#service;
    kept.keep(this.lobbyId, { token: this.token, expiresAt: this.expiresAt });
    held.add(this);
    return this;
  }

  /**
   * The URL of a port: `ws:` or `wss:` with the default scheme, `http:` or `https:` with `http`.
   *
   * @throws RangeError where there is no single port of that label.
   */
  url(label = Object.keys(this.ports)[0] ?? "", scheme = "ws"): string {
    const port = this.ports[label];
    if (!port?.host) throw new RangeError(`no single port "${label}" among ${Object.keys(this.ports).join(", ")}`);
    return `${scheme}${port.is_tls ? "s" : ""}://${port.host}`;
  }

  /**
   * Gives the seat up. Once the player is connected, it is the game server that frees it when the connection ends,
   * and keeps it for nobody.
   */
  async leave(options?: CallOptions): Promise<void> {
    this.forget();
    await send(this.#service.world, seatCall(this.#service.url, "leave", this.token), options);
  }

  /** Removes the seat from the storage, and leaves it to expire. */
  forget(): void {
    // A member of a party whose token was handed out is kept elsewhere.
    if (this.#service.held.delete(this)) this.#service.kept.forget(this.lobbyId);
  }

  /** Comes back to the seat: gets its newest token, a fresh one where that has connected. */
  async rejoin(options?: CallOptions): Promise<this> {
    const { world, url } = this.#service;
    const sentAt = world.now();
    const { player, ports } = await send<FindLobbyResponse>(world, seatCall(url, "rejoin", this.token), options);
    this.token = player.token;
    this.ports = ports;
    this.expiresAt = sentAt + TOKEN_LIFE_MS;
    return this.keep();
  }

  /**
   * Connects to a port of the game server by WebSocket, and resolves when the player is admitted. A lost
   * connection is opened again, up to a limit, after the player came back.
   *
   * @throws MusterError where no connection comes about, with the code by which the game server refused.
   */
  async connect(label?: string, options: ConnectOptions = {}): Promise<Connection> {
    const { world, WebSocket: Class = globalThis.WebSocket } = this.#service;
    const connection = new Connection(world, {
      url: () => this.url(label),
      greeting: () => JSON.stringify({ lobby_id: this.lobbyId, player_token: this.token }),
      rejoin: (signal) => this.rejoin({ signal }),
    }, Class, options);
    await connection.opened;
    return connection;
  }
}
