// Players and game servers on the running stack, over sockets and a network that loses responses.

import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import { Muster, MusterError } from "muster-client";
import { GameServer } from "muster-client/server";
import { namespace, network } from "./stack.mjs";
import { storage } from "./script.mjs";

const ARENA = { game_modes: ["arena"] };
const modes = {
  arena: { regions: ["fra"], max_players: 4, party_size_max: 2, keep_seconds: 60, actions: { create: { enabled: true } } },
};
let tokens;
let server;
let sockets;
let port;
/** What the handlers of all lobbies saw, in order. */
const seen = [];
const lobbies = [];

before(async () => {
  tokens = await namespace(modes);
  sockets = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(sockets, "listening");
  ({ port } = sockets.address());
  server = new GameServer({ ...tokens.servers, capacity: 20, ports: { default: { hostname: "127.0.0.1", port, protocol: "http" } } });
  server.attach(sockets, (lobby) => {
    lobbies.push(lobby);
    const note = (event) => (player) => seen.push(`${event} ${player.data.name}`);
    return {
      joined: (player) => {
        note("joined")(player);
        player.send(`welcome ${player.data.name}`);
      },
      back: note("back"),
      lost: note("lost"),
      left: note("left"),
      message: (player, data) => player.send(`${player.data.name} said ${data}`),
      ended: () => seen.push("ended"),
    };
  }, { keepSeconds: 60 });
  await server.start();
});

// Lobbies that the test before left empty end.
beforeEach(() => server.beat());

after(async () => {
  await server.stop({ endLobbies: true });
  sockets.close();
});

const muster = (options) => new Muster({ ...tokens.players, WebSocket, ...options });
const named = (name) => ({ ...ARENA, player_data: { name } });
/** A seat's connection, whose messages and ends can be waited for one by one. */
async function connect(seat) {
  const emitter = new EventEmitter();
  const kept = { message: [], open: [], close: [] };
  const keep = (event) => (about) => {
    kept[event].push(about);
    emitter.emit(event);
  };
  const next = async (event = "message") => {
    while (kept[event].length === 0) await once(emitter, event);
    return kept[event].shift();
  };
  const connection = await seat.connect("default", { onMessage: keep("message"), onOpen: keep("open"), onClose: keep("close") });
  await next("open");
  return Object.assign(connection, { next });
}
/** The events of the handlers since the last look, once there are as many. */
async function events(count) {
  while (seen.length < count) await new Promise((resolve) => setImmediate(resolve));
  return seen.splice(0);
}
/** The seats of a lobby as the service counts them now. */
async function seats(lobbyId) {
  await server.beat();
  const lobby = server.lobbies.get(lobbyId);
  return lobby ? lobby.seats.reserved + lobby.seats.connected : 0;
}

test("players meet, one reloads, one loses the connection, and the match ends", async () => {
  const page = storage();
  const ada = await muster({ storage: page }).find(named("Ada"));
  const grace = await muster().find(named("Grace"));
  assert.equal(ada.lobbyId, grace.lobbyId);
  assert.equal(ada.url(), `ws://127.0.0.1:${port}`);

  const ofAda = await connect(ada);
  assert.equal(await ofAda.next(), "welcome Ada");
  const ofGrace = await connect(grace);
  assert.equal(await ofGrace.next(), "welcome Grace");
  ofAda.send("hello");
  assert.equal(await ofAda.next(), "Ada said hello");
  assert.deepEqual(await events(2), ["joined Ada", "joined Grace"]);

  // The page is loaded again before its older connection ended.
  const restored = await muster({ storage: page }).restore();
  assert.deepEqual([restored.lobbyId, restored.token === ada.token], [ada.lobbyId, false]);
  const replaced = ofAda.next("close");
  const again = await connect(restored);
  assert.deepEqual(await events(1), ["back Ada"]);
  assert.equal((await replaced).reason, "replaced");
  assert.equal(await seats(ada.lobbyId), 2);

  // The connection breaks, and comes back by itself.
  const reopened = ofGrace.next("open");
  for (const socket of sockets.clients) socket.terminate();
  await reopened;
  assert.deepEqual((await events(4)).sort(), ["back Ada", "back Grace", "lost Ada", "lost Grace"]);
  ofGrace.send("back");
  assert.equal(await ofGrace.next(), "Grace said back");
  assert.equal(await seats(ada.lobbyId), 2);

  ofGrace.close();
  assert.deepEqual(await events(1), ["left Grace"]);
  const ended = again.next("close");
  await server.lobbies.get(ada.lobbyId).end();
  assert.deepEqual(await ended, { code: 1000, reason: "ended" });
  assert.deepEqual(await events(1), ["ended"]);
  await assert.rejects(restored.rejoin(), { code: "MATCHMAKER_LOBBY_STOPPED" });
  const other = await muster({ storage: page }).find(named("Ada"));
  assert.notEqual(other.lobbyId, ada.lobbyId);
  await other.leave();
});

