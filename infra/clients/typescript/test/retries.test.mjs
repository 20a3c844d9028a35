// What a client repeats, when, and what it leaves behind: the cases of rules.json in passing time.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Muster, MusterError } from "muster-client";
import { response, seat, storage, world } from "./script.mjs";

const rules = JSON.parse(await readFile(new URL("../../rules.json", import.meta.url), "utf8"));
const FIND = { game_modes: ["arena"] };
const never = () => new Promise(() => {});

/** How a promise ended; undefined while it has not. */
function outcome(promise) {
  const ended = {};
  promise.then((value) => { ended.value = value; }, (error) => { ended.error = error; });
  return ended;
}

for (const { name, response: given, is_retried: isRetried, wait } of rules.responses) {
  test(`${name} ${isRetried ? "is retried with the same key and body" : "is the end"}`, async () => {
    for (const [random, bound] of [[0, 0], [1 - Number.EPSILON, 1]]) {
      const { clock, requests, given: options } = world((_, before) => response(before === 0 ? given : seat()), () => random);
      const ended = outcome(new Muster({ ...options, token: "pub_token" }).find(FIND));
      await clock.pass(rules.deadline.default);
      if (!isRetried) {
        assert.equal(requests.length, 1);
        assert.ok(ended.error instanceof MusterError);
        const { status, code, metadata = {} } = given;
        assert.deepEqual([ended.error.status, ended.error.code, ended.error.metadata], [status, code, metadata]);
        continue;
      }
      assert.equal(ended.value?.token, "player_first");
      const [first, second, ...more] = requests;
      assert.equal(more.length, 0);
      assert.ok(Math.abs(second.at - first.at - wait[bound]) < 1, `${second.at - first.at} ms are not ${wait[bound]}`);
      assert.match(first.headers["idempotency-key"], /^[!-~]{1,64}$/);
      assert.equal(first.headers.authorization, "Bearer pub_token");
      assert.deepEqual([second.headers, second.body], [first.headers, first.body]);
    }
  });
}

test("delays double up to their last bound, for at least 35 seconds", async () => {
  const { clock, requests, given } = world(() => response(null), () => 1 - Number.EPSILON);
  const ended = outcome(new Muster(given).find(FIND));
  await clock.pass(rules.deadline.default);
  const waits = requests.slice(1).map(({ at }, index) => Math.round(at - requests[index].at));
  assert.deepEqual(waits.slice(0, rules.backoff.bounds.length), rules.backoff.bounds);
  assert.equal(ended.error.status, 0);
  assert.ok(requests.some(({ at }) => at > requests[0].at + rules.deadline.default_at_least));
});

test("an attempt may take as long as the service takes", async () => {
  const { clock, requests, given } = world((request, before) => before > 0 ? response(seat()) : new Promise((_, reject) => {
    request.signal.addEventListener("abort", () => reject(new Error("aborted")));
  }));
  const ended = outcome(new Muster(given).find(FIND));
  await clock.pass(rules.attempt.at_least);
  assert.equal(requests.length, 1);
  await clock.pass(rules.attempt.seating + rules.backoff.bounds[0] - rules.attempt.at_least);
  assert.equal(ended.value?.token, "player_first");
});

test("each intent has a key of its own, and a body that later changes do not reach", async () => {
  const { clock, requests, given } = world((_, before) => response(before === 0 ? null : seat()));
  const muster = new Muster(given);
  const request = { game_modes: ["arena"], player_data: { name: "Ada" } };
  const ended = outcome(muster.find(request));
  request.player_data.name = "Grace";
  await clock.pass(1_000);
  await muster.find(request);
  assert.equal(requests[0].body, requests[1].body);
  assert.notEqual(requests[1].body, requests[2].body);
  assert.notEqual(requests[1].headers["idempotency-key"], requests[2].headers["idempotency-key"]);
  assert.ok(ended.value);
});

/** What a case of `given_up` says of an attempt. */
function attempt(said) {
  if (said === "seat") return response(seat(2));
  if (said === "none") return response(null);
  return response(typeof said === "number" ? { status: said, code: "API_BAD_BODY" } : { status: 503, code: said });
}

