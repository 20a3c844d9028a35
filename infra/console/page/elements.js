// Elements out of values; times, which go on by themselves; questions and what is copied.

/** How far the host's clock is ahead of this one, in milliseconds. */
let ahead = 0;

export const setNow = (now) => { ahead = now - Date.now(); };
export const now = () => Date.now() + ahead;

/** What an object of texts from outside has by a name, and not what every object has. */
export const own = (object, name, otherwise) => (Object.hasOwn(object, name) ? object[name] : otherwise);

/** An element with attributes, listeners (`onclick`) and children; what is null or false is left out. */
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && typeof value !== "string") element[key] = value;
    else element.setAttribute(key === "className" ? "class" : key, value === true ? "" : value);
  }
  element.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An element of SVG. */
export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export function span(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

export const absolute = (at) => new Date(at).toISOString().replace("T", " ").replace("Z", " UTC");

/** What an element is brought up to date by; an element that is gone takes its entry with it. */
const updates = new WeakMap();

/** Has `update` called at once, and each second while `element` is in the page. */
export function goesOn(element, update) {
  updates.set(element, update);
  element.setAttribute("data-goes-on", "");
  update();
  return element;
}

setInterval(() => {
  for (const element of document.querySelectorAll("[data-goes-on]")) updates.get(element)?.();
}, 1000);

/** A time as "5 s ago" or "in 5 s", and in full on hover. */
export function when(at) {
  const element = el("time", { datetime: new Date(at).toISOString(), title: absolute(at) });
  return goesOn(element, () => {
    const left = at - now();
    element.textContent = left > 0 ? `in ${span(left)}` : `${span(-left)} ago`;
  });
}

/** A time of day, and in full on hover. */
export function clock(at) {
  return el("time", { datetime: new Date(at).toISOString(), title: absolute(at) }, new Date(at).toTimeString().slice(0, 8));
}

const TONES = new Map(Object.entries({
  good: ["open", "free", "valid", "taken"], bad: ["silent", "revoked"],
  warn: ["full", "closed", "starting", "draining", "clearing", "expired", "retired"],
}).flatMap(([tone, states]) => states.map((state) => [state, tone])));

export const tag = (text) => el("span", { className: `tag ${TONES.get(text) ?? ""}` }, text);

/** Names and values. */
export const facts = (pairs) => el("dl", { className: "facts" },
  pairs.filter(([, value]) => value !== null && value !== undefined).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));

/** Heads that begin with "#" are of numbers. Where a table has no room for its columns, each row is a block and each cell has its head. */
export const table = (heads, rows) => el("div", { className: "fitted" }, el("div", { className: "scroll", tabindex: "0" }, el("table", {},
  el("thead", {}, el("tr", {}, heads.map((head) => (head ? el("th", { scope: "col", className: head.startsWith("#") ? "number" : null }, head.replace("#", "")) : el("td"))))),
  el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, at) => el("td", { className: heads[at].startsWith("#") ? "number" : null, "data-head": heads[at].replace("#", "") }, cell))))))));

export const card = (title, ...children) => el("section", { className: "card" }, el("h2", {}, title), ...children);

/** What there is to do where nothing is. */
export const empty = (text, ...commands) => el("div", { className: "empty" }, el("p", {}, text), commands.map((command) => el("code", {}, command)));

/** Whether the operator wants it, too. */
export function confirmed(question, verb) {
  const dialog = document.getElementById("question");
  dialog.querySelector("p").textContent = question;
  dialog.querySelector(".danger").textContent = verb;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((answer) => dialog.addEventListener("close", () => answer(dialog.returnValue === "yes"), { once: true }));
}

/** A text that can be copied. */
export function copyable(text) {
  const button = el("button", { type: "button", className: "small", onclick: async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  } }, "Copy");
  return el("div", { className: "stack" }, el("pre", { tabindex: "0" }, text), el("div", { className: "buttons" }, button));
}

export const plural = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

export function dollars(amount) {
  if (amount === 0) return "$0";
  if (amount < 0.01) return `$${amount.toLocaleString("en", { maximumSignificantDigits: 2 })}`;
  return `$${amount.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}
