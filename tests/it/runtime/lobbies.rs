//! What the functions of matchmaker operations do to the tables.

use aws_sdk_dynamodb::types::AttributeValue;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use harness::{gunzip, live_lobbies};
use serde_json::{Value, json};
use shared::{
    base::ambient::{Ambient, Timestamp},
    models::{
        lobby::{STARTING_MAX, Stage},
        token::{Claims, LobbyClaims, PlayerSeat},
    },
    store::lobby_data::Part,
};

use super::{Deployment, Example};

/// The seat that an answer's player token stands for.
fn seat(deployment: &Deployment, body: &Value) -> PlayerSeat {
    let token = body["player"]["token"].as_str().unwrap();
    match deployment.keys.verify(token, Ambient::system().now()) {
        Ok(Claims::Player(seat)) => seat,
        other => panic!("the player token is signed with another key: {other:?}"),
    }
}

#[tokio::test]
async fn find_lobby_gives_a_seat_in_a_lobby_of_the_tables() {
    let deployment = Deployment::start().await;
    let (_, body) = deployment.succeed("find-lobby").await;
    let seat = seat(&deployment, &body);
    assert_eq!(body["lobby"]["lobby_id"], seat.lobby_id.as_str());
    let lobby = deployment.lobby(&seat.lobby_id).await;
    assert!(lobby.reserved.contains_key(&seat.seat_id));
    let tags = deployment.stack.store().lobby_tags([&lobby]).await.unwrap();
    assert_eq!((lobby.max_players, tags[&seat.lobby_id]["map"].as_str()), (8, "harbour"));
    assert_eq!(body["lobby"]["region"]["region_id"], "fra");
    assert_eq!(body["ports"], body["lobby"]["ports"]);
}

#[tokio::test]
async fn join_lobby_gives_a_seat_in_the_very_lobby() {
    let deployment = Deployment::start().await;
    let (example, body) = deployment.succeed("join-lobby").await;
    let seat = seat(&deployment, &body);
    assert_eq!((&seat.lobby_id, &seat.namespace_id), (&example.lobby_id, deployment.namespace_id()));
    let lobby = deployment.lobby(&example.lobby_id).await;
    assert_eq!((lobby.taken, lobby.reserved.contains_key(&seat.seat_id)), (3, true));
}

#[tokio::test]
async fn create_lobby_creates_the_requested_lobby_with_its_configuration() {
    let deployment = Deployment::start().await;
    let (_, body) = deployment.succeed("create-lobby").await;
    let seat = seat(&deployment, &body);
    let lobby = deployment.lobby(&seat.lobby_id).await;
    assert_eq!((lobby.taken, lobby.reserved.contains_key(&seat.seat_id)), (1, true));
    assert_eq!((lobby.max_players, lobby.is_private, lobby.has_config), (8, false, true));
    let tags = deployment.stack.store().lobby_tags([&lobby]).await.unwrap();
    assert_eq!((lobby.pool.region_id.as_str(), tags[&seat.lobby_id]["map"].as_str()), ("fra", "harbour"));
    let config = deployment.stack.store().lobby_data(&[seat.lobby_id], Part::Config).await.unwrap();
    assert_eq!(config[0].1.get(), r#"{"friendly_fire": false}"#, "as it was sent");
}

#[tokio::test]
async fn list_lobbies_returns_lobbies_and_their_states() {
    let deployment = Deployment::start().await;
    let (example, body) = deployment.succeed("list-lobbies").await;
    assert_eq!(body["lobbies"], json!([]), "the only lobby is private");
    assert_eq!(body["game_modes"].as_array().unwrap().len(), 3);
    assert_eq!(body["regions"].as_array().unwrap().len(), 2);

    let found = deployment.stack.find(json!({ "game_modes": ["duel"] })).await.expect_ok();
    let demo = deployment.stack.demo();
    let token = deployment.stack.lobby_token(&demo.game_id, &demo.namespace_id, &found.lobby_id());
    let path = "/matchmaker/lobbies/state";
    deployment.stack.call(http::Method::PUT, path, Some(&token), "[1]").await.expect_ok();
    let (_, body) = deployment.answer_to("list-lobbies", &example.event).await;
    assert_eq!(
        body["lobbies"],
        json!([{
            "lobby_id": found.lobby_id(), "region_id": "fra", "game_mode_id": "duel", "state": [1],
            "max_players_normal": 2, "max_players_direct": 2, "max_players_party": 2, "total_player_count": 1,
            "connected_player_count": 0,
        }])
    );
}

#[tokio::test]
async fn list_lobbies_hands_a_compressed_body_to_the_gateway_in_base64() {
    let deployment = Deployment::start().await;
    let found = deployment.stack.find(json!({ "game_modes": ["duel"] })).await.expect_ok();
    let demo = deployment.stack.demo();
    let token = deployment.stack.lobby_token(&demo.game_id, &demo.namespace_id, &found.lobby_id());
    let state = json!("x".repeat(4_000));
    let path = "/matchmaker/lobbies/state";
    deployment.stack.call(http::Method::PUT, path, Some(&token), state.to_string()).await.expect_ok();
    let mut event = deployment.example("list-lobbies").await.event;
    event["headers"]["accept-encoding"] = json!("gzip, deflate, br");
    let mut instance = deployment.instance("list-lobbies").await;
    let answer = instance.invoke(&event.to_string()).await.answer();
    let encoding = (&answer["isBase64Encoded"], &answer["headers"]["content-encoding"]);
    assert_eq!(encoding, (&json!(true), &json!("gzip")), "{answer}");
    let body = gunzip(&STANDARD.decode(answer["body"].as_str().unwrap()).unwrap());
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["lobbies"][0]["state"], state);
}

