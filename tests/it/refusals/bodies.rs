//! Bodies as a whole: their size, their text, their encoding, what is ignored in them.

use http::Method;
use muster_tests::TestStack;
use serde_json::{Value, json};
use shared::http::BODY_BYTES_MAX;

use super::{Operation, Right, send};

const BAD_BODY: (u16, &str) = (400, "API_BAD_BODY");

/// The longest answer that any refusal may have, whatever was sent.
const REFUSAL_BYTES_MAX: usize = 1_024;

fn padded(body: &str, bytes: usize) -> String {
    format!("{body}{}", " ".repeat(bytes - body.len()))
}

#[tokio::test]
async fn a_body_of_64_kib_is_read_and_one_byte_more_is_not() {
    let stack = TestStack::start().await;
    for operation in Operation::reading() {
        let body = operation.valid_body(stack.demo());
        let largest = operation.call_with(&stack, padded(&body, BODY_BYTES_MAX)).await;
        assert_eq!(largest.status, 200, "{operation:?}: {}", largest.body);
        for size in [BODY_BYTES_MAX + 1, 1_024 * 1_024] {
            let larger = operation.call_with(&stack, padded(&body, size)).await;
            assert_eq!(larger.refusal(), (413, "API_BODY_TOO_LARGE"), "{operation:?}");
        }
    }
}

