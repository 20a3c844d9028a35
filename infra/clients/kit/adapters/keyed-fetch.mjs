// A correct client by hand, in the fewest lines: one key for all attempts of an intent, and no intent given up
// before its seat is known.

import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { run } from "./adapter.mjs";

const { MUSTER_URL, MUSTER_TOKEN } = process.env;

/** Sends a request until it gets a response that stays. In a game, wait longer: `retry-after` and a random second. */
async function send(path, body, headers = {}) {
  for (;;) {
    try {
      const response = await fetch(`${MUSTER_URL}/matchmaker/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
      const answer = await response.json();
      if (response.ok) return answer;
      if (response.status < 500 && response.status !== 429) throw Object.assign(new Error(answer.message), { code: answer.code });
    } catch (error) {
      if (error.code?.startsWith?.("MATCHMAKER_") || error.code?.startsWith?.("API_")) throw error;
    }
    await pause(5 + Math.random() * 20);
  }
}

const seat = ({ lobby, player, players }) => ({ lobbyId: lobby.lobby_id, tokens: (players ?? [player]).map(({ token }) => token) });
const leave = ({ tokens }) => Promise.all(tokens.map((player_token) => send("players/leave", { player_token })));

const take = (operation) => async (request, signal) => {
  const headers = { authorization: `Bearer ${MUSTER_TOKEN}`, "idempotency-key": randomUUID() };
  const taken = seat(await send(`lobbies/${operation}`, request, headers));
  if (!signal.aborted) return taken;
  await leave(taken);
  throw signal.reason;
};

run({
  find: take("find"),
  join: take("join"),
  create: take("create"),
  leave,
  rejoin: async ({ tokens: [player_token] }) => seat(await send("players/rejoin", { player_token })),
});
