// Curves of ten minutes.

import { svg } from "./elements.js";

const COLUMNS = 120;
const [WIDTH, HEIGHT] = [COLUMNS * 2, 40];

const frame = (label, ...children) => svg("svg", { class: "curve", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
  svg("line", { class: "base", x1: 0, y1: HEIGHT, x2: WIDTH, y2: HEIGHT }), ...children);

/** The columns of the last ten minutes by their number. */
export class Columns {
  constructor() {
    this.kept = new Map();
  }

  add(columns) {
    for (const column of columns) this.kept.set(column.column, column);
    const last = this.last();
    for (const number of this.kept.keys()) if (number <= last - COLUMNS) this.kept.delete(number);
  }

  last() {
    return Math.max(...this.kept.keys());
  }

  /** A line of what `of` makes of each column. */
  line(of, label) {
    const last = this.last();
    const points = [...this.kept.values()].sort((one, other) => one.column - other.column).map((column) => [WIDTH - (last - column.column) * 2 - 1, of(column)]);
    const most = Math.max(1, ...points.map(([, value]) => value));
    const path = points.map(([x, value], at) => `${at ? "L" : "M"}${x} ${HEIGHT - (value / most) * (HEIGHT - 3)}`).join("");
    const [first, end] = [points[0]?.[0] ?? 0, points.at(-1)?.[0] ?? 0];
    return frame(label, svg("path", { class: "area", d: `${path}L${end} ${HEIGHT}L${first} ${HEIGHT}Z` }), svg("path", { class: "line", d: path }));
  }

  /** Finds by outcome, one upon the other. */
  finds(label) {
    const last = this.last();
    return stacked(label, [...this.kept.values()].map(({ column, finds }) => ({ finds, ago: last - column })), 2);
  }
}

/** Finds by outcome of each minute, oldest first. */
export function findsByMinute(label, minutes) {
  return stacked(label, minutes.map(({ finds }, at) => ({ finds, ago: minutes.length - 1 - at })), WIDTH / minutes.length);
}

export const OUTCOMES = ["seated", "refused", "failed"];

export const sum = (finds) => OUTCOMES.reduce((before, outcome) => before + finds[outcome], 0);

/** Columns of such a width, each so many columns ago. */
function stacked(label, columns, width) {
  const most = Math.max(1, ...columns.map(({ finds }) => sum(finds)));
  return frame(label, ...columns.flatMap(({ finds, ago }) => {
    let top = HEIGHT;
    return OUTCOMES.filter((outcome) => finds[outcome] > 0).map((outcome) => {
      const height = (finds[outcome] / most) * (HEIGHT - 2);
      top -= height;
      return svg("rect", { class: outcome, x: WIDTH - (ago + 1) * width, y: top, width: width * 0.8, height });
    });
  }));
}
