use std::fmt::Debug;

use serde_json::{Value, json};

use crate::store::{
    items::{from_item, to_item},
    records::*,
};

/// An item of a record, with every attribute that one can have.
pub(super) trait Sampled: Record + Debug {
    fn sample() -> Value;
}

/// Maps whose keys are given names, not fields of Muster: a later release has more of the same in them.
const MAPS_BY_NAME: [&str; 10] = [
    "connected",
    "domains",
    "game_modes",
    "headers",
    "obstacles",
    "ports",
    "regions",
    "reserved",
    "secrets",
    "users",
];
/// Identifiers that are put together of others, the parts of a key.
const COMPOSED: [&str; 3] = ["placement_pool", "pool", "server"];

/// The record as read, in words.
fn read<T: Sampled>(item: &Value, change: &str) -> String {
    match from_item::<T>(to_item(item).unwrap()) {
        Ok(record) => format!("{record:?}"),
        Err(error) => panic!("{} with {change}: {:?}", std::any::type_name::<T>(), error.cause()),
    }
}

/// Every item that `item` becomes by one change at some depth, with the change in words: `change` gives what
/// becomes of the value at a path, if anything.
fn changed(item: &Value, change: &dyn Fn(&[String], &Value) -> Vec<Value>) -> Vec<(String, Value)> {
    fn walk(
        path: &mut Vec<String>,
        whole: &Value,
        value: &Value,
        change: &dyn Fn(&[String], &Value) -> Vec<Value>,
        all: &mut Vec<(String, Value)>,
    ) {
        for changed in change(path, value) {
            let mut item = whole.clone();
            let pointer: String = path.iter().map(|part| format!("/{part}")).collect();
            *item.pointer_mut(&pointer).unwrap() = changed.clone();
            all.push((format!("{changed} at {pointer}"), item));
        }
        let children: Vec<(String, &Value)> = match value {
            Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
            Value::Array(items) => {
                items.iter().enumerate().map(|(n, value)| (n.to_string(), value)).collect()
            }
            _ => Vec::new(),
        };
        for (name, value) in children {
            path.push(name);
            walk(path, whole, value, change, all);
            path.pop();
        }
    }
    let mut all = Vec::new();
    walk(&mut Vec::new(), item, item, change, &mut all);
    all
}

/// With a field more in each record, however deep; no map by name is one.
fn with_an_unknown_field(path: &[String], value: &Value) -> Vec<Value> {
    let is_map = path.last().is_some_and(|name| MAPS_BY_NAME.contains(&name.as_str()));
    let Value::Object(fields) = value else { return Vec::new() };
    let unknown = [json!("text"), json!(1), json!({ "a": [true, null] })].map(|unknown| {
        let mut fields = fields.clone();
        fields.insert("a_later_field".to_owned(), unknown);
        Value::Object(fields)
    });
    if is_map { Vec::new() } else { unknown.to_vec() }
}

/// With one more of the same in each map by name, and in each map by an enum of which there is one:
/// `not_before`.
fn with_an_unknown_key(path: &[String], value: &Value) -> Vec<Value> {
    let is_map =
        path.last().is_some_and(|name| *name == "not_before" || MAPS_BY_NAME.contains(&name.as_str()));
    let Some(fields) = value.as_object().filter(|_| is_map) else { return Vec::new() };
    let mut fields = fields.clone();
    let more = fields.values().next().unwrap().clone();
    fields.insert("a_later_key".to_owned(), more);
    vec![fields.into()]
}

/// With another text in the place of each text: a later release's, where it is the value of an enum.
fn with_an_unknown_value(path: &[String], value: &Value) -> Vec<Value> {
    let is_composed = path.last().is_some_and(|name| COMPOSED.contains(&name.as_str()));
    match value {
        Value::String(_) if !is_composed => vec![json!("a_later_value")],
        _ => Vec::new(),
    }
}

