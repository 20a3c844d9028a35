// Plays the script of a seed, and compares what the client holds with the seats that there are.

import { setTimeout as pause } from "node:timers/promises";
import { requestOf } from "./script.mjs";

/** For how long seats of aborted intents may be there, in milliseconds, until they count as held by nobody. */
const GRACE_MS = 2_000;

export const TWICE = "an intent holds two seats";
export const LOST = "an answered intent has lost its seat";
export const NOBODY = "a seat is held by nobody";

/**
 * Plays `rounds` with `client`, while the stack makes the faults of `seed`.
 *
 * Returns intents and outcomes by the intent's identifier, the number of the client's requests, and the violations,
 * each `{ kind, mode, ids }` with the intents that it may be of.
 */
export async function play(stack, client, rounds, seed) {
  const all = new Map();
  await stack.makeFaults(seed);
  for (const round of rounds) {
    await Promise.all(round.map(async (intent) => all.set(intent.id, { intent, outcome: await perform(stack, client, intent, all) })));
  }
  await settle(stack, all);
  const requests = await stack.makeFaults(null);
  return { all, requests, violations: await compare(stack, all) };
}

async function perform(stack, client, intent, all) {
  const before = all.get(intent.of)?.outcome;
  // What depends on a seat that was not taken is not intended.
  if (intent.of && !before?.tokens) return { skipped: true };
  // Only who has connected comes back to a seat by a fresh token.
  if (intent.act === "rejoin") before.seat = await stack.connect(before.lobby_id, before.tokens[0]);
  const coming = client.intend({ id: intent.id, do: intent.act, of: intent.of, request: requestOf(intent, before?.lobby_id) });
  if (intent.ends) {
    await pause(intent.after);
    if (intent.ends === "kill") client.kill();
    else client.say({ do: "abort", of: intent.id });
  }
  return coming;
}

/** The tokens by which a client holds seats, with the intent that got each. */
function held(all) {
  const tokens = [];
  for (const { intent, outcome } of all.values()) {
    const later = [...all.values()].filter((other) => other.intent.of === intent.id);
    const isOver = later.some((other) => other.intent.act === "leave" || (other.intent.act === "rejoin" && other.outcome.tokens));
    if (outcome.tokens && !isOver) tokens.push(...outcome.tokens.map((token) => ({ intent, lobbyId: outcome.lobby_id, token })));
  }
  return tokens;
}

/** Waits while a client may still leave seats of intents that were aborted or given up. */
async function settle(stack, all) {
  const unsure = new Set([...all.values()].filter(({ outcome }) => outcome.aborted || outcome.error).map(({ intent }) => intent.mode));
  const tokens = held(all);
  const wanted = (mode) => tokens.filter(({ intent }) => intent.mode === mode).length;
  const isMore = async () => [...(await stack.seats())].some(([mode, there]) => unsure.has(mode) && there.size > wanted(mode));
  const began = performance.now();
  while (unsure.size > 0 && performance.now() - began < GRACE_MS && await isMore()) await pause(20);
}

async function compare(stack, all) {
  const of = (mode) => [...all.values()].filter(({ intent }) => intent.mode === mode);
  const seats = await stack.seats();
  const connected = await Promise.all(held(all).map(async (one) => ({ ...one, seat: await stack.connect(one.lobbyId, one.token) })));
  const violations = [];
  const known = new Map();
  for (const { intent, lobbyId, seat } of connected) {
    const there = seats.get(intent.mode) ?? new Map();
    // After a rejoin it is the seat from before.
    const before = intent.act === "rejoin" ? all.get(intent.of).outcome.seat : seat;
    const isIts = seat !== null && seat === before && there.get(seat) === lobbyId && !known.has(seat);
    if (!isIts) violations.push({ kind: LOST, mode: intent.mode, ids: [intent.id] });
    known.set(seat, intent);
  }
  for (const [mode, there] of seats) {
    // A killed client's request may have come after the end of its seed.
    if (of(mode).length === 0) continue;
    let extra = [...there.keys()].filter((seat) => !known.has(seat)).length;
    // A killed client has one seat that nobody gives back.
    extra -= Math.min(extra, of(mode).filter(({ outcome }) => outcome.killed).length);
    const ids = of(mode).map(({ intent }) => intent.id);
    const isAnswered = of(mode).every(({ intent, outcome }) => outcome.tokens && intent.act !== "leave");
    const isKilled = of(mode).some(({ outcome }) => outcome.killed);
    for (; extra > 0; extra--) violations.push({ kind: isAnswered || isKilled ? TWICE : NOBODY, mode, ids });
  }
  return violations;
}