#[tokio::test]
async fn get_lobby_state_returns_the_state() {
    let deployment = Deployment::start().await;
    let (_, body) = deployment.succeed("get-lobby-state").await;
    assert_eq!(body, json!({ "round": 1 }));
}

#[tokio::test]
async fn set_lobby_state_replaces_the_state() {
    let deployment = Deployment::start().await;
    let (example, body) = deployment.succeed("set-lobby-state").await;
    assert_eq!(body, json!({}));
    let state = deployment.stack.store().lobby_state(&example.lobby_id).await.unwrap().unwrap();
    assert_eq!(state.get(), example.event["body"]);
    assert!(deployment.lobby(&example.lobby_id).await.has_state);
}

#[tokio::test]
async fn set_lobby_ready_makes_the_lobby_ready_and_restarts_its_reservations() {
    let deployment = Deployment::start().await;
    let example = deployment.example("set-lobby-ready").await;
    deployment.write_to_lobby(&example.lobby_id, "stage", AttributeValue::S("starting".to_owned())).await;
    deployment.let_seats_lapse(&example.lobby_id).await;
    let before = Ambient::system().now();
    let answer = deployment.answer_to("set-lobby-ready", &example.event).await;
    assert_eq!(answer, (200, json!({})));
    let lobby = deployment.lobby(&example.lobby_id).await;
    assert_eq!((lobby.stage, lobby.reserved.len()), (Stage::Ready, 2));
    assert!(lobby.reserved.values().all(|until| *until > before), "{lobby:?}");
}

#[tokio::test]
async fn set_lobby_closed_closes_the_lobby() {
    let deployment = Deployment::start().await;
    let (example, body) = deployment.succeed("set-lobby-closed").await;
    assert_eq!(body, json!({}));
    assert!(deployment.lobby(&example.lobby_id).await.closed);
}

#[tokio::test]
async fn set_lobby_publicity_takes_the_lobby_out_of_sight() {
    let deployment = Deployment::start().await;
    let (example, body) = deployment.succeed("set-lobby-publicity").await;
    assert_eq!(body, json!({}));
    let lobby = deployment.lobby(&example.lobby_id).await;
    assert_eq!((lobby.is_private, lobby.joinable_from), (true, None));
}

#[tokio::test]
async fn connect_player_connects_the_player() {
    let deployment = Deployment::start().await;
    let (example, body) = deployment.succeed("connect-player").await;
    assert_eq!(body, json!({}));
    let lobby = deployment.lobby(&example.lobby_id).await;
    assert!(lobby.connected.contains_key(&example.player.seat_id));
    assert!(lobby.reserved.contains_key(&example.creator.seat_id));
    let (status, body) = deployment.answer_to("connect-player", &example.event).await;
    assert_eq!((status, &body["code"]), (400, &json!("MATCHMAKER_PLAYER_ALREADY_CONNECTED")));
}

