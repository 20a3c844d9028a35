// Versions: which there are, two side by side, and an editor that says what is wrong at its line.

import { card, confirmed, el, table, tag, when } from "./elements.js";
import { difference } from "./difference.js";
import { command } from "./host.js";

const PAUSE_MS = 400;

/** The configuration of a version as a file has it. */
const configuration = async (game, version) => JSON.stringify((await command(["version", "show", "--", game.name_id, version])).version.config, null, 2);

export async function versions(context, refresh) {
  const { game, namespace, deployment: { may_change: mayChange } } = context;
  const all = (await command(["version", "list", game.name_id])).versions;
  const history = (await command(["version", "history", `${game.name_id}/${namespace.name_id}`])).versions;
  const running = history[0]?.version_id ?? namespace.version_id;
  const before = history.find((change) => change.version_id !== running);
  const named = (id) => all.find((version) => version.version_id === id)?.display_name ?? id;
  const said = el("p", { className: "notice", hidden: true, role: "alert" });
  const set = async (id) => {
    if (!await confirmed(`Have ${game.name_id}/${namespace.name_id} run version ${named(id)}? Finds match its lobbies alone from then on.`, "Run it")) return;
    await command(["version", "set", "--", `${game.name_id}/${namespace.name_id}`, id]).then(refresh, (error) => { said.hidden = false; said.textContent = error.message; });
  };
  const rows = all.map((version) => [
    el("b", {}, version.display_name), el("code", {}, version.version_id.slice(0, 8)), when(Date.parse(version.create_ts)),
    version.retired ? tag("retired") : version.namespaces.join(", ") || null,
    version.version_id === running ? tag("running here") : mayChange && el("button", { type: "button", className: "small", disabled: version.retired, onclick: () => set(version.version_id) }, "Run here"),
  ]);
  return [
    el("section", { className: "card stack" }, el("div", { className: "head" }, el("h2", {}, "Versions"),
      before && mayChange && el("button", { type: "button", className: "small", onclick: () => set(before.version_id) }, `Take back: run ${named(before.version_id)} again`)),
    said, table(["name", "identifier", "made", "run by", ""], rows)),
    comparison(game, all), mayChange && editor(context, all, running, refresh), mayChange && another(context, running),
  ].filter(Boolean);
}

/** A namespace more, which runs what this one does. */
function another({ game, namespace, look }, running) {
  const said = el("p", { className: "notice", hidden: true, role: "alert" });
  const name = el("input", { "aria-label": "Name of the new namespace", placeholder: "staging", required: true, autocomplete: "off", size: 18 });
  const make = async () => {
    await command(["namespace", "create", `${game.name_id}/${name.value.trim()}`, "--version", running]);
    await look();
    location.hash = `#/game/${[game.name_id, name.value.trim()].map(encodeURIComponent).join("/")}`;
  };
  return card("Another namespace", el("form", { className: "stack", onsubmit: (event) => {
    event.preventDefault();
    make().catch((error) => { said.hidden = false; said.textContent = error.message; });
  } }, el("p", { className: "hint" }, `It runs the version of ${namespace.name_id}, with lobbies and tokens of its own.`), el("div", { className: "buttons" }, name, el("button", {}, "Make the namespace")), said));
}

function comparison(game, all) {
  const chooser = (label, at) => {
    const select = el("select", { "aria-label": label, onchange: () => draw() }, all.map((version) => el("option", { value: version.version_id }, version.display_name)));
    select.selectedIndex = Math.min(at, all.length - 1);
    return select;
  };
  const [before, after] = [chooser("Earlier version", 1), chooser("Later version", 0)];
  const shown = el("div");
  async function draw() {
    const [one, other] = await Promise.all([before, after].map((select) => configuration(game, select.value)));
    const lines = difference(one, other);
    const isSame = lines.every(([sign]) => sign === " ");
    shown.replaceChildren(isSame ? el("p", { className: "quiet" }, "The two are the same.") : el("pre", { className: "difference", tabindex: "0" },
      lines.map(([sign, line]) => el("span", { className: sign === "+" ? "added" : sign === "-" ? "removed" : null }, `${sign} ${line}`))));
  }
  draw().catch((error) => shown.replaceChildren(el("p", { className: "notice bad" }, error.message)));
  return el("section", { className: "card stack" }, el("div", { className: "head" }, el("h2", {}, "What changed"), el("div", { className: "buttons" }, "from", before, "to", after)), shown);
}

function editor(context, all, running, refresh) {
  const { game, namespace } = context;
  const text = el("textarea", { spellcheck: false, "aria-label": "Configuration of a new version", wrap: "off", oninput: () => changed(), onscroll: () => { numbers.scrollTop = text.scrollTop; } });
  const numbers = el("ol", { "aria-hidden": "true" });
  const problems = el("ul", { className: "why", "aria-live": "polite" });
  const name = el("input", { "aria-label": "Name of the new version", placeholder: "name: the next number", autocomplete: "off", size: 18 });
  const make = el("button", { type: "button", className: "primary", disabled: true, onclick: () => create() }, "Make the version");
  let waiting = 0;

  function number(wrong = []) {
    numbers.replaceChildren(...text.value.split("\n").map((_, at) => el("li", { className: wrong.includes(at + 1) ? "wrong" : null }, String(at + 1))));
    numbers.scrollTop = text.scrollTop;
  }

  function changed() {
    make.disabled = true;
    number();
    clearTimeout(waiting);
    waiting = setTimeout(() => validate(), PAUSE_MS);
  }

  const show = (list) => {
    number(list.map(({ line }) => line));
    problems.replaceChildren(...list.map(({ line, problem }) => el("li", { "data-line": line }, line ? el("b", {}, `line ${line}: `) : "", problem)));
  };

  async function validate() {
    const checked = text.value;
    try {
      await command(["version", "validate", "-", "--game", game.name_id], checked);
      if (checked !== text.value) return;
      show([]);
      problems.replaceChildren(el("li", {}, "It is valid."));
      make.disabled = false;
    } catch (error) {
      if (checked === text.value) show(error.problems?.length ? error.problems : [{ line: null, problem: error.message }]);
    }
  }

  async function create() {
    make.disabled = true;
    const named = name.value.trim();
    await command(["version", "create", game.name_id, "-", ...(named ? [`--name=${named}`] : [])], text.value).then(refresh, (error) => show([{ line: null, problem: error.message }]));
  }

  configuration(game, running).then((config) => { text.value = config; number(); validate(); }, (error) => show([{ line: null, problem: error.message }]));
  return card("A new version", el("p", { className: "hint" }, `It begins as what ${namespace.name_id} runs. No namespace runs it until you set it.`),
    el("div", { className: "stack" }, el("div", { className: "editor" }, numbers, text), problems, el("div", { className: "buttons" }, name, make)));
}
