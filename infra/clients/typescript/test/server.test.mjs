// A game server's heartbeats and admissions: the cases of rules.json in passing time.

import assert from "node:assert/strict";
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { GameServer } from "muster-client/server";
import { response, world } from "./script.mjs";

const { heartbeats, admission } = JSON.parse(await readFile(new URL("../../rules.json", import.meta.url), "utf8"));
const PORTS = { default: { hostname: "fra.example", port: 443, protocol: "https" } };

const lobby = (id = "one") => ({ lobby_id: id, lobby_token: `lobby_${id}`, game_mode: "arena", region_id: "fra", tags: {}, max_players: 2, seats: { reserved: 1, connected: 0 }, created_at: "" });

/**
 * A game server whose service gives the answers of `answers` by path, each an object or made of the
 * request.
 */
function server(answers, options = {}) {
  const { clock, requests, given } = world((request, before) => {
    const answer = answers[request.path.split("/")[1]] ?? {};
    return response(typeof answer === "function" ? answer(JSON.parse(request.body), before) : answer);
  });
  const made = new GameServer({ ...given, token: "server_token", region: "fra", ports: PORTS, ...options });
  const events = [];
  for (const event of ["lobby", "ended", "stop", "exit", "error"]) made.on(event, (about) => events.push([event, about?.lobbyId ?? about?.code].filter(Boolean).join(" ")));
  const sent = (operation) => requests.filter(({ path }) => path.split("/")[1] === operation).map(({ body, at, headers }) => ({ ...JSON.parse(body), at, token: headers.authorization }));
  return { made, clock, events, sent, requests };
}

/** Waits for a promise while time passes. */
async function pass(clock, promise, milliseconds = 20_000) {
  const [outcome] = await Promise.all([promise.then((value) => ({ value }), (error) => ({ error })), clock.pass(milliseconds)]);
  if (outcome.error) throw outcome.error;
  return outcome.value;
}

for (const { every_seconds: every, lease_seconds: lease } of heartbeats.lease) {
  test(`a heartbeat every ${every} seconds has a lease of ${lease}`, async () => {
    const { made, clock, sent } = server({ register: { server_id: "s" }, heartbeat: { lobbies: [] } }, { heartbeatSeconds: every });
    await made.start();
    await clock.pass(3 * every * 1_000);
    const [{ lease_seconds: seconds, start_id: start }] = sent("register");
    assert.equal(seconds, lease);
    const beats = sent("heartbeat");
    assert.deepEqual(beats.map(({ at }) => at - beats[0].at), [0, every, 2 * every, 3 * every].map((seconds) => seconds * 1_000));
    assert.ok(beats.every((beat) => beat.server_id === "s" && beat.start_id === start));
  });
}

for (const build of [undefined, { image: "game:7" }]) {
  test(`a registration has ${build ? "the" : "no"} build`, async () => {
    const { made, sent } = server({ register: { server_id: "s" }, heartbeat: { lobbies: [] } }, { build });
    await made.start();
    assert.deepEqual(sent("register").map((registration) => registration.build), [build]);
  });
}

for (const { name, response: given, registration, is_draining: isDraining, then } of heartbeats.responses) {
  test(`after a heartbeat, ${name}: ${then}`, async () => {
    let answer = { lobbies: [lobby()] };
    let registered = { server_id: "s" };
    const { made, clock, events, sent } = server({ register: () => registered, deregister: {}, heartbeat: ({ cursor }) => cursor ? { lobbies: [lobby("two")] } : answer });
    await made.start();
    if (isDraining) void made.stop();
    await clock.pass(25_000);
    const before = sent("heartbeat").length;
    answer = { lobbies: [lobby()], ...given };
    if (registration) registered = registration;
    await clock.pass(5_000);
    const expected = { beat: ["lobby two"], register: ["ended one"], exit: ["ended one", "exit MATCHMAKER_LOBBY_STATE_CONFLICT"], stop: ["ended one", "stop"], error: [`error ${given.code}`] };
    assert.deepEqual(events, ["lobby one", ...expected[then]]);
    assert.equal(sent("heartbeat").length - before, then === "beat" ? 2 : 1);
    assert.equal(sent("register").length, ["register", "exit"].includes(then) ? 2 : 1);
    assert.ok(sent("register").every(({ start_id: start }) => start === sent("register")[0].start_id));
    // What has ended sends no more.
    await clock.pass(300_000);
    if (["exit", "stop"].includes(then)) assert.equal(sent("heartbeat").length - before, 1);
  });
}

