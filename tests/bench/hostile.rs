//! What requests cost their owner that are refused: by a token, a rule, a cap, a captcha.

use std::{collections::BTreeMap, fs, net::Ipv4Addr, sync::atomic::Ordering, time::Duration};

use harness::{TestGame, instance::event_from, new_game, prices::Cost};
use serde_json::{Value, json};
use shared::{
    auth::keys::TokenKeys,
    base::{ambient::Timestamp, usage::Usage},
    cloud::provision::add_version,
    models::{
        ids::LobbyId,
        token::{Credential, CredentialKind},
        version::VersionConfig,
    },
};
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::method};

use super::Bench;

const HEAD: &str = "
## What refused requests cost

As above: dollars per million requests that a stranger or a player sends and that are refused. What an owner pays for
a flood is this, at most at the rates of the throttles in `template.yaml`.

| request, and what refuses it | calls | read units | write units | bytes | DynamoDB | data | all |
|---|---|---|---|---|---|---|---|
";

/// Seats that a client may hold.
const CAP: u32 = 8;
/// When a refusal is the first one.
const FIRST: &str = "first";
/// When it is the first one of an instance, but not of all.
const ANOTHER: &str = "another instance";
/// Where the example events lie.
const EVENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../events");

/// A captcha provider that refuses every answer.
pub async fn refusing_provider() -> MockServer {
    let server = MockServer::start().await;
    let verdict = json!({ "success": false, "error-codes": ["invalid-input-response"] });
    let refusal = ResponseTemplate::new(200).set_body_json(verdict);
    Mock::given(method("POST")).respond_with(refusal).mount(&server).await;
    server
}

/// What refusals cost an owner at most, as a page promises it.
pub async fn promise(bench: &Bench) -> String {
    let refusals = bench.refusals.lock().await;
    let most = |is_of: &dyn Fn(&str) -> bool| {
        let costs = refusals.iter().filter(|(what, _)| is_of(what)).map(|(_, cost)| cost.total());
        costs.reduce(f64::max).expect("a refusal of this kind was counted")
    };
    let is_first = |what: &str| what.ends_with(FIRST);
    let at_cap = |what: &str| what.contains("client at its cap") || what.contains("client with seats");
    let again = |what: &str| what.ends_with("again");
    let rows = [
        ("a forged token", most(&|what| what == "a forged token")),
        (
            "a rule of the version, or a wrong body",
            most(&|what| what.contains("a rule") || what.contains("a body")),
        ),
        (
            "a page of an unregistered domain, a different one each time",
            most(&|what| what.contains("page of no")),
        ),
        ("a captcha that is missing, or that its provider refuses", most(&|what| what.contains("captcha"))),
        ("a client at its limit of seats", most(&|what| at_cap(what) && !again(what))),
        ("the same client again within a second", most(&|what| at_cap(what) && again(what))),
        ("a full namespace, or full game servers", most(&|what| !at_cap(what) && what.ends_with(ANOTHER))),
        ("the same of one instance again within a second", most(&|what| !at_cap(what) && again(what))),
    ];
    let table: String = rows.iter().map(|(what, dollars)| format!("| {what} | {dollars:.2} |\n")).collect();
    let by_shortage = |what: &str| !at_cap(what) && (is_first(what) || what.ends_with(ANOTHER));
    let list = Cost::of(Usage::default(), bench.list_bytes_max.load(Ordering::Relaxed)).total();
    let (dearest, search) = (most(&|what| !by_shortage(what)), most(&|what| !at_cap(what) && is_first(what)));
    format!(
        "\n| refused request | cost at most |\n|---|---|\n{table}\nAt the default `ThrottleRate` of 1,000 a second one \
         route costs at most ${:.2} an hour in refusals. An instance\nbelieves for a second that a namespace or its game \
         servers are full, so it pays for that once a second. A look for\ncapacity in vain costs up to ${search:.2} a million \
         in a namespace of 1,000 lobbies, but all instances together look at most\ntwice a second for each mode and region.\n\nA list \
         that an instance keeps costs at most ${list:.2} a million, ${:.2} an hour at that rate, most of it for the data \
         sent.\n",
        dearest * 3.6,
        list * 3.6
    )
}

pub async fn refusals(bench: &Bench) {
    bench.say(HEAD).await;
    by_token(bench).await;
    by_rule(bench).await;
    by_cap_and_captcha(bench).await;
    by_capacity(bench).await;
}

