// The tape: every request that the local stack answered, or what became of lobbies and game servers.

import { clock, el } from "./elements.js";

const ENTRIES_MAX = 200;

const tone = (status) => (status === 0 ? "bad" : status < 300 ? "good" : status < 500 || status === 503 ? "warn" : "bad");

export const status = (code) => el("span", { className: `tag ${tone(code)}` }, code === 0 ? "lost" : String(code));

function request(entry, link) {
  const name = entry.operation ?? entry.path;
  const values = entry.values.filter((text) => text !== entry.lobby_id).map((text) => (text.length === 36 ? text.slice(0, 8) : text)).join(" ");
  const line = el("div", { className: "line" },
    clock(entry.at),
    status(entry.status),
    el("span", { title: `${entry.method} ${entry.path}` }, entry.request_id ? el("a", { href: link({ of: "request", id: entry.request_id }) }, name) : el("b", {}, name),
      values ? ` ${values}` : "", entry.lobby_id ? [" ", el("a", { className: "mono", href: link({ of: "lobby", id: entry.lobby_id }) }, entry.lobby_id.slice(0, 8))] : "",
      entry.code ? el("code", {}, ` ${entry.code}`) : ""),
    el("span", { className: "ms" }, entry.times > 1 ? `×${entry.times}` : `${entry.ms} ms`));
  const why = [...(entry.status >= 300 ? entry.why : []), ...(entry.warnings ? [`warning: ${entry.warnings}`] : [])];
  return el("li", {}, line, why.length > 0 && el("ul", {}, why.map((sentence) => el("li", {}, sentence))));
}

const changed = (change, link) => el("li", {}, el("div", { className: "line" },
  clock(change.at), el("span", { className: "tag" }, change.of),
  el("span", {}, el("a", { className: "mono", href: link(change) }, change.of === "lobby" ? change.id.slice(0, 8) : change.id), ` ${change.what}`), el("span")));

/** A list whose newest entry stands first. */
export class Tape {
  constructor(list, link) {
    this.list = list;
    this.link = link;
    this.heartbeat = null;
  }

  /** Heartbeats that follow each other are one line. */
  requests(entries) {
    for (const entry of entries) {
      const isHeartbeat = entry.operation === "heartbeat-server" && entry.status === 200;
      const folded = isHeartbeat && this.heartbeat?.entry.values[0] === entry.values[0] && this.heartbeat.made === this.list.firstElementChild;
      const times = folded ? this.heartbeat.entry.times + 1 : 1;
      if (folded) this.heartbeat.made.remove();
      const made = request({ ...entry, times }, this.link);
      this.add(made);
      this.heartbeat = isHeartbeat ? { entry: { ...entry, times }, made } : null;
    }
  }

  changes(changes) {
    for (const change of changes) this.add(changed(change, this.link));
  }

  add(made) {
    this.list.querySelector(".nothing")?.remove();
    this.list.prepend(made);
    while (this.list.children.length > ENTRIES_MAX) this.list.lastElementChild.remove();
  }
}
