// Receives Muster's webhooks: verifies the signature, and answers with what `start` and `stop` make of a request.
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

export function receive({ start, stop }) {
  const webhook = new Webhook(process.env.WEBHOOK_SECRET);
  const server = createServer(async (request, response) => {
    const answer = (status, body = {}) => response.writeHead(status).end(JSON.stringify(body));
    let event;
    try {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      event = webhook.verify(Buffer.concat(chunks).toString(), request.headers);
    } catch {
      return answer(401, { message: "the signature is not valid" });
    }
    try {
      answer(...(event.type === "server.start" ? await start(event) : await stop(event)));
    } catch (error) {
      console.error(error);
      answer(503);
    }
  });
  server.listen(Number(process.env.PORT ?? 8080), process.env.HOST, () => console.log(`listens on ${server.address().port}`));
}

// Calls an API with a token. What it refuses for now, Muster is to ask again.
export async function call(method, url, token, body) {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(url, { method, headers, body: body && JSON.stringify(body), signal: AbortSignal.timeout(8000) });
  const json = await response.json().catch(() => ({}));
  if (response.status === 429 || response.status >= 500) throw new Error(`${method} ${url}: ${response.status}`);
  return { status: response.status, json };
}
