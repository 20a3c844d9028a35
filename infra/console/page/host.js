// Requests to the host.

const PREFIX = "/_console/";

export class Refused extends Error {
  constructor(status, answer) {
    super(status === 401 ? "This page has no session: open the address that the command printed." : answer?.message ?? `The host answers ${status}.`);
    this.status = status;
    this.problems = answer?.problems ?? [];
  }
}

/** The host is gone, or not there again yet. */
export class Unanswered extends Error {
  constructor() {
    super("The host does not answer. Is it still running?");
  }
}

async function answered(fetched) {
  const response = await fetched.catch(() => { throw new Unanswered(); });
  const answer = await response.json().catch(() => null);
  if (!response.ok || answer?.refused) throw new Refused(response.status, answer?.refused);
  return answer;
}

/** The address of what changes nothing. */
export const address = (name, question) => `${PREFIX}${name}${question ? `?q=${encodeURIComponent(JSON.stringify(question))}` : ""}`;

export const read = async (name, question) => answered(fetch(address(name, question), { headers: { "muster-console": "1" } }));

export const change = async (name, body) => answered(fetch(PREFIX + name, {
  method: "POST", headers: { "muster-console": "1", "content-type": "application/json" }, body: JSON.stringify(body),
}));

/** One of the operator's commands, in the command's own words. */
export const command = (words, text) => change("command", { words: words.map(String), text: text ?? null });
