//! The mapping between the model's tables and the store's items, both ways.
//!
//! A tick is long for lobbies and game servers, so that all of the product's spans are whole ticks that the
//! model's small numbers hold, and short for heads, whose window is two seconds.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use shared::{
    base::ambient::Timestamp,
    models::{
        availability::{Access as StoredAccess, Availability as StoredAvailability, Refusal},
        generations::Generations,
        ids::{BurstSecret, LobbyId, SeatId, ServerId, ServerKey, StartId, WriteId},
        launch::{Launch as StoredLaunch, LaunchStage as StoredLaunchStage},
        lobby::{EndCause as StoredCause, Lobby as StoredLobby, Stage as StoredStage},
        pool::Pool,
        server::{PlacementPool, Server as StoredServer},
        tag_digests::TagDigests,
        token::Owner,
    },
    store::creation::Burst,
};

use crate::{
    State,
    conditions::Table,
    mutations::UNMAPPED,
    tables::{
        Access, Availability, DRAWS, EndCause, Head, LOBBIES, Launch, LaunchStage, Lobby, NEVER, Nursery,
        Rules, SEATS, SERVERS, Seats, Server, Stage, Tokens, first,
    },
};

/// Attributes by name, in plain JSON.
pub(super) type Item = Map<String, Value>;

pub(super) const TICK_MS: u64 = 150_000;
pub(super) const HEAD_TICK_MS: u64 = 1_000;
const BEGAN_AT: u64 = 1_800_000_000_000;
/// Later than every tick of a world; earlier than any time at which the store puts a game server out of
/// sight, which is the model's one NEVER.
const OUT_OF_SIGHT: u8 = 40;

pub(super) fn parsed<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("{text}"))
}

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

pub(super) const fn time(ticks: u8) -> Timestamp {
    if ticks == NEVER { Timestamp::NEVER } else { Timestamp(BEGAN_AT + ticks as u64 * TICK_MS) }
}

pub(super) const fn head_time(ticks: u8) -> Timestamp {
    Timestamp(BEGAN_AT + ticks as u64 * HEAD_TICK_MS)
}

pub(super) const fn span(ticks: u8) -> Duration {
    Duration::from_millis(ticks as u64 * TICK_MS)
}

fn maybe(ticks: u8) -> Option<Timestamp> {
    (ticks > 0).then(|| time(ticks))
}

/// When a look for places sees a game server: not at all, or from a tick.
const fn sight(ticks: u8) -> Timestamp {
    if ticks == NEVER { time(100) } else { time(ticks) }
}

fn whole(ms: u64, tick_ms: u64) -> u8 {
    assert_eq!(ms % tick_ms, 0, "{ms} ms is no whole number of ticks");
    u8::try_from(ms / tick_ms).unwrap()
}

fn ticks(time: Timestamp) -> u8 {
    if time == Timestamp::NEVER { NEVER } else { whole(time.0 - BEGAN_AT, TICK_MS) }
}

fn sight_ticks(time: Timestamp) -> u8 {
    if time > self::time(OUT_OF_SIGHT) { NEVER } else { ticks(time) }
}

pub(super) fn lobby_id(at: usize) -> LobbyId {
    parsed(&format!("lobby-{at}"))
}

pub(super) fn seat_id(seat: usize) -> SeatId {
    parsed(&format!("seat-{seat}"))
}

pub(super) fn server_key(at: usize) -> ServerKey {
    ServerKey { namespace_id: parsed("ns"), server_id: parsed(&format!("server-{at}")) }
}

pub(super) fn pool(version: u8) -> Pool {
    parsed(&format!("ns/{version}/arena/fra"))
}

pub(super) fn placement() -> PlacementPool {
    pool(0).placement(None)
}

pub(super) fn write_id(number: u8) -> WriteId {
    parsed(&format!("write-{number}"))
}

pub(super) fn start() -> StartId {
    StartId::try_from("start".to_owned()).unwrap()
}

pub(super) fn owner() -> Owner {
    Owner { token_id: parsed("token"), issued_at: head_time(0) }
}

pub(super) fn secret() -> BurstSecret {
    read(json!("secret"))
}

fn number_of(id: &str) -> u8 {
    id.rsplit('-').next().unwrap().parse().unwrap()
}