pub(super) fn reads_what_a_later_release_stored<T: Sampled>() {
    let sample = T::sample();
    let as_known = read::<T>(&sample, "nothing more");
    let name = std::any::type_name::<T>();
    for nothing in ["None", "{}", "[]"] {
        assert!(!as_known.contains(nothing), "the sample of {name} lacks what it can have: {as_known}");
    }
    for (change, item) in changed(&sample, &with_an_unknown_field) {
        let read = read::<T>(&item, &change);
        // A record that is kept as it is stored has the field.
        assert!(read == as_known || name.contains("Value"), "{name} with {change}: {read}");
    }
    for change in [with_an_unknown_key, with_an_unknown_value] {
        for (change, item) in changed(&sample, &change) {
            let _read = read::<T>(&item, &change);
        }
    }
}

#[test]
fn every_record_reads_what_a_later_release_stored() {
    each_record();
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn what_is_unknown_counts_as_the_safe_one() {
    use crate::{
        base::ambient::Timestamp,
        models::{
            availability::{Access, Availability, Refusal},
            generations::ShownSeat,
            ids::{SeatId, WriteId},
            lifecycle::{Connect, Illegal, Transition, TransitionState},
            lobby::{SeatState, Stage},
            namespace::CdnAuthType,
            tag_digests::TagDigests,
            token::TokenKind,
        },
    };

    fn with<T: Sampled>(pointer: &str, value: Value) -> T {
        let mut item = T::sample();
        *item.pointer_mut(pointer).unwrap() = value;
        from_item(to_item(&item).unwrap()).unwrap()
    }
    let now = Timestamp(10);

    let namespace: Namespace = with("/cdn_auth_type", json!("passkey"));
    assert_eq!(namespace.cdn_auth_type, CdnAuthType::Basic, "an unknown type does not open the pages");
    let namespace: Namespace =
        with("/revocations/not_before", json!({ "public": 7, "spectator": { "since": 8 } }));
    assert_eq!(namespace.revocations.not_before, [(TokenKind::Public, Timestamp(7))].into());
    let token: IssuedToken = with("/kind", json!("spectator"));
    assert_eq!(token.kind, None);
    let version: Version = with(
        "/config/captcha",
        json!({ "requests_before_reverify": 1, "verification_ttl": 1, "puzzle": {} }),
    );
    assert_eq!(version.config.captcha.unwrap().providers().count(), 0, "no player passes");

    // No player enters, no seat is lost, and the lobby does not change.
    let paused: Lobby = with("/stage", json!("paused"));
    let seat: SeatId = "seat".parse().unwrap();
    assert_eq!(paused.stage, Stage::Unknown);
    for access in [Access::Find(paused.pool.clone(), TagDigests::default()), Access::Direct] {
        assert_eq!(paused.availability(&access, 1, now), Availability::Refused(Refusal::Hidden));
    }
    assert_eq!(paused.seat_state(&seat, now), SeatState::Held);
    assert_eq!(paused.end_cause(Timestamp(99)), None);
    let write = WriteId::random(&crate::base::ambient::Ambient::system());
    for transition in [
        Transition::Ready,
        Transition::Close,
        Transition::Reopen,
        Transition::Drain(None),
        Transition::Connect(Connect::first(seat.clone(), write, now)),
        Transition::Disconnect(ShownSeat { seat_id: seat.clone(), generation: 0 }, None),
        Transition::GiveUp(ShownSeat { seat_id: seat.clone(), generation: 0 }),
        Transition::Rejoin(ShownSeat { seat_id: seat.clone(), generation: 0 }),
        Transition::Leave(seat),
    ] {
        assert_eq!(paused.check(&transition, now), Err(Illegal::StageUnknown), "{transition:?}");
    }
    let gone = Transition::Leave("gone".parse().unwrap());
    assert_eq!(paused.check(&gone, now), Ok(TransitionState::Done));

    // A port that a response cannot describe.
    for (pointer, value) in [
        ("/ports/game/protocol", json!("quic")),
        ("/ports/game/protocol", json!({ "quic": 1 })),
        ("/ports/game", json!({ "hostname": "a.example", "protocol": "udp", "socket": "/tmp/game" })),
    ] {
        let lobby: Lobby = with(pointer, value.clone());
        assert_eq!(
            lobby.availability(&Access::Direct, 1, now),
            Availability::Refused(Refusal::Hidden),
            "{value}"
        );
        let server: Server = with(pointer, value);
        assert!(!server.fits(&"arena".parse().unwrap(), now));
    }
    let server: Server = with("/is_clearing", json!(false));
    assert!(server.fits(&"arena".parse().unwrap(), now), "but for that it fits");
}

fn ports() -> Value {
    json!({
        "game": { "hostname": "a.example", "port": 7_777, "protocol": "udp" },
        "voice": { "hostname": "a.example", "port_range": { "min": 1, "max": 2 }, "protocol": "tcp" },
    })
}

fn version() -> Value {
    let verification = json!({ "url": "https://a.example/", "headers": { "authorization": null } });
    let action = json!({ "enabled": true, "verification": verification });
    let keys = json!({ "site_key": "site", "secret_key": null });
    let mode = json!({
        "regions": ["fra"], "max_players": 8, "max_players_direct": 9, "max_players_party": 8, "listable": true,
        "taggable": true, "allow_dynamic_max_players": true, "reservation_seconds": 60, "idle_seconds": 5, "keep_seconds": 5,
        "latency_tolerance": 50, "latency_max": 100, "party_size_max": 4,
        "actions": { "find": action, "join": action, "create": action },
    });
    json!({
        "pk": "GAME#g", "sk": "VERSION#v", "game_id": "g", "version_id": "v", "display_name": "1", "created_at": 1,
        "has_secrets": true,
        "config": {
            "game_modes": { "arena": mode },
            "captcha": { "requests_before_reverify": 1, "verification_ttl": 1, "hcaptcha": keys, "turnstile": keys },
            "servers": { "build": "game:1", "capacity": 4, "server_count_max": 9, "start_seconds": 30, "idle_seconds": 60 },
        },
    })
}

macro_rules! sampled {
    ($($record:ty => $item:expr,)*) => {
        $(impl Sampled for $record {
            fn sample() -> Value {
                $item
            }
        })*
    };
}

sampled! {
    Allotment => json!({ "pk": "allotted/n", "allotted": 1 }),
    Burst => json!({ "pk": "head/1", "first": "l", "secret": "s", "opened_at": 1, "positions": 1, "draws": [1], "is_announced": true }),
    Candidate => json!({ "lobby_id": "l", "pool": "n/v/arena/fra", "joinable_from": 1, "room": 200_000_000_000_001_u64, "tag_digests": ["digest"] }),
    CaptchaPass => json!({ "pk": "captcha", "passed_at": 1, "answer": "digest", "requests": 1, "repeats": 1, "expires_at": 1 }),
    Cdn => json!({ "pk": "GAME#g", "sk": "CDN#n", "users": { "ada": "$2b$12$hash" }, "domains": { "a.example": 1 } }),
    CloudTokenRecord => json!({ "digest": "d", "game_id": "g", "token_id": "t", "created_at": 1, "revoked_at": 2 }),
    Deployment => json!({ "pk": "HISTORY#n", "sk": "1", "namespace_id": "n", "version_id": "v", "deployed_at": 1 }),
    DomainOwner => json!({ "pk": "DOMAIN#a.example", "sk": "DOMAIN", "game_id": "g", "namespace_id": "n" }),
    Game => json!({
        "pk": "GAME#g", "sk": "GAME", "game_id": "g", "name_id": "game", "display_name": "Game", "created_at": 1,
        "regions": { "fra": { "display_name": "F", "provider_display_name": "P", "latitude": 1.5, "longitude": 2.5,
                              "probe": "https://a.example/", "starter": "webhook" } },
    }),
    HoldsItem => json!({ "pk": "holds", "held": 1, "seat_s": "l~1", "expires_at": 1 }),
    IssuedToken => json!({
        "pk": "TOKENS#g", "sk": "t", "game_id": "g", "token_id": "t", "kind": "public", "namespace_id": "n", "issued_at": 1,
        "expires_at": 2, "revoked_at": 3,
    }),
    SecretsItem => json!({ "version_id": "v", "secrets": { "captcha": "kept secret" } }),
    StarterItem => json!({
        "version_id": "starter/g/fra",
        "starter": { "kind": "ecs", "cluster": "c", "task_definition": "t", "container": "game", "subnets": ["s"],
                     "security_groups": ["g"], "spot": true },
    }),
    KeptCount => json!({ "pk": "statistics/n", "counted_at": 1, "claimed_at": 1, "json": "count", "expires_at": 1 }),
    ListedVersion => json!({
        "pk": "GAME#g", "sk": "LISTED#v", "game_id": "g", "version_id": "v", "display_name": "1", "created_at": 1,
        "game_modes": ["arena"], "retired_at": 2,
    }),
    Lobby => json!({
        "lobby_id": "l", "pool": "n/v/arena/fra", "joinable_from": 1, "created_at": 1, "stage": "ready", "closed": false,
        "toggled_at": 1, "is_private": true, "is_draining": true, "server": "n/s", "start": "s1", "lease_until": 100, "freed_at": 1,
        "launch": { "requested_at": 1, "expected_at": 2, "deadline": 3 },
        "ports": ports(), "tag_digests": ["digest"], "tag_set": "set", "max_players": 8, "max_players_direct": 8, "reservation_secs": 60, "idle_secs": 5,
        "max_players_party": 9, "party_size_max": 4, "room": 200_000_000_000_001_u64, "keep_secs": 5, "taken": 2, "reserved": { "seat": 20 }, "connected": { "other": 20 }, "generations": { "other": "1/0" }, "vacated_at": 1, "lapsed": ["old"],
        "code": "ABC234", "connected_by": "w", "joined_at": 1, "doubt": 1, "has_state": true, "has_config": true, "expires_at": 1,
    }),
    LobbyCursor => json!({ "server": "n/s", "created_at": 1, "lobby_id": "l" }),
    NameOwner => json!({ "pk": "GAMENAME#game", "sk": "GAMENAME", "game_id": "g" }),
    Nursery => json!({
        "pk": "nursery/n/fra/b", "first": "s", "secret": "s", "opened_at": 1, "drawn": ["mark"], "start_ms": 1, "failures": 1,
        "blocked_until": 1, "failure": "refused", "expires_at": 1,
    }),
    Namespace => json!({
        "pk": "GAME#g", "sk": "NAMESPACE#n", "game_id": "g", "namespace_id": "n", "name_id": "prod", "display_name": "P",
        "created_at": 1, "version_id": "v", "deployed_at": 1, "lobby_count_max": 1, "max_players_per_client": 1,
        "enable_domain_public_auth": true, "cdn_auth_type": "basic",
        "revocations": { "not_before": { "public": 1 }, "token_ids": ["t"] }, "tag_key": "key",
    }),
    ListedToken => json!({ "pk": "TOKENS#g", "sk": "t", "namespace_id": "n", "digest": "d" }),
    OperatorAction => json!({
        "pk": "ACTIONS#g", "sk": "1#id", "game_id": "g", "at": 1, "who": "ada", "verb": "token revoke", "target": "game t",
        "has_failed": true, "expires_at": 1,
    }),
    ReplayRecord => json!({
        "pk": "replay", "body": "b", "seat": "s", "run": "r", "lease_until": 1, "lobby": "l", "taken_at": 1, "answer": "answer",
        "key_id": "k", "is_held": true, "refusal": "code", "first_waits_until": 1, "second_waits_until": 1, "expires_at": 1,
    }),
    Server => json!({
        "server": "n/s", "start_id": "s1", "game_id": "g", "owner": "1/t", "started_at": 1, "former_starts": ["s0"], "is_clearing": true, "region_id": "fra", "placement_pool": "n/fra/b",
        "build_id": "b", "launch": { "version_id": "v", "requested_at": 1, "expected_at": 2, "deadline": 2, "idle_secs": 60 }, "stage": "running",
        "idle_since": 1, "handle": "task", "ended_at": 1, "failure": "refused", "free_from": 1, "ranked_at": 1, "capacity": 2, "used": 1, "allotted": 1,
        "cap_checked": 1, "lease_until": 100, "beat_at": 1, "lease_ms": 60_000, "game_modes": ["arena"], "auto_ready": true,
        "ports": ports(), "registration": "w", "expires_at": 1,
    }),
    StoredData => json!({ "lobby_id": "l", "part": "state", "json": "[1]" }),
    FailedSearch => json!({ "pk": "room/n", "found_at": 1, "claimed_at": 1, "lobby_count_max": 1, "obstacles": { "full": 1 }, "expires_at": 1 }),
    Version => version(),
    Version<Value> => version(),
}
