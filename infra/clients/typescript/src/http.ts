import { MusterError } from "./error.js";

/** What the client takes from its surroundings; tests pass their own. */
export interface World {
  fetch: typeof fetch;
  /** Milliseconds, which never go backwards while the program runs. */
  now: () => number;
  /** Resolves after so many milliseconds, or at once when the signal aborts. */
  sleep: (milliseconds: number, signal?: AbortSignal) => Promise<void>;
  /** From 0 to below 1. */
  random: () => number;
}

/** How long a call may take, and what ends it before. */
export interface CallOptions {
  signal?: AbortSignal | undefined;
  /** Milliseconds from now, retries included; 60,000 by default. */
  deadline?: number | undefined;
}

/** A request as it is sent, the same in each attempt. */
export interface Call {
  method: "GET" | "POST" | "PUT";
  url: string;
  headers?: Record<string, string>;
  body?: string;
  keepalive?: boolean;
}

/** Milliseconds after which an attempt without a response counts as lost. */
const ATTEMPT_MS = 11_000;
/** The same of a call that seats players or changes game servers, which may take 29 seconds. */
export const LONG_ATTEMPT_MS = 31_000;
export const DEADLINE_MS = 60_000;
/** The bound of the first random delay, which doubles up to the last. */
const BACKOFF_MS = 500;
const BACKOFF_MAX_MS = 8_000;

export function systemWorld(): World {
  return {
    fetch: (...request) => globalThis.fetch(...request),
    // Of the client's own clock alone, and comparable after a reload.
    now: () => performance.timeOrigin + performance.now(),
    sleep: (milliseconds, signal) => new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, milliseconds);
      signal?.addEventListener("abort", end);
    }),
    random: Math.random,
  };
}

/** Milliseconds before the next attempt: what the service asks for, and a full jitter. */
export function delay({ random }: World, failures: number, retryAfter = 0): number {
  return retryAfter * 1_000 + random() * Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** failures);
}

/**
 * Sends a request once.
 *
 * @throws MusterError where it is refused or gets no whole response; the signal's reason when that aborts.
 */
export async function attempt<T>(world: World, call: Call, milliseconds: number, signal?: AbortSignal): Promise<T> {
  const { url, ...request } = call;
  const over = new AbortController();
  const abort = () => over.abort();
  signal?.addEventListener("abort", abort);
  void world.sleep(milliseconds, over.signal).then(abort);
  try {
    const response = await world.fetch(url, { ...request, signal: over.signal });
    const text = await response.text();
    if (!response.ok) throw refusal(response, text);
    return JSON.parse(text) as T;
  } catch (cause) {
    signal?.throwIfAborted();
    if (cause instanceof MusterError) throw cause;
    // A body that was cut off is no response either.
    throw new MusterError("no response of the matchmaker", { status: 0, cause });
  } finally {
    signal?.removeEventListener("abort", abort);
    abort();
  }
}

/** Sends a request that changes nothing when it is repeated, until it gets a response that stays. */
export async function send<T>(world: World, call: Call, { signal, deadline = DEADLINE_MS }: CallOptions = {}, attemptMs = ATTEMPT_MS): Promise<T> {
  const end = world.now() + deadline;
  for (let failures = 0; ; failures++) {
    signal?.throwIfAborted();
    try {
      return await attempt<T>(world, call, Math.min(attemptMs, end - world.now()), signal);
    } catch (error) {
      if (!(error instanceof MusterError && error.isTransient)) throw error;
      const wait = delay(world, failures, error.retryAfter);
      if (world.now() + wait >= end) throw error;
      await world.sleep(wait, signal);
    }
  }
}

function refusal({ status, headers }: Response, text: string): MusterError {
  let body: Record<string, unknown> = {};
  try {
    body = Object(JSON.parse(text));
  } catch {
    // The gateway's own responses may have no body.
  }
  // A date would compare two clocks.
  const seconds = headers.get("retry-after")?.match(/^\d+$/);
  return new MusterError(String(body.message ?? `status ${status}`), {
    status,
    code: body.code as string | undefined,
    retryAfter: seconds ? Number(seconds[0]) : undefined,
    rayId: (body.ray_id ?? headers.get("x-request-id") ?? undefined) as string | undefined,
    documentation: body.documentation as string | undefined,
    metadata: body.metadata as Record<string, unknown> | undefined,
  });
}