fn seats(of: &Seats) -> std::collections::BTreeMap<SeatId, Timestamp> {
    let held = of.iter().enumerate().filter(|(_, until)| **until > 0);
    held.map(|(seat, until)| (seat_id(seat), time(*until))).collect()
}

fn seats_back(of: &std::collections::BTreeMap<SeatId, Timestamp>) -> Seats {
    std::array::from_fn(|seat| of.get(&seat_id(seat)).map_or(0, |until| ticks(*until)))
}

fn generations(of: Tokens) -> Generations {
    let (newest, connected) = (of.newest().into(), of.connected().into());
    Generations { newest, connected, is_leaving: of.is_leaving() }
}

/// The lobby as stored.
pub(super) fn lobby(rules: &Rules, at: usize, of: &Lobby) -> StoredLobby {
    let stage = match of.stage {
        Stage::Missing => panic!("it is not there"),
        Stage::Starting => StoredStage::Starting,
        Stage::Ready => StoredStage::Ready,
        Stage::Ended => StoredStage::Ended,
    };
    StoredLobby {
        lobby_id: lobby_id(at),
        pool: pool(of.version),
        joinable_from: maybe(of.joinable_from),
        created_at: time(of.created_at),
        stage,
        closed: of.closed,
        toggled_at: None,
        is_private: of.is_private,
        is_draining: of.is_draining,
        server: (of.server > 0).then(|| server_key(usize::from(of.server) - 1)),
        start: Some(start().mark()),
        lease_until: time(of.lease_until),
        launch: of.waits.then(|| {
            let at = time(1);
            read(json!({ "requested_at": at, "expected_at": at, "deadline": at }))
        }),
        freed_at: maybe(of.freed_at),
        ports: read(json!({})),
        tag_digests: TagDigests::default(),
        max_players: rules.max_players.into(),
        max_players_direct: rules.max_direct.into(),
        max_players_party: (of.max_party > 0).then(|| of.max_party.into()),
        party_size_max: None,
        room: None,
        reservation_secs: u32::try_from(span(rules.reservation).as_secs()).unwrap(),
        idle_secs: u32::try_from(span(of.idle).as_secs()).unwrap(),
        keep_secs: u32::try_from(span(rules.keep).as_secs()).unwrap(),
        taken: of.taken.into(),
        reserved: seats(&of.reserved),
        connected: seats(&of.connected),
        generations: of.has_tokens.then(|| {
            let there = of.tokens.iter().enumerate().filter(|(_, tokens)| tokens.are_there());
            there.map(|(seat, tokens)| (seat_id(seat), generations(*tokens))).collect()
        }),
        vacated_at: maybe(of.vacated_at),
        lapsed: first(of.lapsed).map(seat_id).collect(),
        connected_by: (of.connected_by > 0).then(|| write_id(of.connected_by)),
        joined_at: None,
        doubt: 0,
        has_state: false,
        has_config: false,
        code: None,
    }
}

fn lobby_back(of: &StoredLobby) -> Lobby {
    Lobby {
        stage: match of.stage {
            StoredStage::Starting => Stage::Starting,
            StoredStage::Ready => Stage::Ready,
            StoredStage::Ended => Stage::Ended,
            StoredStage::Unknown => panic!("{of:?}"),
        },
        version: parsed(of.pool.version_id.as_str()),
        joinable_from: of.joinable_from.map_or(0, ticks),
        created_at: ticks(of.created_at),
        closed: of.closed,
        is_private: of.is_private,
        is_draining: of.is_draining,
        server: of.server.as_ref().map_or(0, |server| number_of(server.server_id.as_str()) + 1),
        lease_until: ticks(of.lease_until),
        freed_at: of.freed_at.map_or(0, ticks),
        idle: whole(u64::from(of.idle_secs) * 1_000, TICK_MS),
        max_party: of.max_players_party.map_or(0, |capacity| u8::try_from(capacity).unwrap()),
        waits: of.launch.is_some(),
        taken: u8::try_from(of.taken).unwrap(),
        reserved: seats_back(&of.reserved),
        connected: seats_back(&of.connected),
        has_tokens: of.generations.is_some(),
        tokens: std::array::from_fn(|seat| {
            of.generations_of(&seat_id(seat)).map_or(Tokens::none(), |of| {
                let small = |number: u32| u8::try_from(number).unwrap();
                Tokens::new(small(of.newest), small(of.connected), of.is_leaving)
            })
        }),
        vacated_at: of.vacated_at.map_or(0, ticks),
        lapsed: of.lapsed.iter().fold(0, |bits, seat| bits | 1 << number_of(seat.as_str())),
        connected_by: of.connected_by.as_ref().map_or(0, |write| number_of(write.as_str())),
    }
}

