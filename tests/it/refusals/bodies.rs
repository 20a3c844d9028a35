//! Bodies as a whole: their size, their text, their encoding, what is ignored in them.

use harness::TestStack;
use http::Method;
use serde_json::{Value, json};
use shared::{models::handed_on::STATE_DEPTH_MAX, request::BODY_BYTES_MAX};

use super::{
    operation::{OPERATIONS, Operation, send},
    place::{Place, places},
    scene::Scene,
};

const BAD_BODY: (u16, &str) = (400, "API_BAD_BODY");

/// The longest response of any refusal.
const REFUSAL_BYTES_MAX: usize = 1_024;

/// Texts that are no JSON.
const NO_JSON: [&str; 15] = [
    "{",
    "}",
    "{'a': 1}",
    "{\"a\": 1,}",
    "{\"a\" 1}",
    "{\"a\": NaN}",
    "{\"a\": 01}",
    "{\"a\": \"\n\"}",
    "{\"a\": \"\\x41\"}",
    "a=1&b=2",
    "\u{feff}{}",
    "\0",
    "{}{}",
    "{} // done",
    "[1, 2",
];

fn padded(body: &str, bytes: usize) -> String {
    format!("{body}{}", " ".repeat(bytes - body.len()))
}

#[tokio::test]
async fn a_body_of_64_kib_is_read_and_one_byte_more_is_not() {
    let stack = TestStack::start().await;
    for operation in Operation::reading() {
        let scene = Scene::on(&stack).await;
        let body = operation.valid_body(&scene);
        for size in [BODY_BYTES_MAX + 1, 1_024 * 1_024] {
            let larger = operation.call_with(&scene, padded(&body, size)).await;
            assert_eq!(larger.refusal(), (413, "API_BODY_TOO_LARGE"), "{operation}");
        }
        let largest = operation.call_with(&scene, padded(&body, BODY_BYTES_MAX)).await;
        assert_eq!(largest.status, 200, "{operation}: {}", largest.body);
    }
}

