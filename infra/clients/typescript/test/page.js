// What the page of the test in a browser runs, bundled.

import { Muster } from "muster-client";

const { url, token } = Object.fromEntries(new URLSearchParams(location.search));
globalThis.muster = new Muster({ url, token, leaveOnPageHide: location.hash === "#leave" });
globalThis.messages = [];

/** Connects the seat of this page: the one that it had before a reload, or a new one. */
globalThis.play = async () => {
  globalThis.seat = await globalThis.muster.restore() ?? await globalThis.muster.find({ game_modes: ["arena"] });
  globalThis.connection = await globalThis.seat.connect("default", { onMessage: (data) => globalThis.messages.push(data) });
  return { lobbyId: globalThis.seat.lobbyId, playerId: globalThis.connection.playerId };
};
