// Connections that are lost, refused and closed, and latencies by probes, over sockets by script.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Muster } from "muster-client";
import { response, seat, world } from "./script.mjs";

const { backoff } = JSON.parse(await readFile(new URL("../../rules.json", import.meta.url), "utf8"));
const ATTEMPTS = 8;

/** A `WebSocket` class whose sockets do what `script` has them do, by their number from 0 on. */
function sockets(clock, script) {
  const made = [];
  class Socket {
    readyState = 0;
    sent = [];

    constructor(url) {
      Object.assign(this, { url, at: clock.now() });
      made.push(this);
      const number = made.length - 1;
      void clock.sleep(0).then(() => script(this, number));
    }

    send(data) {
      this.sent.push(data);
    }

    close(code = 1_005, reason = "") {
      this.end(code, reason);
    }

    open() {
      this.readyState = 1;
      this.onopen();
    }

    say(data) {
      this.onmessage({ data });
    }

    end(code, reason = "") {
      this.readyState = 3;
      this.onclose({ code, reason, wasClean: code !== 1_006 });
    }
  }
  return { made, Socket };
}

/** A seat whose sockets follow a script, and whose rejoins get what `rejoin` says. */
async function seated(script, rejoin = (count) => seat(1, `player_${count}`), random = () => 1 - Number.EPSILON) {
  let count = 0;
  const { clock, requests, given } = world(({ path }) => response(path === "players/rejoin" ? rejoin(count += 1) : seat()), random);
  const { made, Socket } = sockets(clock, script);
  const found = await new Muster({ ...given, WebSocket: Socket }).find({ game_modes: ["arena"] });
  const events = [];
  const options = {
    onOpen: ({ playerId }) => events.push(`open ${playerId}`),
    onMessage: (data) => events.push(data),
    onLost: () => events.push("lost"),
    onClose: ({ code, reason, error }) => events.push(["close", code, reason, error?.code].filter(Boolean).join(" ")),
  };
  const rejoins = () => requests.filter(({ path }) => path === "players/rejoin").length;
  return { clock, made, events, rejoins, connect: (more) => found.connect("default", { ...options, ...more }) };
}

const admit = (socket) => {
  socket.open();
  socket.say('{"player_id":"ada"}');
};
const tokenOf = ({ sent: [greeting] }) => JSON.parse(greeting).player_token;

test("a connection that never comes about ends after its attempts, each after a rejoin and a longer delay", async () => {
  const { clock, made, events, rejoins, connect } = await seated((socket) => socket.end(1_006));
  const [outcome] = await Promise.allSettled([connect(), clock.pass(600_000)]);
  assert.deepEqual([outcome.status, outcome.reason.status], ["rejected", 0]);
  assert.deepEqual([made.length, rejoins()], [1 + ATTEMPTS, ATTEMPTS]);
  const waits = made.slice(1).map(({ at }, index) => Math.round(at - made[index].at));
  assert.deepEqual(waits.slice(0, backoff.bounds.length), backoff.bounds);
  assert.equal(events.at(-1), "close 1006");
});

test("a lost connection opens again under the fresh token, without end while it lasts in between", async () => {
  const times = 3 * ATTEMPTS;
  const { clock, made, events, connect } = await seated((socket, number) => {
    admit(socket);
    if (number < times) void clock.sleep(6_000).then(() => socket.end(1_006));
  });
  const [connection] = await Promise.all([connect(), clock.pass(600_000)]);
  assert.equal(made.length, times + 1);
  assert.deepEqual(made.map(tokenOf), ["player_first", ...Array.from({ length: times }, (_, number) => `player_${number + 1}`)]);
  made.at(-1).say("hello");
  assert.deepEqual(events.slice(0, 3), ["open ada", "lost", "open ada"]);
  assert.equal(events.at(-1), "hello");
  connection.send("there");
  assert.equal(made.at(-1).sent.at(-1), "there");
  connection.close();
  await clock.pass(60_000);
  assert.deepEqual([events.at(-1), made.length], ["close 1000", times + 1]);
});

test("without a response to the rejoin, no socket opens under the older token", async () => {
  let isAway = true;
  const { clock, made, connect } = await seated((socket, number) => number === 0 ? socket.end(1_006) : admit(socket), () => isAway ? null : seat(1, "player_fresh"));
  const connecting = connect();
  await clock.pass(100_000);
  assert.equal(made.length, 1);
  isAway = false;
  await Promise.all([connecting, clock.pass(100_000)]);
  assert.deepEqual(made.slice(1).map(tokenOf), ["player_fresh"]);
});

for (const [name, script, rejoin, code, rejoined] of [
  ["a game server that refuses", (socket) => socket.end(4_403, "MATCHMAKER_PLAYER_REMOVED"), undefined, "MATCHMAKER_PLAYER_REMOVED", 0],
  ["a seat that is gone", (socket) => socket.end(1_006), () => ({ status: 400, code: "MATCHMAKER_LOBBY_STOPPED" }), "MATCHMAKER_LOBBY_STOPPED", 1],
]) {
  test(`${name} is the end`, async () => {
    const { clock, made, rejoins, connect } = await seated(script, rejoin);
    const [outcome] = await Promise.allSettled([connect(), clock.pass(600_000)]);
    assert.equal(outcome.reason.code, code);
    assert.deepEqual([made.length, rejoins()], [1, rejoined]);
  });
}

test("a signal ends a connection, also before it opened", async () => {
  const { clock, made, connect } = await seated(() => {});
  const abort = new AbortController();
  const connecting = connect({ signal: abort.signal });
  await clock.pass(10);
  abort.abort();
  await assert.rejects(connecting, { name: "AbortError" });
  await assert.rejects(connect({ signal: abort.signal }), { name: "AbortError" });
  assert.equal(made.length, 1);
});

test("latencies are those of a second request, null where a probe fails or is late, and absent without a probe", async () => {
  const regions = [
    { region_id: "fra", probe: "https://fra.example/" }, { region_id: "nyc", probe: "https://nyc.example/" },
    { region_id: "syd", probe: "https://syd.example/" }, { region_id: "sin", probe: "wss://sin.example/" },
    { region_id: "gru", probe: "wss://gru.example/" }, { region_id: "none" },
  ];
  const { clock, given } = world(async ({ url }, before) => {
    if (url.startsWith("http://muster")) return response({ regions });
    if (url.includes("nyc")) return response(null);
    if (url.includes("syd")) await new Promise(() => {});
    await clock.sleep(before < 4 ? 200 : 30);
    return response({});
  });
  const { Socket } = sockets(clock, (socket) => socket.url.includes("gru") ? socket.end(1_006) : socket.open());
  class Slow extends Socket {
    close() {
      void clock.sleep(45).then(() => this.end(1_000));
    }
  }
  const measuring = new Muster({ ...given, WebSocket: Slow }).measureLatencies();
  const [latencies] = await Promise.all([measuring, clock.pass(10_000)]);
  assert.deepEqual(latencies, { fra: 30, nyc: null, syd: null, sin: 45, gru: null });
});