#[tokio::test]
async fn the_size_counts_decoded_when_the_gateway_encodes_the_body() {
    let stack = TestStack::start().await;
    for operation in Operation::reading() {
        let scene = Scene::on(&stack).await;
        let bearer = operation.token(&scene).map(|token| format!("Bearer {token}"));
        let mut headers: Vec<(&str, &[u8])> = vec![("content-type", b"application/octet-stream")];
        headers.extend(bearer.iter().map(|value| ("authorization", value.as_bytes())));
        let (path, body) = (scene.path(operation.path), operation.valid_body(&scene));
        for (size, status) in [(BODY_BYTES_MAX + 1, 413), (BODY_BYTES_MAX, 200)] {
            let answer = send(&stack, &operation.method, &path, &headers, padded(&body, size)).await;
            assert_eq!(answer.status, status, "{operation} {size}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn what_is_no_json_object_is_a_bad_body() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for operation in Operation::reading_object() {
        let body = operation.valid_body(&scene);
        let wrapped = format!("[{body}]");
        let twice = format!("{body}{body}");
        let commented = format!("{body} // done");
        let others = ["[]", "[1]", "null", "true", "0", "\"{}\"", "{\"a\": \"\\ud800\"}"];
        let ours = [&body[..body.len() - 1], &wrapped, &twice, &commented];
        for text in NO_JSON.iter().chain(&others).chain(&ours) {
            let answer = operation.call_with(&scene, (*text).to_owned()).await;
            assert_eq!(answer.refusal(), BAD_BODY, "{operation} {text:?}");
            let message = answer.body["message"].as_str().unwrap();
            assert!(message.contains("at `.`"), "{operation} {text:?}: {message}");
        }
    }
}

#[tokio::test]
async fn what_is_no_json_is_a_bad_body_where_any_json_will_do() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for operation in Operation::reading().filter(|operation| operation.reads_any_json()) {
        for text in NO_JSON {
            let answer = operation.call_with(&scene, text).await;
            assert_eq!(answer.refusal(), BAD_BODY, "{operation} {text:?}");
            let message = answer.body["message"].as_str().unwrap();
            assert!(message.contains("at `.`"), "{operation} {text:?}: {message}");
        }
        for json in ["{}", "[]", "null", "true", "0", "-1e308", "\"text\"", " [1, {\"a\": null}] "] {
            let answer = operation.call_with(&scene, json).await;
            assert_eq!(answer.status, 200, "{operation} {json}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn a_state_is_kept_to_the_letter_up_to_64_kib() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let (operation, lobby_id) = (Operation::at("/lobbies/state"), scene.lobby_id.parse().unwrap());
    let largest = format!("\"{}\"", "x".repeat(BODY_BYTES_MAX - 2));
    let deepest = format!("{}{}", "[".repeat(STATE_DEPTH_MAX), "]".repeat(STATE_DEPTH_MAX));
    for state in ["{ \"b\": 1.10, \"a\": [1E2,\n2], \"a\": \"\\u00e4\" }", &largest, &deepest] {
        let answer = operation.call_with(&scene, state.to_owned()).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let kept = stack.store().lobby_state(&lobby_id).await.unwrap().unwrap();
        assert_eq!(kept.get(), state);
        let read = Operation::at("/{lobby_id}/state").call(&scene, Some(&scene.tokens.public)).await;
        assert_eq!(read.status, 200, "{}", read.body);
        assert_eq!(read.headers["content-length"], state.len().to_string().as_str());
    }
}

#[tokio::test]
async fn an_empty_state_is_the_empty_object() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let lobby_id = scene.lobby_id.parse().unwrap();
    for empty in ["", " ", " \r\n\t "] {
        Operation::at("/lobbies/state").call_with(&scene, empty).await.expect_ok();
        let kept = stack.store().lobby_state(&lobby_id).await.unwrap().unwrap();
        assert_eq!(kept.get(), "{}", "{empty:?}");
    }
}

#[tokio::test]
async fn a_body_that_is_not_utf_8_is_a_bad_body() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for operation in Operation::reading() {
        let body = operation.valid_body(&scene);
        let utf_16: Vec<u8> = body.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let latin_1 = [&body.as_bytes()[..body.len() - 1], b", \"x\": \"\xe4\"}"].concat();
        for bytes in [
            vec![0xff],
            utf_16,
            latin_1,
            [body.as_bytes(), b"\xff"].concat(),
            b"{\"a\": \"\xed\xa0\x80\"}".to_vec(),
            b"\x1f\x8b\x08\x00".to_vec(),
        ] {
            let answer = operation.call_with(&scene, bytes.clone()).await;
            assert_eq!(answer.refusal(), BAD_BODY, "{operation} {bytes:?}");
        }
    }
}

#[tokio::test]
async fn deep_nesting_is_a_bad_body_and_harms_nothing() {
    let stack = TestStack::start().await;
    for operation in Operation::reading_object() {
        let scene = Scene::on(&stack).await;
        let body = operation.valid_body(&scene);
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let depth = BODY_BYTES_MAX / (open.len() + close.len()) - 1_000;
            let nested = format!("{}0{}", open.repeat(depth), close.repeat(depth));
            let nested = format!("{}, \"x\": {nested}}}", &body[..body.len() - 1]);
            assert!(nested.len() <= BODY_BYTES_MAX);
            let answer = operation.call_with(&scene, nested).await;
            assert_eq!(answer.refusal(), BAD_BODY, "{operation}");
        }
        let answer = operation.call_with(&scene, body).await;
        assert_eq!(answer.status, 200, "{operation}: {}", answer.body);
    }
}

#[tokio::test]
async fn an_empty_body_is_the_empty_object() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for operation in Operation::reading_object() {
        let message = async |body: &str| {
            let answer = operation.call_with(&scene, body.to_owned()).await;
            assert_eq!(answer.refusal(), BAD_BODY, "{operation} {body:?}");
            answer.body["message"].clone()
        };
        let of_object = message("{}").await;
        for empty in ["", " ", " \r\n\t "] {
            assert_eq!(message(empty).await, of_object, "{operation} {empty:?}");
        }
    }
}

#[tokio::test]
async fn unknown_fields_are_ignored() {
    let stack = TestStack::start().await;
    for operation in Operation::reading_object() {
        let scene = Scene::on(&stack).await;
        let mut body: Value = serde_json::from_str(&operation.valid_body(&scene)).unwrap();
        body["unheard_of"] = json!({ "a": [1, null, { "b": "c" }] });
        body[""] = json!(0);
        body["__proto__"] = json!(null);
        let answer = operation.call_with(&scene, body.to_string()).await;
        assert_eq!(answer.status, 200, "{operation}: {}", answer.body);
    }
}