impl Bench {
    /// One request that is refused with `code`, and a line about it.
    async fn refused(&self, what: &str, function: &str, request: (&[(&str, &str)], Value), code: &str) {
        let cost = self.answered(what, function, request, code).await;
        self.refusals.lock().await.push((what.to_owned(), cost));
    }

    /// A request that is answered by a code, with a line about it.
    pub async fn answered(
        &self,
        what: &str,
        function: &str,
        (headers, body): (&[(&str, &str)], Value),
        code: &str,
    ) -> Cost {
        let instance = self.instance(function).await;
        let before = self.meter.usage();
        let response = instance(event_from(Ipv4Addr::LOCALHOST, headers, &body, &[])).await;
        let cost = Cost::of(self.meter.usage() - before, response.body().len());
        let body: Value = serde_json::from_slice(response.body()).expect("a JSON body");
        assert_eq!(body["code"], code, "{what}: {body}");
        self.note(what, cost).await;
        cost
    }
}

impl Bench {
    /// The first refusal, which looks for capacity in vain where it lacks; that of another instance, which
    /// knows nothing but the settings; and the next one there, with a line about each.
    async fn refused_thrice(
        &self,
        what: &str,
        function: &str,
        game: &TestGame,
        code: &str,
        body: impl Fn(u32) -> Value,
    ) {
        let public = format!("Bearer {}", game.public);
        let headers = [("authorization", public.as_str())];
        for (nth, when) in (0..).zip([FIRST, ANOTHER, "again"]) {
            if nth < 2 {
                self.forget().await;
                self.warm(&[function], game).await;
            }
            self.refused(&format!("{what}; {when}"), function, (&headers, body(nth)), code).await;
        }
    }
}

/// Every operation's example with a token that was never given out.
async fn by_token(bench: &Bench) {
    let modes = json!({ "arena": { "regions": ["fra"] } });
    let game = bench.stack.make_game("forged", modes, 1_000, 1).await;
    let forger = TokenKeys::new(&[9; 32], None).expect("a key");
    let credential = Credential::fresh(game.game_id(), game.namespace_id(), &bench.stack.ambient());
    let mut by_cost: BTreeMap<String, (Cost, Vec<String>)> = BTreeMap::new();
    let mut names: Vec<String> = fs::read_dir(EVENTS)
        .expect("examples")
        .filter_map(|entry| {
            let path = entry.expect("an entry").path();
            (path.extension()? == "json").then(|| path.file_stem()?.to_str().map(ToOwned::to_owned))?
        })
        .collect();
    names.sort_unstable();
    for name in names {
        let example = fs::read_to_string(format!("{EVENTS}/{name}.json")).expect("an example");
        let example: Value = serde_json::from_str(&example).expect("JSON");
        if example["headers"]["authorization"].is_null() {
            continue;
        }
        let is_of_cloud = example["rawPath"].as_str().is_some_and(|path| path.starts_with("/cloud"));
        let forged = if is_of_cloud {
            forged_cloud_token(&game)
        } else {
            forger.issue_credential(CredentialKind::Public, &credential)
        };
        let given = example["pathParameters"].as_object().into_iter().flatten();
        let parameters: Vec<(&str, String)> =
            given.map(|(name, value)| (name.as_str(), of_game(&game, name, value))).collect();
        let parameters: Vec<_> = parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let body = example["body"].as_str().and_then(|body| serde_json::from_str(body).ok());
        let authorization = format!("Bearer {forged}");
        let headers = [("authorization", authorization.as_str())];
        let instance = bench.instance(&name).await;
        let before = bench.meter.usage();
        let body = body.unwrap_or_else(|| json!({}));
        let response = instance(event_from(Ipv4Addr::LOCALHOST, &headers, &body, &parameters)).await;
        assert_eq!(response.status(), 401, "{name}: {:?}", response.body());
        let cost = Cost::of(bench.meter.usage() - before, response.body().len());
        by_cost.entry(format!("{cost:?}")).or_insert((cost, Vec::new())).1.push(name);
    }
    for (cost, names) in by_cost.into_values() {
        bench.refusals.lock().await.push(("a forged token".to_owned(), cost));
        bench.note(&format!("a forged token: {}", names.join(", ")), cost).await;
    }
}

