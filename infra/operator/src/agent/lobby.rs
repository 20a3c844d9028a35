//! The lobbies of a game server, as its heartbeats list them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, error::Elapsed, timeout},
};

use crate::agent::rules::{Known, LAG, ended};

/// How often a heartbeat is asked for while a lobby is looked for.
const LOOK: Duration = Duration::from_millis(500);

/// A lobby in the response to a heartbeat.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct Listed {
    pub lobby_id: String,
    pub lobby_token: String,
    pub game_mode: String,
    pub region_id: String,
    pub tags: BTreeMap<String, String>,
    pub max_players: u32,
    pub seats: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lobby_config: Option<Box<RawValue>>,
    pub created_at: String,
}

/// A lobby that the game server runs.
pub(super) struct Lobby {
    pub lobby_id: String,
    since: Instant,
    listed: Mutex<Listed>,
    /// Tokens of players who are connected or about to be.
    shown: Mutex<BTreeSet<String>>,
    is_over: watch::Sender<bool>,
}

impl Lobby {
    fn new(listed: Listed) -> Arc<Self> {
        Arc::new(Self {
            lobby_id: listed.lobby_id.clone(),
            since: Instant::now(),
            listed: Mutex::new(listed),
            shown: Mutex::default(),
            is_over: watch::Sender::new(false),
        })
    }

    /// It as the last heartbeat listed it.
    pub fn listed(&self) -> Listed {
        locked(&self.listed).clone()
    }

    /// Notes that a player shows this token. `false` if one did before, who is still there.
    pub fn show(&self, player_token: &str) -> bool {
        locked(&self.shown).insert(player_token.to_owned())
    }

    /// Notes that the player is gone. Returns whether nobody is left.
    pub fn forget(&self, player_token: &str) -> bool {
        let mut shown = locked(&self.shown);
        shown.remove(player_token);
        shown.is_empty()
    }

    pub fn is_over(&self) -> bool {
        *self.is_over.borrow()
    }

    /// Resolves once the lobby has ended.
    pub async fn over(&self) {
        let mut is_over = self.is_over.subscribe();
        let _over = is_over.wait_for(|is_over| *is_over).await;
    }
}

/// The lobbies that a game server runs.
#[derive(Default)]
pub(super) struct Lobbies {
    known: watch::Sender<BTreeMap<String, Arc<Lobby>>>,
    wanted: Notify,
    is_draining: AtomicBool,
}

impl Lobbies {
    /// Takes over the complete list of a heartbeat that began at `began`. Returns the lobbies that are new.
    pub fn update(&self, listed: Vec<Listed>, began: Instant) -> Vec<Arc<Lobby>> {
        let ids: BTreeSet<String> = listed.iter().map(|lobby| lobby.lobby_id.clone()).collect();
        let mut opened = Vec::new();
        self.known.send_modify(|known| {
            let seen = known.values().map(|lobby| Known {
                lobby_id: &lobby.lobby_id,
                age: began.saturating_duration_since(lobby.since),
                has_players: !locked(&lobby.shown).is_empty(),
            });
            for lobby_id in ended(seen, &ids) {
                known.remove(&lobby_id).into_iter().for_each(|lobby| end(&lobby));
            }
            for lobby in listed {
                match known.get(&lobby.lobby_id) {
                    Some(known) => *locked(&known.listed) = lobby,
                    None => {
                        let lobby = Lobby::new(lobby);
                        known.insert(lobby.lobby_id.clone(), Arc::clone(&lobby));
                        opened.push(lobby);
                    }
                }
            }
        });
        opened
    }

    pub fn all(&self) -> Vec<Arc<Lobby>> {
        self.known.borrow().values().cloned().collect()
    }

    /// Notes that a lobby has ended, and has a heartbeat look what came in its place.
    pub fn ended(&self, lobby: &Lobby) {
        self.known.send_modify(|known| {
            known.remove(&lobby.lobby_id);
        });
        end(lobby);
        self.want();
    }

    pub fn end_all(&self) {
        self.known.send_modify(|known| std::mem::take(known).values().for_each(|lobby| end(lobby)));
    }

    /// The lobby, which a heartbeat may still have to list; `None` if there is no such lobby here.
    ///
    /// # Errors
    /// [`Elapsed`] when no heartbeat says within `limit` which of the two it is.
    pub async fn look_for(&self, lobby_id: &str, limit: Duration) -> Result<Option<Arc<Lobby>>, Elapsed> {
        let mut known = self.known.subscribe();
        let listed_by = Instant::now() + LAG;
        timeout(limit, async {
            loop {
                if let Some(lobby) = known.borrow_and_update().get(lobby_id) {
                    return Some(Arc::clone(lobby));
                }
                self.want();
                let is_heard = timeout(LOOK, known.changed()).await.is_ok();
                if is_heard && Instant::now() >= listed_by && !known.borrow().contains_key(lobby_id) {
                    return None;
                }
            }
        })
        .await
    }

    /// Asks for a heartbeat.
    pub fn want(&self) {
        self.wanted.notify_one();
    }

    /// Resolves when a heartbeat is asked for.
    pub async fn wanted(&self) {
        self.wanted.notified().await;
    }

    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    pub fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }
}

fn end(lobby: &Lobby) {
    lobby.is_over.send_replace(true);
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::time::sleep;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn listed(lobby_id: &str) -> Vec<Listed> {
        let lobby = json!({
            "lobby_id": lobby_id, "lobby_token": "token", "game_mode": "duel", "region_id": "fra", "tags": {},
            "max_players": 2, "seats": { "reserved": 1, "connected": 0 }, "created_at": "now",
        });
        vec![serde_json::from_str(&lobby.to_string()).unwrap()]
    }

    /// Looks for the lobby `new` while heartbeats list it or another, or fail.
    async fn look(heartbeats: impl IntoIterator<Item = Option<&str>>) -> Result<Option<Arc<Lobby>>, Elapsed> {
        let lobbies = Lobbies::default();
        let answering = async {
            for heartbeat in heartbeats {
                lobbies.wanted().await;
                sleep(Duration::from_millis(250)).await;
                heartbeat.into_iter().for_each(|id| drop(lobbies.update(listed(id), Instant::now())));
            }
            std::future::pending().await
        };
        tokio::select! {
            found = lobbies.look_for("new", LIMIT) => found,
            () = answering => unreachable!(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_young_lobby_is_looked_for_until_a_heartbeat_must_list_it() {
        let found = look([Some("other"), None, Some("new")]).await;
        assert!(found.is_ok_and(|found| found.is_some_and(|lobby| lobby.lobby_id == "new")));
        let found = look([Some("other"); 20]).await;
        assert!(found.is_ok_and(|found| found.is_none()));
    }

    #[tokio::test(start_paused = true)]
    async fn without_heartbeats_nobody_knows_whether_there_is_a_lobby() {
        assert!(look([Some("other"), None, None]).await.is_err());
    }

    #[test]
    fn an_ended_lobby_is_over_and_another_one_is_opened() {
        let lobbies = Lobbies::default();
        let opened = lobbies.update(listed("one"), Instant::now());
        assert!(lobbies.update(listed("one"), Instant::now()).is_empty());
        assert!(opened[0].show("player") && !opened[0].show("player") && opened[0].forget("player"));
        assert_eq!(lobbies.update(listed("two"), Instant::now()).len(), 1);
        assert!(opened[0].is_over());
        lobbies.end_all();
        assert!(lobbies.all().is_empty());
    }
}