#[tokio::test]
async fn disconnect_player_frees_the_seat() {
    let deployment = Deployment::start().await;
    let (example, body) = deployment.succeed("disconnect-player").await;
    assert_eq!(body, json!({}));
    let lobby = deployment.lobby(&example.lobby_id).await;
    assert_eq!((lobby.taken, lobby.stage), (1, Stage::Ready));
    assert!(lobby.reserved.contains_key(&example.creator.seat_id));
    let again = deployment.answer_to("disconnect-player", &example.event).await;
    assert_eq!(again, (200, json!({})));
}

#[tokio::test]
async fn remove_player_frees_the_seat_and_keeps_the_player_out() {
    let deployment = Deployment::start().await;
    let (example, body) = deployment.succeed("remove-player").await;
    assert_eq!(body, json!({}));
    let lobby = deployment.lobby(&example.lobby_id).await;
    assert_eq!((lobby.taken, lobby.stage), (1, Stage::Ready));
    assert!(lobby.reserved.contains_key(&example.creator.seat_id));
    let again = deployment.answer_to("remove-player", &example.event).await;
    assert_eq!(again, (200, json!({})));
}

#[tokio::test]
async fn rejoin_player_brings_a_player_back_to_the_same_seat() {
    let deployment = Deployment::start().await;
    let (example, body) = deployment.succeed("rejoin-player").await;
    assert_eq!(seat(&deployment, &body), example.player);
    assert_eq!(body["lobby"]["region"]["display_name"], "Frankfurt");
}

#[tokio::test]
async fn leave_lobby_frees_the_seat_of_a_player_on_the_way() {
    let deployment = Deployment::start().await;
    let (example, body) = deployment.succeed("leave-lobby").await;
    assert_eq!(body, json!({}));
    let lobby = deployment.lobby(&example.lobby_id).await;
    assert_eq!((lobby.taken, lobby.stage), (1, Stage::Ready));
    assert!(lobby.reserved.contains_key(&example.creator.seat_id));
    let again = deployment.answer_to("leave-lobby", &example.event).await;
    assert_eq!(again, (200, json!({})));
}

#[tokio::test]
async fn get_player_statistics_counts_held_seats_and_keeps_the_count() {
    let deployment = Deployment::start().await;
    let (_, body) = deployment.succeed("get-player-statistics").await;
    assert_eq!(body["player_count"], 2);
    assert_eq!(body["game_modes"]["arena"]["regions"]["fra"]["player_count"], 2);
    let kept = deployment.stack.store().kept_count(deployment.namespace_id()).await.unwrap().unwrap();
    assert!(kept.counted_at.is_some());
    assert_eq!(serde_json::from_str::<Value>(&kept.json).unwrap(), body);
}