/// What the example's path names, of the game.
fn of_game(game: &TestGame, name: &str, value: &Value) -> String {
    match name {
        "game_id" => game.game_id().to_string(),
        "namespace_id" => game.namespace_id().to_string(),
        "version_id" => game.created.version.version_id.to_string(),
        "lobby_id" => LobbyId::nil().to_string(),
        _ => value.as_str().unwrap_or_default().to_owned(),
    }
}

/// A cloud token as long as the game's, which is another one.
fn forged_cloud_token(game: &TestGame) -> String {
    let token = game.created.cloud_token.reveal();
    let (rest, last) = token.split_at(token.len() - 4);
    format!("{rest}{}", if last == "AAAA" { "BBBB" } else { "AAAA" })
}

/// Warm requests of a known namespace that break a rule.
async fn by_rule(bench: &Bench) {
    let modes = json!({ "arena": { "regions": ["fra"], "max_players": 1, "reservation_seconds": 600 } });
    let game = bench.stack.make_game("rules", modes, 1_000, 100).await;
    bench.warm(&["find-lobby", "join-lobby", "connect-player"], &game).await;
    let public = format!("Bearer {}", game.public);
    let headers = [("authorization", public.as_str())];
    let unknown = json!({ "game_modes": ["unknown"] });
    let code = "MATCHMAKER_GAME_MODE_NOT_FOUND";
    bench.refused("find: a rule", "find-lobby", (&headers, unknown), code).await;
    let unread = json!({ "game_modes": 1 });
    bench.refused("find: a body of the wrong type", "find-lobby", (&headers, unread), "API_BAD_BODY").await;
    let nowhere = [("origin", "https://unknown.example")];
    let find = json!({ "game_modes": ["arena"] });
    let what = "find: no token, and the page of no namespace, another one each time";
    bench.refused(what, "find-lobby", (&nowhere, find.clone()), "API_UNAUTHORIZED").await;
    let join = json!({ "lobby_id": LobbyId::nil() });
    let code = "MATCHMAKER_LOBBY_NOT_FOUND";
    bench.refused("join: no such lobby", "join-lobby", (&headers, join), code).await;
    let seat = bench.call("find-lobby", &game.public, &find, &[]).await;
    let join = json!({ "lobby_id": seat["lobby"]["lobby_id"] });
    bench.refused("join: a full lobby", "join-lobby", (&headers, join), "MATCHMAKER_LOBBY_FULL").await;
    let lobby = game.lobby_token(&bench.stack, seat["lobby"]["lobby_id"].as_str().unwrap_or_default());
    let lobby = format!("Bearer {lobby}");
    let other = bench.call("find-lobby", &game.public, &find, &[]).await;
    let player = json!({ "player_token": other["player"]["token"] });
    let code = "MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY";
    let headers = [("authorization", lobby.as_str())];
    bench.refused("connected: a player of another lobby", "connect-player", (&headers, player), code).await;
}

/// Finds of a client at its cap, and of one that has a captcha to pass.
async fn by_cap_and_captcha(bench: &Bench) {
    let mode = json!({ "regions": ["fra"], "max_players": 64, "reservation_seconds": 600 });
    let mut new = new_game("guarded", json!({ "arena": mode }), 1_000);
    new.namespaces[0].max_players_per_client = CAP;
    let game = bench.stack.make_game_of(new, 100).await;
    bench.warm(&["find-lobby"], &game).await;
    let public = format!("Bearer {}", game.public);
    let headers = [("authorization", public.as_str())];
    let find = |answer: Option<&str>| {
        let captcha = answer.map(|answer| json!({ "hcaptcha": { "client_response": answer } }));
        json!({ "game_modes": ["arena"], "captcha": captcha })
    };
    for _ in 0..CAP {
        bench.call("find-lobby", &game.public, &find(None), &[]).await;
    }
    let code = "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE";
    bench.refused("find: the client is at its cap of 8", "find-lobby", (&headers, find(None)), code).await;

    let captcha = json!({ "requests_before_reverify": 0, "verification_ttl": 60_000,
                          "hcaptcha": { "site_key": "site", "secret_key": "captcha-secret" } });
    let config = json!({ "game_modes": { "arena": mode }, "captcha": captcha });
    let config: VersionConfig = serde_json::from_value(config).expect("a version");
    let (store, ambient) = (bench.stack.store(), bench.stack.ambient());
    let version =
        add_version(store, &ambient, game.game_id(), "2".to_owned(), config).await.expect("a version");
    let path = format!("/cloud/games/{}/namespaces/{}/version", game.game_id(), game.namespace_id());
    let body = json!({ "version_id": version.version_id }).to_string();
    let token = Some(game.created.cloud_token.reveal());
    bench.stack.call(http::Method::PUT, &path, token, body).await.expect_ok();
    bench.stack.clock.advance(Duration::from_secs(31));
    bench.warm(&["find-lobby"], &game).await;
    let what = "find: a captcha is to be passed, none is given";
    bench.refused(what, "find-lobby", (&headers, find(None)), "CAPTCHA_CAPTCHA_REQUIRED").await;
    let what = "find: an answer to a captcha, of a client at its cap";
    bench.refused(what, "find-lobby", (&headers, find(Some("wrong"))), code).await;
    bench.stack.clock.advance(Duration::from_secs(600));
    bench.warm(&["find-lobby"], &game).await;
    let failed = "CAPTCHA_CAPTCHA_FAILED";
    let instance = bench.instance("find-lobby").await;
    let _secrets_read = instance(event_from(Ipv4Addr::LOCALHOST, &headers, &find(Some("first")), &[])).await;
    let what = "find: an answer to a captcha that its provider refuses";
    bench.refused(what, "find-lobby", (&headers, find(Some("wrong"))), failed).await;
}