pub(super) fn access(of: Access) -> StoredAccess {
    match of {
        Access::Find(version) => StoredAccess::Find(pool(version), TagDigests::default()),
        Access::Direct => StoredAccess::Direct,
    }
}

pub(super) const fn cause(of: EndCause) -> StoredCause {
    match of {
        EndCause::Asked => StoredCause::Requested,
        EndCause::ServerDead => StoredCause::ServerDead,
        EndCause::NeverReady => StoredCause::NeverReady,
        EndCause::Idle => StoredCause::Idle,
        EndCause::Unused => StoredCause::Unused,
    }
}

/// As the store says it; `None` for a refusal whose reason the model does not tell.
pub(super) fn availability(of: Availability) -> Option<StoredAvailability> {
    Some(match of {
        Availability::Free(seats) => StoredAvailability::Free(seats.into()),
        Availability::TakeOver(all) => StoredAvailability::TakeOver(first(all).map(seat_id).collect()),
        Availability::LeaseLapsed => StoredAvailability::Refused(Refusal::LeaseLapsed),
        Availability::Overdue => StoredAvailability::Refused(Refusal::Ended),
        Availability::Full => StoredAvailability::Refused(Refusal::Full),
        Availability::TooFull => StoredAvailability::Refused(Refusal::TooFull),
        Availability::Refused => return None,
    })
}

/// The game server as stored.
pub(super) fn server(at: usize, of: &Server) -> StoredServer {
    let registered = (server_key(at), write_id(of.registration));
    let (capacity, ports) = (of.capacity.into(), read(json!({})));
    StoredServer {
        start_id: Some(start()),
        owner: Some(owner()),
        game_id: None,
        free_from: sight(of.free_from),
        ranked_at: sight(of.ranked_at),
        used: of.used.into(),
        allotted: of.allotted.into(),
        cap_checked: of.cap_checked.into(),
        lease_until: time(of.lease_until),
        beat_at: time(of.beat_at),
        lease_ms: (of.lease > 0).then(|| u64::from(of.lease) * TICK_MS),
        auto_ready: of.auto_ready,
        launch: of.launch.stage.map(|_| StoredLaunch {
            version_id: parsed("0"),
            requested_at: time(1),
            expected_at: Some(time(1)),
            deadline: time(of.launch.deadline),
            idle_secs: 60,
        }),
        stage: of.launch.stage.map(stage),
        idle_since: maybe(of.launch.idle_since),
        handle: of.launch.has_handle.then(|| HANDLE.to_owned()),
        ended_at: of.launch.has_ended.then(|| time(1)),
        ..StoredServer::standing(registered, (parsed("g"), placement()), (capacity, ports), time(1))
    }
}

/// What a starter calls a server.
pub(super) const HANDLE: &str = "handle";

const fn stage(of: LaunchStage) -> StoredLaunchStage {
    match of {
        LaunchStage::Requested => StoredLaunchStage::Requested,
        LaunchStage::Running => StoredLaunchStage::Running,
        LaunchStage::Stopping => StoredLaunchStage::Stopping,
        LaunchStage::Failed => StoredLaunchStage::Failed,
        LaunchStage::Gone => StoredLaunchStage::Gone,
    }
}

fn launch_back(of: &StoredServer) -> Launch {
    use LaunchStage::{Failed, Gone, Requested, Running, Stopping};
    let stages = [Requested, Running, Stopping, Failed, Gone];
    Launch {
        stage: of.stage.map(|stored| stages.into_iter().find(|known| stage(*known) == stored).unwrap()),
        deadline: of.launch.as_ref().map_or(0, |launch| ticks(launch.deadline)),
        idle_since: of.idle_since.map_or(0, ticks),
        has_handle: of.handle.is_some(),
        has_ended: of.ended_at.is_some(),
    }
}

