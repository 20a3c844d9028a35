//! Every documented refusal occurs, and is as documented.

use std::{collections::BTreeSet, pin::pin, sync::Arc, time::Duration};

use create_lobby::CreateLobby;
use find_lobby::FindLobby;
use futures_util::FutureExt as _;
use harness::{Answer, TestGame, TestStack, instance::event, new_game};
use http::{Method, Request};
use http_body_util::Full;
use join_lobby::JoinLobby;
use serde_json::{Value, json};
use shared::{
    base::ambient::Ambient,
    cloud::issuing::issue_cloud_token,
    function::{
        config::Environment,
        instance::Instance,
        operation::{self, answer},
    },
    hosting::launching::{Launching, NotStarted, Order, Starter},
    models::{
        game::StarterKind,
        lobby::{Lobby, Stage},
        rights::GameRight,
        token::{Credential, CredentialKind, PlayerSeat},
    },
};
use wiremock::{MockServer, ResponseTemplate};

use super::{Document, Scene, start};
use crate::{
    refusals::{
        operation::Operation,
        revocations::{revoke, revoke_cloud_token, token_id},
        scene::{development_host, player_token},
    },
    screening,
};

/// The documented refusals that occurred.
struct Observed {
    document: &'static Document,
    refusals: BTreeSet<(String, u16, String)>,
    /// What was answered otherwise than expected or documented.
    differences: Vec<String>,
}

impl Observed {
    /// An operation's answer, which must be this refusal, as documented.
    fn note(&mut self, id: &str, answer: &Answer, refusal: (u16, &str)) {
        let at = format!("{id}, {refusal:?}: {} {}", answer.status, answer.body);
        if answer.refusal() != refusal {
            self.differences.push(at.clone());
        }
        let differences = self.document.operation(id).differences(answer);
        self.differences.extend(differences.into_iter().map(|difference| format!("{at}: {difference}")));
        self.refusals.insert((id.to_owned(), refusal.0, refusal.1.to_owned()));
    }

    /// A valid request on a scene, but for the token and the body.
    async fn ask(
        &mut self,
        scene: &Scene<'_>,
        (id, kind): (&str, &str),
        body: impl Into<String>,
        refusal: (u16, &str),
    ) -> Answer {
        let operation = self.document.operation(id);
        let (method, path) = (operation.method.clone(), scene.path(operation.path));
        let token = (kind != "anyone").then(|| scene.token(kind));
        let answer = scene.stack.call(method, &path, token, body.into()).await;
        self.note(id, &answer, refusal);
        answer
    }

    /// A request of a player of a game that a test made.
    async fn play(
        &mut self,
        (stack, game): (&TestStack, &TestGame),
        id: &str,
        body: Value,
        refusal: (u16, &str),
    ) -> Answer {
        let operation = self.document.operation(id);
        let (method, body) = (operation.method.clone(), body.to_string());
        let answer = stack.call(method, operation.path, Some(&game.public), body).await;
        self.note(id, &answer, refusal);
        answer
    }

    /// A lobby server's word on a lobby.
    async fn host(
        &mut self,
        (stack, game): (&TestStack, &TestGame),
        (id, lobby_id): (&str, &str),
        body: Value,
        refusal: (u16, &str),
    ) {
        let operation = self.document.operation(id);
        let token = game.lobby_token(stack, lobby_id);
        let path = operation.path.replace("{lobby_id}", lobby_id);
        let body = if operation.request_schema().is_some() { body.to_string() } else { String::new() };
        let answer = stack.call(operation.method.clone(), &path, Some(&token), body).await;
        self.note(id, &answer, refusal);
    }
}

/// What only a defect, a fault of the database or a lost race brings: covered elsewhere, with a database that
/// does as scripted.
const OF_FAULTS_AND_RACES: [&str; 3] = ["ERROR", "API_UNAVAILABLE", "MATCHMAKER_CONTENTION"];

#[tokio::test]
async fn each_documented_refusal_occurs_and_is_as_documented() {
    let (stack, document) = (start().await, Document::read());
    let mut observed = Observed { document, refusals: BTreeSet::new(), differences: Vec::new() };
    observe_callers_and_forms(&mut observed, &stack).await;
    observe_places(&mut observed, &stack).await;
    observe_criteria(&mut observed, &stack).await;
    observe_room(&mut observed, &stack).await;
    observe_joins(&mut observed, &stack).await;
    observe_clients(&mut observed, &stack).await;
    observe_edge(&mut observed, &stack).await;
    observe_ends(&mut observed, &stack).await;
    observe_players(&mut observed, &stack).await;
    observe_servers(&mut observed, &stack).await;
    observe_values(&mut observed, &stack).await;
    observe_starts(&mut observed, &stack).await;
    observe_failed_starts(&mut observed, &stack).await;
    observe_screening(&mut observed).await;
    assert!(observed.differences.is_empty(), "{}", observed.differences.join("\n"));

    let mut documented = BTreeSet::new();
    for operation in document.operations() {
        for response in operation.responses() {
            let codes = response.codes().into_iter().filter(|code| !OF_FAULTS_AND_RACES.contains(code));
            documented.extend(codes.map(|code| (operation.id.to_owned(), response.status, code.to_owned())));
        }
    }
    let unobserved: Vec<_> = documented.difference(&observed.refusals).collect();
    assert!(unobserved.is_empty(), "documented, and never observed: {unobserved:#?}");
}

