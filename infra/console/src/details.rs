//! The details of the deployment, a namespace, a lobby and a game server.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use shared::{
    base::ambient::Timestamp,
    models::{
        errors::Error,
        ids::{GameId, GameMode, LobbyId, SeatId, ServerKey},
        lobby::Lobby,
        rights::GameRight,
        seats::Seats,
        tag_digests::TagKey,
    },
    store::lobby_data::Part,
    wire::{GameFull, VersionFull, ports},
};

use crate::{
    budget::{dollars, dollars_in_all},
    host::{Host, Refusal},
    queries::{Named, NamedServer},
    tape::Totals,
    view::{LobbyRow, ServerRow},
    watch::{Change, Watches},
};

/// A game, and the modes of each of its versions.
#[derive(Serialize)]
struct GameWithModes {
    #[serde(flatten)]
    full: GameFull,
    modes: BTreeMap<String, Vec<GameMode>>,
}

/// The deployment and its games.
pub async fn deployment(host: &Host, run: &str) -> Result<Value, Refusal> {
    let store = &host.store;
    let mut games = Vec::new();
    for game in store.games().await? {
        let namespaces = store.namespaces(&game.game_id).await?;
        let versions = store.listed_versions(&game.game_id).await?;
        let modes: BTreeMap<_, _> = versions
            .iter()
            .map(|version| (version.version_id.to_string(), version.game_modes.clone()))
            .collect();
        let full = GameWithModes { full: GameFull::new(&game, namespaces, versions), modes };
        games.push((game.name_id, full));
    }
    games.sort_by(|(one, _), (other, _)| one.cmp(other));
    let games: Vec<_> = games.into_iter().map(|(_, game)| game).collect();
    let Host { name, kind, api_url, may_change, has_faults, .. } = host;
    let (has_requests, has_counts) = (host.tape.is_some(), host.counts.is_some());
    Ok(json!({
        "run": run, "name": name, "kind": kind, "api_url": api_url, "may_change": may_change,
        "has_requests": has_requests, "has_counts": has_counts, "has_faults": has_faults, "games": games,
    }))
}

/// A namespace with its limits, and the version that it runs, without its secrets.
pub async fn namespace(host: &Host, named: Named) -> Result<Value, Refusal> {
    let store = &host.store;
    let right = GameRight::of_operator(named.game.clone());
    let right = right.on_namespace(&named.namespace, store).await?;
    let namespace = right.namespace();
    let version = store.version(&named.game, &namespace.version_id).await?;
    let version = VersionFull::from(version.ok_or(Error::VersionNotFound)?);
    Ok(json!({
        "namespace_id": namespace.namespace_id, "name_id": namespace.name_id,
        "display_name": namespace.display_name, "lobby_count_max": namespace.lobby_count_max,
        "max_players_per_client": namespace.max_players_per_client, "version": version,
    }))
}

/// A lobby of a game, also for a day after its end.
pub async fn lobby(host: &Host, watches: &Watches, game: &GameId, id: &LobbyId) -> Result<Value, Refusal> {
    let (store, now) = (&host.store, host.ambient.now());
    let lobby = store.lobby(id).await?;
    let lobby = lobby.ok_or_else(|| Refusal::from(format!("there is no lobby {id}")))?;
    let tags = store.lobby_tags([&lobby]).await?;
    let state = if lobby.has_state { store.lobby_state(id).await? } else { None };
    let config = match lobby.has_config {
        true => store.lobby_data(std::slice::from_ref(id), Part::Config).await?,
        false => Vec::new(),
    };
    let parties = match lobby.party_size_max {
        Some(largest) => {
            let namespace = store.namespace(game, &lobby.pool.namespace_id).await?;
            namespace.map(|namespace| parties(&lobby, largest, &namespace.tag_key)).unwrap_or_default()
        }
        None => BTreeMap::new(),
    };
    let seen = watches.of(&lobby.pool.namespace_id);
    let changes = seen.map(|watch| watch.changes_of(id.as_str())).unwrap_or_default();
    let finite = |at: Timestamp| Some(at).filter(|at| *at < Timestamp::NEVER);
    Ok(json!({
        "now": now, "row": LobbyRow::of(&lobby, now), "namespace_id": lobby.pool.namespace_id,
        "version_id": lobby.pool.version_id, "code": lobby.code, "closed": lobby.closed, "draining": lobby.is_draining,
        "max_players_direct": lobby.max_players_direct, "reservation_secs": lobby.reservation_secs,
        "idle_secs": lobby.idle_secs, "keep_secs": lobby.keep_secs, "lease_until": finite(lobby.lease_until), "ports": ports(&lobby.ports),
        "seats": seats(&lobby, &parties, now), "tags": tags.get(id), "state": state,
        "config": config.first().map(|(_, config)| config), "timeline": timeline(&lobby, changes),
    }))
}

/// The seats of parties that are still there with the first one of theirs, each with that one.
fn parties(lobby: &Lobby, largest: u32, key: &TagKey) -> BTreeMap<SeatId, SeatId> {
    let all = lobby.connected.keys().chain(lobby.reserved.keys());
    let members = all.flat_map(|first| {
        let party = Seats::of_party(first.clone(), largest, key);
        let there: Vec<_> = party.others().iter().filter(|seat| lobby.has_seat(seat)).cloned().collect();
        let itself = (!there.is_empty()).then(|| first.clone());
        there.into_iter().chain(itself).map(|seat| (seat, first.clone()))
    });
    members.collect()
}

