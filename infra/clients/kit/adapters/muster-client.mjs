// The npm package `muster-client`, as `npm run build` in ../../typescript makes it.

import { Muster } from "../../typescript/dist/index.js";
import { run } from "./adapter.mjs";

/** How much faster the client's clock goes, so that its pauses cost a test little. */
const FASTER = 10;

const muster = new Muster({
  url: process.env.MUSTER_URL,
  token: process.env.MUSTER_TOKEN,
  now: () => performance.now() * FASTER,
  sleep: (milliseconds, signal) => new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds / FASTER);
    signal?.addEventListener("abort", end);
    if (signal?.aborted) end();
  }),
});

const taken = (seat) => ({ seat, lobbyId: seat.lobbyId, tokens: seat.party.map(({ token }) => token) });

run({
  find: async (request, signal) => taken(await muster.find(request, { signal })),
  join: async (request, signal) => taken(await muster.join(request, { signal })),
  create: async (request, signal) => taken(await muster.create(request, { signal })),
  leave: ({ seat }) => seat.leave(),
  rejoin: async ({ seat }) => taken(await seat.rejoin()),
  settled: () => muster.settled(),
});
