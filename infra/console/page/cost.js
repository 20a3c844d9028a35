// The usage of DynamoDB by operation, and its cost.

import { card, dollars, el, plural, setNow, table, when } from "./elements.js";
import { read } from "./host.js";

const EVERY_MS = 2_000;
const MONTH_MS = 30 * 24 * 3_600_000;

const units = (number) => number.toLocaleString("en", { maximumFractionDigits: 1 });

export function show(screen, context) {
  const body = el("div", { className: "stack" });
  screen.append(el("div", { className: "stack" }, el("h1", { className: "unseen" }, "Cost"), body));
  const look = async () => {
    if (document.hidden) return;
    const cost = await read("cost");
    setNow(cost.now);
    body.replaceChildren(...draw(context, cost));
  };
  const fail = (error) => body.replaceChildren(el("p", { className: "notice bad", role: "alert" }, error.message));
  look().catch(fail);
  const going = setInterval(() => look().catch(fail), EVERY_MS);
  return () => clearInterval(going);
}

function draw({ deployment }, cost) {
  if (!deployment.has_requests) {
    return [card("Cost", el("div", { className: "stack" },
      el("p", {}, "A deployed function tells nobody but CloudWatch what it asks for. The page “operating” of the documentation has the costs of a find, a visit and a month."),
      el("p", {}, `This console took ${plural(cost.console_read_units_a_minute, "read unit")} in the last minute.`)))];
  }
  const elapsed = Math.max(1, cost.now - cost.since);
  const sum = (of) => cost.operations.reduce((total, operation) => total + of(operation), 0);
  const total = sum((operation) => operation.dollars);
  const figure = (name, value, note) => el("section", { className: "card figure" }, el("h2", {}, name), el("b", {}, value), el("small", { title: note }, note));
  const rows = cost.operations.toSorted((one, other) => other.dollars - one.dollars).map((operation) => [
    operation.operation, operation.requests.toLocaleString("en"), (operation.calls / operation.requests).toFixed(2), units(operation.read_units), units(operation.write_units),
    dollars(operation.dollars), dollars((operation.dollars / operation.requests) * 1e6),
  ]);
  return [
    el("div", { className: "figures" },
      figure("So far", dollars(total), "DynamoDB alone, had this run in AWS"),
      figure("A month at this pace", dollars((total / elapsed) * MONTH_MS), "30 days like the time since the start"),
      figure("Requests", sum((operation) => operation.requests).toLocaleString("en"), `${units(sum((operation) => operation.calls))} calls of DynamoDB`),
      el("section", { className: "card figure" }, el("h2", {}, "Since"), el("b", {}, when(cost.since)), el("small", {}, "the start of this stack"))),
    card("By operation", rows.length ? table(["operation", "#requests", "#calls each", "#read units", "#write units", "#dollars", "#a million"], rows) : el("p", { className: "quiet" }, "No request yet."),
      el("p", { className: "hint" }, "On demand in us-east-1. Lambda, the HTTP API, logs and alarms come on top: the page “operating” of the documentation has them all.")),
  ];
}
