import { MusterError } from "../error.js";
import type { Lobby, Player } from "./lobby.js";

/** A `WebSocket` of the package `ws`, whose types need not be installed. */
export interface SocketLike {
  readonly readyState: number;
  on(event: "message", listener: (data: Buffer, isBinary: boolean) => void): unknown;
  on(event: "close", listener: (code: number) => void): unknown;
  on(event: "error" | "pong", listener: () => void): unknown;
  once(event: "message", listener: (data: Buffer) => void): unknown;
  once(event: "close", listener: () => void): unknown;
  send(data: string | Uint8Array): void;
  close(code?: number, reason?: string): void;
  pause(): void;
  resume(): void;
  ping(): void;
  terminate(): void;
}

/** A `WebSocketServer` of the package `ws`. */
export interface WebSocketServerLike {
  on(event: "connection", listener: (socket: SocketLike) => void): unknown;
}

/** What a game does with the players of one lobby. */
export interface LobbyHandler {
  joined?(player: ConnectedPlayer): void;
  /** Text of the player, or bytes. */
  message?(player: ConnectedPlayer, data: string | Buffer): void;
  /** The connection is lost, and the seat is kept. */
  lost?(player: ConnectedPlayer): void;
  /** The player came back, after `lost` or in its place, such as by a reload. */
  back?(player: ConnectedPlayer): void;
  /** The player left, or did not come back in time. */
  left?(player: ConnectedPlayer): void;
  /** The lobby has ended. */
  ended?(): void;
}

export interface AttachOptions {
  /** For how long the seat of a player whose connection is lost is kept; 30 by default, at most 600. */
  keepSeconds?: number;
  /** How long a new connection may take to show lobby and token; 5 by default. */
  greetingSeconds?: number;
  /**
   * Seconds between pings; a connection that does not respond to one until the next is lost. 15 by default.
   */
  pingSeconds?: number;
}

/** What attaching needs of the game server. */
interface Server {
  admit(shown: { lobbyId: string; token: string }): Promise<Player>;
  on(event: "ended", listener: (lobby: Lobby) => void): unknown;
}

/**
 * Makes the handler of a lobby, whose players are in the map by `playerId`, also those whose connection is
 * lost.
 */
export type OpenLobby = (lobby: Lobby, players: ReadonlyMap<string, ConnectedPlayer>) => LobbyHandler;

interface Room {
  handler: LobbyHandler;
  players: Map<string, ConnectedPlayer>;
}

const GREETING_BYTES_MAX = 4_096;
/**
 * Codes of our own: greeting refused, with Muster's code as the reason; another connection of the player
 * came.
 */
const REFUSED = 4_403;
const REPLACED = 4_409;
const TRY_AGAIN = 1_013;
/** `readyState` of a WebSocket that is open. */
const OPEN = 1;
const LEFT = [1_000, 1_005];

/** A player of a lobby, the same object over reconnections. */
export class ConnectedPlayer {
  #player: Player;
  #socket: SocketLike | undefined;
  /** Runs out when the player does not come back. */
  #waiting: NodeJS.Timeout | undefined;

  constructor(player: Player, socket: SocketLike) {
    this.#player = player;
    this.#socket = socket;
  }

  get playerId(): string {
    return this.#player.playerId;
  }

  /** What the client says of its player; nobody has checked it. */
  get data(): unknown {
    return this.#player.data;
  }

  get partyId(): string | undefined {
    return this.#player.partyId;
  }

  get lobby(): Lobby {
    return this.#player.lobby;
  }

  get isConnected(): boolean {
    return this.#socket !== undefined;
  }

  /** Sends a message; one to a player whose connection is lost is dropped. */
  send(data: string | Uint8Array): void {
    this.#socket?.send(data);
  }

  /** Ends the player's connection, and the stay with it. */
  close(code = 1_000, reason = ""): void {
    this.#socket?.close(code, reason);
  }

