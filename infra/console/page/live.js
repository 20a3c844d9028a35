// A namespace alive: players, lobbies as bars of seats, game servers, and what happens.

import { Rows, key } from "./bars.js";
import { Columns, OUTCOMES, findsByMinute, sum } from "./curves.js";
import { dollars, el, empty, goesOn, now, own, plural, setNow, span, tag, when } from "./elements.js";
import { follow } from "./feed.js";
import { read } from "./host.js";
import { refusals } from "./refusals.js";
import { Tape } from "./tape.js";

const PAGE = 60;
const STATES = ["open", "full", "starting", "closed", "private", "silent"];
/** Columns of the curve are so long. */
const COLUMN_SECONDS = 5;
/** AWS counts by the minute. */
const MINUTE_MS = 60_000;

export function show(screen, context) {
  const { deployment, game, namespace } = context;
  const filter = { mode: null, region: null, state: null, page: 0 };
  const columns = new Columns();
  const figures = { players: figure("Players"), lobbies: figure("Lobbies"), finds: figure("Finds a second"), servers: figure("Game servers") };
  const grid = el("div", { className: "fitted" });
  const list = el("ol", { className: "lobbies" });
  const none = el("div");
  const pages = el("div", { className: "buttons" });
  const servers = el("ul", { className: "servers", tabindex: "0", "aria-label": "Game servers" });
  const title = deployment.has_requests ? "Requests" : "What happened";
  const tapeList = el("ol", { className: "tape", tabindex: "0", "aria-label": title }, el("li", { className: "nothing quiet" }, deployment.has_requests ? "Every request to this stack shows up here." : "Lobbies and game servers show up here as they change."));
  const tape = new Tape(tapeList, ({ of, id }) => context.link(of, id));
  const total = el("span", { className: "quiet" });
  const state = el("select", { "aria-label": "State of lobbies", onchange: () => choose({ state: state.value || null }) },
    el("option", { value: "" }, "every state"), STATES.map((name) => el("option", { value: name }, name)));
  const problem = el("p", { className: "notice bad", hidden: true, role: "alert" });

  screen.append(el("div", { className: "stack" },
    el("h1", { className: "unseen" }, `${game.display_name}, ${namespace.display_name}: live`), problem,
    el("div", { className: "figures" }, Object.values(figures).map(({ element }) => element)),
    el("div", { className: "columns live" },
      el("section", { className: "card stack" }, el("div", { className: "head" }, el("h2", {}, "Lobbies ", total), state), grid, key(), list, none, pages),
      el("div", { className: "stack side" },
        el("section", { className: "card" }, el("h2", {}, "Game servers"), servers),
        el("section", { className: "card" }, el("h2", {}, title), tapeList),
        deployment.has_counts && refusals()))));

  let end = () => {};
  let rows = null;

  function choose(change) {
    Object.assign(filter, { page: 0 }, change);
    begin();
  }

  function begin() {
    end();
    list.replaceChildren();
    rows = new Rows(list, (id) => context.link("lobby", id));
    end = follow({ ...context.named, filter }, {
      open: (isOpen) => { if (!isOpen) context.connected(false); },
      hello: greet,
      sums: (sums) => showSums(sums),
      servers: (all) => showServers(all),
      rows: (page) => showPage(page),
      requests: (entries) => { tape.requests(entries.filter(({ number }) => number > lastRequest)); lastRequest = entries.at(-1).number; },
      changes: (changes) => {
        const fresh = changes.filter(({ number }) => number > lastChange);
        lastChange = changes.at(-1).number;
        if (!deployment.has_requests) tape.changes(fresh);
      },
      columns: (some) => { columns.add(some); showCurves(); },
      pace: (pace) => showPace(pace),
    });
  }
  let [run, lastRequest, lastChange] = [null, 0, 0];

  /** Requests and changes are numbered anew by each run of the host. */
  function greet(hello) {
    setNow(hello.now);
    if (hello.run !== run) [run, lastRequest, lastChange] = [hello.run, 0, 0];
    context.greeted(run);
  }

  function showSums(sums) {
    figures.players.show((sums.connected + sums.reserved).toLocaleString("en"), `${sums.connected.toLocaleString("en")} connected, ${sums.reserved.toLocaleString("en")} reserved`);
    const states = Object.entries(sums.states).map(([name, count]) => `${count.toLocaleString("en")} ${name}`).join(", ");
    figures.lobbies.show(sums.lobbies.toLocaleString("en"), states || "none");
    const states2 = Object.entries(sums.server_states).map(([name, count]) => `${count} ${name}`).join(", ");
    figures.servers.show(sums.servers.toLocaleString("en"), states2 || "none");
    showGrid(sums.cells);
  }

  function showGrid(cells) {
    const focused = grid.contains(document.activeElement) ? document.activeElement.dataset.cell : null;
    const regions = context.game.available_regions;
    const modes = [...new Set([...own(context.game.modes, context.namespace.version_id, []), ...Object.keys(cells)])].sort();
    const cell = (mode, region) => {
      const { lobbies, players, seats } = own(own(cells, mode, {}), region, { lobbies: 0, players: 0, seats: 0 });
      const isChosen = filter.mode === mode && filter.region === region;
      const fill = el("i");
      fill.style.width = seats ? `${(100 * players) / seats}%` : "0";
      return el("button", { type: "button", className: "cell", "aria-pressed": String(isChosen), "data-cell": `${mode}/${region}`, onclick: () => choose(isChosen ? { mode: null, region: null } : { mode, region }) },
        el("b", {}, lobbies.toLocaleString("en")), " ", el("small", {}, `${players.toLocaleString("en")}/${seats.toLocaleString("en")} seats`), el("span", { className: "unseen" }, ` ${mode} in ${region}`), el("div", { className: "meter" }, fill));
    };
    grid.replaceChildren(el("div", { className: "scroll", tabindex: "0" }, el("table", { className: "grid", "aria-label": "Modes by regions" },
      el("thead", {}, el("tr", {}, el("td"), regions.map((region) => el("th", { scope: "col" }, region.region_display_name)))),
      el("tbody", {}, modes.map((mode) => el("tr", {}, el("th", { scope: "row" }, mode), regions.map((region) => el("td", { "data-head": region.region_display_name }, cell(mode, region.region_id)))))))));
    if (focused) grid.querySelector(`[data-cell="${CSS.escape(focused)}"]`)?.focus();
  }

  function showServers(all) {
    if (all.length === 0) {
      const command = deployment.kind === "local" ? "muster-example" : `muster token create server ${game.name_id}/${namespace.name_id} --stack ${deployment.name}`;
      servers.replaceChildren(el("li", {}, empty("No game server: no lobby can be created. Start one:", command)));
      return;
    }
    servers.replaceChildren(...all.map((server) => serverRow(server, context)));
  }

  function showPage({ total: count, order, changed }) {
    total.textContent = count.toLocaleString("en");
    rows.show({ order, changed });
    const isFiltered = filter.mode || filter.state || filter.page > 0;
    none.replaceChildren(count > 0 ? "" : isFiltered ? empty("No such lobby now.") : el("div", { className: "empty" }, el("p", {}, "No lobby yet: the first find creates one."), deployment.may_change && el("a", { href: context.link("play") }, "Find a lobby")));
    list.hidden = count === 0;
    const last = Math.max(0, Math.ceil(count / PAGE) - 1);
    pages.replaceChildren(...(last === 0 ? [] : [
      el("button", { type: "button", className: "small", disabled: filter.page === 0, onclick: () => choose({ page: filter.page - 1 }) }, "Newer"),
      el("span", { className: "quiet" }, `page ${filter.page + 1} of ${last + 1}`),
      el("button", { type: "button", className: "small", disabled: filter.page >= last, onclick: () => choose({ page: filter.page + 1 }) }, "Older"),
    ]));
  }

  function showCurves() {
    figures.players.draw(columns.line(({ players }) => players, "Players in the last ten minutes"));
    figures.lobbies.draw(columns.line(({ lobbies }) => lobbies, "Lobbies in the last ten minutes"));
    if (!deployment.has_requests) return;
    figures.finds.draw(columns.finds("Finds in the last ten minutes, by outcome"));
    const { finds } = columns.kept.get(columns.last());
    showFinds(columns.kept.get(columns.last() - 1)?.finds ?? finds, COLUMN_SECONDS, `in ${COLUMN_SECONDS} s`);
  }

  function showFinds(finds, seconds, within) {
    const outcomes = OUTCOMES.map((outcome) => `${finds[outcome].toLocaleString("en")} ${outcome}`).join(", ");
    figures.finds.show((sum(finds) / seconds).toLocaleString("en", { maximumFractionDigits: 1 }), `${outcomes} ${within}`);
  }

  /** The finds that AWS counted, which are there a minute later. */
  async function showCounted() {
    if (document.hidden) return;
    const { minutes } = await read("finds");
    figures.finds.draw(findsByMinute("Finds of all namespaces in ten minutes, by outcome", minutes));
    showFinds(minutes.at(-1).finds, MINUTE_MS / 1_000, "in a minute, all namespaces");
  }

  function followCounted() {
    if (!deployment.has_counts) {
      figures.finds.show("–", "the local stack's own page shows them");
      return () => {};
    }
    const look = () => showCounted().catch((error) => figures.finds.show("–", error.message));
    look();
    const going = setInterval(look, MINUTE_MS);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(going);
      document.removeEventListener("visibilitychange", look);
    };
  }

  function showPace(pace) {
    problem.hidden = !pace.problem;
    problem.textContent = pace.problem ? `The namespace cannot be read: ${pace.problem}` : "";
    if (pace.expected !== null) {
      context.connected(true, `reading ${pace.expected.toLocaleString("en")} lobbies for the first time…`);
      return;
    }
    const every = `read every ${(pace.every_ms / 1000).toLocaleString("en", { maximumFractionDigits: 1 })} s`;
    context.connected(true, pace.kind === "local" ? every : `${every}: ${plural(pace.read_units_a_minute, "read unit")} in the last minute (at most ${pace.read_units_a_minute_max.toLocaleString("en")}), ${dollars(pace.dollars_an_hour)} an hour`);
  }

  begin();
  const endCounted = deployment.has_requests ? () => {} : followCounted();
  return () => {
    end();
    endCounted();
  };
}

