import type { ConnectPlayerResponse, ServerLobby } from "../api.js";
import { MusterError } from "../error.js";

/** Sends a call of the lobby, `POST` or `PUT` a path below `/matchmaker`, under its token. */
export type LobbyCall = <T>(method: "POST" | "PUT", path: string, token: string, body: unknown, deadline?: number) => Promise<T>;

/** What a lobby needs of its game server. */
export interface Host {
  call: LobbyCall;
  end: (lobby: Lobby) => Promise<void>;
  /** Has it looked at whether the lobby ended, because nobody is in it. */
  emptied: () => void;
}

/** How long a player waits to be admitted. Other calls matter to nobody who waits, and are repeated for longer. */
const ADMISSION_MS = 10_000;
const ALREADY_CONNECTED = "MATCHMAKER_PLAYER_ALREADY_CONNECTED";
/** What a lobby that has ended responds to its last calls. */
const OVER = ["MATCHMAKER_LOBBY_STOPPED", "MATCHMAKER_LOBBY_NOT_FOUND"];

/** A lobby that the game server runs. */
export class Lobby {
  readonly lobbyId: string;
  readonly gameMode: string;
  readonly region: string;
  readonly tags: Record<string, string>;
  /** Seats that finds fill it up to. */
  readonly maxPlayers: number;
  /** What `create` was given for it. */
  readonly config: unknown;
  /** Seats that are held, as of the last heartbeat. */
  seats: { reserved: number; connected: number };
  isEnded = false;
  /** Connected players by `playerId`. */
  readonly players = new Map<string, Player>();
  /** When this process learned of it. */
  readonly since: number;
  #token: string;
  readonly #host: Host;
  /** Tokens of players who are connected or about to be. */
  readonly #shown = new Set<string>();

  constructor(host: Host, assigned: ServerLobby, since: number) {
    this.#host = host;
    this.lobbyId = assigned.lobby_id;
    this.gameMode = assigned.game_mode;
    this.region = assigned.region_id;
    this.tags = assigned.tags;
    this.maxPlayers = assigned.max_players;
    this.config = assigned.lobby_config;
    this.seats = assigned.seats;
    this.since = since;
    this.#token = assigned.lobby_token;
  }

  /** Takes over what another heartbeat says. */
  update({ seats, lobby_token }: ServerLobby): void {
    this.seats = seats;
    this.#token = lobby_token;
  }

  /** Reports a player as connected. `GameServer.admit` finds the lobby first. */
  async admit(token: string): Promise<Player> {
    // The service distinguishes a token that is shown twice from a retry of this call by nothing.
    if (this.#shown.has(token)) throw new MusterError("this token is connected", { status: 400, code: ALREADY_CONNECTED });
    this.#shown.add(token);
    let details: ConnectPlayerResponse;
    try {
      details = await this.#call("POST", "players/connected", { player_token: token, details: true }, ADMISSION_MS);
    } catch (error) {
      if (!(error instanceof MusterError) || error.code !== ALREADY_CONNECTED) {
        this.#shown.delete(token);
        throw error;
      }
      // Nobody was admitted by it: the response to an earlier call was lost.
      details = error.metadata;
    }
    const player = new Player(this, token, details);
    this.players.set(player.playerId, player);
    return player;
  }

  /** Reports the end of a player's connection. */
  async disconnected(player: Player, keepSeconds?: number): Promise<void> {
    this.#shown.delete(player.token);
    if (this.players.get(player.playerId) === player) this.players.delete(player.playerId);
    await this.#unlessOver("POST", "players/disconnected", { player_token: player.token, keep_seconds: keepSeconds });
    if (this.players.size === 0 && !this.isEnded) this.#host.emptied();
  }

  /** Has the seats of all connected players kept: a process that starts anew has none of their connections. */
  async keepEveryone(keepSeconds: number): Promise<void> {
    await this.#unlessOver("POST", "players/disconnected", { everyone: true, keep_seconds: keepSeconds });
  }

  /** Frees a player's seat, and keeps the player out for so long; 8 hours by default. */
  async remove(player: Player, excludeSeconds?: number): Promise<void> {
    this.players.delete(player.playerId);
    await this.#unlessOver("POST", "players/remove", { player_token: player.token, exclude_seconds: excludeSeconds });
  }

  /** Reports the lobby as ready, where the game server has `autoReady: false`. */
  async ready(): Promise<void> {
    await this.#call("POST", "lobbies/ready", {});
  }

  /** Hides the lobby from finds, such as when the match begins. */
  async close(): Promise<void> {
    await this.#unlessOver("PUT", "lobbies/closed", { is_closed: true });
  }

  /** Lets finds see the lobby again. */
  async open(): Promise<void> {
    await this.#call("PUT", "lobbies/closed", { is_closed: false });
  }

  /** Makes the lobby public or private. */
  async publicity(publicity: "public" | "private"): Promise<void> {
    await this.#call("PUT", "lobbies/publicity", { publicity });
  }

  /** Publishes any JSON in lists of lobbies. */
  async state(state: unknown): Promise<void> {
    await this.#unlessOver("PUT", "lobbies/state", state);
  }

  /** Ends the lobby: the match is over. */
  async end(): Promise<void> {
    await this.#host.end(this);
  }

  #call<T>(method: "POST" | "PUT", path: string, body: unknown, deadline?: number): Promise<T> {
    return this.#host.call(method, path, this.#token, body, deadline);
  }

  async #unlessOver(method: "POST" | "PUT", path: string, body: unknown): Promise<void> {
    try {
      await this.#call(method, path, body);
    } catch (error) {
      if (!(error instanceof MusterError) || !OVER.includes(error.code ?? "")) throw error;
    }
  }
}

/** A player whom the game server admitted. */
export class Player {
  /** Names the player within the lobby, also after coming back. */
  readonly playerId: string;
  /** What the client says of its player; nobody has checked it. */
  readonly data: unknown;
  /** Whether the player came back, and may have another connection: drop that. */
  readonly replaced: boolean;
  /** Names the player's party, and says how many came together; undefined for a player alone. */
  readonly partyId: string | undefined;
  readonly partySize: number | undefined;

  constructor(readonly lobby: Lobby, readonly token: string, details: ConnectPlayerResponse) {
    this.playerId = details.player_id ?? token;
    this.data = details.player_data;
    this.replaced = details.replaced ?? false;
    this.partyId = details.party_id;
    this.partySize = details.party_size;
  }

  /** Reports that the player's connection ended; the seat is kept for so long, by default as the mode says. */
  disconnected({ keepSeconds }: { keepSeconds?: number } = {}): Promise<void> {
    return this.lobby.disconnected(this, keepSeconds);
  }

  /** Frees the player's seat, and keeps the player out of this lobby. */
  remove({ excludeSeconds }: { excludeSeconds?: number } = {}): Promise<void> {
    return this.lobby.remove(this, excludeSeconds);
  }
}