#[tokio::test]
async fn the_content_type_is_ignored() {
    let stack = TestStack::start().await;
    for operation in Operation::reading() {
        for content_type in [
            None,
            Some("application/json"),
            Some("application/json; charset=utf-16"),
            Some("application/x-www-form-urlencoded"),
            Some("multipart/form-data; boundary=x"),
            Some("text/plain"),
            Some("application/octet-stream"),
            Some("image/png"),
            Some("?"),
        ] {
            let scene = Scene::on(&stack).await;
            let bearer = operation.token(&scene).map(|token| format!("Bearer {token}"));
            let mut headers: Vec<_> =
                bearer.iter().map(|value| ("authorization", value.as_bytes())).collect();
            headers.extend(content_type.map(|value| ("content-type", value.as_bytes())));
            let answer = operation.call_with_headers(&scene, &headers).await;
            assert_eq!(answer.status, 200, "{operation} {content_type:?}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn an_operation_without_a_body_does_not_look_at_one() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    for operation in OPERATIONS.iter().filter(|operation| operation.request_schema().is_none()) {
        for body in ["{", "[]", "\0", &" ".repeat(BODY_BYTES_MAX + 1)] {
            let answer = operation.call_with(&scene, body.to_owned()).await;
            assert_eq!(answer.status, 200, "{operation} {body:.9?}: {}", answer.body);
        }
    }
}

/// Values that fill a body: texts, names and lists at the place, and entries in each of which a number is too
/// low.
fn huge_values(place: &Place) -> Vec<Value> {
    let text = "x".repeat(60_000);
    let mut entry = place.value().as_object().and_then(|entries| entries.values().next()).cloned();
    for field in entry.iter_mut().filter_map(Value::as_object_mut).flat_map(|fields| fields.values_mut()) {
        if field.is_number() {
            *field = 0.into();
        }
    }
    let entries = entry.map(|entry| {
        let count = text.len() / (entry.to_string().len() + 9);
        (0..count).map(|n| (format!("n{n}"), entry.clone())).collect()
    });
    let mut values =
        vec![json!([text]), json!(["chess"].repeat(7_000)), json!({ &text: 1 }), json!({ &text: "x" })];
    values.extend([json!({ "x": text }), json!(text)]);
    values.extend(entries);
    values
}

#[tokio::test]
async fn refusals_stay_short_whatever_was_sent() {
    let stack = TestStack::start().await;
    let scene = Scene::on(&stack).await;
    let mut too_long = Vec::new();
    for place in places() {
        for value in huge_values(&place) {
            let sent = place.body_of(&scene, value).to_string();
            assert!(sent.len() <= BODY_BYTES_MAX);
            let answer = place.operation.call_with(&scene, sent.clone()).await;
            assert!(answer.status == 200 || answer.status.is_client_error(), "{}", answer.body);
            let validates = place.operation.path.ends_with("/validate");
            if (answer.status != 200 || validates) && answer.text.len() > REFUSAL_BYTES_MAX {
                let (operation, length) = (place.operation, answer.text.len());
                too_long.push(format!("{operation}: {length} bytes to {sent:.100}"));
            }
        }
    }
    assert!(too_long.is_empty(), "{}", too_long.join("\n"));
}

#[tokio::test]
async fn a_mode_repeated_thousands_of_times_counts_once() {
    let stack = TestStack::start().await;
    let modes: Vec<_> = (0..7_000).map(|_| "arena").collect();
    let regions: Vec<_> = (0..500).map(|_| "fra").collect();
    let answer = stack.find(json!({ "game_modes": modes, "regions": regions })).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
}

#[tokio::test]
async fn a_body_above_the_gateways_limit_is_refused_by_the_gateway() {
    let stack = TestStack::start().await;
    let body = vec![b' '; 10 * 1024 * 1024 + 1];
    let token = Some(stack.demo().tokens.public.as_str());
    let answer = stack.call(Method::POST, "/matchmaker/lobbies/find", token, body).await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.body, json!({ "message": "Request Entity Too Large" }));
}