  /** Takes over the connection of a player who came back. */
  replace(player: Player, socket: SocketLike): void {
    clearTimeout(this.#waiting);
    const older = this.#socket;
    this.#player = player;
    this.#socket = socket;
    older?.close(REPLACED, "replaced");
  }

  /** Whether this was the player's connection, which is lost now. */
  lose(socket: SocketLike): boolean {
    if (this.#socket !== socket) return false;
    this.#socket = undefined;
    return true;
  }

  wait(seconds: number, over: () => void): void {
    this.#waiting = setTimeout(over, seconds * 1_000);
  }

  stopWaiting(): void {
    clearTimeout(this.#waiting);
  }

  disconnected(keepSeconds: number): Promise<void> {
    return this.#player.disconnected({ keepSeconds });
  }
}

/** Serves the players of a game server by WebSocket. */
export function attach(
  server: Server,
  sockets: WebSocketServerLike,
  open: OpenLobby,
  { keepSeconds = 30, greetingSeconds = 5, pingSeconds = 15, report }: AttachOptions & { report: (task: Promise<void>) => void },
): void {
  const rooms = new Map<Lobby, Room>();
  server.on("ended", (lobby) => {
    const room = rooms.get(lobby);
    rooms.delete(lobby);
    room?.handler.ended?.();
    for (const player of room?.players.values() ?? []) {
      player.stopWaiting();
      player.close(1_000, "ended");
    }
  });

  const closed = (room: Room, member: ConnectedPlayer, socket: SocketLike, code: number) => {
    if (!member.lose(socket)) return;
    const { handler, players } = room;
    const leave = () => {
      players.delete(member.playerId);
      handler.left?.(member);
    };
    if (member.lobby.isEnded) return;
    const kept = LEFT.includes(code) || code >= 4_000 ? 0 : keepSeconds;
    report(member.disconnected(kept));
    if (kept === 0) return leave();
    handler.lost?.(member);
    member.wait(kept, leave);
  };

  const opened = (lobby: Lobby): Room => {
    const players = new Map<string, ConnectedPlayer>();
    const room = { handler: open(lobby, players), players };
    rooms.set(lobby, room);
    return room;
  };

  const admitted = (player: Player, socket: SocketLike) => {
    const { lobby } = player;
    const room = rooms.get(lobby) ?? opened(lobby);
    const known = room.players.get(player.playerId);
    const member = known ?? new ConnectedPlayer(player, socket);
    known?.replace(player, socket);
    room.players.set(player.playerId, member);
    socket.on("message", (data: Buffer, isBinary) => room.handler.message?.(member, isBinary ? data : data.toString()));
    socket.on("close", (code) => closed(room, member, socket, code));
    socket.send(JSON.stringify({ player_id: player.playerId }));
    if (known) room.handler.back?.(member);
    else room.handler.joined?.(member);
    socket.resume();
    if (socket.readyState !== OPEN) closed(room, member, socket, 1_006);
  };

  sockets.on("connection", (socket) => {
    socket.on("error", () => socket.terminate());
    ping(socket, pingSeconds);
    const late = setTimeout(() => socket.close(REFUSED, "no greeting"), greetingSeconds * 1_000);
    socket.once("close", () => clearTimeout(late));
    socket.once("message", (data: Buffer) => {
      clearTimeout(late);
      const shown = greeting(data);
      if (!shown) return socket.close(REFUSED, "no greeting");
      // What the player sends until then waits.
      socket.pause();
      server.admit(shown).then(
        (player) => admitted(player, socket),
        (error) => {
          const isRefused = error instanceof MusterError && !error.isTransient;
          socket.resume();
          socket.close(isRefused ? REFUSED : TRY_AGAIN, isRefused ? error.code : "");
        },
      );
    });
  });
}

/** Lobby and token of a first message; undefined where it has none. */
function greeting(data: Buffer): { lobbyId: string; token: string } | undefined {
  try {
    if (data.length > GREETING_BYTES_MAX) return undefined;
    const { lobby_id: lobbyId, player_token: token } = JSON.parse(data.toString());
    return typeof lobbyId === "string" && typeof token === "string" ? { lobbyId, token } : undefined;
  } catch {
    return undefined;
  }
}

/** Ends a connection whose other end is gone without a word. */
function ping(socket: SocketLike, seconds: number): void {
  let isAlive = true;
  socket.on("pong", () => { isAlive = true; });
  const timer = setInterval(() => {
    if (!isAlive) return socket.terminate();
    isAlive = false;
    socket.ping();
  }, seconds * 1_000);
  socket.once("close", () => clearInterval(timer));
}
