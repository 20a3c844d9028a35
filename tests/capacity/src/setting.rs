//! The setting of every run: the time, a game, and clients of the database.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use aws_sdk_dynamodb::Client;
use muster_local::emulator::link::client_over;
use serde_json::json;
use shared::{
    base::ambient::{Ambient, Timestamp},
    cloud::provision::{CreatedGame, NewGame, NewNamespace, create_game},
    models::game::Region,
    store::client::Store,
};

use super::{
    database::Database,
    scenario::{Asks, RESERVATION_SECS, Scenario},
    traffic::Asker,
    value::Item,
};

/// When the simulated time begins: any time would do.
pub(crate) const BEGAN_AT: Timestamp = Timestamp(1_767_225_600_000);
/// From the fleet's registration to the first player, so that the indexes know the fleet.
pub(crate) const SETTLING: Duration = Duration::from_secs(3);

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A client whose retries are its own to spend, as in an instance of its own: the SDK has all clients of a
/// process share their quota.
pub(crate) fn client(database: &Database, asker: Asker, number: usize) -> Client {
    use aws_sdk_dynamodb::config::retry::RetryPartition;
    let client = client_over(database.line(asker));
    let partition = RetryPartition::new(format!("{asker:?} {number} of {:?}", std::thread::current().id()));
    Client::from_conf(client.config().to_builder().retry_partition(partition).build())
}

pub(crate) fn number(lobby: &Item, name: &str) -> u64 {
    lobby.get(name).map_or(0, |value| value.to_whole().unsigned_abs())
}

/// The game of `scenario`, whose modes have the fields of `extra` besides, in a namespace that may hold so
/// many lobbies and lets each client hold so many seats.
pub(crate) async fn make_game(
    store: &Store,
    ambient: &Ambient,
    scenario: &Scenario,
    extra: &serde_json::Value,
    (lobby_count_max, max_players_per_client): (u32, u32),
) -> CreatedGame {
    let region = Region {
        display_name: "Frankfurt".to_owned(),
        provider_display_name: "Test".to_owned(),
        latitude: 50.0,
        longitude: 8.0,
        probe: None,
        starter: None,
    };
    let (modes, regions) = scenario.asks.modes_and_regions();
    let mut mode = json!({ "regions": regions, "max_players": scenario.capacity, "pool_shards": scenario.shards,
        "reservation_seconds": RESERVATION_SECS, "taggable": true, "allow_dynamic_max_players": true });
    if let Asks::Parties(largest) = scenario.asks {
        mode["party_size_max"] = largest.into();
    }
    for (name, value) in extra.as_object().into_iter().flatten() {
        mode[name] = value.clone();
    }
    let modes: BTreeMap<_, _> = modes.into_iter().map(|name| (name, mode.clone())).collect();
    let new = NewGame {
        name_id: "capacity".to_owned(),
        display_name: "Capacity".to_owned(),
        regions: regions.iter().map(|id| (id.parse().expect("a region"), region.clone())).collect(),
        version_name: "1".to_owned(),
        config: serde_json::from_value(json!({ "game_modes": modes })).expect("a configuration"),
        namespaces: vec![NewNamespace {
            name_id: "prod".to_owned(),
            display_name: "Production".to_owned(),
            lobby_count_max,
            max_players_per_client,
        }],
    };
    create_game(store, ambient, new).await.expect("a game")
}
