// A service that responds by a script, under a clock that goes only where a test leads it.

/** A clock whose time passes when everything waits for it. */
export class Clock {
  #now = 1_000;
  #sleepers = [];
  now = () => this.#now;

  sleep = (milliseconds, signal) => new Promise((resolve) => {
    const end = () => {
      this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const sleeper = { at: this.#now + milliseconds, end };
    this.#sleepers.push(sleeper);
    if (signal?.aborted) end();
    else signal?.addEventListener("abort", end);
  });

  /** Lets everything that is due until then happen, in its order. */
  async pass(milliseconds) {
    const end = this.#now + milliseconds;
    for (;;) {
      await quiet();
      this.#sleepers.sort((one, other) => one.at - other.at);
      if (!(this.#sleepers[0]?.at <= end)) break;
      const [next] = this.#sleepers;
      this.#now = Math.max(this.#now, next.at);
      next.end();
    }
    this.#now = end;
  }
}

/** Until nothing happens any more but by the clock. */
export async function quiet() {
  for (let turns = 0; turns < 5; turns += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** What a case of rules.json responds; null for a connection that breaks. */
export function response(given) {
  if (given === null) throw new TypeError("fetch failed");
  const { status = 200, code, metadata, retry_after: retryAfter, body, ...rest } = given;
  const text = body ?? JSON.stringify(code === undefined ? rest : { code, message: "in words", ray_id: "ray", metadata });
  return new Response(text, { status, headers: retryAfter === undefined ? {} : { "retry-after": retryAfter } });
}

/** The response of a find, with as many players. */
export function seat(players = 1, token = "player_first") {
  const tokens = Array.from({ length: players }, (_, index) => ({ token: index === 0 ? token : `player_${index}` }));
  const port = { host: "fra.example:443", hostname: "fra.example", port: 443, port_range: null, is_tls: true };
  const range = { host: null, hostname: "fra.example", port: null, port_range: { min: 1, max: 2 }, is_tls: true };
  const region = { region_id: "fra", display_name: "Frankfurt" };
  const lobby = { lobby_id: "6b0ff0c5-6d3c-4a0b-9a3d-000000000001", region };
  return { lobby, ports: { default: port, voice: range }, player: tokens[0], ...(players > 1 && { players: tokens }) };
}

/** A `fetch` that notes each request, and responds what `answer` makes of it and of the number of those before. */
export function scripted(clock, answer) {
  const requests = [];
  const fetch = async (url, init) => {
    const request = { at: clock.now(), url, path: new URL(url).pathname.replace("/matchmaker/", ""), headers: init.headers ?? {}, body: init.body, signal: init.signal };
    requests.push(request);
    return answer(request, requests.length - 1);
  };
  return { fetch, requests };
}

/** The world of a client under test. */
export function world(answer, random = () => 0.5) {
  const clock = new Clock();
  const { fetch, requests } = scripted(clock, answer);
  return { clock, requests, given: { url: "http://muster.example/", fetch, now: clock.now, sleep: clock.sleep, random } };
}

/** A storage as a page has it. */
export function storage() {
  const kept = new Map();
  return {
    get length() { return kept.size; },
    key: (index) => [...kept.keys()][index] ?? null,
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => kept.set(key, value),
    removeItem: (key) => kept.delete(key),
  };
}
