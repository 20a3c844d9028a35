import type { RegionInfo } from "./api.js";
import type { WebSocketClass } from "./connection.js";
import type { World } from "./http.js";

/** How long a probe may take: later, the region counts as unreachable. */
const PROBE_MS = 1_000;

/** Milliseconds to each region that has a probe, and null to those that did not respond in time. */
export async function measure(world: World, Class: WebSocketClass, regions: RegionInfo[], signal?: AbortSignal): Promise<Record<string, number | null>> {
  const probed = regions.filter((region): region is RegionInfo & { probe: string } => Boolean(region.probe));
  const measured = await Promise.all(probed.map(async ({ region_id, probe }) => {
    const latency = probe.startsWith("ws") ? ofSocket(world, Class, probe) : ofPage(world, probe);
    return [region_id, await within(world, latency).catch(() => null)] as const;
  }));
  signal?.throwIfAborted();
  return Object.fromEntries(measured);
}

async function within(world: World, latency: Promise<number>): Promise<number | null> {
  const over = new AbortController();
  try {
    return await Promise.race([latency, world.sleep(2 * PROBE_MS, over.signal).then(() => null)]);
  } finally {
    over.abort();
  }
}

async function ofPage(world: World, probe: string): Promise<number> {
  const ask = () => world.fetch(probe, { cache: "no-store", signal: AbortSignal.timeout(PROBE_MS) });
  // The first pays for name, connection and TLS, which play does not.
  await (await ask()).arrayBuffer();
  const began = world.now();
  await ask();
  return Math.max(1, world.now() - began);
}

/** The way there and back of the closing handshake, to which every server of WebSockets responds. */
function ofSocket(world: World, Class: WebSocketClass, probe: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = new Class(probe);
    let began: number | undefined;
    socket.onopen = () => {
      began = world.now();
      socket.close();
    };
    socket.onerror = reject;
    socket.onclose = ({ wasClean }) => wasClean && began !== undefined ? resolve(Math.max(1, world.now() - began)) : reject();
  });
}
