// What an identifier leads to: a lobby, a game server, a seat or a request.

import { card, el, plural, tag } from "./elements.js";
import { read } from "./host.js";

export function show(screen, context) {
  const text = context.id ?? "";
  const body = el("div", { className: "stack" });
  let isOver = false;
  screen.append(body);
  if (!text) {
    body.append(card("Search", el("p", {}, "Search for a lobby, a game server, a seat or a request by its identifier.")));
    return () => {};
  }
  const where = (hit) => context.linkIn(hit.namespace_id, hit.kind, hit.id);
  read("search", { namespace: context.named.namespace, text }).then((found) => {
    if (isOver) return;
    if (found.hits.length === 1) location.replace(where(found.hits[0]));
    else body.replaceChildren(...draw(text, found, context, where));
  }, (error) => body.replaceChildren(el("p", { className: "notice bad", role: "alert" }, error.message)));
  return () => { isOver = true; };
}

function draw(text, found, context, where) {
  const { deployment, game, namespace } = context;
  const name = `${game.name_id}/${namespace.name_id}`;
  if (found.hits.length > 0) {
    return [el("h1", {}, `Search: ${text}`), card(plural(found.hits.length, "hit"), el("ul", { className: "hits" },
      found.hits.map((hit) => el("li", {}, tag(hit.kind), " ", el("a", { className: "mono", href: where(hit) }, hit.id), el("span", { className: "quiet" }, ` ${hit.because}`)))))];
  }
  const seen = found.lobbies_seen === null
    ? `No page has looked at ${name} in the last minute: seats, and lobbies by the beginning of their identifier, are found while one does.`
    : `No seat of the ${plural(found.lobbies_seen, "lobby", "lobbies")} of ${name} begins so, and no lobby.`;
  const requests = deployment.has_requests ? "No request that this stack still remembers begins so: it keeps the last 500." : "The requests of a deployed stack are in its logs, by request.id.";
  return [el("h1", {}, `Search: ${text}`), card("Nothing found", el("ul", { className: "why" },
    [`No lobby, and no game server of ${name}, has this identifier.`, seen, requests].map((sentence) => el("li", {}, sentence))))];
}
