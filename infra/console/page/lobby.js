// One lobby: all that is known of it.

import { bar, key } from "./bars.js";
import { absolute, card, confirmed, el, facts, setNow, table, tag, when } from "./elements.js";
import { Unanswered, change, command, read } from "./host.js";

/** How often it is read: one read unit. */
const EVERY_MS = { local: 1_000, aws: 5_000 };

export const timeline = (entries) => el("ol", { className: "timeline" }, entries.toReversed().map(({ at, what, how }) => el("li", {}, when(at), el("span", { title: how === "seen" ? "seen from here" : "as the item records it" }, what))));

export const ports = (all) => el("ul", { className: "why" }, Object.entries(all).map(([label, port]) => el("li", {}, `${label}: ${port.host ?? `${port.hostname}:${port.port_range?.min}-${port.port_range?.max}`}${port.is_tls ? ", TLS" : ""}`)));

export function show(screen, context) {
  const body = el("div", { className: "stack" });
  const said = el("p", { className: "notice", hidden: true, role: "alert" });
  const trouble = el("p", { className: "notice bad", hidden: true, role: "alert" });
  screen.append(el("div", { className: "stack" }, said, trouble, body));
  const say = (error) => { said.hidden = false; said.textContent = error.message; };
  let isOver = false;
  let known = "";

  async function look() {
    if (document.hidden) return;
    const lobby = await read("lobby", { game: context.named.game, lobby: context.id });
    setNow(lobby.now);
    const text = JSON.stringify({ ...lobby, now: 0 });
    if (isOver || text === known) return;
    known = text;
    const focused = body.contains(document.activeElement) ? document.activeElement.textContent : null;
    body.replaceChildren(...draw(context, lobby, act));
    if (focused) [...body.querySelectorAll("button")].find((button) => button.textContent === focused)?.focus();
  }

  async function act(work) {
    try {
      said.hidden = true;
      const came = await work();
      if (came?.status >= 300) throw new Error(`${came.response.code}: ${came.response.message}`);
      await look();
    } catch (error) {
      say(error);
    }
  }

  /** A lobby that is not there is not shown as it was. */
  async function follow() {
    try {
      await look();
      trouble.hidden = true;
    } catch (error) {
      if (error instanceof Unanswered) {
        context.connected(false);
        return;
      }
      known = "";
      body.replaceChildren();
      [trouble.hidden, trouble.textContent] = [false, error.message];
    }
  }

  follow();
  const going = setInterval(follow, EVERY_MS[context.deployment.kind]);
  return () => { isOver = true; clearInterval(going); };
}

function draw(context, lobby, act) {
  const { row } = lobby;
  const call = (name, request) => change("call", { ...context.named, namespace: lobby.namespace_id, act: name, lobby: row.id, request });
  const hasEnded = row.state === "ended";
  const hasParties = lobby.seats.some((seat) => seat.party);
  const mayChange = context.deployment.may_change && !hasEnded;
  const free = (seat) => el("button", { type: "button", className: "small danger", onclick: async () => {
    if (await confirmed(`Free the seat ${seat.slice(0, 8)}? Its player loses it, and another one may take it. The game server is not asked.`, "Free the seat")) act(() => change("call", { ...context.named, namespace: lobby.namespace_id, act: "free", lobby: row.id, seat }));
  } }, "Free");
  const buttons = mayChange && el("div", { className: "buttons" },
    row.state === "starting" && el("button", { type: "button", onclick: () => act(() => call("ready", {})) }, "Ready"),
    el("button", { type: "button", disabled: lobby.draining, onclick: () => act(() => call("closed", { is_closed: !lobby.closed })) }, lobby.closed ? "Reopen" : "Close"),
    el("button", { type: "button", onclick: () => act(() => call("publicity", { publicity: row.is_private ? "public" : "private" })) }, row.is_private ? "Make public" : "Make private"),
    el("button", { type: "button", className: "danger", onclick: async () => {
      if (await confirmed("End this lobby? Everybody in it loses the seat.", "End the lobby")) act(() => command(["lobby", "end", "--yes", "--", row.id]));
    } }, "End"));
  return [
    el("div", { className: "head" }, el("h1", {}, `Lobby ${row.id}`), buttons),
    el("section", { className: "card stack seating" }, bar(row), key()),
    el("div", { className: "halves" },
      card("What is known", facts([
        ["state", el("span", {}, tag(row.state), row.is_private ? " private" : "", lobby.draining ? " draining" : "")],
        ...(lobby.code ? [["code", el("code", {}, lobby.code)]] : []),
        ["mode", row.mode], ["region", row.region], ["version", lobby.version_id],
        ["game server", row.server && el("a", { href: context.link("server", row.server) }, row.server)],
        ["lease", lobby.lease_until ? when(lobby.lease_until) : "none"],
        ["seats", `${row.max} by finds, ${lobby.max_players_direct} by joins`],
        ["reservations", `held for ${lobby.reservation_secs} s`], ["idle time", `${lobby.idle_secs} s without a seat held`], ["after a disconnect", lobby.keep_secs > 0 ? `the seat is kept for ${lobby.keep_secs} s` : "the seat is free"],
        ["created", when(row.created)],
        ["tags", lobby.tags ? Object.entries(lobby.tags).map(([name, value]) => `${name}=${value}`).join(", ") : "none"],
        ["ports", ports(lobby.ports)],
      ])),
      el("div", { className: "stack side" },
        card("Seats", lobby.seats.length ? table(["seat", "state", "until", ...(hasParties ? ["party"] : []), ...(mayChange ? [""] : [])], lobby.seats.map((seat) => [el("code", {}, seat.seat_id), tag(seat.state), when(seat.until), ...(hasParties ? [seat.party ? el("code", {}, seat.party) : ""] : []), ...(mayChange ? [free(seat.seat_id)] : [])])) : el("p", { className: "quiet" }, "No seat is taken.")),
        card("Timeline", timeline(lobby.timeline)),
        lobby.state && card("State", el("pre", { tabindex: "0" }, JSON.stringify(lobby.state, null, 2))),
        lobby.config && card("Configuration", el("pre", { tabindex: "0" }, JSON.stringify(lobby.config, null, 2))))),
    el("p", { className: "quiet" }, `Read ${absolute(lobby.now)}.`),
  ];
}
