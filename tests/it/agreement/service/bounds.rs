//! The bounds of the document's schemas are the service's own.

use serde_json::{Value, json};

use super::{Document, Scene, start, token};

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table")]
async fn what_the_document_calls_too_large_or_malformed_the_service_refuses() {
    let (stack, document) = (start().await, Document::read());
    let scene = Scene::on(&stack).await;
    let port = |fields: Value| {
        let mut port = json!({ "hostname": "a.example", "port": 80, "protocol": "udp" });
        port.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        port
    };
    let server = |fields: Value| {
        let mut server = json!({ "region_id": "fra", "ports": { "game": port(json!({})) } });
        server.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        server
    };
    let version = |fields: Value| {
        let mut mode = json!({ "regions": ["fra"] });
        mode.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({ "display_name": "1.2", "config": { "game_modes": { "arena": mode } } })
    };
    let each = |count: usize, value: Value| -> Value {
        (0..count).map(|n| (format!("n{n}"), value.clone())).collect::<serde_json::Map<_, _>>().into()
    };
    let developer = |ports: Value| json!({ "hostname": "localhost", "ports": ports });
    let namespace = |display_name: &str, name_id: &str| json!({ "display_name": display_name, "version_id": scene.version_id, "name_id": name_id });
    let mut taken = Vec::new();
    // Bodies beyond each bound of the schemas; what is wrong with the form alone is refused as such.
    for (id, body) in [
        ("findLobby", json!({ "game_modes": "arena" })),
        ("findLobby", json!({ "game_modes": ["arena"], "max_players": 0 })),
        ("findLobby", json!({ "game_modes": ["arena"], "max_players": 1.5 })),
        ("findLobby", json!({ "game_modes": ["arena"], "max_players": 257 })),
        ("findLobby", json!({ "game_modes": ["arena"], "regions": [1] })),
        ("findLobby", json!({ "game_modes": ["arena"], "tags": { "k": "v".repeat(513) } })),
        ("findLobby", json!({ "game_modes": ["arena"], "tags": { "k".repeat(129): "v" } })),
        ("findLobby", json!({ "game_modes": ["arena"], "captcha": { "turnstile": {} } })),
        ("findLobby", json!({ "game_modes": ["arena"], "verification_data": [] })),
        ("findLobby", json!({ "game_modes": ["arena"], "prevent_auto_create_lobby": "yes" })),
        ("joinLobby", json!({ "lobby_id": 1 })),
        ("joinLobby", json!({ "lobby_id": scene.lobby_id, "captcha": { "hcaptcha": {} } })),
        ("joinLobby", json!({ "lobby_id": scene.lobby_id, "verification_data": "x" })),
        ("createLobby", json!({ "game_mode": ["arena"] })),
        ("createLobby", json!({ "game_mode": "arena", "region": ["fra"] })),
        ("createLobby", json!({ "game_mode": "arena", "publicity": "secret" })),
        ("createLobby", json!({ "game_mode": "arena", "tags": each(9, json!("x")) })),
        ("createLobby", json!({ "game_mode": "arena", "tags": { "k": "v".repeat(513) } })),
        ("createLobby", json!({ "game_mode": "arena", "max_players": 0 })),
        ("createLobby", json!({ "game_mode": "arena", "max_players": 257 })),
        ("setLobbyClosed", json!({ "is_closed": null })),
        ("connectPlayer", json!({ "player_token": null })),
        ("disconnectPlayer", json!({ "player_token": ["x"] })),
        ("registerServer", server(json!({ "server_id": "a b" }))),
        ("registerServer", server(json!({ "server_id": "x".repeat(65) }))),
        ("registerServer", server(json!({ "region_id": "f r a" }))),
        ("registerServer", server(json!({ "game_modes": [] }))),
        ("registerServer", server(json!({ "game_modes": ["a b"] }))),
        (
            "registerServer",
            server(json!({ "game_modes": (0..33).map(|n| n.to_string()).collect::<Vec<_>>() })),
        ),
        ("registerServer", server(json!({ "capacity": 0 }))),
        ("registerServer", server(json!({ "capacity": 1_000_001 }))),
        ("registerServer", server(json!({ "lease_seconds": 86_401 }))),
        ("registerServer", server(json!({ "auto_ready": "yes" }))),
        ("registerServer", server(json!({ "ports": {} }))),
        ("registerServer", server(json!({ "ports": each(17, port(json!({}))) }))),
        ("registerServer", server(json!({ "ports": { "A": port(json!({})) } }))),
        ("registerServer", server(json!({ "ports": { "x".repeat(17): port(json!({})) } }))),
        ("registerServer", server(json!({ "ports": { "a": port(json!({ "hostname": "a/b" })) } }))),
        ("registerServer", server(json!({ "ports": { "a": port(json!({ "hostname": "x".repeat(254) })) } }))),
        ("registerServer", server(json!({ "ports": { "a": port(json!({ "port": 0 })) } }))),
        ("registerServer", server(json!({ "ports": { "a": port(json!({ "port": 65_536 })) } }))),
        ("registerServer", server(json!({ "ports": { "a": port(json!({ "protocol": "sctp" })) } }))),
        (
            "registerServer",
            server(
                json!({ "ports": { "a": port(json!({ "port": null, "port_range": { "min": 0, "max": 9 } })) } }),
            ),
        ),
        (
            "registerServer",
            server(json!({ "ports": { "a": port(json!({ "port": null, "port_range": { "min": 1 } })) } })),
        ),
        ("heartbeatServer", json!({ "server_id": "a.b" })),
        ("heartbeatServer", json!({ "server_id": scene.server_id, "cursor": 1 })),
        ("endLobby", json!({ "lobby_id": null })),
        ("deregisterServer", json!({ "server_id": "" })),
        ("createVersion", json!({ "display_name": "", "config": version(json!({}))["config"] })),
        ("createVersion", json!({ "display_name": "x".repeat(129), "config": version(json!({}))["config"] })),
        ("createVersion", json!({ "display_name": "a\u{85}", "config": version(json!({}))["config"] })),
        ("createVersion", json!({ "display_name": "1", "config": { "game_modes": {} } })),
        (
            "createVersion",
            json!({ "display_name": "1", "config": { "game_modes": each(33, json!({ "regions": ["fra"] })) } }),
        ),
        (
            "createVersion",
            json!({ "display_name": "1", "config": { "game_modes": { "a b": { "regions": ["fra"] } } } }),
        ),
        ("createVersion", version(json!({ "regions": [] }))),
        ("createVersion", version(json!({ "max_players": 0 }))),
        ("createVersion", version(json!({ "max_players": 257 }))),
        ("createVersion", version(json!({ "max_players_direct": 257 }))),
        ("createVersion", version(json!({ "max_players_party": 0 }))),
        ("createVersion", version(json!({ "reservation_seconds": 4 }))),
        ("createVersion", version(json!({ "reservation_seconds": 601 }))),
        ("createVersion", version(json!({ "idle_seconds": 86_401 }))),
        ("createVersion", version(json!({ "taggable": 1 }))),
        ("createVersion", version(json!({ "actions": { "find": { "enabled": "yes" } } }))),
        ("createVersion", version(json!({ "max_player": 3 }))),
        ("createNamespace", namespace("", "fine")),
        ("createNamespace", namespace(&"x".repeat(129), "fine")),
        ("createNamespace", namespace("New", "")),
        ("createNamespace", namespace("New", "-a")),
        ("createNamespace", namespace("New", "a_b")),
        ("createNamespace", namespace("New", &"x".repeat(65))),
        ("updateMatchmakerConfig", json!({ "lobby_count_max": 4_294_967_296_u64, "max_players": 1 })),
        ("updateMatchmakerConfig", json!({ "lobby_count_max": 1, "max_players": -1 })),
        ("createDevelopmentToken", json!({ "hostname": "a b", "ports": { "a": port(json!({})) } })),
        (
            "createDevelopmentToken",
            json!({ "hostname": "", "ports": { "a": { "port": 1, "protocol": "udp" } } }),
        ),
        ("createDevelopmentToken", developer(json!({}))),
        ("createDevelopmentToken", developer(each(17, json!({ "port": 1, "protocol": "udp" })))),
        ("createDevelopmentToken", developer(json!({ "a-": { "port": 1, "protocol": "udp" } }))),
        ("createDevelopmentToken", developer(json!({ "a": { "port": 0, "protocol": "udp" } }))),
        ("createDevelopmentToken", developer(json!({ "a": { "port": 1 } }))),
        ("createDevelopmentToken", developer(json!({ "a": { "protocol": "udp" } }))),
        ("validateMatchmakerConfig", json!({ "lobby_count_max": 4_294_967_296_u64, "max_players": 1 })),
        ("validateMatchmakerConfig", json!({ "lobby_count_max": 1, "max_players": -1 })),
        ("validateMatchmakerConfig", json!({ "lobby_count_max": null, "max_players": 1 })),
        ("setCdnAuthType", json!({ "auth_type": "Basic" })),
        ("updateCdnAuthUser", json!({ "user": "", "password": format!("$2b$04${}", ".".repeat(53)) })),
        (
            "updateCdnAuthUser",
            json!({ "user": "x".repeat(129), "password": format!("$2b$04${}", ".".repeat(53)) }),
        ),
        (
            "updateCdnAuthUser",
            json!({ "user": "a\u{85}b", "password": format!("$2b$04${}", ".".repeat(53)) }),
        ),
        ("updateCdnAuthUser", json!({ "user": "a", "password": format!("$2b$03${}", ".".repeat(53)) })),
        ("updateCdnAuthUser", json!({ "user": "a", "password": format!("$2b$32${}", ".".repeat(53)) })),
        ("updateCdnAuthUser", json!({ "user": "a", "password": format!("$2x$04${}", ".".repeat(53)) })),
        ("updateCdnAuthUser", json!({ "user": "a", "password": format!("$2b$04${}b", ".".repeat(52)) })),
        ("updateNamespaceVersion", json!({ "version_id": 1 })),
    ] {
        let operation = document.operation(id);
        let schema = operation.request_schema().unwrap();
        assert_ne!(document.violations(schema, &body), [""; 0], "{id} allows {body}");
        let token = token(&scene, operation.rights()[0].unwrap());
        let path = scene.path(operation.path);
        let answer = stack.call(operation.method.clone(), &path, Some(token), body.to_string()).await;
        if answer.status != 400 {
            taken.push(format!("{id} {body}: {} {}", answer.status, answer.body));
        }
    }
    assert!(taken.is_empty(), "{}", taken.join("\n"));
}

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
                       "max_players_party": 1, "reservation_seconds": 600, "idle_seconds": 86_400 });
    for (id, body) in [
        (
            "findLobby",
            json!({ "game_modes": ["arena"], "tags": each(&tags, json!("x".repeat(512))), "max_players": 1 }),
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
        let token = token(&scene, operation.rights()[0].unwrap());
        let path = scene.path(operation.path);
        let answer = stack.call(operation.method.clone(), &path, Some(token), body.to_string()).await;
        assert_eq!(answer.status, 200, "{id}: {}", answer.body);
        assert_eq!(operation.differences(&answer), [""; 0], "{id}: {}", answer.body);
    }
}
