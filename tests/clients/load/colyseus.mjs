// The peer of the benchmark `peer`: Colyseus with its default driver and presence, both in the memory of this process.

import http from "node:http";
import { Room, Server, matchMaker } from "@colyseus/core";
import { WebSocketTransport } from "@colyseus/ws-transport";

class Arena extends Room {
  maxClients = 8;
  // No seat expires during a run, so no room ends by itself.
  seatReservationTime = 24 * 3_600;
  // By default every room, even without players, looks for patches to send 20 times a second: that is no matchmaking, and
  // would take time from whoever else is measured on this machine.
  patchRate = null;
}

// How many rooms live; `DELETE /rooms?keep=1000` ends all but the oldest thousand first.
const server = http.createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, "http://localhost");
  if (pathname !== "/rooms" || !["GET", "DELETE"].includes(request.method)) {
    response.writeHead(404).end();
    return;
  }
  if (request.method === "DELETE") {
    const surplus = (await matchMaker.query({})).slice(Number(searchParams.get("keep")));
    await Promise.all(surplus.map((room) => matchMaker.getLocalRoomById(room.roomId).disconnect()));
  }
  const rooms = await matchMaker.query({});
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ live: rooms.length }));
});

const colyseus = new Server({ greet: false, transport: new WebSocketTransport({ server }) });
colyseus.define("arena", Arena);
await colyseus.listen(0, "127.0.0.1");
console.log(`Colyseus listens on http://127.0.0.1:${server.address().port}`);