test("heartbeats come one at a time, and those that are wanted meanwhile are one", async () => {
  let open = 0;
  let most = 0;
  const { clock, requests, given } = world(async ({ path }) => {
    if (path === "servers/register") return response({ server_id: "s" });
    most = Math.max(most, open += 1);
    await clock.sleep(100);
    open -= 1;
    return response({ lobbies: [] });
  });
  const made = new GameServer({ ...given, token: "server_token", region: "fra", ports: PORTS });
  await pass(clock, made.start(), 200);
  const before = requests.length;
  await pass(clock, Promise.all(Array.from({ length: 5 }, async (_, index) => {
    await made.beat();
    // Who asks in the moment between the two shares the second.
    if (index === 0) await made.beat();
  })), 1_000);
  assert.deepEqual([most, requests.length - before], [1, 2]);
});

test("a server whose heartbeats get no response keeps its lobbies and goes on", async () => {
  const heartbeat = (_, before) => before < 2 ? { lobbies: [lobby()] } : null;
  const { made, clock, sent, events } = server({ register: { server_id: "s" }, heartbeat });
  await made.start();
  await clock.pass(120_000);
  const beats = sent("heartbeat");
  assert.deepEqual(new Set(events.slice(1)), new Set(["error"]));
  assert.ok(made.lobbies.has("one"));
  assert.ok(beats.length > 8);
});

test("a lobby that is missing from a list has ended, unless it has players and is less than two seconds old", async () => {
  let listed = [lobby("old")];
  const { made, clock, events } = server({ register: { server_id: "s" }, heartbeat: () => ({ lobbies: listed }), connected: { player_id: "ada" } });
  await made.start();
  await made.admit({ lobbyId: "old", token: "player_a" });
  await clock.pass(29_000);
  listed = [lobby("old"), lobby("young"), lobby("empty")];
  await made.beat();
  await made.admit({ lobbyId: "young", token: "player_b" });
  listed = [];
  await clock.pass(1_000);
  assert.deepEqual(events, ["lobby old", "lobby young", "lobby empty", "ended old", "ended empty"]);
  await clock.pass(30_000);
  assert.deepEqual(events.slice(5), ["ended young"]);
});

test("the player of a lobby that is not listed yet waits for it, and an unknown one costs few heartbeats", async () => {
  let listed = [];
  const { made, clock, sent } = server({ register: { server_id: "s" }, heartbeat: () => ({ lobbies: listed }), connected: { player_id: "ada" } });
  await made.start();
  const before = sent("heartbeat").length;
  const arriving = made.admit({ lobbyId: "one", token: "player_a" });
  await clock.pass(100);
  listed = [lobby()];
  const player = await pass(clock, arriving, 2_000);
  assert.deepEqual([player.playerId, sent("connected")[0].token, sent("connected")[0].details], ["ada", "Bearer lobby_one", true]);
  const since = sent("heartbeat").length;
  assert.ok(since - before <= 2);
  const unknown = Array.from({ length: 20 }, () => made.admit({ lobbyId: "none", token: "player_b" }));
  const refused = Promise.allSettled(unknown);
  const outcomes = await pass(clock, refused, 2_000);
  assert.ok(outcomes.every(({ reason }) => reason.code === "MATCHMAKER_LOBBY_NOT_FOUND"));
  assert.ok(sent("heartbeat").length - since <= 8);
});

