// A client under test: an adapter's process, which reads intents and writes outcomes, one JSON object a line.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** How long an outcome is waited for, in milliseconds: beyond the deadline of any client. */
const PATIENCE_MS = 120_000;

export class Client {
  #process;
  #waiting = new Map();
  #ended = null;

  /** Starts `[command, ...args]` with the API's address and a public token. */
  constructor(command, { url, publicToken }) {
    const [program, ...args] = command;
    this.#process = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, MUSTER_URL: url, MUSTER_TOKEN: publicToken } });
    createInterface({ input: this.#process.stdout }).on("line", (line) => this.#take(line));
    this.#process.stdin.on("error", () => {});
    this.#process.on("error", (error) => this.#end(error));
    this.#process.on("exit", (code) => this.#end(new Error(`the adapter ended with status ${code}`)));
  }

  /** Sends an intent, and resolves with its outcome; with `{ killed: true }` when the client is killed before. */
  intend(intent) {
    return new Promise((resolve, reject) => {
      if (this.#ended) return reject(this.#ended);
      const timer = setTimeout(() => reject(new Error(`no outcome of ${JSON.stringify(intent)}`)), PATIENCE_MS);
      this.#waiting.set(intent.id, { resolve, reject, timer });
      this.say(intent);
    });
  }

  /** Sends a line that has no outcome of its own. */
  say(line) {
    this.#process.stdin.write(`${JSON.stringify(line)}\n`);
  }

  /** Kills the process as it is. */
  kill() {
    for (const { resolve, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      resolve({ killed: true });
    }
    this.#waiting.clear();
    this.#ended = new Error("the adapter was killed");
    this.#process.kill("SIGKILL");
  }

  #take(line) {
    let outcome;
    try {
      outcome = JSON.parse(line);
    } catch {
      return this.#end(new Error(`the adapter wrote no JSON: ${line}`));
    }
    const waiting = this.#waiting.get(outcome.id);
    if (!waiting) return;
    this.#waiting.delete(outcome.id);
    clearTimeout(waiting.timer);
    waiting.resolve(outcome);
  }

  #end(error) {
    this.#ended ??= error;
    for (const { reject, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      reject(this.#ended);
    }
    this.#waiting.clear();
  }
}
