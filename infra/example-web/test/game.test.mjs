import assert from "node:assert/strict";
import { test } from "node:test";
import { Game, HEIGHT, WIDTH } from "../game.mjs";
import { sidesOf } from "../match.mjs";

/** How far a brush gets in a second on a board that is painted so. */
function distance(of) {
  const game = new Game(() => 0.5);
  game.board.fill(of);
  game.add("ada", 1);
  const { x } = game.brushes.get("ada");
  game.steer("ada", 5, 0);
  for (let step = 0; step < 20; step += 1) game.step(0.05);
  return game.brushes.get("ada").x - x;
}

test("a brush is fast on its own paint and slow on the other side's", () => {
  const [bare, own, other] = [0, 1, 2].map(distance);
  assert.ok(other < bare && bare < own);
});

test("a brush paints where it goes, stays on the board, and paint is counted once", () => {
  const game = new Game(() => 0.5);
  game.add("ada", 1);
  game.add("grace", 2);
  game.steer("ada", -1, -1);
  for (let step = 0; step < 200; step += 1) game.step(0.05);
  assert.deepEqual([game.brushes.get("ada").x, game.brushes.get("ada").y], [0, 0]);
  const [one, two] = game.scores();
  assert.ok(one > two && two > 0);
  assert.equal(game.painted().length, one + two);
  assert.deepEqual(game.painted(), []);
});

test("a drop bursts in the colour of who takes it", () => {
  const game = new Game(() => 0.5);
  game.step(2.6);
  assert.equal(game.drops.length, 1);
  const [[x, y]] = game.drops;
  game.add("ada", 1);
  Object.assign(game.brushes.get("ada"), { x, y });
  game.step(0.05);
  assert.deepEqual(game.drops, []);
  assert.ok(game.scores()[0] > 80);
});

test("a message that is no direction changes nothing", () => {
  const game = new Game();
  game.add("ada", 1);
  for (const steering of [[], ["1", 2], [Number.NaN, 1], [1], [{}, []]]) game.steer("ada", ...steering);
  game.steer("grace", 1, 1);
  const { dx, dy } = game.brushes.get("ada");
  assert.deepEqual([dx, dy], [0, 0]);
  assert.equal(game.board.length, WIDTH * HEIGHT);
});

test("friends are on one side, and the sides even", () => {
  const sides = (...players) => Object.fromEntries(sidesOf(players.map(([playerId, partyId]) => ({ playerId, partyId }))));
  assert.deepEqual(sides(["a"], ["b"]), { a: 1, b: 2 });
  assert.deepEqual(sides(["a"], ["b"], ["c", "p"], ["d", "p"]), { c: 1, d: 1, a: 2, b: 2 });
  assert.deepEqual(sides(["a", "p"], ["b", "p"], ["c", "q"], ["d", "q"]), { a: 1, b: 1, c: 2, d: 2 });
});
