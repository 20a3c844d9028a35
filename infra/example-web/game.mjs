// The rules: brushes paint a board, and the side with more of it wins. Knows neither sockets nor a clock.

export const WIDTH = 64;
export const HEIGHT = 36;
/** Tiles a second on a bare board; faster on one's own paint, slower on the other side's. */
const SPEED = 13;
const ON_OWN = 1.3;
const ON_OTHER = 0.55;
const BRUSH = 1.7;
const SPLASH = 5.5;
const DROP_SECONDS = 2.5;
const DROPS_MAX = 4;
/** Where the brushes of each side begin, as parts of the board. */
const STARTS = [[0.08, 0.5], [0.92, 0.5], [0.08, 0.3], [0.92, 0.7]];
const BARE = 0;

const clamp = (value, max) => Math.min(max, Math.max(0, value));

export class Game {
  /** The side of each tile: 0 for none, 1 or 2. */
  board = new Uint8Array(WIDTH * HEIGHT);
  brushes = new Map();
  drops = [];
  #painted = [];
  #untilDrop = DROP_SECONDS;

  /** @param random From 0 to below 1. */
  constructor(random = Math.random) {
    this.random = random;
  }

  add(id, side) {
    const mates = [...this.brushes.values()].filter((brush) => brush.side === side).length;
    const [x, y] = STARTS[side - 1 + 2 * Math.min(mates, 1)];
    this.brushes.set(id, { side, x: x * WIDTH, y: y * HEIGHT, dx: 0, dy: 0 });
  }

  remove(id) {
    this.brushes.delete(id);
  }

  /** Has a brush go in a direction, at most at full speed. */
  steer(id, dx, dy) {
    const brush = this.brushes.get(id);
    if (!brush || !Number.isFinite(dx) || !Number.isFinite(dy)) return;
    const length = Math.max(1, Math.hypot(dx, dy));
    brush.dx = dx / length;
    brush.dy = dy / length;
  }

  /** Goes on by so many seconds. */
  step(seconds) {
    for (const brush of this.brushes.values()) {
      const below = this.#side(brush.x, brush.y);
      const speed = SPEED * seconds * (below === brush.side ? ON_OWN : below === BARE ? 1 : ON_OTHER);
      brush.x = clamp(brush.x + brush.dx * speed, WIDTH - 0.01);
      brush.y = clamp(brush.y + brush.dy * speed, HEIGHT - 0.01);
      this.#paint(brush.x, brush.y, BRUSH, brush.side);
      const taken = this.drops.filter(([x, y]) => Math.hypot(x - brush.x, y - brush.y) < BRUSH + 0.6);
      for (const [x, y] of taken) this.#paint(x, y, SPLASH, brush.side);
      this.drops = this.drops.filter((drop) => !taken.includes(drop));
    }
    this.#untilDrop -= seconds;
    if (this.#untilDrop < 0) {
      this.#untilDrop += DROP_SECONDS;
      const place = (length) => Math.round((0.1 + 0.8 * this.random()) * length * 10) / 10;
      if (this.drops.length < DROPS_MAX) this.drops.push([place(WIDTH), place(HEIGHT)]);
    }
  }

  /** The tiles that changed since the last call, as `[tile, side]`. */
  painted() {
    return this.#painted.splice(0);
  }

  /** How many tiles each side has. */
  scores() {
    const scores = [0, 0];
    for (const side of this.board) if (side !== BARE) scores[side - 1] += 1;
    return scores;
  }

  #side(x, y) {
    return this.board[Math.floor(y) * WIDTH + Math.floor(x)];
  }

  #paint(x, y, radius, side) {
    for (let row = Math.floor(y - radius); row <= y + radius; row += 1) {
      for (let column = Math.floor(x - radius); column <= x + radius; column += 1) {
        const isInside = row >= 0 && row < HEIGHT && column >= 0 && column < WIDTH;
        const tile = row * WIDTH + column;
        if (!isInside || Math.hypot(column + 0.5 - x, row + 0.5 - y) > radius || this.board[tile] === side) continue;
        this.board[tile] = side;
        this.#painted.push([tile, side]);
      }
    }
  }
}
