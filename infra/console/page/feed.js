// A namespace's events, while somebody looks: a hidden page asks for nothing.

import { address } from "./host.js";

/** Calls `handlers` by the names of events, and `handlers.open(isOpen)`; returns what ends it. */
export function follow(question, handlers) {
  let source = null;
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource(address("events", question));
    source.onopen = () => handlers.open?.(true);
    source.onerror = () => handlers.open?.(false);
    for (const [name, handler] of Object.entries(handlers)) {
      if (name !== "open") source.addEventListener(name, (event) => handler(JSON.parse(event.data)));
    }
  };
  const close = () => {
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
