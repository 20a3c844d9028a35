// The game server: serves the page, and a match for each lobby.
//
// Usage: npm start, beside a local stack. PORT is 8080 by default, MATCH_SECONDS 60.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";
import { Match } from "./match.mjs";
import { setup } from "./setup.mjs";
// muster
import { GameServer } from "muster-client/server";
// muster end

const { PORT = "8080", MATCH_SECONDS = "60" } = process.env;
const TYPES = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript" };
const { url, server: token, players } = await setup();

/** The page's files, and the package's as they are. */
const FOLDERS = {
  "/muster/": fileURLToPath(new URL(".", import.meta.resolve("muster-client"))),
  "/": fileURLToPath(new URL("page", import.meta.url)),
};

const pages = createServer(async (request, response) => {
  const { pathname } = new URL(request.url, "http://localhost");
  if (pathname === "/config.js") {
    response.setHeader("content-type", TYPES[".js"]);
    return response.end(`export const url = ${JSON.stringify(url)}, token = ${JSON.stringify(players)};\n`);
  }
  const [prefix, folder] = Object.entries(FOLDERS).find(([prefix]) => pathname.startsWith(prefix));
  const path = join(folder, pathname === "/" ? "index.html" : pathname.slice(prefix.length));
  try {
    const file = await readFile(path);
    response.setHeader("content-type", TYPES[extname(path)] ?? "text/plain");
    response.end(file);
  } catch {
    response.writeHead(404).end();
  }
});
pages.listen(Number(PORT), "127.0.0.1");

// muster
const ports = { default: { hostname: "127.0.0.1", port: Number(PORT), protocol: "http" } };
const server = new GameServer({ url, token, region: "fra", capacity: 50, ports, drainOnSigterm: true });
server.attach(new WebSocketServer({ server: pages }), (lobby, players) => new Match(lobby, players, Number(MATCH_SECONDS)));
server.on("stop", () => process.exit(0));
await server.start();
// muster end
console.log(`Play at http://127.0.0.1:${PORT}, in two windows`);