/// The seats of a lobby one by one, connected ones first; those that lapsed, or are kept for a player who
/// disconnected, are marked, and those of parties have the first one of theirs.
fn seats(lobby: &Lobby, parties: &BTreeMap<SeatId, SeatId>, now: Timestamp) -> Vec<Value> {
    let connected = lobby.connected.iter().map(|seat| ("connected", seat));
    let reserved = lobby.reserved.iter().map(|seat| ("reserved", seat));
    let seats = connected.chain(reserved).map(|(state, (seat_id, until))| {
        let state = match lobby.seat_state(seat_id, now) {
            shared::models::lobby::SeatState::Held if state == "reserved" && lobby.has_connected(seat_id) => {
                "kept"
            }
            shared::models::lobby::SeatState::Held => state,
            _ => "lapsed",
        };
        json!({ "seat_id": seat_id, "state": state, "until": until, "party": parties.get(seat_id) })
    });
    seats.collect()
}

/// A lobby's recorded and observed events, oldest first.
fn timeline(lobby: &Lobby, changes: Vec<Change>) -> Vec<Value> {
    let (toggled, seen) = if lobby.closed { ("closed", "closed") } else { ("reopened", "open") };
    let recorded = [
        Some((lobby.created_at, "created", &["created"][..])),
        lobby.toggled_at.map(|at| (at, toggled, std::slice::from_ref(&seen))),
        lobby.vacated_at.map(|at| (at, "last seat freed, or ready", &["ready"][..])),
    ];
    merged(recorded.into_iter().flatten(), changes)
}

/// Merges recorded events with those seen here, oldest first. An event that was recorded and then seen, with
/// one of the words that its change begins with, appears once: at the recorded time, with the more detailed
/// text.
fn merged<'a>(
    recorded: impl Iterator<Item = (Timestamp, &'a str, &'a [&'a str])>,
    mut changes: Vec<Change>,
) -> Vec<Value> {
    let mut all = Vec::new();
    for (at, what, words) in recorded {
        let first_word =
            |change: &Change| change.what.split([',', ' ']).next().unwrap_or_default().to_owned();
        let is_same = |change: &Change| change.at >= at && words.contains(&first_word(change).as_str());
        let seen = changes.iter().position(is_same).map(|place| changes.remove(place).what);
        let what = seen.filter(|seen| seen.len() > what.len()).unwrap_or_else(|| what.to_owned());
        all.push((at, what, "recorded"));
    }
    all.extend(changes.into_iter().map(|change| (change.at, change.what, "seen")));
    all.sort();
    all.into_iter().map(|(at, what, how)| json!({ "at": at, "what": what, "how": how })).collect()
}

/// A game server.
pub async fn server(host: &Host, watches: &Watches, named: NamedServer) -> Result<Value, Refusal> {
    let NamedServer { namespace, server } = named;
    let key = ServerKey { namespace_id: namespace.clone(), server_id: server.clone() };
    let found = host.store.server(&key).await?;
    let found = found.ok_or_else(|| Refusal::from(format!("there is no game server {server}")))?;
    let seen = watches.of(&namespace);
    let changes = seen.map(|watch| watch.changes_of(server.as_str())).unwrap_or_default();
    let start = (found.started_at, "this start registered", &["registered", "restarted"][..]);
    let timeline = merged(std::iter::once(start), changes);
    let now = host.ambient.now();
    Ok(json!({
        "now": now, "row": ServerRow::of(&found, now), "start_id": found.start_id,
        "former_starts": found.former_starts.len(), "auto_ready": found.auto_ready, "allotted": found.allotted,
        "ports": ports(&found.ports), "timeline": timeline,
    }))
}

/// The usage of DynamoDB by operation.
pub fn cost(host: &Host) -> Value {
    let totals = host.tape.as_ref().map(|tape| tape.totals());
    let (since, operations) = totals.unzip();
    let operations = operations.unwrap_or_default().into_iter().map(|(name, Totals { requests, usage })| {
        json!({
            "operation": name, "requests": requests, "calls": usage.calls, "read_units": usage.read_units,
            "write_units": usage.write_units, "dynamodb_dollars": dollars(usage),
            "dollars": dollars_in_all(requests, usage),
        })
    });
    json!({
        "now": host.ambient.now(), "since": since, "operations": operations.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(at: u64, what: &str) -> Change {
        Change { number: at, at: Timestamp(at), of: "lobby", id: "one".to_owned(), what: what.to_owned() }
    }

    fn texts(timeline: Vec<Value>) -> Vec<String> {
        timeline
            .into_iter()
            .map(|event| format!("{} {}", event["at"], event["what"].as_str().unwrap()))
            .collect()
    }

    #[test]
    fn what_was_recorded_and_seen_is_one_event() {
        let recorded = [
            (Timestamp(10), "created", &["created"][..]),
            (Timestamp(50), "closed", &["closed"]),
            (Timestamp(20), "last seat freed, or ready", &["ready"]),
        ];
        let changes = vec![
            seen(12, "created, duel in fra, 1 of 2 seats held"),
            seen(21, "ready"),
            seen(31, "closed"),
            seen(41, "open"),
            seen(52, "closed"),
        ];
        assert_eq!(
            texts(merged(recorded.into_iter(), changes)),
            [
                "10 created, duel in fra, 1 of 2 seats held",
                "20 last seat freed, or ready",
                "31 closed",
                "41 open",
                "50 closed"
            ]
        );
    }
}