for (const { name, before, during, then, requests: count, leaves } of rules.given_up.cases) {
  for (const way of ["abort", "deadline"]) {
    test(`a find that is given up by ${way} ${name} ${leaves ? "leaves its seats" : "leaves nothing"}`, async () => {
      let respond;
      const pending = new Promise((resolve) => { respond = resolve; });
      const answers = [...before, ...then];
      const { clock, requests, given } = world(({ path }, index) => {
        if (path === "players/leave") return response({});
        return during === "attempt" && index === 0 ? pending.then(() => attempt(answers[index])) : attempt(answers[index]);
      }, () => 1 - Number.EPSILON);
      const muster = new Muster(given);
      const abort = new AbortController();
      // Within the last wait, of which the bound is known.
      const moment = rules.backoff.bounds.slice(0, before.length).reduce((sum, bound) => sum + bound, 0) - 10;
      const given_up = before.length === 0 ? 10 : moment;
      const ended = outcome(muster.find({ ...FIND, party_size: 2 }, { signal: abort.signal, deadline: way === "deadline" ? given_up : rules.deadline.default }));
      await clock.pass(given_up);
      if (way === "abort") abort.abort(new Error("cancelled"));
      await clock.pass(0);
      if (way === "abort") assert.equal(ended.error.message, "cancelled");
      else assert.ok(ended.error instanceof MusterError);
      respond();
      await clock.pass(rules.given_up.within);
      await muster.settled();
      const finds = requests.filter(({ path }) => path === "lobbies/find");
      assert.equal(new Set(finds.map(({ headers, body }) => headers["idempotency-key"] + body)).size, 1);
      const left = requests.filter(({ path }) => path === "players/leave").map(({ body }) => JSON.parse(body).player_token);
      assert.deepEqual(left.sort(), leaves ? ["player_1", "player_first"] : []);
      // At a deadline that no wait fits into, the last attempts come a moment sooner.
      assert.equal(finds.length, count);
    });
  }
}

test("what is given up is looked for no longer than its limit", async () => {
  const { clock, requests, given } = world(() => response(null));
  const muster = new Muster(given);
  const abort = new AbortController();
  const ended = outcome(muster.find(FIND, { signal: abort.signal }));
  await clock.pass(1_000);
  abort.abort();
  await clock.pass(10 * rules.given_up.within);
  await muster.settled();
  assert.equal(ended.error.name, "AbortError");
  assert.ok(requests.at(-1).at - 2_000 <= rules.given_up.within);
});

test("nothing is looked for after a retry-after beyond the limit", async () => {
  const { clock, requests, given } = world(() => response({ status: 503, retry_after: "3600", body: "" }));
  const muster = new Muster(given);
  const ended = outcome(muster.find(FIND));
  await clock.pass(rules.given_up.within);
  assert.equal(ended.error.status, 503);
  await muster.settled();
  assert.equal(requests.length, 1);
});

test("an aborted signal sends nothing, and ends other calls at once", async () => {
  const { clock, requests, given } = world(never);
  const muster = new Muster(given);
  await assert.rejects(muster.find(FIND, { signal: AbortSignal.abort() }), { name: "AbortError" });
  assert.equal(requests.length, 0);
  const abort = new AbortController();
  const { clock: _, given: hanging } = world((request) => new Promise((__, reject) => {
    request.signal.addEventListener("abort", () => reject(request.signal.reason));
  }));
  const ended = outcome(new Muster(hanging).regions({ signal: abort.signal }));
  abort.abort();
  await clock.pass(0);
  assert.equal(ended.error.name, "AbortError");
});

test("a seat expires by the client's own clock", async () => {
  const { clock, given } = world(() => response(seat()));
  const found = await new Muster(given).find(FIND);
  assert.equal(found.expiresAt, clock.now() + rules.token_life);
});

test("a seat's URLs follow the port", async () => {
  const { given } = world(() => response(seat()));
  const found = await new Muster(given).find(FIND);
  assert.deepEqual([found.url(), found.url("default", "http")], ["wss://fra.example:443", "https://fra.example:443"]);
  assert.throws(() => found.url("voice"), RangeError);
  assert.throws(() => found.url("none"), RangeError);
});

test("a seat outlives a reload, until it is left, refused or expired", async () => {
  let answer = () => response(seat(1, "player_second"));
  const { clock, requests, given } = world(({ path }) => path === "lobbies/find" ? response(seat()) : answer());
  const options = { ...given, storage: storage() };
  await new Muster(options).find(FIND);
  assert.equal(options.storage.length, 1);

  const restored = await new Muster(options).restore();
  assert.deepEqual(JSON.parse(requests.at(-1).body), { player_token: "player_first" });
  assert.equal(restored.token, "player_second");
  await new Muster(options).restore();
  assert.deepEqual(JSON.parse(requests.at(-1).body), { player_token: "player_second" });

  answer = () => response({ status: 400, code: "MATCHMAKER_PLAYER_REMOVED" });
  assert.equal(await new Muster(options).restore(), undefined);
  assert.equal(options.storage.length, 0);

  const found = await new Muster(options).find(FIND);
  answer = () => response({});
  await found.leave();
  assert.equal(requests.at(-1).path, "players/leave");
  assert.deepEqual(requests.at(-1).headers, {});
  assert.equal(options.storage.length, 0);

  await new Muster(options).find(FIND);
  await clock.pass(rules.token_life);
  const sent = requests.length;
  assert.equal(await new Muster(options).restore(), undefined);
  assert.deepEqual([requests.length, options.storage.length], [sent, 0]);
});

test("the member of a party who leaves does not take the leader's seat out of the storage", async () => {
  const { given } = world(({ path }) => response(path === "lobbies/find" ? seat(2) : {}));
  const options = { ...given, storage: storage() };
  const { party } = await new Muster(options).find({ ...FIND, party_size: 2 });
  await party[1].leave();
  assert.equal(options.storage.length, 1);
  await party[0].leave();
  assert.equal(options.storage.length, 0);
});