test("a game server refuses a token that it does not know, with the code", async () => {
  const seat = await muster().find(named("Ada"));
  const other = await muster().find(named("Grace"));
  await seat.leave();
  await assert.rejects(seat.connect(), { code: "MATCHMAKER_PLAYER_REMOVED" });
  await other.leave();
  const socket = new WebSocket(seat.url());
  await once(socket, "open");
  socket.send("hello");
  assert.equal((await once(socket, "close"))[0], 4403);
});

test("friends join by a code, and a private lobby takes no strangers", async () => {
  const host = await muster().create({ game_mode: "arena" });
  const friend = await muster().join({ lobby_id: ` ${host.code.toLowerCase()} ` });
  assert.equal(friend.lobbyId, host.lobbyId);
  await assert.rejects(muster().find({ ...ARENA, prevent_auto_create_lobby: true }), (error) => {
    assert.ok(error instanceof MusterError);
    assert.deepEqual([error.status, error.code], [400, "MATCHMAKER_NO_AVAILABLE_LOBBIES"]);
    assert.ok(error.rayId && error.documentation);
    return true;
  });
  await Promise.all([host.leave(), friend.leave()]);
});

test("a party has a seat for each, whose token a member takes over", async () => {
  const leader = await muster().find({ ...ARENA, party_size: 2, players_data: [{ name: "Ada" }, { name: "Grace" }] });
  assert.equal(leader.party.length, 2);
  assert.equal(leader.party[0], leader);
  const member = await muster().seat(leader.party[1].token);
  assert.deepEqual([member.lobbyId, member.token, member.ports], [leader.lobbyId, leader.party[1].token, leader.ports]);
  const connection = await connect(member);
  assert.equal(await connection.next(), "welcome Grace");
  await leader.leave();
  connection.close();
  assert.deepEqual(await events(3), ["joined Grace", "left Grace", "ended"]);
});

for (const [fault, requests] of [["response", 2], ["request", 2], ["body", 2]]) {
  test(`a find whose ${fault} is lost has one seat after the retry`, async () => {
    const faults = [fault];
    const lossy = await network(faults);
    const seat = await muster({ url: lossy.url, random: () => 0 }).find(ARENA);
    assert.deepEqual(faults, []);
    assert.equal(await seats(seat.lobbyId), requests - 1);
    await seat.leave();
    lossy.close();
  });
}

test("a find that is aborted after its response was lost leaves nothing behind", async () => {
  const mine = await muster().find(ARENA);
  const lossy = await network(["response", "response"]);
  const abort = new AbortController();
  const client = muster({ url: lossy.url, random: () => 0, sleep: async (milliseconds) => {
    // The first pause between attempts; limits of attempts never come.
    if (milliseconds > 0) return new Promise(() => {});
    abort.abort();
  } });
  await assert.rejects(client.find(ARENA, { signal: abort.signal }), { name: "AbortError" });
  assert.equal(await seats(mine.lobbyId), 2);
  await client.settled();
  assert.equal(await seats(mine.lobbyId), 1);
  await mine.leave();
  lossy.close();
});

