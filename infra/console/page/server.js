// One game server: all that is known of it, and its lobbies.

import { Rows, key } from "./bars.js";
import { card, confirmed, el, facts, plural, setNow, tag, when } from "./elements.js";
import { follow } from "./feed.js";
import { Unanswered, command, read } from "./host.js";
import { ports, timeline } from "./lobby.js";

export function show(screen, context) {
  const { game, namespace, id } = context;
  const said = el("p", { className: "notice", hidden: true, role: "alert" });
  const trouble = el("p", { className: "notice bad", hidden: true, role: "alert" });
  const known = el("div", { className: "stack side" });
  const none = el("p", { className: "quiet", hidden: true }, "None now.");
  const list = el("ol", { className: "lobbies" });
  const total = el("span", { className: "quiet" });
  const say = (text) => { said.hidden = !text; said.textContent = text; };
  let isAlive = false;
  const remove = context.deployment.may_change && el("button", { type: "button", className: "danger", onclick: async () => {
    const alive = isAlive ? " It is alive: its players lose their match." : "";
    if (!await confirmed(`Take ${id} out of service? It gets no lobby any more, and its lobbies end at once.${alive}`, "Remove it")) return;
    await command(["server", "remove", "--yes", ...(isAlive ? ["--alive"] : []), "--", `${game.name_id}/${namespace.name_id}`, id]).then(() => say("It is out of service."), (error) => say(error.message));
    look();
  } }, "Remove");
  screen.append(el("div", { className: "stack" }, said, trouble, el("div", { className: "head" }, el("h1", {}, `Game server ${id}`), remove),
    el("div", { className: "columns" }, el("section", { className: "card stack" }, el("h2", {}, "Its lobbies ", total), key(), list, none), known)));

  async function look() {
    try {
      const server = await read("server", { namespace: context.named.namespace, server: id });
      setNow(server.now);
      isAlive = !server.row.lease_until || server.row.lease_until > server.now;
      known.replaceChildren(...draw(server));
      trouble.hidden = true;
    } catch (error) {
      if (error instanceof Unanswered) return;
      known.replaceChildren();
      [trouble.hidden, trouble.textContent] = [false, error.message];
    }
  }

  look();
  const rows = new Rows(list, (lobby) => context.link("lobby", lobby));
  return follow({ ...context.named, filter: { server: id, page: 0 } }, {
    open: (isOpen) => context.connected(isOpen),
    hello: ({ now, run }) => { setNow(now); context.greeted(run); },
    servers: () => look(),
    rows: (page) => { total.textContent = page.total.toLocaleString("en"); rows.show(page); [list.hidden, none.hidden] = [page.total === 0, page.total > 0]; },
  });
}

const draw = ({ row, ...server }) => [
  card("What is known", facts([
    ["state", tag(row.state)], ["region", row.region],
    ["places", `${row.used} of ${plural(row.capacity, "lobby", "lobbies")} taken; ${server.allotted} allotted to it of the namespace's limit`],
    ["modes", row.modes ? row.modes.join(", ") : "every one"],
    ["lease", row.lease_until ? el("span", {}, when(row.lease_until), `, ${row.lease_ms / 1000} s a heartbeat`) : "none: it counts as alive until it deregisters"],
    ["last heard", when(row.heard)], ["start", server.start_id ? el("code", {}, server.start_id) : "unknown"],
    ["earlier starts", String(server.former_starts)], ["lobbies are ready", server.auto_ready ? "at once" : "when it says so"], ["ports", ports(server.ports)],
  ])),
  card("Timeline", timeline(server.timeline)),
];
