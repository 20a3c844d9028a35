// For players: in browsers, Node and what else has `fetch`.

export { Muster, type MusterOptions } from "./muster.js";
export { MusterError } from "./error.js";
export { Seat } from "./seat.js";
export { type ConnectOptions, Connection, type End } from "./connection.js";
export type { CallOptions } from "./http.js";
export type { SeatStorage } from "./storage.js";
export type { CreateLobbyRequest, FindLobbyRequest, JoinLobbyRequest, ListLobbiesResponse, LobbyInfo, Port, RegionInfo } from "./api.js";
