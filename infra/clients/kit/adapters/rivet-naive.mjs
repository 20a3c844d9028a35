// A control that must fail: the npm client of existing games, `@rivet-gg/api`, sent again after every failure. It
// knows no key, and neither `leave` nor `rejoin`.

import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";
import { run } from "./adapter.mjs";

// The package as the contract test has it.
const require = createRequire(new URL("../../../../tests/clients/contract/", import.meta.url));
const { RivetClient } = require("@rivet-gg/api");

const { MUSTER_URL: environment, MUSTER_TOKEN: token } = process.env;
// The client's HTTP layer obeys proxy variables, and would look for a loopback address behind the proxy.
process.env.no_proxy = "*";
const { lobbies } = new RivetClient({ environment, token }).matchmaker;

async function untilItWorks(call, signal) {
  for (;;) {
    signal?.throwIfAborted();
    try {
      return await call();
    } catch {
      await pause(5 + Math.random() * 20);
    }
  }
}

const seat = ({ lobby, player }) => ({ lobbyId: lobby.lobbyId, tokens: [player.token] });
const once = { maxRetries: 0 };
const raw = (operation, { tokens: [player_token] }) => untilItWorks(async () => {
  const response = await fetch(`${environment}/matchmaker/players/${operation}`, { method: "POST", body: JSON.stringify({ player_token }) });
  if (!response.ok) throw new Error(response.status);
  return response.json();
});

run({
  find: async ({ game_modes }, signal) => seat(await untilItWorks(() => lobbies.find({ gameModes: game_modes }, once), signal)),
  join: async ({ lobby_id }, signal) => seat(await untilItWorks(() => lobbies.join({ lobbyId: lobby_id }, once), signal)),
  create: async ({ game_mode }, signal) => seat(await untilItWorks(() => lobbies.create({ gameMode: game_mode }, once), signal)),
  leave: (held) => raw("leave", held),
  rejoin: async (held) => ({ ...held, tokens: [(await raw("rejoin", held)).player.token] }),
});
