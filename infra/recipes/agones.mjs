// Starts game servers as GameServers of Agones: `"build": {"image": "my-game:7", "port": 7777}`.
//
// A GameServer is named after its start, and Kubernetes keeps names unique: asked twice, it is one.
// It is created, not allocated, so a cluster needs no fleet that waits.
import { readFileSync } from "node:fs";
import { call, receive } from "./receiver.mjs";

const account = "/var/run/secrets/kubernetes.io/serviceaccount";
const { KUBERNETES_API = "https://kubernetes.default.svc", NAMESPACE = "default" } = process.env;
const token = () => process.env.KUBERNETES_TOKEN ?? readFileSync(`${account}/token`, "utf8");
const servers = `${KUBERNETES_API}/apis/agones.dev/v1/namespaces/${NAMESPACE}/gameservers`;

async function start({ start_id, build, environment }) {
  const env = Object.entries(environment).map(([name, value]) => ({ name, value }));
  const container = { name: "game", image: build.image, env, resources: build.resources };
  const server = {
    apiVersion: "agones.dev/v1",
    kind: "GameServer",
    metadata: { name: start_id },
    spec: {
      // Without Agones's SDK in the process: Muster's heartbeats say whether it is well.
      health: { disabled: true },
      ports: [{ name: "default", portPolicy: "Static", hostPort: build.port, containerPort: build.port, protocol: build.protocol ?? "UDP" }],
      template: { spec: { restartPolicy: "Never", containers: [container] } },
    },
  };
  const { status, json } = await call("POST", servers, token(), server);
  const isThere = status < 300 || status === 409;
  return isThere ? [200, { handle: start_id }] : [422, { message: json.message }];
}

async function stop({ start_id }) {
  const { status } = await call("DELETE", `${servers}/${start_id}`, token());
  return [status < 300 ? 200 : 404];
}

receive({ start, stop });
