// What a game server in TypeScript writes; only its types are checked.

import { WebSocketServer } from "ws";
import { GameServer, type LobbyHandler, type MusterError } from "muster-client/server";

const server = new GameServer({ url: "", token: "", region: "fra", ports: { default: { hostname: "", port: 1, protocol: "https" } } });
const open = (): LobbyHandler => ({ joined: (player) => player.send("welcome"), message: (player, data) => player.send(data) });
server.attach(new WebSocketServer({ noServer: true }), open, { keepSeconds: 60 });
server.on("exit", (error: MusterError) => process.exit(error.status));
server.on("lobby", (lobby) => void lobby.state({ map: lobby.config }));
// @ts-expect-error A port names its protocol.
new GameServer({ url: "", token: "", region: "fra", ports: { default: { hostname: "", port: 1 } } });
