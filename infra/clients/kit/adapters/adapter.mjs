// What every adapter in JavaScript has in common: intents on standard input, outcomes on standard output.

import { createInterface } from "node:readline";

/**
 * Runs intents with `client`, whose methods resolve when the client is done with an intent:
 *
 * - `find(request, signal)`, `join(request, signal)`, `create(request, signal)`: a seat, `{ lobbyId, tokens }`, with
 *   a token for each player of a party;
 * - `leave(seat)`; `rejoin(seat)`: a seat again.
 *
 * `settled(error)` resolves when nothing goes on in the background.
 */
export function run(client) {
  const seats = new Map();
  const aborts = new Map();
  const say = (outcome) => process.stdout.write(`${JSON.stringify(outcome)}\n`);

  async function perform({ id, do: act, of, request }, signal) {
    if (act === "leave") await client.leave(seats.get(of));
    else if (act === "rejoin") seats.set(id, await client.rejoin(seats.get(of)));
    else seats.set(id, await client[act](request, signal));
    const seat = seats.get(id);
    return seat ? { id, lobby_id: seat.lobbyId, tokens: seat.tokens } : { id };
  }

  createInterface({ input: process.stdin }).on("line", async (line) => {
    const intent = JSON.parse(line);
    if (intent.do === "abort") return aborts.get(intent.of)?.abort();
    const abort = new AbortController();
    aborts.set(intent.id, abort);
    let outcome;
    try {
      outcome = await perform(intent, abort.signal);
    } catch (error) {
      outcome = abort.signal.aborted ? { id: intent.id, aborted: true } : { id: intent.id, error: String(error?.code ?? error) };
      await client.settled?.();
    }
    aborts.delete(intent.id);
    say(outcome);
  });
}
