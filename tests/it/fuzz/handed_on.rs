//! Data that one party sends never spoils the responses to others.

use harness::{Answer, TestGame, TestStack, readable};
use http::Method;
use proptest::{
    collection::vec,
    prelude::{any, prop_oneof},
    prop_assert_eq,
    strategy::Strategy,
    test_runner::TestCaseResult,
};
use serde_json::json;
use tokio::runtime::Builder;

use super::{
    check,
    json::{Json, any_json, name, text},
};

/// What a player, a game server and a lobby server send.
#[derive(Clone, Debug)]
struct Sent {
    config: Json,
    verification_data: Json,
    tags: Vec<(String, String)>,
    server_id: String,
    /// Labels and hostnames.
    ports: Vec<(String, String)>,
    state: Json,
}

/// Any JSON; or such as may be taken, in more layers than there may be, or in fewer.
fn layered() -> impl Strategy<Value = Json> {
    let layers = (any_json(), vec(any::<bool>(), 0..36)).prop_map(|(inner, layers)| {
        layers.into_iter().fold(inner, |inner, is_list| {
            if is_list { Json::List(vec![inner]) } else { Json::Object(vec![("in".to_owned(), inner)]) }
        })
    });
    prop_oneof![any_json(), layers]
}

fn sent() -> impl Strategy<Value = Sent> {
    let hostname = prop_oneof![text(), "[a-z0-9-]{1,9}\\.[a-z]{2,5}"];
    let of_player = (layered(), layered(), vec((name(), text()), 0..4));
    let of_server = (text(), vec((name(), hostname), 0..3), layered());
    (of_player, of_server).prop_map(|((config, verification_data, tags), (server_id, ports, state))| Sent {
        config,
        verification_data,
        tags,
        server_id,
        ports,
        state,
    })
}

/// One game, and who sends.
struct Scene<'a> {
    stack: &'a TestStack,
    game: TestGame,
}

impl Scene<'_> {
    async fn new(stack: &TestStack) -> Scene<'_> {
        let arena = json!({ "regions": ["fra"], "max_players": 4, "taggable": true,
                            "actions": { "create": { "enabled": true } } });
        let name = format!("fuzz-{}", stack.ambient().uuid());
        Scene { stack, game: stack.make_game(&name, json!({ "arena": arena }), 99, 0).await }
    }

    async fn post(&self, path: &str, token: &str, body: &Json) -> Answer {
        self.stack.call(Method::POST, &format!("/matchmaker/{path}"), Some(token), body.to_string()).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.stack.call(Method::GET, &format!("/matchmaker/{path}"), Some(&self.game.public), "").await
    }

    /// The game server that runs every lobby: as `sent` has it, or if that is refused, a plain one.
    async fn register(&self, sent: &Sent) -> Json {
        let of = |server_id: &Json, ports: &[(String, String)]| {
            let port = |hostname: &String| {
                let mut port = json!({ "port": 443, "protocol": "https" });
                port["hostname"] = hostname.as_str().into();
                Json::from(&port)
            };
            let ports = ports.iter().map(|(label, hostname)| (label.clone(), port(hostname))).collect();
            object([
                ("server_id", server_id.clone()),
                ("region_id", Json::Text("fra".to_owned())),
                ("lease_seconds", Json::Raw("0".to_owned())),
                ("ports", Json::Object(ports)),
            ])
        };
        let server_id = Json::Text(sent.server_id.clone());
        let path = "servers/register";
        if self.post(path, &self.game.server, &of(&server_id, &sent.ports)).await.status == 200 {
            return server_id;
        }
        let plain = Json::Text("plain".to_owned());
        let ports = [("web".to_owned(), "a.example".to_owned())];
        self.post(path, &self.game.server, &of(&plain, &ports)).await.expect_ok();
        plain
    }

    /// The lobby that others see: as `sent` has it, as far as that is taken.
    async fn create(&self, sent: &Sent) -> String {
        let tags = sent.tags.iter().map(|(name, tag)| (name.clone(), Json::Text(tag.clone()))).collect();
        let fields = [
            ("game_mode", Json::Text("arena".to_owned())),
            ("publicity", Json::Text("public".to_owned())),
            ("tags", Json::Object(tags)),
            ("lobby_config", sent.config.clone()),
            ("verification_data", sent.verification_data.clone()),
        ];
        for left_out in [&[][..], &["verification_data"], &["verification_data", "tags"]] {
            let fields = fields.iter().filter(|(name, _)| !left_out.contains(name)).cloned();
            let answer = self.post("lobbies/create", &self.game.public, &object(fields)).await;
            if answer.status == 200 {
                return answer.lobby_id();
            }
        }
        let plain = object(fields.into_iter().take(2));
        self.post("lobbies/create", &self.game.public, &plain).await.expect_ok().lobby_id()
    }

    /// What others are answered afterwards.
    async fn answers(&self, server_id: &Json, lobby_id: &str) -> Vec<Answer> {
        let (server, player) = (&self.game.server, &self.game.public);
        let find = json!({ "game_modes": ["arena"], "prevent_auto_create_lobby": true });
        vec![
            self.post("servers/heartbeat", server, &object([("server_id", server_id.clone())])).await,
            self.post("lobbies/find", player, &Json::from(&find)).await,
            self.post("lobbies/join", player, &Json::from(&json!({ "lobby_id": lobby_id }))).await,
            self.get("lobbies/list?include_state=true").await,
            self.get(&format!("lobbies/{lobby_id}/state")).await,
            self.get("regions").await,
            self.get("players/statistics").await,
        ]
    }
}

fn object<'a>(fields: impl IntoIterator<Item = (&'a str, Json)>) -> Json {
    Json::Object(fields.into_iter().map(|(name, field)| (name.to_owned(), field)).collect())
}

async fn every_answer_is_readable(stack: &TestStack, sent: &Sent) -> TestCaseResult {
    let scene = Scene::new(stack).await;
    let server_id = scene.register(sent).await;
    let lobby_id = scene.create(sent).await;
    let token = scene.game.lobby_token(stack, &lobby_id);
    let state = sent.state.to_string();
    let set = stack.call(Method::PUT, "/matchmaker/lobbies/state", Some(&token), state).await;
    prop_assert_eq!(readable::problem(&set.text), None);
    for answer in scene.answers(&server_id, &lobby_id).await {
        prop_assert_eq!(
            (answer.status.as_u16(), readable::problem(&answer.text)),
            (200, None),
            "{}",
            answer.text
        );
    }
    Ok(())
}

#[test]
fn whatever_one_party_sends_all_others_can_read_their_answers() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let stack = runtime.block_on(TestStack::start());
    check(sent(), |sent| runtime.block_on(every_answer_is_readable(&stack, &sent)));
}
