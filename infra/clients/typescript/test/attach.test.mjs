// Players of a game server by WebSocket: greetings, pings and the time for which a seat is kept.

import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { afterEach, beforeEach, mock, test } from "node:test";
import { MusterError } from "muster-client";
import { GameServer } from "muster-client/server";
import { quiet } from "./script.mjs";

const KEEP_SECONDS = 20;

beforeEach(() => mock.timers.enable({ apis: ["setTimeout", "setInterval"] }));
afterEach(() => mock.timers.reset());

/** A socket that notes what is done to it. */
class Socket extends EventEmitter {
  readyState = 1;
  sent = [];
  done = [];
  send = (data) => this.sent.push(data);
  pause = () => this.done.push("pause");
  resume = () => this.done.push("resume");
  ping = () => this.done.push("ping");
  close = (code, reason = "") => this.end(code, reason);
  terminate = () => this.end(1_006);

  end(code, reason = "") {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.done.push(`close ${code} ${reason}`.trim());
    this.emit("close", code);
  }

  greet(token = "player_a") {
    this.emit("message", Buffer.from(JSON.stringify({ lobby_id: "one", player_token: token })), false);
  }
}

/** A game server of which only the attachment works: `admit` is the test's. */
function attached(admit) {
  const server = new GameServer({ url: "http://muster.example", token: "", region: "fra", ports: {} });
  const lobby = { lobbyId: "one", isEnded: false };
  const reported = [];
  server.admit = async ({ token }) => {
    const playerId = await admit(token);
    return { playerId, data: {}, lobby, disconnected: async ({ keepSeconds }) => reported.push(`${token} ${keepSeconds}`) };
  };
  const sockets = new EventEmitter();
  const events = [];
  const note = (event) => ({ playerId }) => events.push(`${event} ${playerId}`);
  server.attach(sockets, () => ({
    joined: note("joined"), lost: note("lost"), back: note("back"), left: note("left"),
    message: ({ playerId }, data) => events.push(`${playerId}: ${data}`),
    ended: () => events.push("ended"),
  }), { keepSeconds: KEEP_SECONDS });
  const come = async (token) => {
    const socket = new Socket();
    sockets.emit("connection", socket);
    if (token !== undefined) {
      socket.greet(token);
      // `setImmediate` is left to run.
      await quiet();
    }
    return socket;
  };
  return { server, lobby, reported, events, come };
}

test("who does not greet in time, or by anything else, is refused", async () => {
  const { come, events } = attached(() => "ada");
  const silent = await come();
  mock.timers.tick(5_000);
  assert.deepEqual(silent.done.filter((done) => done !== "ping"), ["close 4403 no greeting"]);
  for (const text of ["hello", "null", "{}", '{"lobby_id":1,"player_token":"a"}', JSON.stringify({ lobby_id: "one", player_token: "a".repeat(4_096) })]) {
    const socket = await come();
    socket.emit("message", Buffer.from(text), false);
    assert.deepEqual(socket.done, ["close 4403 no greeting"], text);
  }
  assert.deepEqual(events, []);
});

test("a refusal closes with its code; one that may pass has the player come again", async () => {
  const refuse = (status, code) => attached(() => Promise.reject(new MusterError("", { status, code }))).come("player_a");
  assert.equal((await refuse(400, "MATCHMAKER_PLAYER_REMOVED")).done.at(-1), "close 4403 MATCHMAKER_PLAYER_REMOVED");
  assert.equal((await refuse(503, "API_UNAVAILABLE")).done.at(-1), "close 1013");
});

test("what a player sends before the admission waits for it", async () => {
  const { come, events } = attached(() => "ada");
  const socket = await come("player_a");
  assert.deepEqual([socket.done, socket.sent], [["pause", "resume"], ['{"player_id":"ada"}']]);
  socket.emit("message", Buffer.from("hello"), false);
  assert.deepEqual(events, ["joined ada", "ada: hello"]);
});

test("a seat is kept for a lost connection until its time is over, and given up with one that was closed", async () => {
  const { come, events, reported } = attached((token) => token.slice(0, 8));
  const lost = await come("player_a");
  const closed = await come("player_b");
  lost.terminate();
  closed.end(1_000);
  assert.deepEqual(events.slice(2), ["lost player_a", "left player_b"]);
  assert.deepEqual(reported, [`player_a ${KEEP_SECONDS}`, "player_b 0"]);
  mock.timers.tick(KEEP_SECONDS * 1_000 - 1);
  assert.equal(events.length, 4);
  mock.timers.tick(1);
  assert.equal(events.at(-1), "left player_a");
});

test("a player who comes back in time stays, and replaces an older connection", async () => {
  const { come, events, reported } = attached((token) => token.slice(0, 8));
  const first = await come("player_a");
  const second = await come("player_a again");
  assert.equal(first.done.at(-1), "close 4409 replaced");
  assert.deepEqual([events, reported], [["joined player_a", "back player_a"], []]);
  second.terminate();
  await come("player_a once more");
  mock.timers.tick(KEEP_SECONDS * 1_000 + 1);
  assert.deepEqual(events.slice(2), ["lost player_a", "back player_a"]);
});

test("a connection whose other end is gone without a word is lost", async () => {
  const { come, events } = attached(() => "ada");
  const socket = await come("player_a");
  mock.timers.tick(15_000);
  socket.emit("pong");
  mock.timers.tick(15_000);
  assert.equal(socket.readyState, 1);
  mock.timers.tick(15_000);
  assert.deepEqual([socket.readyState, events.at(-1)], [3, "lost ada"]);
});

test("a connection that ends during the admission is lost", async () => {
  let admit;
  const { come, events, reported } = attached(() => new Promise((resolve) => { admit = resolve; }));
  const socket = await come("player_a");
  socket.terminate();
  admit("ada");
  await quiet();
  assert.deepEqual([events, reported], [["joined ada", "lost ada"], [`player_a ${KEEP_SECONDS}`]]);
});

test("a lobby that ends closes its connections, and reports nobody", async () => {
  const { come, events, reported, server, lobby } = attached(() => "ada");
  const socket = await come("player_a");
  lobby.isEnded = true;
  server.emit("ended", lobby);
  assert.equal(socket.done.at(-1), "close 1000 ended");
  assert.deepEqual([events, reported], [["joined ada", "ended"], []]);
});
