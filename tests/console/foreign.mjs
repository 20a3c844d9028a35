// A page of somebody else's, which tries everything that a page can.

import { once } from "node:events";
import { createServer, request } from "node:http";

/** A server of such a page; `globalThis.tried` is what came of each try. */
export async function foreignPage(base, demo, endpoint) {
  const words = ["namespace", "create", "demo/foreign", "--version", "1.0"];
  const question = encodeURIComponent(JSON.stringify({ game: demo.game_id, namespace: demo.namespace_id, filter: {} }));
  // Even one that knows the database's key gets nothing.
  const { origin: store, username: key } = new URL(endpoint);
  const item = JSON.stringify({ TableName: "TokensTable", Item: { digest: { S: "foreign" } } });
  const script = `
    const base = ${JSON.stringify(base)}, store = ${JSON.stringify(store)}, item = ${JSON.stringify(item)};
    const signed = { "content-type": "application/x-amz-json-1.0", "x-amz-target": "DynamoDB_20120810.PutItem", "x-amz-date": "20260101T000000Z", authorization: "AWS4-HMAC-SHA256 Credential=${key}/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=none" };
    const asked = async (url, options) => (await fetch(url, options).catch(() => null))?.ok ? "let in" : "kept out";
    const body = JSON.stringify({ words: ${JSON.stringify(words)} });
    const fetched = (path, options) => asked(base + path, options);
    const events = (element, url) => new Promise((came) => {
      element.onload = element.onopen = element.onmessage = () => came("let in");
      element.onerror = () => came("kept out");
      if (url) { element.src = url; document.body.append(element); }
    });
    const framed = () => new Promise((came) => {
      const frame = document.createElement("iframe");
      frame.src = base;
      frame.onload = () => { try { came(frame.contentWindow.document ? "let in" : "kept out"); } catch { came("kept out"); } };
      document.body.append(frame);
    });
    const form = () => new Promise((came) => {
      const frame = document.createElement("iframe");
      frame.name = "form";
      document.body.append(frame);
      const made = document.createElement("form");
      Object.assign(made, { method: "post", enctype: "text/plain", action: base + "/_console/command", target: "form" });
      const field = document.createElement("input");
      field.name = body.slice(0, -1) + ', "text": "';
      field.value = '"}';
      made.append(field);
      document.body.append(made);
      frame.onload = () => came("kept out");
      made.submit();
    });
    globalThis.tried = Promise.all(Object.entries({
      read: () => fetched("/_console/deployment"),
      readWithHeader: () => fetched("/_console/deployment", { headers: { "muster-console": "1" } }),
      readWithCookies: () => fetched("/_console/deployment", { credentials: "include" }),
      change: () => fetched("/_console/command", { method: "POST", body }),
      changeAsJson: () => fetched("/_console/command", { method: "POST", body, headers: { "content-type": "application/json", "muster-console": "1" } }),
      changeUnheard: async () => { await fetch(base + "/_console/command", { method: "POST", body, mode: "no-cors" }).catch(() => null); return "kept out"; },
      listen: () => events(new EventSource(base + "/_console/events?q=${question}")),
      loadScript: () => events(document.createElement("script"), base + "/_console/main.js"),
      loadData: () => events(document.createElement("script"), base + "/_console/deployment"),
      readDemo: () => fetched("/_local/demo"),
      readStore: () => fetched("/_local/store"),
      loadStore: () => events(document.createElement("script"), base + "/_local/store"),
      writeDatabase: () => asked(store, { method: "POST", headers: signed, body: item }),
      writeDatabaseUnheard: async () => { await fetch(store, { method: "POST", mode: "no-cors", body: item }).catch(() => null); return "kept out"; },
      loadDatabase: () => events(document.createElement("img"), store),
      frame: framed,
      form,
    }).map(async ([way, go]) => [way, await go()])).then(Object.fromEntries);`;
  const page = `<!doctype html><title>foreign</title><body><script>${script}</script>`;
  const server = createServer((_, response) => response.setHeader("content-type", "text/html").end(page)).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: server.address().port, close: () => server.close() };
}

/** The status of a request with these headers and no others: `fetch` does not let one choose the host. */
export async function rawStatus(base, method, path, headers) {
  const asked = request(base + path, { method, headers: { ...headers, "content-type": "application/json" } });
  asked.end(method === "POST" ? "{}" : undefined);
  const [response] = await once(asked, "response");
  response.resume();
  return response.statusCode;
}
