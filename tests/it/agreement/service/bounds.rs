//! The bounds of the document's schemas are the service's own.

use serde_json::{Value, json};

use super::{Document, Scene, start};

#[tokio::test]
async fn what_the_document_calls_the_most_the_service_takes() {
    let (stack, document) = (start().await, Document::read());
    let each = |names: &[String], value: Value| -> Value {
        names.iter().map(|name| (name.clone(), value.clone())).collect::<serde_json::Map<_, _>>().into()
    };
    let labels: Vec<_> = (0..16).map(|n| format!("{n:-<15}x")).collect();
    let modes: Vec<_> = (0..32).map(|n| format!("{n:_<64}")).collect();
    let tags: Vec<_> = (0..8).map(|n| format!("{n:x<128}")).collect();
    let range = json!({ "port_range": { "min": 1, "max": 65_535 }, "protocol": "tcp_tls" });
    let mut ports = each(&labels, range);
    let longest_host = ["x".repeat(63), "x".repeat(63), "x".repeat(63), "x".repeat(61)].join(".");
    let developer = json!({ "hostname": longest_host, "ports": ports });
    for port in ports.as_object_mut().unwrap().values_mut() {
        port["hostname"] = longest_host.as_str().into();
    }
    let mode = json!({ "regions": ["fra", "nyc"], "max_players": 256, "max_players_direct": 256,
                       "max_players_party": 1, "reservation_seconds": 600, "idle_seconds": 86_400,
                       "latency_tolerance": 10_000, "latency_max": 10_000 });
    let mut latencies = each(&(0..63).map(|n| format!("r{n}")).collect::<Vec<_>>(), json!(10_000));
    latencies["fra"] = json!(1);
    for (id, body) in [
        (
            "findLobby",
            json!({ "game_modes": ["arena"], "tags": each(&tags, json!("x".repeat(512))), "max_players": 1,
                    "latencies": latencies }),
        ),
        (
            "createLobby",
            json!({ "game_mode": "arena", "tags": each(&tags, json!("x".repeat(512))), "max_players": 10 }),
        ),
        // Whose modes the server names.
        (
            "createVersion",
            json!({ "display_name": "\u{e4}".repeat(128), "config": { "game_modes": each(&modes, mode) } }),
        ),
        (
            "registerServer",
            json!({ "server_id": "x".repeat(64), "region_id": "nyc", "game_modes": modes, "capacity": 1_000_000,
                    "ports": ports, "lease_seconds": 86_400, "auto_ready": false }),
        ),
        ("createDevelopmentToken", developer),
        ("updateMatchmakerConfig", json!({ "lobby_count_max": 32_767, "max_players": u32::MAX })),
    ] {
        let scene = Scene::on(&stack).await;
        let operation = document.operation(id);
        assert_eq!(document.violations(operation.request_schema().unwrap(), &body), [""; 0], "{id}");
        let answer = operation.call_with(&scene, body.to_string()).await;
        assert_eq!(answer.status, 200, "{id}: {}", answer.body);
        assert_eq!(operation.differences(&answer), [""; 0], "{id}: {}", answer.body);
    }
}