#[tokio::test]
async fn list_regions_returns_the_games_regions() {
    let deployment = Deployment::start().await;
    let (_, body) = deployment.succeed("list-regions").await;
    let regions = body["regions"].as_array().unwrap();
    let ids: Vec<_> = regions.iter().map(|region| region["region_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["fra", "nyc"]);
    assert_eq!(regions[0]["datacenter_distance_from_client"], json!({ "kilometers": 0.0, "miles": 0.0 }));
}

#[tokio::test]
async fn register_server_puts_the_server() {
    let deployment = Deployment::start().await;
    let before = Ambient::system().now();
    let (example, body) = deployment.succeed("register-server").await;
    assert_eq!(body["server_id"], example.server.server_id.as_str());
    let server = deployment.server(&example.server).await;
    assert_eq!((server.capacity, server.used, server.lease_ms), (4, 0, Some(60_000)));
    assert_eq!(server.region_id.as_str(), "fra");
    assert!(server.lease_until > before && server.lease_until < Timestamp::NEVER);
    assert_eq!(server.ports.iter().next().unwrap().1.hostname, "fra-1.example.com");
}

#[tokio::test]
async fn heartbeat_server_extends_leases_and_hands_out_lobby_tokens() {
    let deployment = Deployment::start().await;
    let example = deployment.example("heartbeat-server").await;
    // A server that fell silent after an hour's lease, with its lobby.
    let number = |number: u64| AttributeValue::N(number.to_string());
    let values = [(":hour", number(3_600_000)), (":past", number(1)), (":never", number(Timestamp::NEVER.0))];
    let silent = "SET #lease_ms = :hour, #lease_until = :past, #free_from = :never";
    deployment.stack.alter_server(&example.server, silent, &values).await;
    deployment.write_to_lobby(&example.lobby_id, "lease_until", number(1)).await;
    let before = Ambient::system().now();
    let (status, body) = deployment.answer_to("heartbeat-server", &example.event).await;
    assert_eq!(status, 200, "{body}");
    let server = deployment.server(&example.server).await;
    assert!(server.lease_until > before, "{server:?}");
    assert_eq!(server.free_from, server.ranked_at, "it is in sight again");
    assert_eq!(body["lease_expires_at"], shared::base::ambient::time(server.lease_until));
    assert_eq!(deployment.lobby(&example.lobby_id).await.lease_until, server.lease_until, "I10");
    let lobby = &body["lobbies"][0];
    assert_eq!(
        (&lobby["lobby_id"], &lobby["lobby_config"]),
        (&json!(example.lobby_id.as_str()), &json!({ "rounds": 3 }))
    );
    let claims = deployment.keys.verify(lobby["lobby_token"].as_str().unwrap(), Ambient::system().now());
    let Ok(Claims::Server(server)) = deployment.keys.verify(&deployment.server, Ambient::system().now())
    else {
        panic!("no server token");
    };
    assert_eq!(claims, Ok(Claims::Lobby(LobbyClaims { server, lobby_id: example.lobby_id })));
}

#[tokio::test]
async fn end_lobby_ends_the_lobby() {
    let deployment = Deployment::start().await;
    let (example, body) = deployment.succeed("end-lobby").await;
    assert_eq!(body, json!({}));
    let lobby = deployment.lobby(&example.lobby_id).await;
    assert_eq!((lobby.stage, lobby.server, lobby.joinable_from), (Stage::Ended, None, None));
    let again = deployment.answer_to("end-lobby", &example.event).await;
    assert_eq!(again, (200, json!({})));
}

#[tokio::test]
async fn deregister_server_takes_the_server_out_of_sight() {
    let deployment = Deployment::start().await;
    let (example, body) = deployment.succeed("deregister-server").await;
    assert_eq!(body, json!({}));
    let server = deployment.server(&example.server).await;
    assert!(server.is_deregistered());
    assert_eq!((server.capacity, server.placement_pool), (0, None));
}

/// Every end of a lobby frees all that it had: its place, its part of the count, its data.
#[tokio::test]
async fn each_function_that_can_end_a_lobby_ends_the_whole_of_it() {
    for binary in [
        "end-lobby",
        "disconnect-player",
        "set-lobby-ready",
        "heartbeat-server",
        "deregister-server",
        "find-lobby",
        "create-lobby",
    ] {
        let deployment = Deployment::start().await;
        let mut example = deployment.example(binary).await;
        let store = deployment.stack.store();
        let key = deployment.lobby(&example.lobby_id).await.server.unwrap();
        let is_maker_of_room = matches!(binary, "find-lobby" | "create-lobby");
        prepare_end(&deployment, binary, &mut example).await;
        let (status, body) = deployment.answer_to(binary, &example.event).await;
        let expected = if binary == "set-lobby-ready" { 400 } else { 200 };
        assert_eq!(status, expected, "{binary}: {body}");

        let lobby = deployment.lobby(&example.lobby_id).await;
        assert_eq!((lobby.stage, lobby.server), (Stage::Ended, None), "{binary}");
        let left = u32::from(is_maker_of_room);
        assert_eq!(live_lobbies(store, deployment.namespace_id()).await, left, "{binary}");
        assert_eq!(deployment.server(&key).await.used, left, "{binary}");
        assert!(store.lobby_state(&example.lobby_id).await.unwrap().is_none(), "{binary}");
        let config = store.lobby_data(std::slice::from_ref(&example.lobby_id), Part::Config).await.unwrap();
        assert!(config.is_empty(), "{binary}");
    }
}

/// Brings about that the example event ends the example's lobby.
async fn prepare_end(deployment: &Deployment, binary: &str, example: &mut Example) {
    let lobby_id = &example.lobby_id;
    match binary {
        "disconnect-player" => {
            let leave = shared::models::lifecycle::Transition::Leave(example.creator.seat_id.clone());
            let now = Ambient::system().now();
            deployment.stack.store().make_transition(lobby_id, &leave, now).await.unwrap();
        }
        "set-lobby-ready" => {
            let long_ago = Ambient::system().now().before(STARTING_MAX).to_string();
            deployment.write_to_lobby(lobby_id, "stage", AttributeValue::S("starting".to_owned())).await;
            deployment.write_to_lobby(lobby_id, "created_at", AttributeValue::N(long_ago)).await;
        }
        "heartbeat-server" => deployment.let_seats_lapse(lobby_id).await,
        "deregister-server" => {
            deployment.let_seats_lapse(lobby_id).await;
            example.event["body"] = json!({ "server_id": "demo-fra" }).to_string().into();
        }
        "find-lobby" | "create-lobby" => {
            deployment.let_seats_lapse(lobby_id).await;
            let right = deployment.right().await;
            deployment.stack.store().set_matchmaker_config(&right, 1, 8).await.unwrap();
        }
        _ => {}
    }
}

#[tokio::test]
async fn functions_refuse_requests_for_seats_past_the_edge_where_all_must_come_through_it() {
    let deployment = Deployment::start().await;
    let secret = "the edge's own secret";
    for binary in ["find-lobby", "join-lobby", "create-lobby"] {
        for (shown, expected) in [(Some(secret), 200), (Some("a guess"), 403), (None, 403)] {
            let mut environment = deployment.environment(binary);
            for (name, value) in [("MUSTER_EDGE_SECRET", secret), ("MUSTER_EDGE_ONLY", "true")] {
                let before = environment.insert(name.to_owned(), value.to_owned());
                assert!(before.is_some(), "the template does not set {name} of {binary}");
            }
            let mut event = deployment.example(binary).await.event;
            if let Some(shown) = shown {
                event["headers"]["x-muster-edge-secret"] = shown.into();
            }
            let mut instance = super::Instance::start(binary, &environment).await;
            let response = instance.invoke(&event.to_string()).await.answer();
            let (status, body) = super::status_and_body(&event, &response);
            assert_eq!(status, expected, "{binary}, {shown:?}: {body}");
            assert_eq!(body["code"] == "API_FORBIDDEN", expected == 403, "{body}");
        }
    }
}

#[tokio::test]
async fn functions_believe_the_edge_alone_about_where_the_client_is() {
    let deployment = Deployment::start().await;
    let secret = "the edge's own secret";
    for binary in ["find-lobby", "create-lobby", "list-regions", "list-lobbies"] {
        for (shown, nearest) in [(Some(secret), "nyc"), (Some("a guess"), "fra"), (None, "fra")] {
            let mut environment = deployment.environment(binary);
            let before = environment.insert("MUSTER_EDGE_SECRET".to_owned(), secret.to_owned());
            assert!(before.is_some(), "the template does not set MUSTER_EDGE_SECRET of {binary}");
            let mut event = deployment.example(binary).await.event;
            // Boston.
            event["headers"]["cloudfront-viewer-latitude"] = "42.36".into();
            event["headers"]["cloudfront-viewer-longitude"] = "-71.06".into();
            if let Some(shown) = shown {
                event["headers"]["x-muster-edge-secret"] = shown.into();
            }
            if let Some(body) = event["body"].as_str() {
                let mut body: Value = serde_json::from_str(body).unwrap();
                for name in ["region", "regions"] {
                    let _removed = body.as_object_mut().unwrap().remove(name);
                }
                event["body"] = body.to_string().into();
            }
            let mut instance = super::Instance::start(binary, &environment).await;
            let response = instance.invoke(&event.to_string()).await.answer();
            let (status, body) = super::status_and_body(&event, &response);
            assert_eq!(status, 200, "{binary}: {body}");
            let first = [&body["regions"][0]["region_id"], &body["lobby"]["region"]["region_id"]];
            assert!(first.contains(&&json!(nearest)), "{binary}, {shown:?}: {body}");
        }
    }
}