function figure(name) {
  const [value, note, curve] = [el("b", {}, "–"), el("small", {}, " "), el("div", { className: "curve" })];
  return {
    element: el("section", { className: "figure" }, el("h2", {}, name), value, note, curve),
    show: (text, more) => { value.textContent = text; note.textContent = more; },
    draw: (drawn) => curve.replaceChildren(drawn),
  };
}

function serverRow(server, context) {
  const places = el("i");
  places.style.width = `${(100 * server.used) / Math.max(1, server.capacity)}%`;
  return el("li", { className: "server", "data-id": server.id, "data-state": server.state },
    el("div", { className: "head" },
      el("a", { href: context.link("server", server.id) }, server.id), tag(server.state)),
    el("div", { className: "meter", role: "img", "aria-label": `${server.used} of ${server.capacity} places taken` }, places),
    el("div", { className: "head quiet" }, el("span", {}, `${server.region} · ${server.used.toLocaleString("en")}/${plural(server.capacity, "lobby", "lobbies")}${server.modes ? ` · ${server.modes.join(", ")} only` : ""}`), lease(server)),
  );
}

/** The lease as it runs down. */
function lease(server) {
  if (!server.lease_until) return el("span", {}, "no lease");
  const text = el("span", { title: "its lease; heartbeats renew it" });
  return goesOn(text, () => {
    const left = server.lease_until - now();
    text.replaceChildren(left > 0 ? `lease ${span(left)}` : el("span", {}, "silent since ", when(server.lease_until)));
  });
}
