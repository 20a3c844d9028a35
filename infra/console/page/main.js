// Which namespace and which screen is shown: the address's fragment says it, as #/live/GAME/NAMESPACE.

import { el } from "./elements.js";
import { change, read } from "./host.js";
import { show as cost } from "./cost.js";
import { show as game } from "./game.js";
import { show as live } from "./live.js";
import { show as lobby } from "./lobby.js";
import { show as play } from "./play.js";
import { show as server } from "./server.js";

const SCREENS = { live: ["Live", live], play: ["Play", play], game: ["Game", game], cost: ["Cost", cost], lobby: ["Lobby", lobby], server: ["Server", server] };
const IN_NAVIGATION = ["live", "play", "game", "cost"];
/** How often it is looked for new games and namespaces, locally; in AWS that is done when the chooser is used. */
const LOOK_EVERY_MS = 2_000;

const screen = document.getElementById("screen");
const chooser = document.getElementById("namespace");
let deployment = null;
let stop = () => {};

/** The parts of the address. */
function route() {
  const [name, gameName, namespaceName, id] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  return { name: SCREENS[name] ? name : "live", gameName, namespaceName, id };
}

const link = (name, context, id) => `#/${[name, context.game?.name_id, context.namespace?.name_id, id].filter(Boolean).map(encodeURIComponent).join("/")}`;

/** The game and the namespace of the address, or the first game and its `prod`. */
function context() {
  const { gameName, namespaceName, id } = route();
  const found = deployment.games.find((one) => one.name_id === gameName) ?? deployment.games[0];
  const named = (name) => found?.namespaces.find((one) => one.name_id === name);
  const namespace = named(namespaceName) ?? named("prod") ?? found?.namespaces[0];
  const made = { deployment, game: found, namespace, id, look, connected };
  made.link = (name, of) => link(name, made, of);
  made.named = { game: found?.game_id, namespace: namespace?.namespace_id };
  return made;
}

/** Says whether events come. */
function connected(isOpen, pace) {
  document.getElementById("connection").textContent = isOpen ? "" : "The host does not answer. Is it still running?";
  document.getElementById("pace").textContent = pace ?? "";
}

function fill(current) {
  const groups = deployment.games.map((one) => el("optgroup", { label: one.display_name },
    one.namespaces.map((namespace) => el("option", { value: `${one.name_id}/${namespace.name_id}` }, `${one.name_id}/${namespace.name_id}`))));
  chooser.replaceChildren(...groups);
  chooser.disabled = groups.length === 0;
  if (current.namespace) chooser.value = `${current.game.name_id}/${current.namespace.name_id}`;
  document.getElementById("deployment").textContent = deployment.name;
  document.getElementById("screens").replaceChildren(...IN_NAVIGATION.map((name) => el("a", { href: link(name, current), "aria-current": route().name === name ? "page" : null }, SCREENS[name][0])));
}

function show() {
  stop();
  connected(true);
  const current = context();
  fill(current);
  const [title, begin] = SCREENS[route().name];
  document.title = `${title} · ${current.namespace ? `${current.game.name_id}/${current.namespace.name_id}` : deployment.name} · Muster`;
  screen.replaceChildren();
  if (current.namespace) {
    stop = begin(screen, current) ?? (() => {});
    return;
  }
  const how = el("div", { className: "card empty" }, el("h1", {}, "No game yet"), el("p", {}, "Make one by the operator's command, then choose it here:"),
    el("code", {}, `muster game create my-game --region fra=Frankfurt@50.11,8.68 --config arena.json ${deployment.kind === "local" ? `--local=${deployment.api_url}` : `--stack ${deployment.name}`}`));
  screen.replaceChildren(how);
}

/** Looks for new games and namespaces, and shows the screen again when one was made. */
async function look() {
  const names = () => JSON.stringify(deployment?.games.map((one) => [one.name_id, one.namespaces, one.versions]));
  const before = names();
  deployment = await read("deployment");
  if (before !== names() && document.activeElement !== chooser) fill(context());
}

/** Exchanges the operator's token, which must not stay in the address. */
async function begin() {
  const token = /^#token=([0-9a-f]+)$/.exec(location.hash)?.[1];
  if (token) {
    history.replaceState(null, "", "/");
    await change("session", { token });
  }
  deployment = await read("deployment");
  addEventListener("hashchange", show);
  chooser.addEventListener("change", () => {
    const [gameName, namespaceName] = chooser.value.split("/");
    const name = IN_NAVIGATION.includes(route().name) ? route().name : "live";
    location.hash = `#/${name}/${encodeURIComponent(gameName)}/${encodeURIComponent(namespaceName)}`;
  });
  chooser.addEventListener("mousedown", () => look().catch(() => {}));
  if (deployment.kind === "local") setInterval(() => { if (!document.hidden) look().catch(() => {}); }, LOOK_EVERY_MS);
  show();
}

begin().catch((error) => screen.replaceChildren(el("p", { className: "notice bad", role: "alert" }, error.message)));