for (const { name, response: given, is_shown: isShown, then } of admission) {
  test(`the player of ${name}: ${then}`, async () => {
    const details = { player_id: "ada", replaced: true, player_data: { name: "Ada" }, party_id: "p", party_size: 2 };
    let answer = details;
    const { made, clock, sent } = server({ register: { server_id: "s" }, heartbeat: { lobbies: [lobby()] }, connected: () => answer, disconnected: {} });
    await made.start();
    const show = () => made.admit({ lobbyId: "one", token: "player_a" });
    if (isShown) await show();
    else if (given?.status) answer = { ...given, metadata: details };
    const admitted = pass(clock, show());
    if (then === "admit") {
      const player = await admitted;
      assert.deepEqual([player.playerId, player.replaced, player.data, player.partyId, player.partySize], ["ada", true, { name: "Ada" }, "p", 2]);
      await player.disconnected({ keepSeconds: 20 });
      assert.deepEqual([sent("disconnected")[0].player_token, sent("disconnected")[0].keep_seconds], ["player_a", 20]);
    } else {
      await assert.rejects(admitted, { code: given?.code ?? "MATCHMAKER_PLAYER_ALREADY_CONNECTED", isTransient: false });
    }
  });
}

test("a token is admitted once, however many show it at once", async () => {
  const { made, clock } = server({ register: { server_id: "s" }, heartbeat: { lobbies: [lobby()] }, connected: { player_id: "ada" } });
  await made.start();
  const shown = [1, 2, 3].map(() => made.admit({ lobbyId: "one", token: "player_a" }));
  const outcomes = await pass(clock, Promise.allSettled(shown));
  assert.deepEqual(outcomes.map(({ status }) => status).sort(), ["fulfilled", "rejected", "rejected"]);
});

test("a player whom the service did not admit in time shows the token again", async () => {
  let answer = null;
  const { made, clock, sent } = server({ register: { server_id: "s" }, heartbeat: { lobbies: [lobby()] }, connected: () => answer });
  await made.start();
  const show = () => pass(clock, made.admit({ lobbyId: "one", token: "player_a" }), 15_000);
  await assert.rejects(show(), { isTransient: true });
  const [first, ...others] = sent("connected");
  assert.ok(others.at(-1).at - first.at < 10_000);
  answer = { player_id: "ada" };
  assert.equal((await show()).playerId, "ada");
});

test("a player who comes before the server registered is to come again", async () => {
  const { made, requests } = server({});
  await assert.rejects(made.admit({ lobbyId: "one", token: "player_a" }), { isTransient: true });
  assert.equal(requests.length, 0);
});

test("a start that is kept has every seat kept before it runs the lobbies; a clean stop ends it", async () => {
  const startIdFile = join(await mkdtemp(join(tmpdir(), "muster-")), "start");
  const answers = { register: { server_id: "s" }, heartbeat: { lobbies: [lobby()] }, disconnected: {}, deregister: {} };
  const first = server(answers, { startIdFile });
  await first.made.start();
  assert.equal(first.sent("disconnected").length, 0);
  // It crashes.
  const second = server(answers, { startIdFile, keepSeconds: 60 });
  await second.made.start();
  assert.equal(second.sent("register")[0].start_id, first.sent("register")[0].start_id);
  const [{ everyone, keep_seconds: keep, at }] = second.sent("disconnected");
  assert.deepEqual([everyone, keep], [true, 60]);
  assert.deepEqual(second.requests.map(({ path }) => path), ["servers/register", "servers/heartbeat", "players/disconnected"]);
  assert.ok(at >= 0);
  await second.made.stop({ endLobbies: true });
  assert.deepEqual(second.events, ["lobby one", "ended one", "stop"]);
  const third = server(answers, { startIdFile });
  await third.made.start();
  assert.notEqual(third.sent("register")[0].start_id, first.sent("register")[0].start_id);
});
