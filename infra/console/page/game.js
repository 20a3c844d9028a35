// A game: its versions, its namespaces' limits and domains, its tokens. Every change is a command of the operator's.

import { card, confirmed, copyable, el, table, tag, when } from "./elements.js";
import { command } from "./host.js";
import { versions } from "./versions.js";

export function show(screen, context) {
  const parts = { versions: el("div", { className: "stack" }), limits: el("div"), domains: el("div"), tokens: el("div"), actions: el("div") };
  const { game, namespace, deployment: { may_change: mayChange } } = context;
  screen.append(el("div", { className: "stack" }, el("h1", {}, game.display_name),
    el("div", { className: "columns" }, parts.versions, el("div", { className: "stack side" }, parts.limits, parts.domains, parts.tokens, parts.actions))));
  const name = `${game.name_id}/${namespace.name_id}`;
  const draw = async (part, make) => {
    try {
      parts[part].replaceChildren(...[await make()].flat());
    } catch (error) {
      parts[part].replaceChildren(el("p", { className: "notice bad", role: "alert" }, error.message));
    }
  };
  const redraw = {
    versions: () => draw("versions", () => versions(context, async () => { await context.look(); redraw.versions(); redraw.actions(); })),
    limits: () => draw("limits", () => limits(name, mayChange)),
    domains: () => draw("domains", () => domains(name, mayChange, () => { redraw.domains(); redraw.actions(); })),
    tokens: () => draw("tokens", () => tokens(context, name, () => { redraw.tokens(); redraw.actions(); })),
    actions: () => draw("actions", () => actions(game)),
  };
  Object.values(redraw).forEach((again) => again());
}

/** Runs a command of the operator's and shows what it refuses. */
const doing = (said, words, then) => command(words).then(then, (error) => { said.hidden = false; said.textContent = error.message; });
const notice = () => el("p", { className: "notice", hidden: true, role: "alert" });

async function limits(name, mayChange) {
  const { namespace } = await command(["namespace", "show", name]);
  const { lobby_count_max: lobbies, max_players_per_client: seats } = namespace.config.matchmaker;
  const said = notice();
  const field = (label, value) => el("label", { className: "field" }, el("span", {}, label), el("input", { type: "number", min: "1", required: true, disabled: !mayChange, value: String(value) }));
  const [most, perClient] = [field("Lobbies", lobbies), field("Seats per IP address", seats)];
  const value = (label) => label.querySelector("input").value;
  const form = el("form", { className: "inline", onsubmit: (event) => {
    event.preventDefault();
    doing(said, ["mm-config", name, "--lobby-count-max", value(most), "--max-players-per-client", value(perClient)], () => { said.hidden = false; said.textContent = "The limits are set."; });
  } }, most, perClient, mayChange && el("button", {}, "Set"));
  return card(`Limits of ${name}`, el("div", { className: "stack" }, form, el("p", { className: "hint" }, "Above 1,000 seats per address there is no limit. Lowering the lobbies ends none."), said));
}

async function domains(name, mayChange, again) {
  const { domains: all } = await command(["domain", "list", name]);
  const said = notice();
  const added = el("input", { "aria-label": "Domain", placeholder: "game.example", required: true, autocomplete: "off" });
  const rows = all.map((domain) => [domain.domain ?? domain, mayChange && el("button", { type: "button", className: "small danger", onclick: async () => {
    const host = domain.domain ?? domain;
    if (await confirmed(`Remove ${host}? Its pages need a token then.`, "Remove it")) doing(said, ["domain", "remove", "--yes", "--", name, host], again);
  } }, "Remove")]);
  return card("Domains", el("div", { className: "stack" }, el("p", { className: "hint" }, "Pages of these hosts find, join and create without a token."),
    rows.length ? table(["host", ""], rows) : el("p", { className: "quiet" }, "None."),
    mayChange && el("form", { className: "inline", onsubmit: (event) => { event.preventDefault(); doing(said, ["domain", "add", "--", name, added.value.trim()], again); } }, added, el("button", {}, "Add")), said));
}

async function tokens({ game, namespace, deployment: { may_change: mayChange } }, name, again) {
  const { tokens: all } = await command(["token", "list", game.name_id]);
  const said = notice();
  const shown = el("div");
  const kind = el("select", { "aria-label": "Kind of token" }, [["public", "public, for game clients"], ["server", "server, for game servers"], ["cloud", "cloud, for your tools"]].map(([value, text]) => el("option", { value }, text)));
  const create = () => doing(said, ["token", "create", kind.value, kind.value === "cloud" ? game.name_id : name], ({ token }) => {
    shown.replaceChildren(el("div", { className: "stack" }, el("p", { className: "notice" }, "Keep it now: it is not shown again."), copyable(token)));
  });
  const here = all.filter((token) => !token.namespace_id || token.namespace_id === namespace.namespace_id);
  const rows = here.map((token) => [token.kind, when(Date.parse(token.issued_at)), token.expires_at ? when(Date.parse(token.expires_at)) : "never", tag(token.state),
    token.state === "valid" && mayChange && el("button", { type: "button", className: "small danger", onclick: async () => {
      if (await confirmed(`Revoke this ${token.kind} token? ${token.kind === "server" ? "Its game servers go out of service and their lobbies end, which takes half a minute." : "Whoever uses it is refused within 30 seconds."}`, "Revoke it")) doing(said, ["token", "revoke", "--yes", "--", game.name_id, token.token_id], again);
    } }, "Revoke")]);
  return card("Tokens", el("div", { className: "stack" }, mayChange && el("div", { className: "inline" }, kind, el("button", { type: "button", onclick: create }, "Make a token")), shown, said,
    rows.length ? table(["kind", "issued", "expires", "state", ""], rows) : el("p", { className: "quiet" }, "None was issued.")));
}

/** What operators did: the last twenty changes. */
async function actions(game) {
  const { actions: all } = await command(["history", "--", game.name_id]);
  const rows = all.slice(0, 20).map(({ at, who, verb, target, failed }) => [when(Date.parse(at)), who, el("span", {}, el("b", {}, verb), ` ${target}`, failed && tag("failed"))]);
  return card("What operators did", rows.length ? table(["when", "who", "what"], rows) : el("p", { className: "quiet" }, "Nothing in the last 90 days."));
}