#[tokio::test]
async fn the_size_counts_decoded_when_the_gateway_encodes_the_body() {
    let stack = TestStack::start().await;
    for operation in Operation::reading() {
        let path = operation.demo_path(stack.demo());
        let bearer = format!("Bearer {}", operation.token(stack.demo()).unwrap());
        let headers: [(&str, &[u8]); 2] =
            [("authorization", bearer.as_bytes()), ("content-type", b"application/octet-stream")];
        let body = operation.valid_body(stack.demo());
        for (size, status) in [(BODY_BYTES_MAX, 200), (BODY_BYTES_MAX + 1, 413)] {
            let answer = send(&stack, &operation.method, &path, &headers, padded(&body, size)).await;
            assert_eq!(answer.status, status, "{operation:?} {size}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn what_is_no_json_object_is_a_bad_body() {
    let stack = TestStack::start().await;
    for operation in Operation::reading() {
        let body = operation.valid_body(stack.demo());
        let wrapped = format!("[{body}]");
        let twice = format!("{body}{body}");
        let commented = format!("{body} // done");
        for text in [
            "{",
            "}",
            "[]",
            "[1]",
            "null",
            "true",
            "0",
            "\"{}\"",
            "{'a': 1}",
            "{\"a\": 1,}",
            "{\"a\" 1}",
            "{\"a\": NaN}",
            "{\"a\": 01}",
            "{\"a\": \"\n\"}",
            "{\"a\": \"\\ud800\"}",
            "{\"a\": \"\\x41\"}",
            "a=1&b=2",
            "\u{feff}{}",
            "\0",
            &body[..body.len() - 1],
            &wrapped,
            &twice,
            &commented,
        ] {
            let answer = operation.call_with(&stack, text.to_owned()).await;
            assert_eq!(answer.refusal(), BAD_BODY, "{operation:?} {text:?}");
            let message = answer.body["message"].as_str().unwrap();
            assert!(message.contains("at `.`"), "{text:?}: {message}");
        }
    }
}

#[tokio::test]
async fn a_body_that_is_not_utf_8_is_a_bad_body() {
    let stack = TestStack::start().await;
    for operation in Operation::reading() {
        let body = operation.valid_body(stack.demo());
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
            let answer = operation.call_with(&stack, bytes.clone()).await;
            assert_eq!(answer.refusal(), BAD_BODY, "{operation:?} {bytes:?}");
        }
    }
}

#[tokio::test]
async fn deep_nesting_is_a_bad_body_and_harms_nothing() {
    let stack = TestStack::start().await;
    for operation in Operation::reading() {
        let body = operation.valid_body(stack.demo());
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let depth = BODY_BYTES_MAX / (open.len() + close.len()) - 1_000;
            let nested = format!("{}0{}", open.repeat(depth), close.repeat(depth));
            let nested = format!("{}, \"x\": {nested}}}", &body[..body.len() - 1]);
            assert!(nested.len() <= BODY_BYTES_MAX);
            let answer = operation.call_with(&stack, nested).await;
            assert_eq!(answer.refusal(), BAD_BODY, "{operation:?}");
        }
        let answer = operation.call_with(&stack, body).await;
        assert_eq!(answer.status, 200, "{operation:?}: {}", answer.body);
    }
}

#[tokio::test]
async fn an_empty_body_is_the_empty_object() {
    let stack = TestStack::start().await;
    for operation in Operation::reading() {
        let message = async |body: &str| {
            let answer = operation.call_with(&stack, body.to_owned()).await;
            assert_eq!(answer.refusal(), BAD_BODY, "{operation:?} {body:?}");
            answer.body["message"].clone()
        };
        let of_object = message("{}").await;
        for empty in ["", " ", " \r\n\t "] {
            assert_eq!(message(empty).await, of_object, "{operation:?} {empty:?}");
        }
    }
}

#[tokio::test]
async fn unknown_fields_are_ignored() {
    let stack = TestStack::start().await;
    for operation in Operation::reading() {
        let mut body: Value = serde_json::from_str(&operation.valid_body(stack.demo())).unwrap();
        body["unheard_of"] = json!({ "a": [1, null, { "b": "c" }] });
        body[""] = json!(0);
        body["__proto__"] = json!(null);
        let answer = operation.call_with(&stack, body.to_string()).await;
        assert_eq!(answer.status, 200, "{operation:?}: {}", answer.body);
    }
}

#[tokio::test]
async fn the_content_type_is_ignored() {
    let stack = TestStack::start().await;
    for operation in Operation::reading() {
        let bearer = format!("Bearer {}", operation.token(stack.demo()).unwrap());
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
            let mut headers = vec![("authorization", bearer.as_bytes())];
            headers.extend(content_type.map(|value| ("content-type", value.as_bytes())));
            let answer = operation.call_with_headers(&stack, &headers).await;
            assert_eq!(answer.status, 200, "{operation:?} {content_type:?}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn an_operation_without_a_body_does_not_look_at_one() {
    let stack = TestStack::start().await;
    for operation in Operation::with(Right::None) {
        for body in ["{", "[]", "\0"] {
            let answer = operation.call_with(&stack, body).await;
            assert_eq!(answer.status, 200, "{operation:?} {body:?}");
        }
    }
}

#[tokio::test]
async fn refusals_stay_short_whatever_was_sent() {
    let stack = TestStack::start().await;
    let huge = "x".repeat(60_000);
    let many: Vec<_> = (0..7_000).map(|_| "chess").collect();
    let nested = json!({ "captcha": { "hcaptcha": { "client_response": { &huge: 1 } } } });
    for body in [
        json!({ "game_modes": [huge] }),
        json!({ "game_modes": many }),
        json!({ "game_modes": huge }),
        json!({ "game_modes": ["arena"], "regions": [huge] }),
        json!({ "game_modes": ["arena"], "tags": { &huge: "x" } }),
        json!({ "game_modes": ["arena"], "tags": { "x": huge } }),
        json!({ "game_modes": ["arena"], "tags": { &huge: 1 } }),
        json!({ "game_modes": ["arena"], "max_players": huge }),
        nested,
        json!({ "lobby_count_max": huge, "max_players": 1 }),
        json!({ "auth_type": huge }),
        json!({ "user": huge, "password": "x" }),
        json!({ "user": "x", "password": huge }),
        json!({ "version_id": huge }),
    ] {
        for operation in Operation::reading() {
            let answer = operation.call_with(&stack, body.to_string()).await;
            let status = answer.status.as_u16();
            assert!(matches!(status, 400 | 404), "{operation:?}: {status}");
            let length = answer.body.to_string().len();
            assert!(length <= REFUSAL_BYTES_MAX, "{operation:?}: {length} bytes");
        }
    }
}

#[tokio::test]
async fn a_mode_asked_for_thousands_of_times_is_asked_for_once() {
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