fn server_back(of: &StoredServer, expires: bool) -> Server {
    let small = |number: u32| u8::try_from(number).unwrap();
    Server {
        registration: number_of(of.registration.as_str()),
        used: small(of.used),
        allotted: small(of.allotted),
        cap_checked: small(of.cap_checked),
        capacity: small(of.capacity),
        lease_until: ticks(of.lease_until),
        lease: of.lease_ms.map_or(0, |ms| whole(ms, TICK_MS)),
        beat_at: ticks(of.beat_at),
        free_from: sight_ticks(of.free_from),
        ranked_at: sight_ticks(of.ranked_at),
        auto_ready: of.auto_ready,
        expires,
        launch: launch_back(of),
    }
}

/// The first server of a nursery.
pub(super) fn first_server(first: u8) -> ServerId {
    parsed(&format!("nest-{first}"))
}

/// A lobby's draw as it is stored, by the model's number of it.
pub(super) fn mark(of: u8) -> String {
    let (lobby, in_vain) = lobby_and_vain(of);
    let digest = ring::digest::digest(&ring::digest::SHA256, format!("{lobby}/{in_vain}").as_bytes());
    URL_SAFE_NO_PAD.encode(&digest.as_ref()[..6])
}

/// The lobby that a draw is for, and how many of its draws were in vain.
pub(super) fn lobby_and_vain(of: u8) -> (LobbyId, u32) {
    (lobby_id(usize::from((of - 1) / 4)), ((of - 1) % 4).into())
}

pub(super) fn nursery_item(of: &Nursery) -> Option<Item> {
    let mut item = plain(json!({ "pk": format!("nursery/{}", placement()) }));
    if of.first > 0 {
        let drawn: Vec<String> = of.drawn.iter().filter(|mark| **mark > 0).map(|of| mark(*of)).collect();
        let (first, secret) = (first_server(of.first), secret());
        item.extend(plain(json!({
            "first": first, "secret": secret.reveal(), "drawn_at": head_time(of.drawn_at), "drawn": drawn,
        })));
    }
    if of.failures > 0 {
        item.insert("failures".to_owned(), json!(of.failures));
    }
    if of.blocked_until > 0 {
        item.insert("blocked_until".to_owned(), json!(head_time(of.blocked_until)));
    }
    Some(item).filter(|item| item.len() > 1)
}

fn nursery_back(item: &Item) -> Nursery {
    let time_of =
        |name: &str| item.get(name).map_or(0, |at| whole(at.as_u64().unwrap() - BEGAN_AT, HEAD_TICK_MS));
    let all: Vec<u8> = (1..=4 * LOBBIES as u8).collect();
    let marks = item.get("drawn").and_then(Value::as_array).cloned().unwrap_or_default();
    let number = |text: &Value| *all.iter().find(|of| json!(mark(**of)) == *text).unwrap();
    let mut drawn = [0; DRAWS];
    marks.iter().zip(&mut drawn).for_each(|(text, place)| *place = number(text));
    Nursery {
        first: item.get("first").map_or(0, |first| number_of(first.as_str().unwrap())),
        drawn_at: time_of("drawn_at"),
        drawn,
        failures: item.get("failures").map_or(0, |count| count.as_u64().unwrap() as u8),
        blocked_until: time_of("blocked_until"),
    }
}

pub(super) fn burst(of: &Head) -> Burst {
    Burst {
        first: lobby_id(usize::from(of.first) - 1),
        secret: secret(),
        opened_at: head_time(of.opened_at),
        positions: of.positions.into(),
        draws: None,
        is_announced: of.is_announced,
    }
}

fn plain(value: impl Serialize) -> Item {
    let Ok(Value::Object(item)) = serde_json::to_value(value) else { panic!("no item") };
    item
}

pub(super) fn lobby_item(rules: &Rules, at: usize, of: &Lobby) -> Option<Item> {
    of.is_there().then(|| plain(lobby(rules, at, of)))
}

pub(super) fn server_item(at: usize, of: &Server) -> Option<Item> {
    let mut item = of.is_there().then(|| plain(server(at, of)))?;
    if of.expires {
        item.insert("expires_at".to_owned(), json!(1_900_000_000));
    }
    Some(item)
}

