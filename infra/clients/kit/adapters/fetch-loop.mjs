// A control that must fail: a loop around `fetch` without a key.

import { setTimeout as pause } from "node:timers/promises";
import { run } from "./adapter.mjs";

const { MUSTER_URL, MUSTER_TOKEN } = process.env;

async function send(path, body, signal) {
  for (;;) {
    signal?.throwIfAborted();
    try {
      const response = await fetch(`${MUSTER_URL}/matchmaker/${path}`, {
        method: "POST", headers: { authorization: `Bearer ${MUSTER_TOKEN}` }, body: JSON.stringify(body), signal,
      });
      const answer = await response.json();
      if (response.ok) return answer;
    } catch {
      // Once more.
    }
    await pause(5 + Math.random() * 20);
  }
}

const seat = ({ lobby, player, players }) => ({ lobbyId: lobby.lobby_id, tokens: (players ?? [player]).map(({ token }) => token) });
const take = (operation) => async (request, signal) => seat(await send(`lobbies/${operation}`, request, signal));

run({
  find: take("find"),
  join: take("join"),
  create: take("create"),
  leave: ({ tokens: [player_token] }) => send("players/leave", { player_token }),
  rejoin: async ({ tokens: [player_token] }) => seat(await send("players/rejoin", { player_token })),
});
