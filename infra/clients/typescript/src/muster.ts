import type { CreateLobbyRequest, FindLobbyRequest, FindLobbyResponse, JoinLobbyRequest, ListLobbiesResponse, ListRegionsResponse, RegionInfo } from "./api.js";
import type { WebSocketClass } from "./connection.js";
import { MusterError } from "./error.js";
import { type CallOptions, send, systemWorld, type World } from "./http.js";
import { newKey, take } from "./intent.js";
import { measure } from "./latencies.js";
import { Seat, seatCall, type Service } from "./seat.js";
import { KeptSeats, type SeatStorage } from "./storage.js";

export interface MusterOptions extends Partial<World> {
  /** The API's address, such as `http://127.0.0.1:3000`. */
  url: string;
  /** The namespace's public token. A page of a registered domain needs none. */
  token?: string;
  /** Where seats outlive a reload; `sessionStorage` by default, where there is one. */
  storage?: SeatStorage;
  /** Whether seats are left by a beacon when the page goes, also for a reload: a page cannot tell the two apart. */
  leaveOnPageHide?: boolean;
  /** For surroundings without a `WebSocket`, such as Node 20: that of the package `ws`. */
  WebSocket?: WebSocketClass;
}

/** The matchmaker of one namespace, for players. */
export class Muster {
  readonly #service: Service;
  readonly #headers: Record<string, string>;
  readonly #background = new Set<Promise<unknown>>();

  constructor({ url, token, storage, leaveOnPageHide = false, WebSocket, ...world }: MusterOptions) {
    const trimmed = url.replace(/\/+$/, "");
    const kept = new KeptSeats(storage ?? KeptSeats.default(), trimmed);
    this.#service = { world: { ...systemWorld(), ...world }, url: trimmed, kept, held: new Set(), WebSocket };
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    if (leaveOnPageHide) globalThis.addEventListener?.("pagehide", () => this.#leaveAll());
  }

  /** Finds a seat, in a lobby that fits or a new one. */
  find(request: FindLobbyRequest, options?: CallOptions): Promise<Seat> {
    return this.#take("find", request, options);
  }

  /** Takes a seat in a lobby, by its identifier or its code. */
  join(request: JoinLobbyRequest, options?: CallOptions): Promise<Seat> {
    return this.#take("join", request, options);
  }

  /** Creates a lobby, private by default, and takes its first seat. */
  create(request: CreateLobbyRequest, options?: CallOptions): Promise<Seat> {
    return this.#take("create", request, options);
  }

  /** Public lobbies that are open, a page of them. */
  list(query: { include_state?: boolean; limit?: number; cursor?: string } = {}, options?: CallOptions): Promise<ListLobbiesResponse> {
    const given = Object.entries(query).map(([name, value]) => [name, String(value)]);
    return this.#get(`lobbies/list?${new URLSearchParams(given)}`, options);
  }

  /** The game's regions, the nearest first. */
  async regions(options?: CallOptions): Promise<RegionInfo[]> {
    return (await this.#get<ListRegionsResponse>("regions", options)).regions;
  }

  /** Measures what `find` takes as `latencies`, in milliseconds: null for a region that did not respond in time. */
  async measureLatencies(options?: CallOptions): Promise<Record<string, number | null>> {
    const { world, WebSocket: Class = globalThis.WebSocket } = this.#service;
    return measure(world, Class, await this.regions(options), options?.signal);
  }

  /** The seat of a token that somebody handed over, such as the leader of a party. */
  async seat(token: string, options?: CallOptions): Promise<Seat> {
    const { world, url } = this.#service;
    const sentAt = world.now();
    return new Seat(this.#service, await send<FindLobbyResponse>(world, seatCall(url, "rejoin", token), options), sentAt).keep();
  }

  /** The latest seat that was kept over a reload and is still the player's; undefined where there is none. */
  async restore(options?: CallOptions): Promise<Seat | undefined> {
    const { kept, world } = this.#service;
    for (const { lobbyId, token, expiresAt } of kept.all()) {
      try {
        if (world.now() < expiresAt) return await this.seat(token, options);
      } catch (error) {
        if (!(error instanceof MusterError) || error.isTransient) throw error;
      }
      kept.forget(lobbyId);
    }
    return undefined;
  }

  /** Resolves when nothing goes on in the background: seats of intents that were given up are left. */
  async settled(): Promise<void> {
    while (this.#background.size > 0) await Promise.all(this.#background);
  }

  async #take(operation: string, request: object, options: CallOptions = {}): Promise<Seat> {
    const { world, url } = this.#service;
    const headers = { ...this.#headers, "content-type": "application/json", "idempotency-key": newKey() };
    const call = { method: "POST", url: `${url}/matchmaker/lobbies/${operation}`, headers, body: JSON.stringify(request) } as const;
    const sentAt = world.now();
    const seat = (answer: FindLobbyResponse) => new Seat(this.#service, answer, sentAt);
    const giveBack = (answer: FindLobbyResponse) => Promise.all(seat(answer).party.map((member) => send(world, seatCall(url, "leave", member.token))));
    return seat(await take(world, call, options, giveBack, this.#background)).keep();
  }

  #get<T>(path: string, options?: CallOptions): Promise<T> {
    const { world, url } = this.#service;
    return send<T>(world, { method: "GET", url: `${url}/matchmaker/${path}`, headers: this.#headers }, options);
  }

  #leaveAll(): void {
    for (const seat of this.#service.held) {
      const { url, body } = seatCall(this.#service.url, "leave", seat.token);
      navigator.sendBeacon(url, body);
      seat.forget();
    }
  }
}
