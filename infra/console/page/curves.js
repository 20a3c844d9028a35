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
    const columns = [...this.kept.values()];
    const sum = ({ finds }) => finds.seated + finds.refused + finds.failed;
    const most = Math.max(1, ...columns.map(sum));
    return frame(label, ...columns.flatMap((column) => {
      let top = HEIGHT;
      return ["seated", "refused", "failed"].filter((outcome) => column.finds[outcome] > 0).map((outcome) => {
        const height = (column.finds[outcome] / most) * (HEIGHT - 2);
        top -= height;
        return svg("rect", { class: outcome, x: WIDTH - (last - column.column) * 2 - 2, y: top, width: 1.6, height });
      });
    }));
  }
}