/// The item of `key` in `table`, as `state` has it.
pub(super) fn item(rules: &Rules, state: &State, table: Table, key: &Item) -> Option<Item> {
    let of = |name: &str| key[name].as_str().unwrap();
    match table {
        Table::Lobbies => {
            let at = (0..LOBBIES).find(|at| lobby_id(*at).as_str() == of("lobby_id")).unwrap();
            lobby_item(rules, at, &state.lobbies[at])
        }
        Table::Servers => {
            let at = (0..SERVERS).find(|at| server_key(*at).to_string() == of("server")).unwrap();
            server_item(at, &state.servers[at])
        }
        Table::Ledger if of("pk").starts_with("head/") => (state.head.first > 0).then(|| {
            let Burst { first, secret, opened_at, positions, is_announced, .. } = burst(&state.head);
            plain(json!({
                "pk": of("pk"), "first": first, "secret": secret.reveal(), "opened_at": opened_at,
                "positions": positions, "is_announced": is_announced,
            }))
        }),
        Table::Ledger if of("pk").starts_with("nursery/") => nursery_item(&state.on_demand.nursery),
        Table::Ledger => {
            let counts =
                [("allotted".to_owned(), state.ledger), (placement().place(), state.on_demand.counted)];
            // Where servers count, something was allotted.
            let is_there = |(name, count): &(String, u8)| {
                *count > 0 || name == "allotted" && state.on_demand.counted > 0
            };
            let counts: Item =
                counts.into_iter().filter(is_there).map(|(name, count)| (name, json!(count))).collect();
            let mut item = plain(json!({ "pk": of("pk") }));
            (!counts.is_empty()).then(|| {
                item.extend(counts);
                item
            })
        }
        Table::Clients => panic!("the model has no clients"),
    }
}

/// `item` as the model can know it: without the attributes that it has not, out of sight in one way only.
pub(super) fn known(table: Table, item: Option<Item>) -> Option<Item> {
    let mut item = item?;
    item.retain(|name, _| !UNMAPPED.iter().any(|left| (left.0, left.1) == (table, name.as_str())));
    for (name, value) in &mut item {
        match (table, name.as_str()) {
            (Table::Servers, "free_from" | "ranked_at") => {
                let time = Timestamp(value.as_u64().unwrap());
                *value = json!(if sight_ticks(time) == NEVER { sight(NEVER) } else { time });
            }
            (Table::Servers, "expires_at" | "ended_at") => *value = json!(true),
            (Table::Lobbies, "lapsed") => value.as_array_mut().unwrap().sort_by_key(ToString::to_string),
            _ => {}
        }
    }
    // Not there, or empty: the same to every reader.
    item.retain(|name, value| name != "lapsed" || *value != json!([]));
    item.retain(|_, value| table != Table::Ledger || *value != json!(0));
    Some(item).filter(|item| table != Table::Ledger || item.len() > 1)
}

/// Nothing that the model has is lost on the way to an item and back.
pub(super) fn check_both_ways(rules: &Rules, state: &State) {
    for (at, of) in state.lobbies.iter().enumerate().filter(|(_, of)| of.is_there()) {
        let item = lobby_item(rules, at, of).unwrap();
        assert_eq!(lobby_back(&read(Value::Object(item))), *of);
    }
    for (at, of) in state.servers.iter().enumerate().filter(|(_, of)| of.is_there()) {
        let item = server_item(at, of).unwrap();
        let expires = item.contains_key("expires_at");
        assert_eq!(server_back(&read(Value::Object(item)), expires), *of);
    }
    if state.head.first > 0 {
        let Burst { first, opened_at, positions, is_announced, .. } = burst(&state.head);
        let opened_at = whole(opened_at.0 - BEGAN_AT, HEAD_TICK_MS);
        let (first, positions) = (number_of(first.as_str()) + 1, u8::try_from(positions).unwrap());
        assert_eq!(Head { first, opened_at, positions, is_announced }, state.head);
    }
    if let Some(item) = nursery_item(&state.on_demand.nursery) {
        assert_eq!(nursery_back(&item), state.on_demand.nursery);
    }
    assert!(SEATS <= 8 && rules.max_players <= rules.max_direct);
}
