// The usage of DynamoDB by operation, and its cost.

import { card, dollars, el, plural, setNow, span, table, when } from "./elements.js";
import { Unanswered, read } from "./host.js";

const EVERY_MS = 2_000;
/** A shorter time says nothing of a month. */
const PACE_MS = 10 * 60_000;
const MONTH_MS = 30 * 24 * 3_600_000;

const units = (number) => number.toLocaleString("en", { maximumFractionDigits: 1 });

export function show(screen, context) {
  const { deployment } = context;
  const body = el("div", { className: "stack" });
  screen.append(el("div", { className: "stack" }, el("h1", { className: "unseen" }, "Cost"), body));
  if (!deployment.has_requests) {
    body.append(...(deployment.has_counts ? bill() : [card("Cost", el("p", {}, "The local stack costs nothing; its own page counts what would."))]));
    return () => {};
  }
  const look = async () => {
    if (document.hidden) return;
    const cost = await read("cost");
    setNow(cost.now);
    body.replaceChildren(...draw(cost));
  };
  const fail = (error) => {
    if (error instanceof Unanswered) context.connected(false);
    else body.replaceChildren(el("p", { className: "notice bad", role: "alert" }, error.message));
  };
  look().catch(fail);
  const going = setInterval(() => look().catch(fail), EVERY_MS);
  return () => clearInterval(going);
}

/** What a month costs at the pace of so many milliseconds, and what that guess is based on. */
export function pace(total, elapsed) {
  if (elapsed < PACE_MS) return ["–", `${span(elapsed)} say nothing of a month; here in ${span(PACE_MS - elapsed)}`];
  return [dollars((total / elapsed) * MONTH_MS), `roughly: 30 days like the last ${span(elapsed)}`];
}

const figure = (name, value, note) => el("section", { className: "figure" }, el("h2", {}, name), el("b", {}, value), el("small", {}, note));

/** The bill of a stack's month so far: reading it costs, too, so nothing reads it unasked. */
function bill() {
  const button = el("button", { type: "button", onclick: () => look() }, "Read this month's bill");
  const said = el("p", { className: "quiet", role: "status" }, "AWS counts what a stack uses. To read it costs about a cent.");
  const shown = el("div", { className: "stack" });
  const look = async () => {
    button.disabled = true;
    said.textContent = "Reading…";
    try {
      const answer = await read("bill");
      setNow(answer.now);
      shown.replaceChildren(...drawBill(answer.bill));
      said.textContent = `Read ${plural(answer.metrics, "metric")} of CloudWatch for ${dollars(answer.dollars)}.`;
    } catch (error) {
      said.textContent = error.message;
    }
    button.disabled = false;
  };
  return [card("Cost", el("div", { className: "head" }, button, said)), shown];
}

function drawBill({ since, items, month, whole_month: whole, server_hours: hours }) {
  const rows = items.map(({ item, units: used, dollars: paid, not_read: reason }) => (reason ? [item, `not read: ${reason}`, "?"] : [item, used.toLocaleString("en", { maximumSignificantDigits: 4 }), dollars(paid)]));
  const isWhole = items.every((item) => !item.not_read);
  return [
    el("div", { className: "figures" },
      figure("So far", dollars(month), isWhole ? "every item" : "what was read"),
      figure("A month at this pace", dollars(whole), "roughly: the whole month like its days so far"),
      hours > 0 && figure("Game servers on demand", `${hours.toFixed(1)} h`, "not in the sum: hours of those that have ended"),
      el("section", { className: "figure" }, el("h2", {}, "Since"), el("b", {}, when(Date.parse(since))), el("small", {}, "the beginning of the month"))),
    card("By item", table(["item", "#units", "#dollars"], rows), el("p", { className: "hint" }, "As `muster cost --stack` prints it. AWS counts the units of DynamoDB by table, not by operation; the local stack's page has them by operation.")),
  ];
}

function draw(cost) {
  const elapsed = Math.max(1, cost.now - cost.since);
  const sum = (of) => cost.operations.reduce((total, operation) => total + of(operation), 0);
  const total = sum((operation) => operation.dollars);
  const rows = cost.operations.toSorted((one, other) => other.dollars - one.dollars).map((operation) => [
    operation.operation, operation.requests.toLocaleString("en"), (operation.calls / operation.requests).toFixed(2), units(operation.read_units), units(operation.write_units),
    dollars(operation.dynamodb_dollars), dollars(operation.dollars), dollars((operation.dollars / operation.requests) * 1e6),
  ]);
  return [
    el("div", { className: "figures" },
      figure("So far", dollars(total), `had this run in AWS; ${dollars(sum((operation) => operation.dynamodb_dollars))} of it DynamoDB`),
      figure("A month at this pace", ...pace(total, elapsed)),
      figure("Requests", sum((operation) => operation.requests).toLocaleString("en"), `${units(sum((operation) => operation.calls))} calls of DynamoDB`),
      el("section", { className: "figure" }, el("h2", {}, "Since"), el("b", {}, when(cost.since)), el("small", {}, "the start of this stack"))),
    card("By operation", rows.length ? table(["operation", "#requests", "#calls each", "#read units", "#write units", "#DynamoDB", "#in all", "#a million of it"], rows) : el("p", { className: "quiet" }, "No request yet."),
      el("p", { className: "hint" }, "List prices of us-east-1. In all: DynamoDB, Lambda and the HTTP API. Logs, metrics, alarms and keys come on top: ", el("a", { href: "/_console/cost.html" }, "what a month costs"), " has them all.")),
  ];
}
