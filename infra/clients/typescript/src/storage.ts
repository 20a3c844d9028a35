/** Where seats outlive a reload: a `Storage` of the browser, or what behaves like one. */
export type SeatStorage = Pick<Storage, "length" | "key" | "getItem" | "setItem" | "removeItem">;

interface Kept {
  token: string;
  expiresAt: number;
}

/** The seats of one deployment, with a key for each lobby. */
export class KeptSeats {
  constructor(readonly storage: SeatStorage | undefined, readonly url: string) {}

  /** The page's own storage, where it has one. */
  static default(): SeatStorage | undefined {
    try {
      return globalThis.sessionStorage;
    } catch {
      // A page may be denied its storage.
      return undefined;
    }
  }

  keep(lobbyId: string, kept: Kept): void {
    try {
      this.storage?.setItem(this.#key(lobbyId), JSON.stringify(kept));
    } catch {
      // A full storage loses the seat at a reload, not now.
    }
  }

  forget(lobbyId: string): void {
    this.storage?.removeItem(this.#key(lobbyId));
  }

  /** The seats that are kept, the latest first. */
  all(): (Kept & { lobbyId: string })[] {
    const { storage } = this;
    const prefix = this.#key("");
    const keys = Array.from({ length: storage?.length ?? 0 }, (_, index) => storage!.key(index) ?? "");
    return keys.filter((key) => key.startsWith(prefix))
      .map((key) => ({ ...JSON.parse(storage!.getItem(key) ?? "{}") as Kept, lobbyId: key.slice(prefix.length) }))
      .sort((one, other) => other.expiresAt - one.expiresAt);
  }

  #key(lobbyId: string): string {
    return `muster ${this.url} ${lobbyId}`;
  }
}
