// A session played alone: find, join or create a lobby, see why it came out so, then be its server.

import { lobbyRow } from "./bars.js";
import { card, confirmed, copyable, el, plural } from "./elements.js";
import { change, read } from "./host.js";

const PATHS = { find: "/matchmaker/lobbies/find", join: "/matchmaker/lobbies/join", create: "/matchmaker/lobbies/create" };
const VERBS = { find: "Find a lobby", join: "Join the lobby", create: "Create a lobby" };
/** What a find would have done with a lobby. */
const VERDICTS = new Map(Object.entries({
  taken: "taken", "joinable, less full or younger": "fits, but is less full or younger", full: "full", too_full: "too full for the party", closed: "closed, private or over",
  lease_expired: "silent game server", tag_mismatch: "lacks a tag", other_version: "other mode, region or version", race_lost: "lost to another find", excluded: "excluded by the request",
}));

/** Seats taken from this page, by namespace; gone with the page. */
const taken = new Map();

export function show(screen, context) {
  const fields = el("div", { className: "stack" }, el("p", { className: "quiet" }, "Loading…"));
  const result = el("div", { className: "stack" }, el("p", { className: "card quiet" }, "What comes back shows here, with the reasons."));
  const seats = el("div");
  screen.append(el("div", { className: "stack" }, el("h1", { className: "unseen" }, "Play"),
    el("div", { className: "halves" }, el("div", { className: "stack" }, fields, seats), result)));
  read("namespace", context.named)
    .then((settings) => fields.replaceChildren(form(context, settings, result, seats)))
    .catch((error) => fields.replaceChildren(el("p", { className: "notice bad", role: "alert" }, error.message)));
  showSeats(context, seats);
}

const field = (label, input, hint) => el("label", { className: "field" }, el("span", {}, label), input, hint && el("small", { className: "hint" }, hint));

function form(context, settings, result, seats) {
  const modes = settings.version.config.matchmaker?.game_modes ?? settings.version.config.game_modes;
  const names = Object.keys(modes);
  const act = el("fieldset", {}, el("legend", {}, "As a player"), Object.entries({ find: "find", join: "join by identifier or code", create: "create" }).map(([value, text]) =>
    el("label", {}, el("input", { type: "radio", name: "act", value, checked: value === "find", onchange: () => draw() }), text)));
  const chosen = el("div", { className: "fields stack" });
  const send = el("button", { className: "primary" }, VERBS.find);
  const calls = el("div", { className: "stack" });
  const made = el("form", { className: "fields", onsubmit: (event) => { event.preventDefault(); run(); } }, act, chosen, el("div", { className: "buttons" }, send), calls);
  const name = () => made.elements.act.value;

  function draw() {
    send.textContent = VERBS[name()];
    const regions = (list) => context.game.available_regions.filter(({ region_id }) => list.some((mode) => modes[mode].regions.includes(region_id)));
    const region = (label, none) => field(label, el("select", { name: "region" }, el("option", { value: "" }, none), regions(names).map((one) => el("option", { value: one.region_id }, `${one.region_display_name} (${one.region_id})`))));
    const tags = () => names.some((mode) => modes[mode].taggable) && field("Tags", el("input", { name: "tags", placeholder: "map=harbour", autocomplete: "off" }), `name=value, several with commas; for ${names.filter((mode) => modes[mode].taggable).join(", ")}`);
    const size = () => names.some((mode) => modes[mode].allow_dynamic_max_players) && field("Seats of a new lobby", el("input", { name: "max_players", type: "number", min: "1", placeholder: "the mode's own" }));
    const largest = Math.max(...names.map((mode) => modes[mode].party_size_max ?? 1));
    const party = () => largest > 1 && field("Players together", el("input", { name: "party", type: "number", min: "1", max: String(largest), placeholder: "1" }));
    const drawn = {
      find: () => [
        el("fieldset", {}, el("legend", {}, "Modes"), names.map((mode, at) => el("label", {}, el("input", { type: "checkbox", name: "mode", value: mode, checked: at === 0 }), mode, el("small", { className: "hint" }, plural(modes[mode].max_players, "seat"))))),
        region("Region", "the recommended one"),
        field("Latencies", el("input", { name: "latencies", placeholder: "fra=20, nyc=95", autocomplete: "off" }), "region=milliseconds, several with commas; without a number where the player cannot reach it"),
        tags(), size(), party(),
        el("fieldset", {}, el("label", {}, el("input", { type: "checkbox", name: "prevent" }), "never create a lobby")),
      ],
      join: () => [field("Lobby", el("input", { name: "lobby", required: true, autocomplete: "off", placeholder: "its identifier or code", value: context.id ?? "" })), party()],
      create: () => [
        field("Mode", el("select", { name: "mode" }, names.map((mode) => el("option", { value: mode }, mode)))), region("Region", "the recommended one"),
        field("Publicity", el("select", { name: "publicity" }, ["private", "public"].map((value) => el("option", { value }, value)))), tags(), size(), party(),
      ],
    };
    chosen.replaceChildren(...drawn[name()]().filter(Boolean));
    showCalls();
  }

  function request() {
    const value = (field) => made.elements[field]?.value || undefined;
    const pairs = (text) => Object.fromEntries((text ?? "").split(",").filter((pair) => pair.includes("=")).map((pair) => pair.trim().split(/=(.*)/s)));
    const tags = pairs(value("tags"));
    const latencies = Object.fromEntries(Object.entries(pairs(value("latencies"))).map(([region, ms]) => [region, ms.trim() === "" ? null : Number(ms)]));
    const rest = { ...(Object.keys(tags).length ? { tags } : {}), ...(value("max_players") ? { max_players: Number(value("max_players")) } : {}) };
    const party = Number(value("party") ?? 1) > 1 ? { party_size: Number(value("party")) } : {};
    if (name() === "join") return { lobby_id: value("lobby")?.trim() ?? "", ...party };
    if (name() === "create") return { game_mode: value("mode"), ...(value("region") ? { region: value("region") } : {}), publicity: value("publicity"), ...rest, ...party };
    const modesWanted = [...made.querySelectorAll("[name=mode]:checked")].map((input) => input.value);
    return { game_modes: modesWanted, ...(value("region") ? { regions: [value("region")] } : {}), ...(Object.keys(latencies).length ? { latencies } : {}), ...rest, ...party, ...(made.elements.prevent?.checked ? { prevent_auto_create_lobby: true } : {}) };
  }

  const showCalls = () => calls.replaceChildren(sameCall(context, name(), request()));

  async function run() {
    send.disabled = true;
    try {
      const body = request();
      const came = await change("call", { ...context.named, act: name(), request: body });
      if (came.status === 200) take(context, came);
      result.replaceChildren(...outcome(context, came));
      showSeats(context, seats);
    } catch (error) {
      result.replaceChildren(el("p", { className: "notice bad", role: "alert" }, error.message));
    }
    send.disabled = false;
  }

  made.addEventListener("input", showCalls);
  draw();
  return el("section", { className: "card" }, made);
}

