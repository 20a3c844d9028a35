// A page whose clock and whose events are the test's: time passes as fast as the page takes what it brings.

/** To be called before a page opens. `minute()` is in the page then: what a stack under load sends in a minute, and its ticks. */
export const passing = (page) => page.evaluateOnNewDocument(() => {
  let ahead = 0;
  const [now, set] = [Date.now, globalThis.setInterval];
  Date.now = () => now() + ahead;
  const ticks = [];
  globalThis.setInterval = (work, pause) => (pause === 1_000 ? ticks.push(work) : set(work, pause));
  let stream = null;
  globalThis.EventSource = class extends globalThis.EventSource {
    constructor(address) {
      super(address);
      stream = this;
    }
  };
  const send = (name, data) => stream.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) }));
  let [made, number] = [0, 1_000_000];
  let rows = [];
  const row = (at) => ({
    id: `00000000-0000-4000-8000-${String(made += 1).padStart(12, "0")}`, mode: "arena", region: "fra", state: made % 5 ? "open" : "full", is_private: false,
    max: 10, connected: made % 4, reserved: Array.from({ length: made % 6 }, (_, place) => at + 9_000 * place), server: "demo-fra", created: at,
  });
  const server = (at, place) => ({
    id: `server-${place}`, region: "fra", state: place ? "free" : "silent", used: made % 50, capacity: 100, modes: null, lease_until: place ? at + 20_000 : at - 5_000,
    lease_ms: 20_000, heard: at, started: at - 60_000,
  });
  const request = (at) => ({
    number: number += 1, at, ms: 2.5, method: "POST", path: "/matchmaker/lobbies/find", operation: number % 7 ? "find-lobby" : "heartbeat-server", request_id: `r-${number}`,
    status: number % 9 ? 200 : 503, code: number % 9 ? null : "MATCHMAKER_NO_SERVER_AVAILABLE", lobby_id: null, server_id: null, values: ["arena"], why: ["It looked for arena in fra."],
  });
  const columns = (last, count) => Array.from({ length: count }, (_, at) => ({ column: last - count + 1 + at, players: (last + at) % 90, lobbies: 60, finds: { seated: 40, refused: 3, failed: 1 } }));

  /** A look: twenty lobbies are new, ten changed; twenty requests came. */
  function look(at) {
    const fresh = Array.from({ length: 20 }, () => row(at));
    const changed = rows.slice(0, 10).map((one) => ({ ...one, connected: (one.connected + 1) % 4 }));
    rows = [...fresh, ...changed, ...rows.slice(10)].slice(0, 60);
    const cell = { lobbies: rows.length, players: made % 500, seats: 600, open: 40 };
    send("requests", Array.from({ length: 20 }, () => request(at)));
    send("servers", Array.from({ length: 8 }, (_, place) => server(at, place)));
    send("sums", { lobbies: 60, connected: made % 300, reserved: 9, seats: 600, states: { open: 48, full: 12 }, cells: { arena: { fra: cell } }, servers: 8, server_states: { free: 7, silent: 1 } });
    send("rows", { total: 600, order: rows.map(({ id }) => id), changed: [...fresh, ...changed] });
  }

  globalThis.minute = () => {
    // What the stack itself sends would be of another time.
    stream.close();
    for (let second = 0; second < 60; second += 1) {
      look(Date.now());
      send("columns", columns(Math.floor(Date.now() / 5_000), second === 0 ? 120 : 3));
      ahead += 500;
      look(Date.now());
      ahead += 500;
      ticks.forEach((tick) => tick());
    }
  };
});

/** How much of a page there is once all is collected that can be. */
export async function measured(page) {
  const session = await page.createCDPSession();
  await session.send("Performance.enable");
  for (let time = 0; time < 3; time += 1) await session.send("HeapProfiler.collectGarbage");
  const { metrics } = await session.send("Performance.getMetrics");
  await session.detach();
  const value = (name) => metrics.find((metric) => metric.name === name).value;
  return { nodes: value("Nodes"), heap: value("JSHeapUsedSize") };
}
