// Lobbies as bars of seats: connected, reserved with the time that is left, free.

import { el, goesOn, now, plural, span, tag, when } from "./elements.js";

/** Above this a bar has no seats of its own. */
const SEATS_MAX = 40;
/** What a reserved seat that is full up has left at least. */
const WHOLE_MS = 60_000;

const label = (row) => {
  const reserved = row.reserved.length;
  return `${plural(row.connected, "seat")} connected, ${reserved} reserved, ${Math.max(0, row.max - row.connected - reserved)} free`;
};

export function bar(row) {
  const attributes = { role: "img", "aria-label": label(row), title: label(row) };
  if (row.max > SEATS_MAX) return wide(row, attributes);
  const seats = Array.from({ length: Math.max(row.max, row.connected + row.reserved.length) }, (_, at) => {
    if (at < row.connected) return el("span", { className: "seat connected" });
    const until = row.reserved[at - row.connected];
    return until === undefined ? el("span", { className: "seat" }) : reserved(until, row.state === "starting");
  });
  return el("div", { className: "bar", ...attributes }, seats);
}

function reserved(until, isStarting) {
  const fill = el("i");
  const seat = el("span", { className: "seat reserved" }, fill);
  return goesOn(seat, () => {
    const left = until - now();
    fill.style.height = isStarting ? "100%" : `${Math.min(100, Math.max(8, (100 * left) / WHOLE_MS))}%`;
    seat.title = isStarting ? "reserved while the lobby starts" : `reserved, ${span(left)} left`;
  });
}

function wide(row, attributes) {
  const [connected, held] = [el("i"), el("i", { className: "reserved" })];
  held.style.width = `${(100 * (row.connected + row.reserved.length)) / row.max}%`;
  connected.style.width = `${(100 * row.connected) / row.max}%`;
  return el("div", { className: "bar wide", ...attributes }, held, connected);
}

/** What the colours mean. */
export const key = () => el("p", { className: "key" },
  el("span", {}, el("span", { className: "seat connected" }), "connected"),
  el("span", {}, el("span", { className: "seat" }, el("i")), "reserved, by time left"),
  el("span", {}, el("span", { className: "seat" }), "free"));

export function lobbyRow(row, link) {
  const held = row.connected + row.reserved.length;
  return el("li", { className: "lobby", "data-id": row.id },
    el("a", { className: "mono", href: link(row.id), title: row.id }, row.id.slice(0, 8)),
    el("span", { title: `${row.mode} in ${row.region}` }, `${row.mode} · ${row.region}`),
    bar(row),
    el("span", { className: "number" }, `${held}/${row.max}`),
    row.state === "open" ? when(row.created) : tag(row.state));
}

/** Shows rows in order in `list`, and makes anew only those that changed. */
export class Rows {
  constructor(list, link) {
    this.list = list;
    this.link = link;
    this.rows = new Map();
  }

  show({ order, changed }) {
    for (const row of changed) {
      const made = lobbyRow(row, this.link);
      const before = this.rows.get(row.id);
      if (before?.contains(document.activeElement)) queueMicrotask(() => made.querySelector("a").focus());
      before?.replaceWith(made);
      this.rows.set(row.id, made);
    }
    const kept = new Set(order);
    for (const [id, row] of this.rows) {
      if (!kept.has(id)) {
        row.remove();
        this.rows.delete(id);
      }
    }
    order.forEach((id, at) => {
      const row = this.rows.get(id);
      if (row && this.list.children[at] !== row) this.list.insertBefore(row, this.list.children[at] ?? null);
    });
  }
}
