import type { FindLobbyResponse } from "./api.js";
import { MusterError } from "./error.js";
import { attempt, type Call, type CallOptions, DEADLINE_MS, delay, LONG_ATTEMPT_MS, type World } from "./http.js";

/** For how long the seat of an intent that was given up is looked for, to leave it. */
export const GIVE_BACK_MS = 35_000;

/** Codes of a 503 after which the intent has no seat. */
const WITHOUT_SEAT = ["MATCHMAKER_NO_SERVER_AVAILABLE", "MATCHMAKER_LOBBY_START_TIMEOUT", "CAPTCHA_UNAVAILABLE"];

/** A key that no other intent has. Unlike `randomUUID`, this is there for pages without TLS, too. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Takes a seat by a call that has an `Idempotency-Key`: each attempt repeats key and body, so that all of
 * them together take one.
 *
 * When the signal aborts or the deadline passes, an attempt may have taken the seat without a response. Then
 * the call goes on in the background, for at most 35 seconds, until it knows, and `giveBack` gets the answer.
 * `background` has the promise of that.
 *
 * @throws MusterError where the seat is refused or the deadline passes; the signal's reason when that aborts.
 */
export function take(
  world: World,
  call: Call,
  { signal, deadline = DEADLINE_MS }: CallOptions,
  giveBack: (answer: FindLobbyResponse) => Promise<unknown>,
  background: Set<Promise<unknown>>,
): Promise<FindLobbyResponse> {
  signal?.throwIfAborted();
  let end = world.now() + deadline;
  let isGivenUp = false;
  // Whether an attempt may have taken the seat.
  let isUncertain = false;
  let last = new MusterError("no response of the matchmaker before the deadline", { status: 0 });
  const settled = new AbortController();

  return new Promise((resolve, reject) => {
    const settle = () => {
      signal?.removeEventListener("abort", abort);
      settled.abort();
    };
    const giveUp = (reason: unknown) => {
      if (isGivenUp) return;
      isGivenUp = true;
      end = world.now() + GIVE_BACK_MS;
      settle();
      reject(reason);
    };
    const abort = () => giveUp(signal?.reason);
    signal?.addEventListener("abort", abort);
    void world.sleep(deadline, settled.signal).then(() => settled.signal.aborted || giveUp(last));

    const run = async () => {
      for (let failures = 0; !isGivenUp || isUncertain; failures++) {
        try {
          const answer = await attempt<FindLobbyResponse>(world, call, LONG_ATTEMPT_MS);
          settle();
          return isGivenUp ? await giveBack(answer) : resolve(answer);
        } catch (error) {
          // A refusal says that no attempt took a seat.
          if (!(error instanceof MusterError && error.isTransient)) return giveUp(error);
          last = error;
          if (WITHOUT_SEAT.includes(error.code ?? "")) isUncertain = false;
          else if (error.status !== 429) isUncertain = true;
        }
        const wait = delay(world, failures, last.retryAfter);
        if (!isGivenUp && world.now() + wait >= end) giveUp(last);
        if (isGivenUp && world.now() + wait >= end) return;
        await world.sleep(wait);
      }
    };
    const task = run().catch(() => {
      // The seat that could not be left expires.
    }).finally(() => background.delete(task));
    background.add(task);
  });
}
