// The running stack at MUSTER_URL, with namespaces of the tests' own.

import { createServer } from "node:http";
import { once } from "node:events";

export const url = process.env.MUSTER_URL ?? "http://127.0.0.1:3000";

async function answered(response) {
  const answer = await response.json();
  if (!response.ok) throw new Error(JSON.stringify(answer));
  return answer;
}

/** A namespace of the demo game that runs these modes: its tokens. */
export async function namespace(modes) {
  const demo = await answered(await fetch(`${url}/_local/demo`));
  const name = crypto.randomUUID().slice(0, 8);
  const post = async (path, body) => answered(await fetch(`${url}/cloud/games/${demo.game_id}/${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${demo.tokens.cloud}` },
    body: JSON.stringify(body),
  }));
  const { version_id } = await post("versions", { display_name: name, config: { game_modes: modes } });
  const { namespace_id } = await post("namespaces", { display_name: name, name_id: name, version_id });
  const token = async (kind) => (await post(`namespaces/${namespace_id}/tokens/${kind}`, {})).token;
  return { players: { url, token: await token("public") }, servers: { url, token: await token("server"), region: "fra" } };
}

/** A network between client and stack that does with the next responses what `faults` says, then none. */
export async function network(faults) {
  const proxy = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const fault = faults.shift();
    if (fault === "request") return request.socket.destroy();
    const { host, connection, ...headers } = request.headers;
    const answer = await fetch(url + request.url, { method: request.method, headers, body: chunks.length > 0 ? Buffer.concat(chunks) : undefined });
    const body = Buffer.from(await answer.arrayBuffer());
    if (fault === "response") return request.socket.destroy();
    response.writeHead(answer.status, { "content-type": "application/json", "content-length": body.length });
    if (fault !== "body") return response.end(body);
    response.write(body.subarray(0, 40), () => request.socket.destroy());
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return { url: `http://127.0.0.1:${proxy.address().port}`, close: () => proxy.close().closeAllConnections() };
}
