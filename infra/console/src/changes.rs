//! What changed in a namespace between two looks.

use std::{collections::HashMap, sync::Arc};

use shared::{
    base::ambient::Timestamp,
    models::{
        ids::{LobbyId, ServerKey},
        lobby::{Lobby, Stage},
        server::Server,
    },
};

use crate::standing::{lobby_state, server_state};

/// A namespace at one instant.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// When it was read.
    pub at: Timestamp,
    /// Its lobbies that have not ended.
    pub lobbies: &'a [Arc<Lobby>],
    /// Its game servers.
    pub servers: &'a [Server],
}

/// The changes of lobbies and game servers between two looks: `lobby` or `server`, its identifier, the
/// change.
#[must_use]
pub fn changes(before: Look<'_>, next: Look<'_>) -> Vec<(&'static str, String, String)> {
    let mut changes = Vec::new();
    let known: HashMap<&LobbyId, &Arc<Lobby>> =
        before.lobbies.iter().map(|lobby| (&lobby.lobby_id, lobby)).collect();
    let mut gone = known.clone();
    for lobby in next.lobbies {
        gone.remove(&lobby.lobby_id);
        let id = || lobby.lobby_id.to_string();
        let Some(earlier) = known.get(&lobby.lobby_id) else {
            let (mode, region) = (&lobby.pool.game_mode, &lobby.pool.region_id);
            let seats = seats(lobby, lobby.held_seats(next.at));
            changes.push(("lobby", id(), format!("created, {mode} in {region}, {seats}")));
            continue;
        };
        changes
            .extend(changes_of_lobby(earlier, lobby, (before.at, next.at)).map(|what| ("lobby", id(), what)));
    }
    changes.extend(gone.keys().map(|id| ("lobby", id.to_string(), "ended".to_owned())));
    changes.extend(changes_of_servers(before, next));
    changes
}

fn changes_of_lobby(
    earlier: &Lobby,
    lobby: &Lobby,
    (then, now): (Timestamp, Timestamp),
) -> impl Iterator<Item = String> {
    let held = (earlier.held_seats(then), lobby.held_seats(now));
    let connected = (earlier.connected.len(), lobby.connected.len());
    let state = (lobby_state(earlier, then), lobby_state(lobby, now));
    let readied = earlier.stage == Stage::Starting && lobby.stage == Stage::Ready;
    [
        readied.then(|| "ready".to_owned()),
        (state.0 != state.1 && !readied).then(|| state.1.to_owned()),
        (connected.0 != connected.1).then(|| format!("{} connected, before {}", connected.1, connected.0)),
        (held.0 != held.1).then(|| seats(lobby, held.1)),
    ]
    .into_iter()
    .flatten()
}

fn seats(lobby: &Lobby, held: usize) -> String {
    let full = if usize::try_from(lobby.max_players).is_ok_and(|max| held >= max) { ", full" } else { "" };
    format!("{held} of {} seats held{full}", lobby.max_players)
}

fn changes_of_servers(before: Look<'_>, next: Look<'_>) -> Vec<(&'static str, String, String)> {
    let known: HashMap<&ServerKey, &Server> =
        before.servers.iter().map(|server| (&server.server, server)).collect();
    let mut gone = known.clone();
    let mut changes = Vec::new();
    for server in next.servers {
        gone.remove(&server.server);
        let state = server_state(server, next.at);
        let what = match known.get(&server.server) {
            None => format!("registered in {}", server.region_id),
            Some(earlier) if earlier.start_id != server.start_id => "restarted".to_owned(),
            Some(earlier) if server_state(earlier, before.at) != state => state.to_owned(),
            Some(_) => continue,
        };
        changes.push(("server", server.server.server_id.to_string(), what));
    }
    changes.extend(gone.keys().map(|key| ("server", key.server_id.to_string(), "gone".to_owned())));
    changes
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;

    const THEN: Timestamp = Timestamp(1_000_000);

    fn lobby(number: u32, change: Value) -> Arc<Lobby> {
        let mut lobby = json!({
            "lobby_id": format!("00000000-0000-4000-8000-{number:012}"), "pool": "ns/v/duel/fra",
            "joinable_from": 1, "created_at": 1, "stage": "ready", "closed": false, "server": "ns/one",
            "lease_until": Timestamp::NEVER, "ports": {}, "max_players": 2, "max_players_direct": 2,
            "reservation_secs": 120, "taken": 0, "reserved": {}, "connected": {},
        });
        for (name, value) in change.as_object().unwrap() {
            lobby[name] = value.clone();
        }
        Arc::new(serde_json::from_value(lobby).unwrap())
    }

    fn held(seats: u32) -> Value {
        let seat = |number| format!("00000000-0000-4000-9000-{number:012}");
        let reserved: Value = (0..seats).map(|number| (seat(number), json!(THEN.0 + 60_000))).collect();
        json!({ "taken": seats, "reserved": reserved })
    }

    /// What became of a lobby in a second, in which it may have come or gone.
    fn became(before: Option<&Arc<Lobby>>, next: Option<&Arc<Lobby>>) -> String {
        let [before, next] = [before, next].map(|lobby| lobby.map(std::slice::from_ref).unwrap_or_default());
        let look = |at, lobbies| Look { at, lobbies, servers: &[] };
        let changes = changes(look(THEN, before), look(THEN + Duration::from_secs(1), next));
        changes.into_iter().map(|(of, _, what)| format!("{of} {what}")).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_lobby_is_created_fills_closes_falls_silent_and_ends() {
        let (empty, one, full) = (lobby(1, held(0)), lobby(1, held(1)), lobby(1, held(2)));
        assert_eq!(became(None, Some(&one)), "lobby created, duel in fra, 1 of 2 seats held");
        assert_eq!(became(Some(&one), Some(&full)), "lobby 2 of 2 seats held, full");
        assert_eq!(became(Some(&empty), Some(&lobby(1, json!({ "closed": true })))), "lobby closed");
        let lapsing = lobby(1, json!({ "lease_until": THEN.0 + 500 }));
        assert_eq!(became(Some(&lapsing), Some(&lapsing)), "lobby silent", "no write has to say so");
        assert_eq!(became(Some(&one), None), "lobby ended");
        assert_eq!(became(Some(&one), Some(&one)), "");
        assert_eq!(became(Some(&one), Some(&lobby(2, held(1)))).matches("lobby").count(), 2, "another one");
    }
}
