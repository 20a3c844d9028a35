// The script of a seed: what its players intend, in rounds. Intents of one round are sent at once.

/** Of so many seeds, one has a client that is killed: that costs a process. */
const SEEDS_PER_KILL = 8;
/** When an intent is aborted, or its client killed, in milliseconds after it was sent. */
const ABORT_MAX_MS = 40;

/** Random numbers by a seed: the generator mulberry32. */
function numbers(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/**
 * The rounds of a seed. An intent has the game mode that its seats are in, which tells whose a seat is; the size of its
 * party; and perhaps `after`, the milliseconds after which it is aborted or killed. `of` names an earlier intent.
 */
export function scriptOf(seed) {
  const below = numbers(seed);
  let last = 0;
  const intent = (act, mode, more = {}) => ({ id: `${seed}-${++last}`, act, mode, size: 1, ...more });
  const find = (mode, more) => intent("find", mode, more);

  const crowd = Array.from({ length: 1 + below(4) }, () => find("crowd"));
  const party = find("party", { size: 2 + below(2) });
  const host = intent("create", "friends");
  const leaver = find("left");
  const aborted = find("aborted", { after: below(ABORT_MAX_MS), ends: "abort" });
  const rounds = [[...crowd, party, host, leaver, aborted]];

  const back = crowd[below(crowd.length)];
  rounds.push([
    intent("join", "friends", { of: host.id, size: 1 + below(2) }),
    intent("leave", "left", { of: leaver.id }),
    intent("rejoin", "crowd", { of: back.id }),
  ]);
  if (seed % SEEDS_PER_KILL === 0) rounds.push([find("killed", { after: below(ABORT_MAX_MS), ends: "kill" })]);
  return rounds;
}

/** What an intent asks the API for; `lobbyId` is that of the intent `of`. */
export function requestOf({ act, mode, size }, lobbyId) {
  const party = size > 1 ? { party_size: size } : {};
  if (act === "find") return { game_modes: [mode], ...party };
  if (act === "join") return { lobby_id: lobbyId, ...party };
  return act === "create" ? { game_mode: mode } : undefined;
}