/** The same call as other programs make it. */
function sameCall(context, act, request) {
  const url = `${context.deployment.api_url.replace(/\/$/, "")}${PATHS[act]}`;
  const json = JSON.stringify(request);
  const curl = `curl -s ${url} \\\n  -H "Authorization: Bearer $PUBLIC" \\\n  -d '${json.replaceAll("'", "'\\''")}'`;
  const fetched = `const response = await fetch(${JSON.stringify(url)}, {\n  method: "POST",\n  headers: { authorization: \`Bearer \${publicToken}\` },\n  body: JSON.stringify(${json}),\n});\nif (!response.ok) throw new Error(await response.text());\nconst { lobby, player } = await response.json();\nconst { host, is_tls: isTls } = lobby.ports.default;\nconst socket = new WebSocket(\`\${isTls ? "wss" : "ws"}://\${host}\`);\n// Your game server hands the token on in its call of players/connected.\nsocket.onopen = () => socket.send(player.token);`;
  const open = (title, text) => el("details", {}, el("summary", {}, title), copyable(text));
  return el("div", { className: "stack" }, open("The same as curl", curl), open("The same as fetch", fetched),
    el("p", { className: "hint" }, "The token: ", el("a", { href: context.link("game") }, "make a public one"), "."));
}

function outcome(context, came) {
  const isFine = came.status === 200;
  const seats = came.response.players?.length ?? 1;
  const said = isFine ? `${seats === 1 ? "A seat is" : `${seats} seats are`} reserved.` : `${came.response.code ?? came.status}: ${came.response.message ?? "no message"}`;
  const considered = came.candidates && came.candidates.lobbies > 0 && el("div", { className: "stack" },
    el("h3", {}, `Of ${plural(came.candidates.lobbies, "lobby", "lobbies")} before the find: ${came.candidates.counts.map(([verdict, count]) => `${count} ${VERDICTS.get(verdict) ?? verdict}`).join(", ")}`),
    el("ul", { className: "lobbies considered" }, came.candidates.first.map(({ lobby, verdict }) => {
      const row = lobbyRow(lobby, (id) => context.link("lobby", id));
      row.lastElementChild.replaceWith(el("span", {}, VERDICTS.get(verdict) ?? verdict));
      return row;
    })));
  return [
    el("section", { className: "card stack", "aria-live": "polite" },
      el("div", { className: "head" }, el("h2", {}, "What came of it"), el("span", { className: "quiet" }, `${came.status} · ${came.ms} ms`)),
      el("p", { className: `notice ${isFine ? "good" : ""}` }, said),
      came.lobby && el("p", {}, "Lobby ", el("a", { href: context.link("lobby", came.lobby.id) }, came.lobby.id.slice(0, 8)), came.response.lobby?.code && [" with the code ", el("code", {}, came.response.lobby.code)], ` on the game server ${came.lobby.server ?? "?"}, ${came.lobby.mode} in ${came.lobby.region}.`),
      came.why && el("div", {}, el("h3", {}, "Why"), el("ul", { className: "why" }, came.why.map((sentence) => el("li", {}, sentence)))),
      considered),
    card("Response", el("pre", { tabindex: "0" }, JSON.stringify(came.response, null, 2))),
  ];
}