/// What every operation refuses by its callers, its body and its path alone.
async fn observe_callers_and_forms(observed: &mut Observed, stack: &TestStack) {
    let scene = Scene::on(stack).await;
    let (keys, ambient) = (stack.stack.keys(), stack.ambient());
    let long_ago = stack.clock.now().before(Duration::from_secs(2 * 365 * 24 * 3_600));
    let then = Ambient::system().with_clock(move || long_ago);
    let credential = |ambient| Credential::fresh(scene.game_id, scene.namespace_id, ambient);
    let expired = keys.issue_credential(CredentialKind::Public, &credential(&then));
    let revoked = keys.issue_development(&credential(&ambient), development_host());
    revoke(stack, &[], &[&token_id(stack, &revoked)]).await;
    let game = GameRight::of_operator(scene.game_id.clone());
    let revoked_cloud = issue_cloud_token(stack.store(), &ambient, &game).await.unwrap();
    revoke_cloud_token(stack, &revoked_cloud).await;
    let other = stack.make_game("callers", json!({ "solo": { "regions": ["fra"] } }), 9, 1).await;
    let large = format!(r#"{{"x":"{}"}}"#, "x".repeat(64 * 1024));
    for operation in Operation::guarded() {
        let is_cloud = operation.takes("cloud");
        let (own, body) = (operation.token(&scene), operation.valid_body(&scene));
        let revoked = if is_cloud { revoked_cloud.reveal() } else { &revoked };
        let mut requests = vec![
            (operation.path.to_owned(), None, body.as_str(), (401, "API_UNAUTHORIZED")),
            (operation.path.to_owned(), Some("nonsense"), &body, (401, "TOKEN_INVALID")),
            (operation.path.to_owned(), Some(&expired), &body, (401, "CLAIMS_ENTITLEMENT_EXPIRED")),
            (operation.path.to_owned(), Some(revoked), &body, (401, "TOKEN_REVOKED")),
            // A player's token is a right to nothing.
            (operation.path.to_owned(), Some(&scene.player), &body, (403, "CLAIMS_MISSING_ENTITLEMENT")),
        ];
        if operation.request_schema().is_some() {
            requests.push((operation.path.to_owned(), own, "{", (400, "API_BAD_BODY")));
            requests.push((operation.path.to_owned(), own, &large, (413, "API_BODY_TOO_LARGE")));
        }
        if let Some((start, _)) = operation.path.split_once('{') {
            let end = &operation.path[operation.path.find('}').unwrap() + 1..];
            requests.push((format!("{start}{}{end}", "x".repeat(65)), own, &body, (404, "API_NOT_FOUND")));
        }
        if is_cloud {
            let theirs = Some(other.created.cloud_token.reveal());
            requests.push((operation.path.to_owned(), theirs, &body, (403, "API_FORBIDDEN")));
        }
        if operation.is_on_namespace() {
            let elsewhere = operation.path.replace("{namespace_id}", "no-such-namespace");
            requests.push((elsewhere, own, &body, (404, "CLOUD_NAMESPACE_NOT_FOUND")));
        }
        for (path, token, body, refusal) in requests {
            let (method, path) = (operation.method.clone(), scene.path(&path));
            let answer = stack.call(method, &path, token, body.to_owned()).await;
            observed.note(operation.id, &answer, refusal);
        }
    }
}

/// Games, namespaces, versions and names of others, or missing ones.
async fn observe_places(observed: &mut Observed, stack: &TestStack) {
    let scene = Scene::on(stack).await;
    let other = stack.make_game("other", json!({ "solo": { "regions": ["fra"] } }), 9, 1).await;
    let version = json!({ "version_id": "no-such-version" });
    let outdated = (400, "MATCHMAKER_VERSION_OUTDATED");
    for (id, fields) in [
        ("findLobby", json!({ "game_modes": ["duel"] })),
        ("joinLobby", json!({ "lobby_id": scene.lobby_id })),
        ("createLobby", json!({ "game_mode": "arena" })),
    ] {
        let mut body = fields;
        body["version_id"] = json!("of-yesterday");
        observed.ask(&scene, (id, "public"), body.to_string(), outdated).await;
    }
    let not_found = (404, "CLOUD_VERSION_NOT_FOUND");
    observed.ask(&scene, ("updateNamespaceVersion", "cloud"), version.to_string(), not_found).await;
    for version_id in ["no-such-version", "no version", other.created.version.version_id.as_str()] {
        let body = json!({ "display_name": "New", "version_id": version_id, "name_id": scene.fresh_name })
            .to_string();
        observed.ask(&scene, ("createNamespace", "cloud"), body, not_found).await;
    }
    let taken = json!({ "display_name": "New", "version_id": scene.version_id, "name_id": "prod" });
    observed.ask(&scene, ("createNamespace", "cloud"), taken.to_string(), (409, "CLOUD_NAME_TAKEN")).await;
}

/// What cannot be found, or created.
async fn observe_criteria(observed: &mut Observed, stack: &TestStack) {
    let modes = json!({
        "plain": { "regions": ["fra"] },
        "rich": { "regions": ["fra"], "max_players": 10, "taggable": true, "allow_dynamic_max_players": true },
        "shut": { "regions": ["fra"], "actions": { "find": { "enabled": false } } },
    });
    let game = stack.make_game("criteria", modes, 9, 9).await;
    let at = (stack, &game);
    let nine_tags: Value =
        (0..9).map(|n| (n.to_string(), json!("x"))).collect::<serde_json::Map<_, _>>().into();
    let of_mode = |mode: &str| Some(json!({ "game_mode": mode }));
    let rules = [
        (
            "x",
            json!({}),
            "MATCHMAKER_GAME_MODE_NOT_FOUND",
            Some(json!({ "game_mode": "x", "game_modes": ["plain", "rich", "shut"] })),
        ),
        ("rich", json!({ "tags": nine_tags }), "MATCHMAKER_TOO_MANY_TAGS", None),
        ("rich", json!({ "tags": { "k".repeat(129): "v" } }), "MATCHMAKER_TAG_NAME_TOO_LONG", None),
        ("rich", json!({ "tags": { "k": "v".repeat(513) } }), "MATCHMAKER_TAG_TOO_LONG", None),
        ("plain", json!({ "tags": { "map": "x" } }), "MATCHMAKER_TAGS_DISABLED", of_mode("plain")),
        ("plain", json!({ "max_players": 0 }), "MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID", None),
        ("plain", json!({ "party_size": 2 }), "MATCHMAKER_PARTY_TOO_LARGE", Some(json!({ "max": 1 }))),
        (
            "rich",
            json!({ "max_players": 11 }),
            "MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID",
            Some(json!({ "max": 10 })),
        ),
        ("plain", json!({ "max_players": 2 }), "MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED", of_mode("plain")),
        (
            "plain",
            json!({ "region": "mars", "regions": ["mars"] }),
            "MATCHMAKER_REGION_NOT_FOUND",
            Some(json!({ "region": "mars", "regions": ["fra", "nyc"] })),
        ),
        (
            "plain",
            json!({ "region": "nyc", "regions": ["nyc"] }),
            "MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE",
            None,
        ),
    ];
    for (mode, fields, code, metadata) in rules {
        for (id, name, mode) in
            [("findLobby", "game_modes", json!([mode])), ("createLobby", "game_mode", json!(mode))]
        {
            let mut body = fields.clone();
            body[name] = mode;
            let answer = observed.play(at, id, body, (400, code)).await;
            assert_eq!(answer.body.get("metadata"), metadata.as_ref(), "{id}: {}", answer.body);
        }
    }
    for (id, body, code, metadata) in [
        ("findLobby", json!({ "game_modes": [] }), "MATCHMAKER_NO_GAME_MODE_PROVIDED", None),
        ("findLobby", json!({ "game_modes": ["shut"] }), "MATCHMAKER_FIND_DISABLED", of_mode("shut")),
        (
            "findLobby",
            json!({ "game_modes": ["rich"], "latencies": { "fra": null } }),
            "MATCHMAKER_NO_REGION_REACHABLE",
            Some(json!({ "regions": ["fra"] })),
        ),
        (
            "findLobby",
            json!({ "game_modes": ["rich"], "prevent_auto_create_lobby": true }),
            "MATCHMAKER_NO_AVAILABLE_LOBBIES",
            None,
        ),
        (
            "createLobby",
            json!({ "game_mode": "rich" }),
            "MATCHMAKER_CUSTOM_LOBBIES_DISABLED",
            of_mode("rich"),
        ),
    ] {
        let answer = observed.play(at, id, body, (400, code)).await;
        assert_eq!(answer.body.get("metadata"), metadata.as_ref(), "{id}: {}", answer.body);
    }
}

/// No lobby more than may be, and no place for one.
async fn observe_room(observed: &mut Observed, stack: &TestStack) {
    let solo = json!({ "regions": ["fra"], "max_players": 1, "actions": { "create": { "enabled": true } } });
    for (name, lobby_count_max, places, refusal) in [
        ("one-lobby", 1, 9, (400, "MATCHMAKER_TOO_MANY_LOBBIES")),
        ("one-place", 9, 1, (503, "MATCHMAKER_NO_SERVER_AVAILABLE")),
    ] {
        let game = stack.make_game(name, json!({ "solo": solo }), lobby_count_max, places).await;
        let _the_only_one = game.find(stack, json!({ "game_modes": ["solo"] })).await.expect_ok();
        observed.play((stack, &game), "findLobby", json!({ "game_modes": ["solo"] }), refusal).await;
        observed.play((stack, &game), "createLobby", json!({ "game_mode": "solo" }), refusal).await;
    }
}

/// No seat more than a client may hold, and keys that are used otherwise than they may be.
async fn observe_clients(observed: &mut Observed, stack: &TestStack) {
    let arena = json!({ "arena": { "regions": ["fra"], "actions": { "create": { "enabled": true } } } });
    let mut new = new_game("one-seat", arena.clone(), 9);
    new.namespaces[0].max_players_per_client = 1;
    let game = stack.make_game_of(new, 9).await;
    for (id, body) in seat_requests(stack, &game).await {
        let at_cap = (400, "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE");
        observed.play((stack, &game), id, body, at_cap).await;
    }

    let game = stack.make_game("keyed", arena, 9, 9).await;
    let ask = async |path: &str, key: &str, body: &Value| {
        let request = Request::post(format!("{}{path}", stack.demo().base_url))
            .header("authorization", format!("Bearer {}", game.public))
            .header("idempotency-key", key);
        stack.send(request.body(Full::new(body.to_string().into())).unwrap()).await
    };
    let requests = seat_requests(stack, &game).await;
    for (number, (id, body)) in requests.iter().enumerate() {
        let path = observed.document.operation(id).path;
        observed.note(id, &ask(path, "not a key", body).await, (400, "API_BAD_HEADER"));
        let (other, its_body) = &requests[(number + 1) % requests.len()];
        ask(observed.document.operation(other).path, id, its_body).await.expect_ok();
        observed.note(id, &ask(path, id, body).await, (409, "API_IDEMPOTENCY_MISMATCH"));
    }
}

/// Requests for seats past the edge, where all must come through it.
async fn observe_edge(observed: &mut Observed, stack: &TestStack) {
    let arena = json!({ "arena": { "regions": ["fra"], "actions": { "create": { "enabled": true } } } });
    let game = stack.make_game("edge", arena, 9, 9).await;
    let edge = Environment::of([("MUSTER_EDGE_SECRET", "edge-secret"), ("MUSTER_EDGE_ONLY", "true")]);
    let keys = Arc::clone(stack.stack.keys());
    let instance = Instance::over(stack.store().clone(), keys, stack.ambient()).with_environment(edge);
    let [find, join, create] = seat_requests(stack, &game).await;
    answer_past_edge::<FindLobby>(observed, &instance, &game, find).await;
    answer_past_edge::<JoinLobby>(observed, &instance, &game, join).await;
    answer_past_edge::<CreateLobby>(observed, &instance, &game, create).await;
}

async fn answer_past_edge<O: operation::Operation>(
    observed: &mut Observed,
    instance: &Instance,
    game: &TestGame,
    (id, body): (&str, Value),
) {
    let operation = O::start(instance).unwrap();
    let bearer = format!("Bearer {}", game.public);
    let ask = async |secret: &str| {
        let headers = [("authorization", bearer.as_str()), ("x-muster-edge-secret", secret)];
        let answered = answer(&operation, event(&headers, &body, &[]), &instance.ambient()).await;
        let (parts, body) = answered.into_parts();
        Answer::new(parts, &body)
    };
    observed.note(id, &ask("a guess").await, (403, "API_FORBIDDEN"));
    ask("edge-secret").await.expect_ok();
}

/// A request of each operation that gives seats, with one seat taken.
async fn seat_requests(stack: &TestStack, game: &TestGame) -> [(&'static str, Value); 3] {
    let find = json!({ "game_modes": ["arena"] });
    let found = game.find(stack, find.clone()).await.expect_ok();
    [
        ("findLobby", find),
        ("joinLobby", json!({ "lobby_id": found.lobby_id() })),
        ("createLobby", json!({ "game_mode": "arena" })),
    ]
}

async fn observe_joins(observed: &mut Observed, stack: &TestStack) {
    let modes = json!({
        "shut": { "regions": ["fra"], "actions": { "join": { "enabled": false } } },
        "solo": { "regions": ["fra"], "max_players": 1 },
    });
    let game = stack.make_game("joins", modes, 9, 9).await;
    for (mode, code, metadata) in [
        ("shut", "MATCHMAKER_JOIN_DISABLED", Some(json!({ "game_mode": "shut" }))),
        ("solo", "MATCHMAKER_LOBBY_FULL", None),
    ] {
        let lobby_id = game.find(stack, json!({ "game_modes": [mode] })).await.expect_ok().lobby_id();
        let join = json!({ "lobby_id": lobby_id });
        let too_large = (400, "MATCHMAKER_PARTY_TOO_LARGE");
        if mode == "solo" {
            let pair = json!({ "lobby_id": lobby_id, "party_size": 2 });
            observed.play((stack, &game), "joinLobby", pair, too_large).await;
        }
        let answer = observed.play((stack, &game), "joinLobby", join.clone(), (400, code)).await;
        assert_eq!(answer.body.get("metadata"), metadata.as_ref(), "{}", answer.body);
        game.serve(stack, "end-lobby", join.clone()).await.expect_ok();
        observed.play((stack, &game), "joinLobby", join, (400, "MATCHMAKER_LOBBY_STOPPED")).await;
    }
    let theirs = Scene::on(stack).await;
    for lobby_id in [theirs.lobby_id.as_str(), "no lobby"] {
        let join = json!({ "lobby_id": lobby_id });
        observed.play((stack, &game), "joinLobby", join, (400, "MATCHMAKER_LOBBY_NOT_FOUND")).await;
    }
}

/// What is said of a lobby that ended, never was, or is another's.
async fn observe_ends(observed: &mut Observed, stack: &TestStack) {
    let game =
        stack.make_game("ends", json!({ "duel": { "regions": ["fra"], "max_players": 2 } }), 9, 9).await;
    let at = (stack, &game);
    let seat = game.find(stack, json!({ "game_modes": ["duel"] })).await.expect_ok();
    let ended = seat.lobby_id();
    game.end_lobby(stack, &ended).await.expect_ok();
    for (id, body) in [
        ("getLobbyState", json!(null)),
        ("setLobbyState", json!({})),
        ("setLobbyReady", json!(null)),
        ("setLobbyClosed", json!({ "is_closed": false })),
        ("setLobbyPublicity", json!({ "publicity": "public" })),
        ("connectPlayer", json!({ "player_token": player_token(&seat) })),
        ("disconnectPlayer", json!({ "player_token": player_token(&seat) })),
        ("removePlayer", json!({ "player_token": player_token(&seat) })),
        ("rejoinPlayer", json!({ "player_token": player_token(&seat) })),
    ] {
        observed.host(at, (id, &ended), body.clone(), (400, "MATCHMAKER_LOBBY_STOPPED")).await;
        let nobodys = PlayerSeat { lobby_id: "nobodys".parse().unwrap(), ..stack.seat(&seat) };
        let nobodys = stack.stack.keys().issue_player(&nobodys, stack.clock.now());
        let body = if id.ends_with("Player") { json!({ "player_token": nobodys }) } else { body };
        observed.host(at, (id, "nobodys"), body, (400, "MATCHMAKER_LOBBY_NOT_FOUND")).await;
    }
    observed
        .host(
            at,
            ("endLobby", "nobodys"),
            json!({ "lobby_id": "nobodys" }),
            (400, "MATCHMAKER_LOBBY_NOT_FOUND"),
        )
        .await;
    observed.host(at, ("endLobby", "nobodys"), json!({ "lobby_id": ended }), (403, "API_FORBIDDEN")).await;
    let (ours, theirs) = (Scene::on(stack).await, Scene::on(stack).await);
    let foreign = Scene { tokens: theirs.tokens.clone(), lobby_id: ours.lobby_id.clone(), ..theirs };
    observed.ask(&foreign, ("getLobbyState", "lobby"), "", (403, "API_FORBIDDEN")).await;
}

async fn observe_players(observed: &mut Observed, stack: &TestStack) {
    let (scene, elsewhere) = (Scene::on(stack).await, Scene::on(stack).await);
    let foreign = Scene::in_other_namespace(stack).await;
    let shown = |token: &str| json!({ "player_token": token }).to_string();
    for id in ["connectPlayer", "disconnectPlayer", "removePlayer"] {
        for token in ["nonsense", &scene.mock_player, &scene.tokens.public] {
            observed.ask(&scene, (id, "lobby"), shown(token), (400, "TOKEN_INVALID")).await;
        }
        observed.ask(&scene, (id, "development"), shown(&scene.player), (400, "TOKEN_INVALID")).await;
        observed.ask(&scene, (id, "lobby"), shown(&foreign.player), (403, "API_FORBIDDEN")).await;
        let different = (400, "MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY");
        observed.ask(&scene, (id, "lobby"), shown(&elsewhere.player), different).await;
    }
    let large = format!(r#"{{"x":"{}"}}"#, "x".repeat(64 * 1024));
    for id in ["leaveLobby", "rejoinPlayer"] {
        for token in ["nonsense", &scene.tokens.lobby] {
            observed.ask(&scene, (id, "anyone"), shown(token), (400, "TOKEN_INVALID")).await;
        }
        for (body, refusal) in [("{", (400, "API_BAD_BODY")), (&large, (413, "API_BODY_TOO_LARGE"))] {
            observed.ask(&scene, (id, "anyone"), body, refusal).await;
        }
    }
    let connect = ("connectPlayer", "lobby");
    let path = observed.document.operation("connectPlayer").path;
    let token = Some(scene.tokens.lobby.as_str());
    stack.call(Method::POST, path, token, shown(&scene.player)).await.expect_ok();
    observed.ask(&scene, connect, shown(&scene.player), (400, "MATCHMAKER_PLAYER_ALREADY_CONNECTED")).await;
    let path = observed.document.operation("disconnectPlayer").path;
    stack.call(Method::POST, path, token, shown(&scene.player)).await.expect_ok();
    let (rejoin, left) = (("rejoinPlayer", "anyone"), (400, "MATCHMAKER_PLAYER_REMOVED"));
    observed.ask(&scene, connect, shown(&scene.player), left).await;
    observed.ask(&scene, rejoin, shown(&scene.player), left).await;
    let mut capped = new_game("removed", json!({ "duel": { "regions": ["fra"] } }), 9);
    capped.namespaces[0].max_players_per_client = 9;
    let game = stack.make_game_of(capped, 9).await;
    // Another player stays, or the lobby would end.
    game.find(stack, json!({ "game_modes": ["duel"] })).await.expect_ok();
    let seat = game.find(stack, json!({ "game_modes": ["duel"] })).await.expect_ok();
    let removed = (Method::POST, "players/remove");
    let body = json!({ "player_token": player_token(&seat) });
    game.host(stack, &seat.lobby_id(), removed, body).await.expect_ok();
    let join = json!({ "lobby_id": seat.lobby_id() });
    observed.play((stack, &game), "joinLobby", join, (400, "MATCHMAKER_PLAYER_REMOVED")).await;
    stack.clock.advance(Duration::from_secs(120));
    let expired = (400, "MATCHMAKER_PLAYER_REGISTRATION_EXPIRED");
    observed.ask(&elsewhere, connect, shown(&elsewhere.player), expired).await;
    observed.ask(&elsewhere, rejoin, shown(&elsewhere.player), expired).await;
}

async fn observe_servers(observed: &mut Observed, stack: &TestStack) {
    let scene = Scene::on(stack).await;
    let unknown = json!({ "server_id": "no-such-server" }).to_string();
    for id in ["heartbeatServer", "deregisterServer"] {
        observed.ask(&scene, (id, "server"), unknown.clone(), (400, "MATCHMAKER_SERVER_NOT_FOUND")).await;
    }
    let lobby = json!({ "lobby_id": "no lobby" }).to_string();
    observed.ask(&scene, ("endLobby", "server"), lobby, (400, "MATCHMAKER_LOBBY_NOT_FOUND")).await;
    let port = |port: u32, protocol: &str| json!({ "hostname": "a", "port": port, "protocol": protocol });
    let bad = json!({ "region_id": "mars", "capacity": 0,
                      "ports": { "web": port(0, "https"), "game": port(1, "udp") } });
    let invalid = (400, "MATCHMAKER_INVALID_SERVER");
    let answer = observed.ask(&scene, ("registerServer", "server"), bad.to_string(), invalid).await;
    let errors = answer.body["metadata"]["errors"].as_array().unwrap();
    for path in [
        json!(["region_id", "not-found"]),
        json!(["capacity", "too-low"]),
        json!(["ports", "web", "mixed-tls"]),
    ] {
        assert!(errors.contains(&json!({ "path": path })), "{}", answer.body);
    }

    let game = stack.make_game("draining", json!({ "duel": { "regions": ["fra"] } }), 9, 0).await;
    let mut one = json!({ "server_id": "one", "start_id": "first", "region_id": "fra", "ports": { "game": port(1, "udp") } });
    game.serve(stack, "register", one.clone()).await.expect_ok();
    let lobby_id = game.find(stack, json!({ "game_modes": ["duel"] })).await.expect_ok().lobby_id();
    one["ports"]["game"]["port"] = json!(2);
    let moved = game.serve(stack, "register", one.clone()).await;
    observed.note("registerServer", &moved, invalid);
    assert_eq!(moved.body["metadata"]["errors"], json!([{ "path": ["ports", "in-use"] }]));
    game.serve(stack, "deregister", json!({ "server_id": "one" })).await.expect_ok();
    let gone = game.serve(stack, "register", one).await;
    observed.note("registerServer", &gone, (400, "MATCHMAKER_LOBBY_STATE_CONFLICT"));
    let reopen = json!({ "is_closed": false });
    let conflict = (400, "MATCHMAKER_LOBBY_STATE_CONFLICT");
    observed.host((stack, &game), ("setLobbyClosed", &lobby_id), reopen, conflict).await;
}

/// Values that cloud operations refuse.
async fn observe_values(observed: &mut Observed, stack: &TestStack) {
    let scene = Scene::on(stack).await;
    let password = "$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy";
    let user = |user: &str, password: &str| json!({ "user": user, "password": password }).to_string();
    let add = ("updateCdnAuthUser", "cloud");
    observed.ask(&scene, add, user("a:b", password), (400, "CDN_INVALID_AUTH_USER")).await;
    observed.ask(&scene, add, user("a", "a"), (400, "CDN_INVALID_AUTH_USER_PASSWORD")).await;
    let path = scene.path(observed.document.operation("updateCdnAuthUser").path);
    for n in 0..32 {
        let body = user(&n.to_string(), password);
        stack.call(Method::POST, &path, Some(&scene.tokens.cloud), body).await.expect_ok();
    }
    observed.ask(&scene, add, user("33", password), (400, "CDN_TOO_MANY_AUTH_USERS")).await;
    let domain = |domain: &str| json!({ "domain": domain }).to_string();
    let add = ("addDomain", "cloud");
    observed.ask(&scene, add, domain("https://a.example"), (400, "CDN_INVALID_DOMAIN")).await;
    let theirs = Scene::in_other_namespace(stack).await;
    stack.add_domain(theirs.namespace_id, "https://theirs.example").await;
    observed.ask(&scene, add, domain("theirs.example"), (409, "CDN_DOMAIN_TAKEN")).await;
    let right = stack.right(scene.namespace_id).await;
    let count = stack.store().cdn_settings(&right).await.unwrap().domains.len();
    for n in count..10 {
        stack.add_domain(scene.namespace_id, &format!("https://d{n}.example")).await;
    }
    observed.ask(&scene, add, domain("one-more.example"), (400, "CDN_TOO_MANY_DOMAINS")).await;
    let history = scene.path(observed.document.operation("getVersionHistory").path);
    let answer = stack.call(Method::GET, &format!("{history}?limit=0"), Some(&scene.tokens.cloud), "").await;
    observed.note("getVersionHistory", &answer, (400, "API_BAD_BODY"));
    let list = format!("{}?cursor=none", observed.document.operation("listLobbies").path);
    let answer = stack.call(Method::GET, &list, Some(&scene.tokens.public), "").await;
    observed.note("listLobbies", &answer, (400, "API_BAD_BODY"));
    let unknown =
        scene.path(&observed.document.operation("getVersion").path.replace("{version_id}", "unknown"));
    let answer = stack.call(Method::GET, &unknown, Some(&scene.tokens.cloud), "").await;
    observed.note("getVersion", &answer, (404, "CLOUD_VERSION_NOT_FOUND"));
    for (id, body, path) in [
        (
            "createVersion",
            json!({ "display_name": "1", "config": { "game_modes": {} } }),
            json!(["game_modes", "too-few"]),
        ),
        (
            "createNamespace",
            json!({ "display_name": "New", "version_id": scene.version_id, "name_id": "No" }),
            json!(["name-id", "invalid"]),
        ),
        (
            "updateMatchmakerConfig",
            json!({ "lobby_count_max": 32_768, "max_players": 1 }),
            json!(["lobby-count", "too-high"]),
        ),
        (
            "createDevelopmentToken",
            json!({ "hostname": "localhost", "ports": {} }),
            json!(["ports", "too-few"]),
        ),
    ] {
        let answer = observed.ask(&scene, (id, "cloud"), body.to_string(), (400, "VALIDATION_ERROR")).await;
        assert_eq!(answer.body["metadata"], json!({ "errors": [{ "path": path }] }), "{id}");
    }
}

/// Captchas and studios' backends, on a stack whose outside is this machine.
async fn observe_screening(observed: &mut Observed) {
    let (server, going) = (MockServer::start().await, MockServer::builder().start().await);
    let judged = |success: bool| ResponseTemplate::new(200).set_body_json(json!({ "success": success }));
    for (server, at) in [(&server, "/hcaptcha"), (&server, "/turnstile"), (&server, "/no"), (&going, "/gone")]
    {
        screening::answering(server, at, judged(true)).await;
    }
    let stack = TestStack::start_with_outside(screening::outside(&server.uri())).await;
    let at = |url: String| screening::mode(Some(&url));
    let modes = json!({ "open": screening::mode(None), "no": at(format!("{}/no", server.uri())),
                        "gone": at(format!("{}/gone", going.uri())) });
    let due = |provider| screening::captcha(provider, 0, Duration::from_secs(3_600));
    let guarded = screening::game(&stack, "guarded", modes.clone(), due("hcaptcha")).await;
    let down = screening::game(&stack, "down", modes.clone(), due("turnstile")).await;
    let verified = screening::game(&stack, "verified", modes, Value::Null).await;
    let answered = |provider: &str, text: &str| json!({ provider: { "client_response": text } });
    let mut cases = Vec::new();
    for (game, mode, captcha, refusal) in [
        (&guarded, "open", Value::Null, (403, "CAPTCHA_CAPTCHA_REQUIRED")),
        (&guarded, "open", answered("hcaptcha", "x"), (400, "CAPTCHA_CAPTCHA_FAILED")),
        (&down, "open", answered("turnstile", "x"), (503, "CAPTCHA_UNAVAILABLE")),
        (&verified, "no", Value::Null, (400, "MATCHMAKER_VERIFICATION_FAILED")),
        (&verified, "gone", Value::Null, (400, "MATCHMAKER_VERIFICATION_REQUEST_FAILED")),
    ] {
        let passing = json!({ "hcaptcha": { "client_response": refusal.1 },
                              "turnstile": { "client_response": refusal.1 } });
        let create = json!({ "game_mode": mode, "captcha": passing });
        let lobby_id = game.play(&stack, "lobbies/create", create).await.expect_ok().lobby_id();
        cases.push((game, mode, captcha, refusal, lobby_id));
    }
    // From now on they refuse all players, or are unreachable.
    server.reset().await;
    drop(going);
    screening::answering(&server, "/hcaptcha", judged(false)).await;
    screening::answering(&server, "/no", ResponseTemplate::new(403)).await;
    for (game, mode, captcha, refusal, lobby_id) in cases {
        for (id, mut body) in [
            ("findLobby", json!({ "game_modes": [mode] })),
            ("createLobby", json!({ "game_mode": mode })),
            ("joinLobby", json!({ "lobby_id": lobby_id })),
        ] {
            body["captcha"] = captcha.clone();
            observed.play((&stack, game), id, body, refusal).await;
        }
    }
}

async fn observe_starts(observed: &mut Observed, stack: &TestStack) {
    let arena = json!({ "regions": ["fra"], "actions": { "create": { "enabled": true } } });
    let game = stack.make_game("starts", json!({ "arena": arena }), 9, 0).await;
    let port = json!({ "hostname": "slow.example", "port": 1, "protocol": "udp" });
    let slow = json!({ "server_id": "slow", "region_id": "fra", "capacity": 9, "auto_ready": false,
                       "ports": { "game": port } });
    game.serve(stack, "register", slow).await.expect_ok();
    let timeout = (503, "MATCHMAKER_LOBBY_START_TIMEOUT");
    let find = game.find(stack, json!({ "game_modes": ["arena"] }));
    let (answer, starting) = wait_in_vain(stack, &game, find, async |lobby: &Lobby| {
        let seat = PlayerSeat {
            namespace_id: game.namespace_id().clone(),
            lobby_id: lobby.lobby_id.clone(),
            seat_id: lobby.reserved.keys().next().unwrap().clone(),
            generation: 0,
            client: None,
            membership: None,
            data: None,
        };
        let player = stack.stack.keys().issue_player(&seat, stack.clock.now());
        let conflict = (400, "MATCHMAKER_LOBBY_STATE_CONFLICT");
        let body = json!({ "player_token": player });
        observed.host((stack, &game), ("connectPlayer", lobby.lobby_id.as_str()), body, conflict).await;
    })
    .await;
    observed.note("findLobby", &answer, timeout);
    let join = game.join(stack, starting.lobby_id.as_str());
    let (answer, _) = wait_in_vain(stack, &game, join, async |_| {}).await;
    observed.note("joinLobby", &answer, timeout);
    let create = game.play(stack, "lobbies/create", json!({ "game_mode": "arena" }));
    let (answer, _) = wait_in_vain(stack, &game, create, async |_| {}).await;
    observed.note("createLobby", &answer, timeout);
}

/// Sends a request that takes a seat in a lobby that is not ready, lets its time pass after `meanwhile`, and
/// returns the answer and that lobby.
async fn wait_in_vain(
    stack: &TestStack,
    game: &TestGame,
    request: impl Future<Output = Answer>,
    meanwhile: impl AsyncFnOnce(&Lobby),
) -> (Answer, Lobby) {
    let mut request = pin!(request.fuse());
    let mut seated = pin!(lobby_with(stack, game, |lobby| lobby.taken > 0).fuse());
    let lobby = futures_util::select_biased! {
        lobby = seated => lobby,
        answer = request => panic!("answered at once: {}", answer.body),
    };
    let ((), answer) = tokio::join!(
        async {
            meanwhile(&lobby).await;
            stack.clock.advance(Duration::from_secs(25));
        },
        request
    );
    (answer, lobby)
}

/// Waits for a lobby that is so.
async fn lobby_with(stack: &TestStack, game: &TestGame, is_so: impl Fn(&Lobby) -> bool) -> Lobby {
    loop {
        if let Some(lobby) = stack.all_lobbies(game.namespace_id()).await.into_iter().find(&is_so) {
            return lobby;
        }
        tokio::task::yield_now().await;
    }
}

/// A starter that has nothing to start.
struct NoImage;

impl Starter for NoImage {
    async fn start(&self, _: &Order) -> Result<String, NotStarted> {
        Err(NotStarted::Refused("no such image".to_owned()))
    }

    async fn end(&self, _: &Order) -> Result<(), NotStarted> {
        Ok(())
    }
}

/// Game servers on demand that do not start while players wait for them.
async fn observe_failed_starts(observed: &mut Observed, stack: &TestStack) {
    let mode = |region| json!({ "regions": [region], "actions": { "create": { "enabled": true } } });
    let mut new = new_game("failed-starts", json!({ "arena": mode("fra"), "slow": mode("nyc") }), 9);
    new.config.servers = Some(serde_json::from_value(json!({ "build": 7 })).unwrap());
    new.regions.values_mut().for_each(|region| region.starter = Some(StarterKind::Process));
    let game = stack.make_game_of(new, 0).await;
    let (keys, url) = (Arc::clone(stack.stack.keys()), stack.demo().base_url.clone());
    let launching = Launching::new(stack.store().clone(), keys, stack.ambient(), url, NoImage);
    let waiting = |taken: u32| {
        let is_so = move |lobby: &Lobby| lobby.taken == taken && lobby.stage != Stage::Ended;
        lobby_with(stack, &game, is_so)
    };
    let fail = async |taken: u32| {
        let server = waiting(taken).await.server.expect("a requested server");
        launching.look(&server, 0).await.unwrap()
    };

    let find = game.find(stack, json!({ "game_modes": ["arena"] }));
    let join = async {
        let lobby = waiting(1).await;
        tokio::join!(game.join(stack, lobby.lobby_id.as_str()), fail(2)).0
    };
    let (find, join) = tokio::join!(find, join);
    // The burst of the lobby that ended is over.
    stack.clock.advance(Duration::from_secs(3));
    let create = game.play(stack, "lobbies/create", json!({ "game_mode": "arena" }));
    let (create, _) = tokio::join!(create, fail(1));
    for (id, answer) in [("findLobby", find), ("joinLobby", join), ("createLobby", create)] {
        observed.note(id, &answer, (503, "MATCHMAKER_SERVER_START_FAILED"));
    }

    // Starts that take long are not waited for.
    let build_id = game.created.version.config.servers.as_ref().unwrap().build_id();
    let (pool, now) = (game.pool("slow", "nyc").placement(Some(build_id)), stack.clock.now());
    stack.store().note_start(&pool, Duration::from_secs(30), now).await.unwrap();
    let (at, timeout) = ((stack, &game), (503, "MATCHMAKER_LOBBY_START_TIMEOUT"));
    let starting = observed.play(at, "findLobby", json!({ "game_modes": ["slow"] }), timeout).await;
    let join = json!({ "lobby_id": starting.body["metadata"]["lobby_id"] });
    observed.play(at, "joinLobby", join, timeout).await;
    observed.play(at, "createLobby", json!({ "game_mode": "slow" }), timeout).await;
}
