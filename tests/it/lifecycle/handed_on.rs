//! What one party sends and another reads: no client's data makes another's answer unreadable.

use std::time::Duration;

use harness::{
    Answer, TestGame, TestStack,
    left_out::needs,
    readable::{self, PARSERS},
};
use http::Method;
use serde_json::json;

use super::{find, game};

const BAD_BODY: (u16, &str) = (400, "API_BAD_BODY");

/// Texts whose grammar is JSON and that some parser does not read, at any depth.
const UNREADABLE: [&str; 10] = [
    "1e999",
    "-1e400",
    r#"{ "ratio": [1e309] }"#,
    r#""\ud800""#,
    r#""\udc00""#,
    r#"["\ud83c\ud83c"]"#,
    r#""\ud83cx""#,
    r#"{ "\ud83c": 1 }"#,
    r#"{ "a": "\udfae", "a": 1 }"#,
    r#"{ "a": 1e999, "a": 1 }"#,
];

/// Texts at the edge of what is read, each with how it comes back.
const READABLE: [&str; 6] = [
    r#"{ "b": 1.10, "a": 1E2, "b": null }"#,
    "[1e308, -1e308, 1e-999, -0, 18446744073709551616, 9007199254740993]",
    r#"["\ud83c\udfae", "\u0000", "\\ud800", "ä", "🎮"]"#,
    r#"{ "\ud83c\udfae": "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[" }"#,
    "0.10000000000000000000000000000000000000000000000000000000000000000000000001",
    "true",
];

