//! What game servers on demand cost: the finds that request them, and the function that has them started.

use std::{sync::Arc, time::Duration};

use harness::{all_servers, new_game, prices::Cost};
use serde_json::{Value, json};
use shared::{
    hosting::launching::Launching,
    models::{
        errors::Error,
        ids::ServerKey,
        starter::{SigningSecret, StarterSettings},
    },
    outside::{endpoints::Outside, web_client::Reach, webhook::Webhooks},
};
use start_server::{
    Starts,
    queue::{Look, Queue},
    starter::{NoProcesses, RegionStarter},
};
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::method};

use crate::Bench;

/// A queue whose messages this benchmark makes itself.
struct NoQueue;

impl Queue for NoQueue {
    async fn send(&self, _: &Look, _: Duration) -> Result<(), Error> {
        Ok(())
    }
}

/// The function `start-server`, over the metered store.
type StartServer = Starts<RegionStarter<NoProcesses>, NoQueue>;

fn starts(bench: &Bench) -> StartServer {
    let store = bench.stack.store().metered(bench.meter.clone());
    let (keys, ambient) = (Arc::clone(bench.stack.stack.keys()), bench.stack.ambient());
    let outside = Outside { reach: Reach::Anywhere, ..Outside::default() };
    let starter =
        RegionStarter::new(store.clone(), Webhooks::new(outside, ambient.clone()), None, NoProcesses);
    Starts::new(Launching::new(store, keys, ambient, "https://api.example".to_owned(), starter), NoQueue)
}

impl Bench {
    /// One message of the queue about a server, and a line about it.
    async fn look(&self, starts: &StartServer, what: &str, server: &ServerKey) {
        self.uncounted.lock().await.remove("start-server");
        let look = serde_json::to_string(&Look { server: server.clone(), tries: 0 }).expect("a message");
        let event = json!({ "Records": [{ "messageId": "m", "body": look }] });
        let before = self.meter.usage();
        let (answer, _) = starts.answer(event).await;
        assert_eq!(answer, json!({ "batchItemFailures": [] }), "{what}");
        self.note(what, Cost::of(self.meter.usage() - before, 0)).await;
    }
}

/// The environment in the order of a start.
async fn ordered(receiver: &MockServer) -> Value {
    let orders = receiver.received_requests().await.expect("requests");
    assert_eq!(orders.len(), 1, "started once");
    orders[0].body_json::<Value>().expect("JSON")["environment"].clone()
}

/// The life of a game server from its request to its end, in a game whose starts take too long to wait for.
pub async fn on_demand(bench: &Bench) {
    let receiver = MockServer::start().await;
    Mock::given(method("POST")).respond_with(ResponseTemplate::new(200)).mount(&receiver).await;
    let stack = &bench.stack;
    let mut new = new_game("on-demand", json!({ "arena": { "regions": ["fra"], "max_players": 2 } }), 9);
    let servers = json!({ "build": "7", "capacity": 4, "start_seconds": 120, "idle_seconds": 60 });
    new.config.servers = Some(serde_json::from_value(servers).expect("servers"));
    let game = stack.make_game_of(new, 0).await;
    let secrets = vec![SigningSecret::random(&stack.ambient())];
    let starter = StarterSettings::Webhook { url: receiver.uri(), secrets };
    let region_id = "fra".parse().expect("a region");
    assert!(stack.store().set_starter(game.game_id(), &region_id, starter).await.expect("a starter"));
    let build_id = game.created.version.config.servers.as_ref().map(|servers| servers.build_id());
    let pool = game.pool("arena", "fra").placement(build_id);
    stack.store().note_start(&pool, Duration::from_secs(30), stack.clock.now()).await.expect("a start");

    let starts = starts(bench);
    let public = format!("Bearer {}", game.public);
    let headers = [("authorization", public.as_str())];
    let find = || (&headers[..], json!({ "game_modes": ["arena"] }));
    let starting = "MATCHMAKER_LOBBY_START_TIMEOUT";
    bench.warm(&["find-lobby"], &game).await;
    bench
        .answered("find: requests a game server whose start takes long", "find-lobby", find(), starting)
        .await;
    bench.answered("find: meets it while it starts", "find-lobby", find(), starting).await;

    let server =
        all_servers(stack.store(), game.namespace_id()).await.pop().expect("the requested one").server;
    bench.look(&starts, "start-server: has one started, by a webhook", &server).await;
    bench.look(&starts, "start-server: looks again after that change", &server).await;
    let order = ordered(&receiver).await;
    let token = order["MUSTER_SERVER_TOKEN"].as_str().expect("a token");
    let port = json!({ "hostname": "203.0.113.7", "port": 7_777, "protocol": "udp" });
    let identity = json!({ "server_id": order["MUSTER_SERVER_ID"], "start_id": order["MUSTER_START_ID"] });
    let mut registration = identity.clone();
    registration["region_id"] = json!("fra");
    registration["ports"] = json!({ "game": port });
    bench
        .line(
            "register: a game server on demand with a lobby that waits",
            "register-server",
            token,
            registration,
            &[],
        )
        .await;
    bench.look(&starts, "start-server: looks whether one is silent", &server).await;
    bench.line("find: takes a seat there once it runs", "find-lobby", &game.public, find().1, &[]).await;
    bench
        .line(
            "heartbeat: a game server on demand with a lobby",
            "heartbeat-server",
            token,
            identity.clone(),
            &[],
        )
        .await;
    let mut deregister = identity;
    deregister["end_lobbies"] = json!(true);
    bench
        .line("deregister: a game server on demand with a lobby", "deregister-server", token, deregister, &[])
        .await;
    bench.look(&starts, "start-server: has one ended, by a webhook", &server).await;
}
