// Starts game servers as machines of Fly: `"build": {"image": "registry.fly.io/my-game:7", "guest": {…}}`.
//
// A machine is named after its start, and Fly keeps names unique in an app: asked twice, it is one machine.
// Regions of the game have the names of Fly's, such as `fra`.
import { call, receive } from "./receiver.mjs";

const { FLY_APP, FLY_API_TOKEN, FLY_API = "https://api.machines.dev" } = process.env;
const machines = `${FLY_API}/v1/apps/${FLY_APP}/machines`;

async function named(start_id) {
  const { json } = await call("GET", machines, FLY_API_TOKEN);
  return json.find((machine) => machine.name === start_id)?.id;
}

async function start({ start_id, region_id, build, environment }) {
  const config = {
    ...build,
    env: { ...build.env, ...environment },
    auto_destroy: true,
    restart: { policy: "no" },
  };
  const { status, json } = await call("POST", machines, FLY_API_TOKEN, { name: start_id, region: region_id, config });
  if (status === 409) return [200, { handle: await named(start_id) }];
  return status < 300 ? [200, { handle: json.id }] : [422, { message: json.error }];
}

async function stop({ start_id, handle }) {
  const id = handle && handle !== start_id ? handle : await named(start_id);
  if (!id) return [404];
  const { status } = await call("DELETE", `${machines}/${id}?force=true`, FLY_API_TOKEN);
  return [status < 300 ? 200 : 404];
}

receive({ start, stop });