/// Arrays and objects in turn, `depth` deep, with text in the innermost.
fn nested(depth: usize) -> String {
    (0..depth).fold(r#""]}""#.to_owned(), |inner, level| {
        if level % 2 == 0 { format!("[{inner}]") } else { format!(r#"{{"a":{inner}}}"#) }
    })
}

/// The same below a name that stands there twice: the text has it, a parsed value does not.
fn replaced(depth: usize) -> String {
    format!(r#"{{"a":{},"a":1}}"#, nested(depth - 1))
}

/// What the refusal of such a text says.
fn problem_of(unreadable: &str) -> &'static str {
    if unreadable.contains("\\u") { "a lone surrogate" } else { "a number is not finite" }
}

struct Scene {
    stack: TestStack,
    game: TestGame,
}

impl Scene {
    async fn new(name: &str) -> Self {
        let stack = TestStack::start().await;
        let mode = json!({ "max_players": 50, "actions": { "create": { "enabled": true } } });
        let game = game(&stack, name, mode).await;
        game.register(&stack, "one", json!({ "capacity": 900, "lease_seconds": 0 })).await;
        Self { stack, game }
    }

    async fn post(&self, operation: &str, body: String) -> Answer {
        let path = format!("/matchmaker/{operation}");
        self.stack.call(Method::POST, &path, Some(&self.game.public), body).await
    }

    async fn create(&self, config: &str) -> Answer {
        let body = format!(r#"{{"game_mode":"arena","region":"fra","lobby_config":{config}}}"#);
        self.post("lobbies/create", body).await
    }

    async fn set_state(&self, lobby_id: &str, state: &str) -> Answer {
        let token = self.game.lobby_token(&self.stack, lobby_id);
        self.stack.call(Method::PUT, "/matchmaker/lobbies/state", Some(&token), state.to_owned()).await
    }

    async fn state(&self, lobby_id: &str) -> Answer {
        self.get(&format!("lobbies/{lobby_id}/state")).await
    }

    async fn get(&self, path: &str) -> Answer {
        let path = format!("/matchmaker/{path}");
        self.stack.call(Method::GET, &path, Some(&self.game.public), "").await.expect_ok()
    }

    /// The list with states, read again.
    async fn list(&self) -> Answer {
        self.stack.clock.advance(Duration::from_secs(6));
        self.get("lobbies/list?include_state=true").await
    }

    async fn connect(&self, seat: &Answer) -> Answer {
        self.game.connect_with_details(&self.stack, seat).await
    }

    async fn heartbeat(&self) -> Answer {
        self.game.heartbeat(&self.stack, "one").await.expect_ok()
    }
}

#[track_caller]
fn assert_bad(answer: &Answer, path: &str, problem: &str, sent: &str) {
    assert_eq!(answer.refusal(), BAD_BODY, "{sent:.100}");
    let message = answer.body["message"].as_str().unwrap();
    assert!(message.contains(path) && message.contains(problem), "{sent:.100}: {message}");
}

#[tokio::test]
async fn a_configuration_nests_16_deep_and_every_heartbeat_is_readable() {
    let scene = Scene::new("config").await;
    for (config, is_taken) in [
        (nested(16), true),
        (replaced(16), true),
        (nested(17), false),
        (replaced(17), false),
        // With the levels around it more than the 127 of serde_json and others.
        (nested(126), false),
    ] {
        let answer = scene.create(&config).await;
        if is_taken {
            answer.expect_ok();
        } else {
            assert_bad(&answer, "`lobby_config`", "nested more than 16 deep", &config);
        }
    }
    for config in UNREADABLE {
        // The body as a whole is parsed before.
        assert_bad(&scene.create(config).await, "`.`", problem_of(config), config);
    }
    let heartbeat = scene.heartbeat().await;
    assert_eq!(readable::problem(&heartbeat.text), None);
    assert_eq!(heartbeat.body["lobbies"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_state_nests_32_deep_and_every_list_is_readable() {
    let scene = Scene::new("state").await;
    let lobby_id = find(&scene.stack, &scene.game).await.expect_ok().lobby_id();
    for state in [nested(32), replaced(32)] {
        scene.set_state(&lobby_id, &state).await.expect_ok();
        assert_eq!(scene.state(&lobby_id).await.text, state);
    }
    let deepest = format!("{}{}", "[".repeat(32_000), "]".repeat(32_000));
    for state in [&nested(33), &replaced(33), &nested(127), &deepest] {
        assert_bad(&scene.set_state(&lobby_id, state).await, "`.`", "nested more than 32 deep", state);
    }
    for state in UNREADABLE {
        assert_bad(&scene.set_state(&lobby_id, state).await, "`.`", problem_of(state), state);
    }
    let list = scene.list().await;
    assert_eq!(readable::problem(&list.text), None);
    assert!(list.text.contains(&replaced(32)), "the last that was taken: {}", list.text);
}

#[tokio::test]
async fn data_for_a_backend_and_of_a_player_nests_16_deep() {
    let scene = Scene::new("backend").await;
    let lobby_id = find(&scene.stack, &scene.game).await.expect_ok().lobby_id();
    for (operation, field) in [
        ("lobbies/find", r#""game_modes":["arena"]"#.to_owned()),
        ("lobbies/join", format!(r#""lobby_id":"{lobby_id}""#)),
        ("lobbies/create", r#""game_mode":"arena""#.to_owned()),
    ] {
        let ask = async |name: &str, data: &str| {
            scene.post(operation, format!(r#"{{{field},"{name}":{data}}}"#)).await
        };
        for name in ["verification_data", "player_data"] {
            ask(name, &nested(16)).await.expect_ok();
            ask(name, &replaced(16)).await.expect_ok();
            for data in [nested(18), replaced(17)] {
                assert_bad(&ask(name, &data).await, &format!("`{name}`"), "nested more than 16 deep", &data);
            }
            for data in UNREADABLE {
                assert_bad(&ask(name, data).await, "`.`", problem_of(data), data);
            }
        }
        let no_object = ask("verification_data", "[]").await;
        assert_bad(&no_object, "`verification_data`", "an object is needed", "[]");
    }
}

#[tokio::test]
async fn what_is_readable_is_handed_on_to_the_letter() {
    let scene = Scene::new("letter").await;
    let lobby_id = find(&scene.stack, &scene.game).await.expect_ok().lobby_id();
    for text in READABLE {
        scene.create(text).await.expect_ok();
        let heartbeat = scene.heartbeat().await;
        assert!(heartbeat.text.contains(&format!(r#""lobby_config":{text}"#)), "{text}: {}", heartbeat.text);
        scene.set_state(&lobby_id, text).await.expect_ok();
        assert_eq!(scene.state(&lobby_id).await.text, text);
        assert!(scene.list().await.text.contains(&format!(r#""state":{text}"#)), "{text}");
        let body = format!(r#"{{"game_modes":["arena"],"player_data":{text}}}"#);
        let seat = scene.post("lobbies/find", body).await.expect_ok();
        for connected in [scene.connect(&seat).await.expect_ok(), scene.connect(&seat).await] {
            let data = format!(r#""player_data":{text}}}"#);
            assert!(connected.text.contains(&data), "{text}: {}", connected.text);
        }
    }
}

#[tokio::test]
async fn other_languages_read_every_answer() {
    for parser in PARSERS {
        let name = format!("answers as {} reads them", parser.command);
        if !needs(&name, parser.missing().await) {
            continue;
        }
        let scene = Scene::new("languages").await;
        let lobby_id = find(&scene.stack, &scene.game).await.expect_ok().lobby_id();
        let mut texts = Vec::new();
        let edges = [nested(16), nested(32), nested(1_000), nested(2_500)];
        for text in UNREADABLE.into_iter().chain(READABLE).chain(edges.iter().map(String::as_str)) {
            // Whether it is taken or not.
            let (_, _) = (scene.create(text).await, scene.set_state(&lobby_id, text).await);
            texts.extend([scene.list().await.text, scene.state(&lobby_id).await.text]);
            let body = format!(r#"{{"game_modes":["arena"],"player_data":{text}}}"#);
            let seat = scene.post("lobbies/find", body).await;
            if seat.status == 200 {
                texts.extend([seat.text.clone(), scene.connect(&seat).await.text]);
            }
        }
        texts.push(scene.heartbeat().await.text);
        assert_eq!(parser.problem(&texts).await, None, "{}", parser.command);
    }
}

#[tokio::test]
async fn other_languages_notice_what_cannot_be_read() {
    for parser in PARSERS {
        if !needs(&format!("what {} cannot read", parser.command), parser.missing().await) {
            continue;
        }
        for text in UNREADABLE.into_iter().filter(|text| !text.contains(r#","#)) {
            let problem = parser.problem(&[text.to_owned()]).await;
            assert!(problem.is_some(), "{} reads {text}", parser.command);
        }
    }
}
