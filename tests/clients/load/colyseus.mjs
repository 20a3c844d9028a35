// The peer of the benchmark `peer`: Colyseus with its default driver and presence, both in the memory of this
// process. With a port of Redis as its argument, it is one of several processes that share their rooms.

import http from "node:http";
import { Room, Server, matchMaker } from "@colyseus/core";
import { RedisDriver } from "@colyseus/redis-driver";
import { RedisPresence } from "@colyseus/redis-presence";
import { WebSocketTransport } from "@colyseus/ws-transport";

class Arena extends Room {
  maxClients = 8;
  // No seat expires during a run, so no room ends by itself.
  seatReservationTime = 24 * 3_600;
  // By default every room, even without players, looks for patches to send 20 times a second: that is no
  // matchmaking, and would take time from the others that are measured on this machine.
  patchRate = null;
}

// The oldest first, in the same order in every process.
const age = (room) => JSON.stringify([room.createdAt, room.roomId]);

async function endYoungest(kept) {
  const rooms = await matchMaker.query({});
  rooms.sort((one, other) => (age(one) < age(other) ? -1 : 1));
  await Promise.all(rooms.slice(kept).map((room) => matchMaker.getLocalRoomById(room.roomId)?.disconnect()));
}

async function addFull(count) {
  for (let added = 0; added < count; added += 1) {
    const room = await matchMaker.handleCreateRoom("arena", {});
    for (let seat = 0; seat < room.maxClients; seat += 1) await matchMaker.reserveSeatFor(room, {});
  }
}

// `/rooms` counts the live rooms of all processes. Before that, `DELETE /rooms?keep=1000` ends the rooms of
// this process that are not among the oldest thousand of all, and `POST /rooms?add=1000` adds a thousand full
// ones.
const server = http.createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, "http://localhost");
  if (pathname !== "/rooms" || !["GET", "DELETE", "POST"].includes(request.method)) {
    response.writeHead(404).end();
    return;
  }
  if (request.method === "DELETE") await endYoungest(Number(searchParams.get("keep")));
  if (request.method === "POST") await addFull(Number(searchParams.get("add")));
  const rooms = await matchMaker.query({});
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ live: rooms.length }));
});

function sharedOver(port) {
  const redis = { host: "127.0.0.1", port: Number(port) };
  // Where clients connect to with their seats: the process that holds the room.
  const publicAddress = `peer.example/${process.pid}`;
  return { driver: new RedisDriver(redis), presence: new RedisPresence(redis), publicAddress };
}

const [, , redisPort] = process.argv;
const shared = redisPort === undefined ? {} : sharedOver(redisPort);
const colyseus = new Server({ greet: false, transport: new WebSocketTransport({ server }), ...shared });
colyseus.define("arena", Arena);
await colyseus.listen(0, "127.0.0.1");
console.log(`Colyseus listens on http://127.0.0.1:${server.address().port}`);
