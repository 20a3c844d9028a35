// The npm package `muster-client`, as `npm run build` in ../../typescript makes it.

import { Muster } from "../../typescript/dist/index.js";
import { run } from "./adapter.mjs";

const muster = new Muster({ url: process.env.MUSTER_URL, token: process.env.MUSTER_TOKEN });

const taken = (seat) => ({ seat, lobbyId: seat.lobbyId, tokens: seat.party.map(({ token }) => token) });

run({
  find: async (request, signal) => taken(await muster.find(request, { signal })),
  join: async (request, signal) => taken(await muster.join(request, { signal })),
  create: async (request, signal) => taken(await muster.create(request, { signal })),
  leave: ({ seat }) => seat.leave(),
  rejoin: async ({ seat }) => taken(await seat.rejoin()),
  settled: () => muster.settled(),
});
