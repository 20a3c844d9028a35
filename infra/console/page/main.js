// Which namespace and which screen is shown: the address's fragment says it, as #/live/GAME/NAMESPACE.

import { el } from "./elements.js";
import { look as lookAtFaults } from "./faults.js";
import { change, read } from "./host.js";
import { show as cost } from "./cost.js";
import { show as game } from "./game.js";
import { show as live } from "./live.js";
import { show as lobby } from "./lobby.js";
import { show as play } from "./play.js";
import { show as request } from "./request.js";
import { show as search } from "./search.js";
import { show as server } from "./server.js";

const SCREENS = new Map(Object.entries({
  live: ["Live", live], play: ["Play", play], game: ["Game", game], cost: ["Cost", cost],
  lobby: ["Lobby", lobby], server: ["Server", server], request: ["Request", request], search: ["Search", search],
}));
/** How often it is looked for new games and namespaces, locally; in AWS that is done when the chooser is used. */
const LOOK_EVERY_MS = 2_000;

const screen = document.getElementById("screen");
const chooser = document.getElementById("namespace");
const searched = document.getElementById("searched");
let deployment = null;
let current = null;
let stop = () => {};

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The parts of the address. */
function route() {
  const [name, gameName, namespaceName, id] = location.hash.replace(/^#\/?/, "").split("/").map(decoded);
  return { name: name || "live", gameName, namespaceName, id };
}

/** The screens of the navigation: a session that may only look takes no seat. */
const inNavigation = () => ["live", ...(deployment.may_change ? ["play"] : []), "game", "cost"];

const link = (name, { game, namespace }, id) => `#/${[name, game?.name_id, namespace?.name_id, id].filter(Boolean).map(encodeURIComponent).join("/")}`;

/** The game and the namespace of the address; without one, the first game and its `prod`. */
function context() {
  const { gameName, namespaceName, id } = route();
  const found = gameName ? deployment.games.find((one) => one.name_id === gameName) : deployment.games[0];
  const named = (name) => found?.namespaces.find((one) => one.name_id === name);
  const namespace = namespaceName ? named(namespaceName) : named("prod") ?? found?.namespaces[0];
  const made = { deployment, game: found, namespace, id, look, connected, greeted };
  made.link = (name, of) => link(name, made, of);
  made.named = { game: found?.game_id, namespace: namespace?.namespace_id };
  made.linkIn = (namespaceId, name, of) => {
    const its = deployment.games.find((one) => one.namespaces.some((each) => each.namespace_id === namespaceId));
    return its ? link(name, { game: its, namespace: its.namespaces.find((each) => each.namespace_id === namespaceId) }, of) : made.link(name, of);
  };
  return made;
}

/** Says whether the host answers, and if not, what is wrong. What is shown is old then. */
function connected(isOpen, pace) {
  report(isOpen ? "" : "The host does not answer. Is it still running?");
  document.getElementById("pace").textContent = pace ?? "";
  if (!isOpen) look().catch(() => {});
}

function report(problem) {
  document.getElementById("connection").textContent = problem;
  screen.toggleAttribute("data-old", problem !== "");
}

/** A stream began: perhaps one of another run of the host, which may have other games. */
function greeted(run) {
  if (run !== deployment.run) look().catch(() => {});
}

function fill() {
  const groups = deployment.games.map((one) => el("optgroup", { label: one.display_name },
    one.namespaces.map((namespace) => el("option", { value: `${one.name_id}/${namespace.name_id}` }, `${one.name_id}/${namespace.name_id}`))));
  chooser.replaceChildren(...groups);
  chooser.disabled = groups.length === 0;
  chooser.value = current.namespace ? `${current.game.name_id}/${current.namespace.name_id}` : "";
  document.getElementById("deployment").textContent = deployment.may_change ? deployment.name : `${deployment.name} · only looking`;
  document.getElementById("screens").replaceChildren(...inNavigation().map((name) => el("a", { href: link(name, current), "aria-current": route().name === name ? "page" : null }, SCREENS.get(name)[0])));
}

function show() {
  stop();
  stop = () => {};
  current = context();
  fill();
  searched.value = route().name === "search" ? current.id ?? "" : "";
  const [title, begin] = SCREENS.get(route().name) ?? ["Not found"];
  document.title = `${title} · ${current.namespace ? `${current.game.name_id}/${current.namespace.name_id}` : deployment.name} · Muster`;
  document.getElementById("pace").textContent = "";
  screen.replaceChildren();
  if (!begin || (route().name === "play" && !deployment.may_change)) screen.append(nothing("There is no such screen", "The address names none: choose one above."));
  else if (current.namespace) stop = begin(screen, current) ?? (() => {});
  else screen.append(withoutNamespace());
}

const nothing = (title, text, ...more) => el("div", { className: "card empty" }, el("h1", {}, title), el("p", {}, text), ...more);

function withoutNamespace() {
  const { gameName, namespaceName } = route();
  if (deployment.games.length > 0) {
    const name = [gameName ?? deployment.games[0].name_id, namespaceName].filter(Boolean).join("/");
    return nothing("There is no such namespace", `${deployment.name} has no ${name}. Choose another one above; this page shows it as soon as it is there.`);
  }
  return nothing("No game yet", "Make one by the operator's command, then choose it here:",
    el("code", {}, `muster game create my-game --region fra=Frankfurt@50.11,8.68 --config arena.json ${deployment.kind === "local" ? `--local=${deployment.api_url}` : `--stack ${deployment.name}`}`));
}

/**
 * Looks for new games and namespaces. Shows the screen again when its own namespace came, went or is another one by the same name,
 * as after a restart of the local stack.
 */
async function look() {
  const names = () => JSON.stringify(deployment.games.map((one) => [one.name_id, one.namespaces, one.versions]));
  const before = names();
  try {
    deployment = await read("deployment");
    report("");
    lookAtFaults(deployment);
  } catch (error) {
    report(error.message);
    throw error;
  }
  const next = context();
  if (JSON.stringify(next.named) !== JSON.stringify(current.named)) {
    show();
    return;
  }
  Object.assign(current, { deployment, game: next.game, namespace: next.namespace });
  if (before !== names() && document.activeElement !== chooser) fill();
}

/** Exchanges the operator's token, which must not stay in the address. */
async function begin() {
  const token = /^#token=([0-9a-f]+)$/.exec(location.hash)?.[1];
  if (token) {
    history.replaceState(null, "", "/");
    await change("session", { token });
  }
  deployment = await read("deployment");
  lookAtFaults(deployment);
  addEventListener("hashchange", show);
  chooser.addEventListener("change", () => {
    const [gameName, namespaceName] = chooser.value.split("/");
    const name = inNavigation().includes(route().name) ? route().name : "live";
    location.hash = link(name, { game: { name_id: gameName }, namespace: { name_id: namespaceName } });
  });
  chooser.addEventListener("mousedown", () => look().catch(() => {}));
  document.getElementById("search").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!current.namespace) return;
    const to = link("search", current, searched.value.trim());
    if (location.hash === to) show();
    else location.hash = to;
  });
  if (deployment.kind === "local") {
    const lookWhileSeen = () => { if (!document.hidden) look().catch(() => {}); };
    setInterval(lookWhileSeen, LOOK_EVERY_MS);
    document.addEventListener("visibilitychange", lookWhileSeen);
  }
  show();
}

begin().catch((error) => screen.replaceChildren(el("p", { className: "notice bad", role: "alert" }, error.message)));
