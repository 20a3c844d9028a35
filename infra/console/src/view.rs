//! The view of a namespace that the page receives: sums, and a page of its lobbies.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shared::{
    base::ambient::Timestamp,
    models::{
        ids::{GameMode, LobbyId, RegionId, SeatId, ServerId},
        lobby::Lobby,
        pool::Pool,
        server::Server,
    },
};

use crate::{
    standing::{lobby_state, server_state, shown_state},
    watch::Snapshot,
};

/// Lobbies that one page shows.
pub const PAGE: usize = 60;

/// Which lobbies the page shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Filter {
    /// Those of this mode alone.
    pub mode: Option<String>,
    /// Those in this region alone.
    pub region: Option<String>,
    /// Those in this state alone.
    pub state: Option<String>,
    /// Those on this game server alone.
    pub server: Option<String>,
    /// The number of the page, from 0 on.
    #[serde(default)]
    pub page: usize,
}

/// A lobby as a bar of seats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LobbyRow {
    id: LobbyId,
    mode: GameMode,
    region: RegionId,
    state: &'static str,
    is_private: bool,
    max: u32,
    connected: usize,
    /// Until when each reserved seat is held.
    reserved: Vec<Timestamp>,
    server: Option<ServerId>,
    created: Timestamp,
}

impl LobbyRow {
    /// Its lobby.
    pub fn id(&self) -> String {
        self.id.to_string()
    }

    /// The row of a lobby at `now`.
    pub fn of(lobby: &Lobby, now: Timestamp) -> Self {
        let Pool { game_mode, region_id, .. } = &lobby.pool;
        Self {
            id: lobby.lobby_id.clone(),
            mode: game_mode.clone(),
            region: region_id.clone(),
            state: shown_state(lobby, now),
            is_private: lobby.is_private,
            max: lobby.max_players,
            connected: lobby.connected.values().filter(|until| **until > now).count(),
            reserved: held(&lobby.reserved, lobby, now),
            server: lobby.server.as_ref().map(|server| server.server_id.clone()),
            created: lobby.created_at,
        }
    }
}

/// When the held seats expire. Those of a starting lobby expire only with it.
fn held(seats: &BTreeMap<SeatId, Timestamp>, lobby: &Lobby, now: Timestamp) -> Vec<Timestamp> {
    let is_starting = lobby_state(lobby, now) == "starting";
    let mut until: Vec<_> = seats.values().copied().filter(|until| is_starting || *until > now).collect();
    until.sort();
    until
}

/// A game server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerRow {
    id: ServerId,
    region: RegionId,
    state: &'static str,
    used: u32,
    capacity: u32,
    /// Modes that it runs; every one when absent.
    modes: Option<Vec<GameMode>>,
    /// Until when its lease runs; absent without lease.
    lease_until: Option<Timestamp>,
    /// How long the whole lease is, in milliseconds.
    lease_ms: Option<u64>,
    heard: Timestamp,
    started: Timestamp,
}

impl ServerRow {
    /// The row of a game server at `now`.
    pub fn of(server: &Server, now: Timestamp) -> Self {
        Self {
            id: server.server.server_id.clone(),
            region: server.region_id.clone(),
            state: server_state(server, now),
            used: server.used,
            capacity: server.capacity,
            modes: server.game_modes.as_ref().map(|modes| modes.iter().cloned().collect()),
            lease_until: Some(server.lease_until).filter(|until| *until < Timestamp::NEVER),
            lease_ms: server.lease_ms,
            heard: server.beat_at,
            started: server.started_at,
        }
    }
}

/// The lobbies of a mode in a region, in sum.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cell {
    lobbies: usize,
    players: usize,
    seats: usize,
    open: usize,
}

/// A namespace in sums.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    lobbies: usize,
    connected: usize,
    reserved: usize,
    seats: usize,
    states: BTreeMap<&'static str, usize>,
    /// By mode, then by region.
    cells: BTreeMap<GameMode, BTreeMap<RegionId, Cell>>,
    servers: usize,
    /// Game servers by state.
    server_states: BTreeMap<&'static str, usize>,
}

/// The sums of a namespace at `now`.
pub fn sums(seen: &Snapshot, now: Timestamp) -> Sums {
    let mut sums = Sums { lobbies: seen.lobbies.len(), servers: seen.servers.len(), ..Sums::default() };
    for lobby in seen.lobbies.iter() {
        let state = shown_state(lobby, now);
        let connected = lobby.connected.values().filter(|until| **until > now).count();
        let players = lobby.held_seats(now);
        let seats = usize::try_from(lobby.max_players).unwrap_or(usize::MAX);
        sums.connected += connected;
        sums.reserved += players.saturating_sub(connected);
        sums.seats += seats;
        *sums.states.entry(state).or_default() += 1;
        let Pool { game_mode, region_id, .. } = &lobby.pool;
        let regions = sums.cells.entry(game_mode.clone()).or_default();
        let cell = regions.entry(region_id.clone()).or_default();
        cell.lobbies += 1;
        cell.players += players;
        cell.seats += seats;
        cell.open += usize::from(state == "open");
    }
    for server in seen.servers.iter() {
        *sums.server_states.entry(server_state(server, now)).or_default() += 1;
    }
    sums
}

