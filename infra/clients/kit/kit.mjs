// Tests any client of Muster under faults: README.md.
//
// Usage: node kit.mjs [--seeds 1000] [--from 0] [--at-once 1] [--muster-local PROGRAM] -- COMMAND...

import { parseArgs } from "node:util";
import { Client } from "./client.mjs";
import { LOST, NOBODY, play, TWICE } from "./play.mjs";
import { scriptOf } from "./script.mjs";
import { Stack } from "./stack.mjs";

const USAGE = "usage: node kit.mjs [--seeds 1000] [--from 0] [--at-once 1] [--muster-local PROGRAM] -- COMMAND...";
/** Violations that are printed one by one. */
const SHOWN_MAX = 20;
/** Of 1,000 intents, how many a client may give up: each fault passes. */
const GIVEN_UP_MAX = 10;

function arguments_() {
  const end = process.argv.indexOf("--");
  const command = end < 0 ? [] : process.argv.slice(end + 1);
  try {
    const { values } = parseArgs({
      args: process.argv.slice(2, end < 0 ? undefined : end),
      options: {
        seeds: { type: "string", default: "1000" }, from: { type: "string", default: "0" }, "at-once": { type: "string", default: "1" },
        "muster-local": { type: "string" },
      },
    });
    const [seeds, from, atOnce] = [values.seeds, values.from, values["at-once"]].map(Number);
    const isWhole = [seeds, from, atOnce].every(Number.isInteger);
    if (command.length > 0 && isWhole && seeds > 0 && atOnce > 0 && from >= 0 && from + seeds <= 2 ** 32) {
      return { seeds, from, atOnce, program: values["muster-local"], command };
    }
  } catch (error) {
    console.error(error.message);
  }
  console.error(USAGE);
  process.exit(2);
}

const { seeds, from, atOnce, program, command } = arguments_();
const counts = new Map([["intents", 0], ["requests", 0], ["answered", 0], ["aborted", 0], ["killed", 0], ["gave up", 0], [TWICE, 0], [LOST, 0], [NOBODY, 0]]);
const count = (name, by = 1) => counts.set(name, counts.get(name) + by);
let shown = 0;

function note(seed, { all, requests, violations }) {
  count("requests", requests);
  for (const { outcome } of all.values()) {
    if (outcome.skipped) continue;
    count("intents");
    count(outcome.error ? "gave up" : outcome.aborted ? "aborted" : outcome.killed ? "killed" : "answered");
    if (outcome.error && shown++ < SHOWN_MAX) console.log(`seed ${seed}: gave up intent ${outcome.id}: ${outcome.error}`);
  }
  for (const { kind, mode, ids } of violations) {
    count(kind);
    if (shown++ < SHOWN_MAX) console.log(`seed ${seed}: ${kind}: mode ${mode}, intent ${ids.join(" or ")}`);
  }
}

const began = performance.now();
/** The next seed that nobody has played. */
let coming = from;
const stacks = [];
const clients = [];

/** Plays seed after seed, each when the one before is over. */
async function playOn(stack) {
  const start = () => clients[clients.push(new Client(command, stack)) - 1];
  let client = start();
  while (coming < from + seeds) {
    const seed = coming++;
    const rounds = scriptOf(seed);
    // Its process starts while the script is played.
    const next = rounds.flat().some(({ ends }) => ends === "kill") ? start() : client;
    note(seed, await play(stack, client, rounds, seed));
    await stack.endLobbies();
    client = next;
  }
}

let failure = null;
try {
  while (stacks.length < Math.min(atOnce, seeds)) stacks.push(await Stack.start(program));
  await Promise.all(stacks.map(playOn));
} catch (error) {
  failure = error;
}
for (const client of clients) client.kill();
for (const stack of stacks) stack.end();
if (failure) {
  // Nothing can be said of the client.
  console.error(`kit: ${failure.message}`);
  process.exit(2);
}

console.log(`\n${command.join(" ")}: seeds ${from} to ${from + seeds - 1} in ${((performance.now() - began) / 1000).toFixed(0)} s\n`);
for (const [name, number] of counts) console.log(`${name.padEnd(40)}${number.toLocaleString("en-US").padStart(9)}`);
const violations = counts.get(TWICE) + counts.get(LOST) + counts.get(NOBODY);
const hasGivenUp = counts.get("gave up") * 1_000 > counts.get("intents") * GIVEN_UP_MAX;
if (hasGivenUp) console.log("\nIt gave up too often: each fault passes, and a retry gets through.");
console.log(violations > 0 || hasGivenUp ? "\nFAILED" : "\npassed");
process.exitCode = violations > 0 || hasGivenUp ? 1 : 0;