function take(context, { response, lobby }) {
  const all = taken.get(context.named.namespace) ?? [];
  const seat = ({ token }) => ({ lobby: response.lobby.lobby_id, code: response.lobby.code, token, mode: lobby?.mode ?? "", state: "reserved", said: "" });
  all.unshift(...(response.players ?? [response.player]).map(seat));
  taken.set(context.named.namespace, all);
}

/** The seats of this page, each with what its lobby's server would do. */
function showSeats(context, seats) {
  const all = taken.get(context.named.namespace) ?? [];
  const act = async (seat, name, request, state) => {
    try {
      const came = await change("call", { ...context.named, act: name, lobby: seat.lobby, request });
      seat.said = came.status === 200 ? "" : `${came.response.code}: ${came.response.message}`;
      if (came.status === 200) state(came.response);
    } catch (error) {
      seat.said = error.message;
    }
    showSeats(context, seats);
  };
  const row = (seat) => {
    const button = (text, onclick, isDisabled) => el("button", { type: "button", className: "small", disabled: isDisabled, onclick }, text);
    const isOver = seat.state === "ended";
    return el("li", { className: "stack", "data-lobby": seat.lobby },
      el("div", { className: "head" }, el("span", {}, el("a", { className: "mono", href: context.link("lobby", seat.lobby) }, seat.lobby.slice(0, 8)), ` ${seat.mode} `, seat.code && el("code", {}, seat.code)), el("span", { className: "tag" }, seat.state)),
      el("div", { className: "buttons" },
        button("Give up", () => act(seat, "leave", { player_token: seat.token }, () => { seat.state = "left"; }), seat.state !== "reserved"),
        button("Come back", () => act(seat, "rejoin", { player_token: seat.token }, ({ player }) => { seat.token = player.token; seat.state = "reserved"; }), isOver),
        button("Connect", () => act(seat, "connected", { player_token: seat.token }, () => { seat.state = "connected"; }), seat.state !== "reserved"),
        button("Disconnect", () => act(seat, "disconnected", { player_token: seat.token }, () => { seat.state = "left"; }), isOver || seat.state === "left"),
        button("Remove", () => act(seat, "remove", { player_token: seat.token }, () => { seat.state = "left"; }), isOver || seat.state === "left"),
        button(seat.isClosed ? "Reopen" : "Close", () => act(seat, "closed", { is_closed: !seat.isClosed }, () => { seat.isClosed = !seat.isClosed; }), isOver),
        button("End", async () => {
          if (await confirmed("End this lobby? Everybody in it loses the seat.", "End the lobby")) {
            await act(seat, "end", { lobby_id: seat.lobby }, () => all.filter((one) => one.lobby === seat.lobby).forEach((one) => { one.state = "ended"; }));
          }
        }, isOver)),
      seat.said && el("p", { className: "notice", role: "alert" }, seat.said));
  };
  seats.replaceChildren(all.length === 0 ? "" : card("As the lobby's server", el("p", { className: "hint" }, "Seats that this page took. A player's client would give one up or come back to it; a game server would make the other calls."), el("ul", { className: "stack seats" }, all.map(row))));
}
