//! The function that has game servers started: real events of Lambda over the real store, to receivers on
//! this machine.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "this is test code: what cannot go on panics"
)]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use harness::{TestStack, interference::Losing, new_game};
use muster_local::{
    emulator::link::patient_client_over, permissions::restrict, stack::TEMPLATE, template::Template,
};
use serde_json::{Value, json};
use shared::{
    function::config::Environment,
    hosting::launching::Launching,
    models::{
        errors::Error,
        ids::ServerKey,
        launch::{LaunchStage, build_id},
        server::{PlacementPool, Server},
        starter::{EcsSettings, SigningSecret, StarterSettings},
    },
    outside::webhook::Webhooks,
    store::{client::Store, listing::servers_of},
};
use start_server::{
    Starts,
    ecs::Ecs,
    queue::{Look, Queue},
    starter::{NoProcesses, RegionStarter},
};
use wiremock::{Mock, MockServer, Request, ResponseTemplate, matchers::method};

use crate::screening::{outside, run_version, stalling};

mod process;
mod recipes;
mod tasks;
mod webhooks;

/// A queue that keeps what it gets.
#[derive(Clone, Debug, Default)]
struct Kept(Arc<Mutex<Vec<(Look, Duration)>>>);

impl Queue for Kept {
    async fn send(&self, look: &Look, after: Duration) -> Result<(), Error> {
        self.0.lock().unwrap().push((look.clone(), after));
        Ok(())
    }
}

/// A stack with a game whose servers are started by a region's starter.
struct Scene {
    stack: TestStack,
    /// The game server that its only lobby requested.
    key: ServerKey,
    queue: Kept,
}

const API_URL: &str = "https://api.example";

impl Scene {
    async fn start(starter: StarterSettings) -> Self {
        let stack = TestStack::start().await;
        let actions = json!({ "create": { "enabled": true } });
        let arena = json!({ "regions": ["fra"], "max_players": 10, "actions": actions });
        let game = stack.make_game_of(new_game("starting", json!({ "arena": arena }), 10), 0).await;
        let region_id = "fra".parse().unwrap();
        assert!(stack.store().set_starter(game.game_id(), &region_id, starter).await.unwrap());
        let build = json!({ "image": "game:7", "port": 7_777 });
        // Starts took so long that a find does not wait.
        let pool = PlacementPool {
            namespace_id: game.namespace_id().clone(),
            region_id,
            build_id: Some(build_id(&build)),
        };
        stack.store().note_start(&pool, Duration::from_secs(20), stack.clock.now()).await.unwrap();
        run_version(
            &stack,
            &game,
            json!({ "game_modes": { "arena": arena }, "servers": { "build": build, "start_seconds": 60 } }),
        )
        .await;
        // With a configuration, which goes with the lobby.
        let create = json!({ "game_mode": "arena", "region": "fra", "lobby_config": { "map": "x" } });
        let refused = game.play(&stack, "lobbies/create", create).await;
        assert_eq!(refused.refusal().0, 503, "{}", refused.body);
        let now = stack.store().game(game.game_id()).await.unwrap().unwrap();
        let servers = servers_of(stack.store(), &now, game.namespace_id()).await.unwrap();
        assert_eq!(servers.len(), 1, "{servers:?}");
        let key = servers[0].server.clone();
        Self { stack, key, queue: Kept::default() }
    }

    /// The requested game server as it is now.
    async fn server(&self) -> Server {
        self.stack.store().server(&self.key).await.unwrap().unwrap()
    }

    /// The store with the permissions that the template gives the function.
    fn store(&self) -> Store {
        self.restricted(self.stack.store().client())
    }

    fn restricted(&self, client: &aws_sdk_dynamodb::Client) -> Store {
        let declared = Template::parse(TEMPLATE).unwrap().functions;
        let permissions = &declared["functions/start-server"].permissions;
        self.stack.store().with_client(restrict(client, "start-server", permissions))
    }

    fn function(&self) -> Starts<RegionStarter<NoProcesses>, Kept> {
        self.function_over(self.store(), None)
    }

    fn function_over(&self, store: Store, ecs: Option<String>) -> Starts<RegionStarter<NoProcesses>, Kept> {
        let ambient = self.stack.ambient();
        let webhooks = Webhooks::new(outside(""), ambient.clone());
        let ecs = ecs.map(|url| {
            let environment = Environment::of([
                ("AWS_REGION", "eu-central-1"),
                ("AWS_ACCESS_KEY_ID", "example"),
                ("AWS_SECRET_ACCESS_KEY", "example"),
            ]);
            Ecs::new(environment.aws_api(ambient.clone()).unwrap(), Some(url))
        });
        let starter = RegionStarter::new(store.clone(), webhooks, ecs, NoProcesses);
        let keys = Arc::clone(self.stack.stack.keys());
        Starts::new(Launching::new(store, keys, ambient, API_URL.to_owned(), starter), self.queue.clone())
    }

    /// What the stream says of the server, as Lambda hands it over.
    fn change(server: &Server) -> Value {
        let key = json!({ "server": { "S": server.server.to_string() } });
        json!({ "Records": [{
            "eventID": "c4ca4238a0b923820dcc509a6f75849b", "eventName": "INSERT", "eventVersion": "1.1",
            "eventSource": "aws:dynamodb", "awsRegion": "eu-central-1",
            "dynamodb": { "Keys": key, "NewImage": { "stage": { "S": "requested" } }, "SequenceNumber": "111",
                          "SizeBytes": 26, "StreamViewType": "NEW_AND_OLD_IMAGES" },
            "eventSourceARN": "arn:aws:dynamodb:eu-central-1:123456789012:table/Servers/stream/2026",
        }] })
    }

    /// A message of the queue, as Lambda hands it over.
    fn message(look: &Look) -> Value {
        json!({ "Records": [{
            "messageId": "m-1", "receiptHandle": "handle", "body": serde_json::to_string(look).unwrap(),
            "attributes": { "ApproximateReceiveCount": "1" }, "messageAttributes": {},
            "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:Starts",
        }] })
    }

    /// Has the function look at the server, and returns when it is to look again.
    async fn look(&self) -> Option<(u32, Duration)> {
        self.look_after(0).await
    }

    async fn look_after(&self, tries: u32) -> Option<(u32, Duration)> {
        self.look_by(&self.function(), tries).await
    }

    async fn look_by(
        &self,
        function: &Starts<RegionStarter<NoProcesses>, Kept>,
        tries: u32,
    ) -> Option<(u32, Duration)> {
        let server = self.key.clone();
        let (answer, error) = function.answer(Self::message(&Look { server, tries })).await;
        assert_done(&answer, error.as_ref());
        self.queue.0.lock().unwrap().drain(..).next().map(|(look, after)| (look.tries, after))
    }
}

/// No record of an event comes again.
fn assert_done(answer: &Value, error: Option<&Error>) {
    assert!(error.is_none(), "{error:?}");
    assert_eq!(*answer, json!({ "batchItemFailures": [] }));
}

/// A webhook at `url`, and its secret.
fn webhook(url: &str) -> StarterSettings {
    let secrets = vec![SigningSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap()];
    StarterSettings::Webhook { url: url.to_owned(), secrets }
}

/// The requests to a receiver so far, each with its body.
async fn received(receiver: &MockServer) -> Vec<(Request, Value)> {
    let requests = receiver.received_requests().await.unwrap();
    let with_body = |request: Request| {
        let body = request.body_json().unwrap();
        (request, body)
    };
    requests.into_iter().map(with_body).collect()
}

fn header(request: &Request, name: &str) -> String {
    request.headers[name].to_str().unwrap().to_owned()
}