test("lists and regions are those of the namespace", async () => {
  const client = muster();
  const mine = await client.create({ game_mode: "arena", publicity: "public" });
  const { lobbies: listed } = await client.list({ include_state: true, limit: 10 });
  assert.ok(listed.some(({ lobby_id: id, state }) => id === mine.lobbyId && state === null));
  const regions = await client.regions();
  assert.ok(regions.some(({ region_id: id }) => id === "fra"));
  // The demo's regions have no probes.
  assert.deepEqual(await client.measureLatencies(), {});
  await mine.leave();
});

test("a lobby is closed, opened, made private, given a state and rid of a player", async () => {
  const seat = await muster().find(named("Ada"));
  const player = await server.admit(seat);
  const { lobby } = player;
  const find = () => muster().find({ ...ARENA, prevent_auto_create_lobby: true });
  await lobby.close();
  await assert.rejects(find(), { code: "MATCHMAKER_NO_AVAILABLE_LOBBIES" });
  await lobby.open();
  await lobby.publicity("private");
  await assert.rejects(find(), { code: "MATCHMAKER_NO_AVAILABLE_LOBBIES" });
  await lobby.publicity("public");
  await lobby.state({ map: "harbour" });
  const second = await find();
  assert.equal(second.lobbyId, seat.lobbyId);
  await player.remove();
  await assert.rejects(seat.rejoin(), { code: "MATCHMAKER_PLAYER_REMOVED" });
  await second.leave();
});

test("the matches of a server that crashes go on under the same start, with the same players", async () => {
  const own = await namespace({ arena: { regions: ["fra"], max_players: 2 } });
  const startIdFile = join(await mkdtemp(join(tmpdir(), "muster-")), "start");
  const options = { ...own.servers, ports: { default: { hostname: "127.0.0.1", port: 1, protocol: "http" } }, startIdFile };
  // It never sends a heartbeat by itself, as after a crash.
  const crashed = new GameServer({ ...options, sleep: async (milliseconds) => { if (milliseconds > 1_000) await new Promise(() => {}); } });
  await crashed.start();
  const seat = await new Muster(own.players).find(ARENA);
  const before = await crashed.admit(seat);

  const next = new GameServer(options);
  const [lobby] = await Promise.all([once(next, "lobby"), next.start()]).then(([emitted]) => emitted);
  assert.equal(lobby.lobbyId, seat.lobbyId);
  await seat.rejoin();
  const back = await next.admit(seat);
  assert.equal(back.playerId, before.playerId);
  await back.disconnected();
  await next.stop();
  assert.equal(lobby.isEnded, true);
});

test("a later start makes the older process exit, and a server drains with its last player", async () => {
  const own = await namespace({ arena: { regions: ["fra"], max_players: 2 } });
  const options = { ...own.servers, serverId: "one", ports: { default: { hostname: "127.0.0.1", port: 1, protocol: "http" } } };
  const older = new GameServer(options);
  let deregistered;
  const isDeregistered = new Promise((resolve) => { deregistered = resolve; });
  const later = new GameServer({
    ...options,
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      if (String(url).endsWith("/servers/deregister")) deregistered();
      return response;
    },
  });
  await older.start();
  await later.start();
  const exit = once(older, "exit");
  await older.beat();
  assert.equal((await exit)[0].code, "MATCHMAKER_LOBBY_STATE_CONFLICT");

  const seat = await new Muster(own.players).find(ARENA);
  const player = await later.admit(seat);
  const stopped = later.stop();
  await isDeregistered;
  // It gets no lobby any more, and goes on with those it has.
  await later.beat();
  // Without retries, which would wait for another game server.
  const refused = await fetch(`${own.players.url}/matchmaker/lobbies/find`, { method: "POST", headers: { authorization: `Bearer ${own.players.token}` }, body: JSON.stringify(ARENA) });
  assert.equal((await refused.json()).code, "MATCHMAKER_NO_SERVER_AVAILABLE");
  await player.disconnected();
  await stopped;
  assert.equal(player.lobby.isEnded, true);
});
