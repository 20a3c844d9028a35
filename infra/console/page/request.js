// One request that this stack answered.

import { card, clock, el, facts, setNow, when } from "./elements.js";
import { read } from "./host.js";
import { status } from "./tape.js";

export function show(screen, context) {
  const body = el("div", { className: "stack" });
  screen.append(body);
  read("request", { request: context.id ?? "" }).then(({ now, request }) => {
    setNow(now);
    body.replaceChildren(...draw(request, context));
  }, (error) => body.replaceChildren(el("p", { className: "notice bad", role: "alert" }, error.message)));
}

function draw(request, context) {
  const link = (name, id) => id && el("a", { href: context.linkIn(request.namespace_id, name, id) }, id);
  return [
    el("h1", {}, `Request ${request.request_id}`),
    el("div", { className: "halves" },
      card("What is known", facts([
        ["operation", request.operation ?? "none at this path"], ["request", el("code", {}, `${request.method} ${request.path}`)],
        ["status", el("span", {}, status(request.status), " ", request.code && el("code", {}, request.code))],
        ["came", el("span", {}, clock(request.at), ", ", when(request.at))], ["took", `${request.ms} ms`],
        ["lobby", link("lobby", request.lobby_id)], ["game server", link("server", request.server_id)],
        ["values", request.values.length ? request.values.join(", ") : null],
      ])),
      card("Why", request.why.length ? el("ul", { className: "why" }, request.why.map((sentence) => el("li", {}, sentence))) : el("p", { className: "quiet" }, "There is nothing to explain."))),
  ];
}