impl Filter {
    fn fits(&self, lobby: &Lobby, now: Timestamp) -> bool {
        let is = |wanted: &Option<String>, text: &str| wanted.as_ref().is_none_or(|wanted| wanted == text);
        let server = || lobby.server.as_ref().map_or("", |server| server.server_id.as_str());
        is(&self.mode, lobby.pool.game_mode.as_str())
            && is(&self.region, lobby.pool.region_id.as_str())
            && is(&self.state, shown_state(lobby, now))
            && (self.server.is_none() || is(&self.server, server()))
    }

    /// How many lobbies fit, and the rows of the page, newest first.
    pub fn page_of(&self, seen: &Snapshot, now: Timestamp) -> (usize, Vec<LobbyRow>) {
        let fitting: Vec<_> = seen.lobbies.iter().filter(|lobby| self.fits(lobby, now)).collect();
        let page = fitting.iter().skip(self.page.saturating_mul(PAGE)).take(PAGE);
        (fitting.len(), page.map(|lobby| LobbyRow::of(lobby, now)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn lobby(number: u32, mode: &str, change: Value) -> Arc<Lobby> {
        let mut lobby = json!({
            "lobby_id": format!("00000000-0000-4000-8000-{number:012}"), "pool": format!("ns/v/{mode}/fra"),
            "joinable_from": 1, "created_at": 1, "stage": "ready", "closed": false, "server": "ns/one",
            "lease_until": Timestamp::NEVER, "ports": {}, "max_players": 4, "max_players_direct": 4,
            "reservation_secs": 120, "taken": 0, "reserved": {}, "connected": {},
        });
        for (name, value) in change.as_object().unwrap() {
            lobby[name] = value.clone();
        }
        Arc::new(serde_json::from_value(lobby).unwrap())
    }

    fn seen(lobbies: Vec<Arc<Lobby>>) -> Snapshot {
        Snapshot { at: NOW, lobbies: lobbies.into(), ..Snapshot::default() }
    }

    fn seat(number: u32) -> String {
        format!("00000000-0000-4000-9000-{number:012}")
    }

    #[test]
    fn a_bar_has_connected_and_reserved_seats_but_none_that_lapsed() {
        let lapsing = json!({
            "taken": 3, "connected": { seat(1): NOW.0 + 9 },
            "reserved": { seat(2): NOW.0 + 5, seat(3): NOW.0 },
        });
        let row = LobbyRow::of(&lobby(1, "duel", lapsing), NOW);
        assert_eq!((row.connected, row.reserved.as_slice()), (1, [Timestamp(NOW.0 + 5)].as_slice()));
        let starting = json!({ "stage": "starting", "taken": 1, "reserved": { seat(1): NOW.0 - 1 } });
        let row = LobbyRow::of(&lobby(1, "duel", starting), NOW);
        assert_eq!((row.state, row.reserved.len()), ("starting", 1), "it lapses with its lobby alone");
    }

    #[test]
    fn sums_are_by_mode_and_region_and_by_state() {
        let held =
            json!({ "taken": 2, "connected": { seat(1): NOW.0 + 9 }, "reserved": { seat(2): NOW.0 + 5 } });
        let seen = seen(vec![
            lobby(1, "duel", held),
            lobby(2, "duel", json!({ "closed": true })),
            lobby(3, "arena", json!({ "lease_until": NOW.0 })),
        ]);
        let sums = json!(sums(&seen, NOW));
        assert_eq!(sums["states"], json!({ "closed": 1, "open": 1, "silent": 1 }));
        let duels = json!({ "lobbies": 2, "players": 2, "seats": 8, "open": 1 });
        assert_eq!(sums["cells"]["duel"]["fra"], duels);
        assert_eq!(
            (&sums["connected"], &sums["reserved"], &sums["seats"]),
            (&json!(1), &json!(1), &json!(12))
        );
    }

    #[test]
    fn a_lobby_without_a_free_seat_is_full_and_can_be_filtered_by() {
        let held: Value = (0..4).map(|number| (seat(number), json!(NOW.0 + 5))).collect();
        let lapsed: Value = (0..4).map(|number| (seat(number), json!(NOW.0))).collect();
        let full = |closed| json!({ "taken": 4, "connected": held, "closed": closed });
        let seen = seen(vec![
            lobby(1, "solo", full(false)),
            lobby(2, "solo", full(true)),
            lobby(3, "solo", json!({ "taken": 4, "reserved": lapsed })),
        ]);
        assert_eq!(json!(sums(&seen, NOW))["states"], json!({ "closed": 1, "full": 1, "open": 1 }));
        let filter = Filter { state: Some("full".to_owned()), ..Filter::default() };
        let (total, rows) = filter.page_of(&seen, NOW);
        assert_eq!(
            (total, rows[0].state, rows[0].id.as_str()),
            (1, "full", seen.lobbies[0].lobby_id.as_str())
        );
    }

    #[test]
    fn a_page_has_those_that_fit_and_no_more() {
        let lobbies = (0..130).map(|number| lobby(number, ["duel", "arena"][number as usize % 2], json!({})));
        let seen = seen(lobbies.collect());
        let filter = |mode: Option<&str>, page| Filter {
            mode: mode.map(ToOwned::to_owned),
            page,
            ..Filter::default()
        };
        let page = |filter: Filter| {
            let (total, rows) = filter.page_of(&seen, NOW);
            (total, rows.len())
        };
        assert_eq!(page(filter(None, 0)), (130, PAGE));
        assert_eq!(page(filter(None, 2)), (130, 10));
        assert_eq!(page(filter(Some("duel"), 1)), (65, 5));
        assert_eq!(page(filter(Some("none"), 0)), (0, 0));
    }
}
