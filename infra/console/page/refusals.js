// Refusals of a deployed stack, out of its logs: a search costs, so that its price is shown before.

import { card, confirmed, dollars, el, table } from "./elements.js";
import { change, read } from "./host.js";

const SPANS = [[15, "the last 15 minutes"], [60, "the last hour"], [24 * 60, "the last day"]];

const megabytes = (bytes) => `${(bytes / 1e6).toLocaleString("en", { maximumSignificantDigits: 2 })} MB`;

export function refusals() {
  const chosen = el("select", { "aria-label": "Time searched for refusals" }, SPANS.map(([minutes, text]) => el("option", { value: String(minutes) }, text)));
  const button = el("button", { type: "button", onclick: () => search() }, "Search the logs");
  const said = el("p", { className: "hint", role: "status" }, "Of all namespaces. Each search costs; the price is shown before.");
  const shown = el("div");

  async function search() {
    const lately = { minutes: Number(chosen.value) };
    button.disabled = true;
    try {
      said.textContent = "Reading how much was logged…";
      const { bytes, dollars: price } = await read("refusals", lately);
      if (!await confirmed(`The functions logged ${megabytes(bytes)} in this time. A search scans it all: ${dollars(price)}.`, `Search for ${dollars(price)}`)) {
        said.textContent = "Nothing was searched.";
        return;
      }
      said.textContent = "Searching…";
      draw((await change("refusals", lately)).refusals);
      said.textContent = `For ${dollars(price)}. The logs have each request by its span.request.id.`;
    } catch (error) {
      said.textContent = error.message;
    } finally {
      button.disabled = false;
    }
  }

  const draw = (found) => shown.replaceChildren(found.length === 0 ? el("p", {}, "None.") : table(["code", "operation", "#requests", "examples"],
    found.map(({ code, operation, requests, examples }) => [el("code", {}, code), operation, requests.toLocaleString("en"), examples.map((id) => el("code", { className: "block" }, id))])));

  return card("Refusals", el("div", { className: "stack" }, el("div", { className: "inline" }, chosen, button), said, shown));
}
