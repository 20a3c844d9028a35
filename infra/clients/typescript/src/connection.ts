import { MusterError } from "./error.js";
import { delay, type World } from "./http.js";

/** A `WebSocket` of the browser, or of a package that behaves like it. */
export type WebSocketClass = new (url: string, protocols?: string[]) => WebSocket;

/** How a connection ended: the last WebSocket's code and reason, and the error that kept the player from coming back. */
export interface End {
  code: number;
  reason: string;
  error?: unknown;
}

export interface ConnectOptions {
  protocols?: string[];
  /** Connections in a row that may fail before it ends; 8 by default. */
  attempts?: number;
  /** Closes the connection. */
  signal?: AbortSignal;
  /** A message of the game server: text, or bytes. */
  onMessage?: (data: string | ArrayBuffer, connection: Connection) => void;
  /** The player is admitted, the first time or again. */
  onOpen?: (connection: Connection) => void;
  /** The WebSocket is lost, and another will be tried. */
  onLost?: () => void;
  /** The end, after which the seat may be gone. */
  onClose?: (end: End) => void;
}

/** The seat as a connection needs it. */
interface Way {
  url: () => string;
  /** The first message to the game server. */
  greeting: () => string;
  rejoin: (signal: AbortSignal) => Promise<unknown>;
}

/** A connection that lasted so long starts the count of failures anew. */
const STABLE_MS = 5_000;
const NORMAL = 1_000;
const NO_STATUS = 1_005;
/** From here on, codes are the game's own. */
const APPLICATION = 4_000;

/**
 * A connection to the game server, opened again under a fresh player token when it is lost.
 *
 * Its first message is `{"lobby_id", "player_token"}`. The game server responds `{"player_id"}`, or closes with
 * a code from 4000 on and Muster's code as the reason. A close by either side with 1000, without a code or with
 * one from 4000 on is an end.
 */
export class Connection {
  /** Names the player within the lobby, once admitted. */
  playerId = "";
  /** Resolves when the player is admitted, and rejects when the connection ends before. */
  readonly opened: Promise<void>;
  #socket: WebSocket | undefined;
  readonly #over = new AbortController();
  readonly #options: ConnectOptions;
  #open = () => {};

  constructor(world: World, way: Way, Class: WebSocketClass, options: ConnectOptions) {
    this.#options = options;
    const { protocols, signal } = options;
    const close = () => this.close();
    signal?.addEventListener("abort", close);
    if (signal?.aborted) close();
    const ended = this.#run(world, way, () => new Class(way.url(), protocols ?? [])).then((end) => {
      signal?.removeEventListener("abort", close);
      options.onClose?.(end);
      throw signal?.reason ?? end.error ?? new MusterError(`the game server closed: ${end.code} ${end.reason}`, { status: 0, code: end.reason });
    });
    this.opened = Promise.race([new Promise<void>((resolve) => { this.#open = resolve; }), ended]);
    // Of an end after the opening, `onClose` knows.
    this.opened.catch(() => {});
  }

  /** Sends a message to the game server; what is sent while no WebSocket is open is lost. */
  send(data: string | ArrayBuffer | ArrayBufferView<ArrayBuffer>): void {
    if (this.#socket?.readyState === 1) this.#socket.send(data);
  }

  /** Ends the connection for good. */
  close(): void {
    this.#over.abort();
    this.#socket?.close(NORMAL);
  }

  async #run(world: World, way: Way, open: () => WebSocket): Promise<End> {
    const { signal } = this.#over;
    const { attempts = 8, onLost } = this.#options;
    let end: End = { code: NORMAL, reason: "" };
    let isFresh = true;
    for (let failures = 0; failures <= attempts && !signal.aborted; failures++) {
      try {
        if (failures > 0) await world.sleep(delay(world, failures - 1), signal);
        if (!isFresh) await way.rejoin(signal);
        isFresh = false;
        const began = world.now();
        end = await this.#session(open(), way.greeting());
        if (end.code === NORMAL || end.code === NO_STATUS || end.code >= APPLICATION) break;
        if (world.now() - began > STABLE_MS) failures = 0;
        if (!signal.aborted) onLost?.();
      } catch (error) {
        end = { ...end, error };
        if (!(error instanceof MusterError && error.isTransient)) break;
      }
    }
    return end;
  }

  /** One WebSocket from its opening to its end. */
  #session(socket: WebSocket, greeting: string): Promise<End> {
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    const { onMessage, onOpen } = this.#options;
    return new Promise((resolve) => {
      let isAdmitted = false;
      socket.onopen = () => socket.send(greeting);
      socket.onmessage = ({ data }) => {
        if (isAdmitted) return onMessage?.(data, this);
        isAdmitted = true;
        this.playerId = JSON.parse(data).player_id;
        onOpen?.(this);
        return this.#open();
      };
      // The close that follows says all that a page may know.
      socket.onerror = () => {};
      socket.onclose = ({ code, reason }) => resolve({ code, reason: String(reason) });
    });
  }
}
