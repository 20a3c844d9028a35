// The page: the menu, the way into a match, and the board as the game server describes it.

import { token, url } from "/config.js";
import { Board } from "./board.js";
// muster
import { Muster } from "muster-client";
// muster end

const $ = (id) => document.getElementById(id);
const board = new Board($("board"), (dx, dy) => connection?.send(JSON.stringify([dx, dy])));
let connection;
let seat;
let search;
let isOver = false;

const show = (stage, text = "") => {
  document.body.dataset.stage = stage;
  $("banner").textContent = text;
};
/** Shows the link for a friend, where the seat is one for friends. */
const invite = (way, { code, party }) => {
  const hash = way === "friend" ? `join=${code}` : way === "party" ? `take=${party[1].token}` : "";
  $("link").value = `${location.origin}/#${hash}`;
  document.body.toggleAttribute("data-invites", Boolean(hash));
};
const menu = (result) => {
  $("result").textContent = result;
  seat?.forget();
  connection = seat = undefined;
  show("menu");
};

// muster
const muster = new Muster({ url, token });
const player_data = () => ({ name: $("name").value });
const ways = {
  find: (mode, options) => muster.find({ game_modes: [mode], player_data: player_data() }, options),
  friend: (mode, options) => muster.create({ game_mode: mode, player_data: player_data() }, options),
  party: (mode, options) => muster.find({ game_modes: [mode], party_size: 2, players_data: [player_data(), { name: "Friend" }] }, options),
  join: (code, options) => muster.join({ lobby_id: code, player_data: player_data() }, options),
  take: (playerToken, options) => muster.seat(playerToken, options),
  restore: (_, options) => muster.restore(options),
};

async function enter(way, given) {
  search = new AbortController();
  seat = await ways[way](given, { signal: search.signal });
  if (!seat) return menu("");
  invite(way, seat);
  connection = await seat.connect("default", { onMessage: hear, onLost: () => show("waiting", "Coming back…"), onClose: closed });
}

/** The end of the match, or of a game server that is gone, after which another match is found. */
function closed({ code, error }) {
  if (!isOver && connection && (error || code !== 1_000)) play("find", document.body.dataset.mode ?? "duel");
  else if (!isOver) menu("");
}

$("leave").addEventListener("click", () => {
  search.abort();
  connection?.close();
  void seat?.leave();
});
// muster end

/** Enters, and says in the menu what did not work. */
function play(way, given) {
  show("waiting", "Looking for a match…");
  isOver = false;
  connection = undefined;
  enter(way, given).catch((error) => menu(error.name === "AbortError" ? "" : error.code ?? error.message));
}

function hear(data) {
  const said = JSON.parse(data);
  if (said.board) board.begin(said);
  if (said.names) $("names").textContent = said.names.map(([, name, isHere]) => isHere ? name : `${name} (coming back)`).join(", ") + ` · ${said.names.length} of ${said.of}`;
  if (said.brushes) board.update(said);
  if (said.scores) scores(said.scores);
  if (said.stage === "waiting") show("waiting", "Warm up: the others are on their way");
  if (said.stage === "ready") show("ready", said.left > 0 ? said.left : "Go!");
  if (said.stage === "playing") show("playing");
  if (said.stage) $("clock").textContent = said.stage === "playing" ? `0:${String(said.left).padStart(2, "0")}` : "";
  if (said.stage === "over") {
    isOver = true;
    menu(said.winner === 0 ? "A draw!" : said.winner === board.side ? "Your side wins!" : "The other side wins.");
  }
}

function scores([one, two]) {
  const all = Math.max(1, one + two);
  $("one").textContent = one;
  $("two").textContent = two;
  $("share").style.width = `${(100 * one) / all}%`;
}

$("menu").addEventListener("submit", (event) => {
  event.preventDefault();
  localStorage.setItem("name", $("name").value);
  const { value = "find duel" } = event.submitter ?? {};
  const [way, mode] = value.split(" ");
  document.body.dataset.mode = mode;
  play(way, mode);
});
$("link").addEventListener("focus", ({ target }) => target.select());

$("name").value = localStorage.getItem("name") ?? "Ada";
// A friend's link leads into the match; else a player who reloaded the page comes back.
const [way, given] = location.hash.slice(1).split("=");
history.replaceState(null, "", location.pathname);
play(given ? way : "restore", given);
