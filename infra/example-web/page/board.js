// The board on a canvas, and the direction that the player gives.

const WIDTH = 64;
const HEIGHT = 36;
const TILE = 20;
const COLOURS = ["#f3eefc", "#ff5d73", "#2bb5f5"];
const RIMS = ["", "#b3243b", "#0b6fa4"];
const KEYS = { ArrowLeft: [-1, 0], KeyA: [-1, 0], ArrowRight: [1, 0], KeyD: [1, 0], ArrowUp: [0, -1], KeyW: [0, -1], ArrowDown: [0, 1], KeyS: [0, 1] };
/** How fast a drawn brush follows the one that the server knows. */
const FOLLOW = 0.35;

export class Board {
  side = 0;
  #canvas;
  #context;
  /** The paint alone, drawn tile by tile. */
  #paint = new OffscreenCanvas(WIDTH * TILE, HEIGHT * TILE);
  #you;
  #brushes = new Map();
  #drops = [];
  #keys = new Set();
  #steer;
  #steered = "0,0";

  /** @param steer Gets each new direction. */
  constructor(canvas, steer) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d");
    this.#steer = steer;
    addEventListener("keydown", (event) => this.#key(event, true));
    addEventListener("keyup", (event) => this.#key(event, false));
    const point = (event) => { if (event.pointerType === "mouse" || event.buttons) this.#point(event); };
    canvas.addEventListener("pointermove", point);
    canvas.addEventListener("pointerdown", point);
    const draw = () => {
      this.#draw();
      requestAnimationFrame(draw);
    };
    draw();
  }

  /** Who the player is, and the whole board. */
  begin({ you, side, board }) {
    this.#you = you;
    this.side = side;
    this.#brushes.clear();
    this.#steered = "0,0";
    [...board].forEach((of, tile) => this.#tile(tile, Number(of)));
  }

  /** What changed. */
  update({ brushes, drops, painted }) {
    for (const [tile, side] of painted) this.#tile(tile, side);
    const before = this.#brushes;
    this.#brushes = new Map(brushes.map(([id, side, x, y]) => [id, { x, y, ...before.get(id), side, to: [x, y] }]));
    this.#drops = drops;
  }

  #tile(tile, side) {
    const context = this.#paint.getContext("2d");
    context.fillStyle = COLOURS[side];
    context.fillRect((tile % WIDTH) * TILE, Math.floor(tile / WIDTH) * TILE, TILE, TILE);
  }

  #key(event, isDown) {
    if (!KEYS[event.code] || event.target.tagName === "INPUT") return;
    event.preventDefault();
    if (isDown) this.#keys.add(event.code);
    else this.#keys.delete(event.code);
    const sum = [...this.#keys].reduce(([x, y], code) => [x + KEYS[code][0], y + KEYS[code][1]], [0, 0]);
    this.#go(...sum);
  }

  #point({ offsetX, offsetY }) {
    const own = this.#brushes.get(this.#you);
    if (!own) return;
    const scale = (WIDTH * TILE) / this.#canvas.clientWidth;
    const [dx, dy] = [(offsetX * scale) / TILE - own.x, (offsetY * scale) / TILE - own.y];
    const length = Math.hypot(dx, dy);
    if (length < 1) this.#go(0, 0);
    else this.#go(dx / length, dy / length);
  }

  #go(dx, dy) {
    const steered = [dx, dy].map((part) => part.toFixed(1)).join();
    if (steered === this.#steered) return;
    this.#steered = steered;
    this.#steer(dx, dy);
  }

  #draw() {
    const context = this.#context;
    context.drawImage(this.#paint, 0, 0);
    const pulse = 1 + 0.12 * Math.sin(performance.now() / 180);
    for (const [x, y] of this.#drops) this.#disc(x, y, 0.9 * pulse, "#ffd166", "#9a6b00");
    for (const [id, brush] of this.#brushes) {
      brush.x += (brush.to[0] - brush.x) * FOLLOW;
      brush.y += (brush.to[1] - brush.y) * FOLLOW;
      this.#disc(brush.x, brush.y, 1.35, COLOURS[brush.side], RIMS[brush.side]);
      if (id === this.#you) this.#disc(brush.x, brush.y, 0.5, "#fff", "#fff");
    }
  }

  #disc(x, y, radius, fill, rim) {
    const context = this.#context;
    context.beginPath();
    context.arc(x * TILE, y * TILE, radius * TILE, 0, 2 * Math.PI);
    context.fillStyle = fill;
    context.strokeStyle = rim;
    context.lineWidth = 5;
    context.fill();
    context.stroke();
  }
}