/// Finds, joins and creations where nothing is free: of an instance that knows nothing but the settings, and
/// a moment after it refused one.
async fn by_capacity(bench: &Bench) {
    let solo = json!({ "regions": ["fra"], "max_players": 1, "reservation_seconds": 600 });
    let tagged =
        json!({ "regions": ["fra"], "max_players": 8, "taggable": true, "reservation_seconds": 600 });
    let modes = json!({ "solo": solo, "tagged": tagged, "other": tagged,
                        "made": { "regions": ["fra"], "actions": { "create": { "enabled": true } }, "reservation_seconds": 600 } });
    let mut new = new_game("eight", modes.clone(), 1_000);
    new.namespaces[0].max_players_per_client = CAP;
    let game = bench.stack.make_game_of(new, 100).await;
    for _ in 0..CAP {
        bench.call("find-lobby", &game.public, &json!({ "game_modes": ["solo"] }), &[]).await;
    }
    let code = "MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE";
    let find = json!({ "game_modes": ["solo"] });
    bench
        .refused_thrice("find: a client with seats in eight lobbies", "find-lobby", &game, code, |_| {
            find.clone()
        })
        .await;

    for lobbies in [128, 1_000] {
        let game = bench.stack.make_game(&format!("full-{lobbies}"), modes.clone(), lobbies, 2_000).await;
        for lobby in 0..lobbies {
            let find = json!({ "game_modes": ["tagged"], "tags": { "code": format!("there-{lobby}") } });
            bench.call("find-lobby", &game.public, &find, &[]).await;
        }
        let code = "MATCHMAKER_TOO_MANY_LOBBIES";
        let of = |what: &str| format!("{what}, {lobbies} lobbies, as many as allowed");
        let tag = |nth: u32| json!({ "game_modes": ["tagged"], "tags": { "code": format!("new-{nth}") } });
        bench.refused_thrice(&of("find: a new tag"), "find-lobby", &game, code, tag).await;
        let other = |_| json!({ "game_modes": ["other"] });
        bench.refused_thrice(&of("find: another mode"), "find-lobby", &game, code, other).await;
        let made = |_| json!({ "game_mode": "made" });
        bench.refused_thrice(&of("create"), "create-lobby", &game, code, made).await;
        let prevented = |nth: u32| {
            json!({ "game_modes": ["tagged"], "tags": { "code": format!("prevented-{nth}") },
                    "prevent_auto_create_lobby": true })
        };
        let code = "MATCHMAKER_NO_AVAILABLE_LOBBIES";
        bench
            .refused_thrice(&of("find: a new tag, creation prevented"), "find-lobby", &game, code, prevented)
            .await;
    }

    let game = bench.stack.make_game("busy", modes, 1_000, 0).await;
    for server in 0..150 {
        game.add_server(&bench.stack, &format!("s{server}"), "fra", 1, Timestamp::NEVER).await;
    }
    for _ in 0..150 {
        bench.call("find-lobby", &game.public, &find, &[]).await;
    }
    let code = "MATCHMAKER_NO_SERVER_AVAILABLE";
    let what = "find: 150 game servers without a place";
    bench.refused_thrice(what, "find-lobby", &game, code, |_| find.clone()).await;
}
