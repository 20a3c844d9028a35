// For game servers, in Node.

export { GameServer, type GameServerOptions } from "./game-server.js";
export { Lobby, Player } from "./lobby.js";
export type { AttachOptions, ConnectedPlayer, LobbyHandler, OpenLobby } from "./attach.js";
export { MusterError } from "../error.js";
export type { ServerPort } from "../api.js";
