// A namespace's events, while somebody looks: a hidden page asks for nothing.

import { address } from "./host.js";

/** A browser opens a stream again by itself, unless the host answered with an error. */
const AGAIN_MS = 2_000;

/** Calls `handlers` by the names of events, and `handlers.open(isOpen)`; returns what ends it. */
export function follow(question, handlers) {
  let source = null;
  let again = 0;
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource(address("events", question));
    source.onopen = () => handlers.open?.(true);
    source.onerror = ({ target }) => {
      handlers.open?.(false);
      if (target !== source || target.readyState !== EventSource.CLOSED) return;
      source = null;
      again = setTimeout(open, AGAIN_MS);
    };
    for (const [name, handler] of Object.entries(handlers)) {
      if (name !== "open") source.addEventListener(name, (event) => handler(JSON.parse(event.data)));
    }
  };
  const close = () => {
    clearTimeout(again);
    source?.close();
    source = null;
  };
  const look = () => (document.hidden ? close() : open());
  document.addEventListener("visibilitychange", look);
  open();
  return () => {
    document.removeEventListener("visibilitychange", look);
    close();
  };
}
