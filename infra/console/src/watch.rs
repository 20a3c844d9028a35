//! One namespace as it changes, polled only while a page shows it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::Serialize;
use shared::{
    base::{
        ambient::{Ambient, Timestamp},
        usage::Usage,
    },
    models::{
        errors::Error,
        ids::{GameId, NamespaceId},
        lobby::Lobby,
        server::Server,
    },
    store::{
        client::Store,
        listing::{each_batch_on, servers_of},
        meter::metered,
    },
};
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

use crate::{
    budget::Budget,
    changes::{Look, changes},
    host::Kind,
    tape::{COLUMNS, Finds, Tape, column},
};

/// The shortest pause between two looks at the local stack.
const LOCAL_PAUSE: Duration = Duration::from_millis(500);
/// The same in AWS: heartbeats come every few seconds, too.
const AWS_PAUSE: Duration = Duration::from_secs(2);
/// Factor between the duration of a look and the shortest pause after it: a look takes the machine's time.
const PAUSE_FACTOR: u32 = 3;
/// How often the first look shows its progress.
const SHOW_EVERY: Duration = Duration::from_secs(1);
/// Changes that are kept of a namespace.
const CHANGES_MAX: usize = 1_000;

/// A namespace at one instant.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// When it was read; zero before the first look.
    pub at: Timestamp,
    /// Its lobbies that have not ended, newest first.
    pub lobbies: Arc<[Arc<Lobby>]>,
    /// Its game servers.
    pub servers: Arc<[Server]>,
    /// How long the look took.
    pub took: Duration,
    /// How long until the next one.
    pub pause: Duration,
    /// Why the last look failed, if so.
    pub problem: Option<String>,
    /// The total number of lobbies, while the first look is under way and not all are here.
    pub expected: Option<usize>,
}

impl Snapshot {
    /// Whether there is something to show.
    pub fn is_empty(&self) -> bool {
        self.at == Timestamp::default() && self.problem.is_none() && self.expected.is_none()
    }
}

/// A change of a lobby or a game server between two looks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Its number, from 1 on.
    pub number: u64,
    /// When it was seen.
    pub at: Timestamp,
    /// `lobby` or `server`.
    pub of: &'static str,
    /// Its identifier.
    pub id: String,
    /// The change.
    pub what: String,
}

/// One column of the curves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Its number since the epoch.
    pub column: u64,
    /// Seats held.
    pub players: usize,
    /// Lobbies that have not ended.
    pub lobbies: usize,
    /// Finds.
    pub finds: Finds,
}

#[derive(Debug, Default)]
struct History {
    changes: VecDeque<Change>,
    last_change: u64,
    columns: VecDeque<Column>,
    is_running: bool,
}

/// A namespace that is looked at.
#[derive(Debug)]
pub struct Watch {
    game_id: GameId,
    namespace_id: NamespaceId,
    seen: watch::Sender<Snapshot>,
    history: Mutex<History>,
    soon: Notify,
}

/// Everything that is looked at, within one budget.
#[derive(Debug)]
pub struct Watches {
    store: Store,
    ambient: Ambient,
    kind: Kind,
    tape: Option<Arc<Tape>>,
    budget: Mutex<Budget>,
    all: Mutex<HashMap<NamespaceId, Arc<Watch>>>,
}

impl Watches {
    /// Nothing is looked at yet.
    pub fn new(store: Store, ambient: Ambient, kind: Kind, tape: Option<Arc<Tape>>) -> Self {
        Self { store, ambient, kind, tape, budget: Mutex::default(), all: Mutex::default() }
    }

    /// The namespace, looked at from now on as long as the receiver is kept.
    pub fn watch(
        self: &Arc<Self>,
        game_id: &GameId,
        namespace_id: &NamespaceId,
    ) -> (Arc<Watch>, watch::Receiver<Snapshot>) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || {
            let (game_id, namespace_id) = (game_id.clone(), namespace_id.clone());
            let seen = watch::Sender::new(Snapshot::default());
            Arc::new(Watch { game_id, namespace_id, seen, history: Mutex::default(), soon: Notify::new() })
        };
        let watch = Arc::clone(all.entry(namespace_id.clone()).or_insert_with(made));
        drop(all);
        let mut history = watch.history();
        // Within the lock: a look without receivers checks for them there before it ends, too.
        let receiver = watch.seen.subscribe();
        if !history.is_running {
            history.is_running = true;
            tokio::spawn(Arc::clone(self).look_while_wanted(Arc::clone(&watch)));
        }
        drop(history);
        (watch, receiver)
    }

    /// The namespace, if it is looked at now.
    pub fn of(&self, namespace_id: &NamespaceId) -> Option<Arc<Watch>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).get(namespace_id).cloned()
    }

    /// Read units of the last minute, all that the console took.
    pub fn units_a_minute(&self) -> f64 {
        self.budget().units_a_minute(self.ambient.now())
    }

    /// What an hour like the last minute costs, in dollars.
    pub fn dollars_an_hour(&self) -> f64 {
        self.budget().dollars_an_hour(self.ambient.now())
    }

    /// Counts metrics that were read of CloudWatch.
    pub fn spend_metrics(&self, metrics: usize) {
        self.budget().spend_metrics(self.ambient.now(), metrics);
    }

    /// Counts reads other than looks.
    pub fn spend(&self, usage: Usage) {
        self.budget().spend(self.ambient.now(), usage.read_units);
    }

    async fn look_while_wanted(self: Arc<Self>, watch: Arc<Watch>) {
        loop {
            {
                let mut history = watch.history();
                if watch.seen.receiver_count() == 0 {
                    history.is_running = false;
                    return;
                }
            }
            let began = self.ambient.now();
            let (read, usage) = metered(self.read(&watch)).await;
            let ended = self.ambient.now();
            let took = ended.since(began);
            let free_at = self.budget().spend(ended, usage.read_units);
            let pause = match self.kind {
                Kind::Local => LOCAL_PAUSE.max(took * PAUSE_FACTOR),
                Kind::Aws => AWS_PAUSE.max(free_at.since(ended)),
            };
            watch.note(read, ended, (took, pause), self.tape.as_deref());
            // A wish for an early look is granted within the budget.
            let least = if self.kind == Kind::Aws { free_at.since(ended) } else { took };
            tokio::time::sleep(least).await;
            let _woken = timeout(pause.saturating_sub(least), watch.soon.notified()).await;
        }
    }

    async fn read(&self, watch: &Watch) -> Result<(Vec<Arc<Lobby>>, Vec<Server>), Error> {
        let game = self.store.game(&watch.game_id).await?.ok_or(Error::NotFound)?;
        let servers = servers_of(&self.store, &game, &watch.namespace_id).await?;
        let is_first = watch.seen().at == Timestamp::default();
        let (mut lobbies, mut shown_at) = (Vec::new(), Timestamp::default());
        for server in &servers {
            let taking = |batch: Vec<Lobby>| {
                lobbies.extend(batch.into_iter().map(Arc::new));
                let now = self.ambient.now();
                if is_first && now.since(shown_at) >= SHOW_EVERY {
                    shown_at = now;
                    watch.show_part(&mut lobbies, &servers);
                }
            };
            each_batch_on(&self.store, &server.server, taking).await?;
        }
        sort_newest_first(&mut lobbies);
        Ok((lobbies, servers))
    }

    fn budget(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// The namespace.
    pub const fn namespace_id(&self) -> &NamespaceId {
        &self.namespace_id
    }

    /// The last snapshot; an empty one before the first look.
    pub fn seen(&self) -> Snapshot {
        self.seen.borrow().clone()
    }

    /// Has the next look come soon: something was changed from here.
    pub fn look_soon(&self) {
        self.soon.notify_one();
    }

    /// The changes after `number`, oldest first.
    pub fn changes_after(&self, number: u64) -> Vec<Change> {
        self.history().changes.iter().filter(|change| change.number > number).cloned().collect()
    }

    /// The changes of a lobby or a game server, oldest first.
    pub fn changes_of(&self, id: &str) -> Vec<Change> {
        self.history().changes.iter().filter(|change| change.id == id).cloned().collect()
    }

    /// The columns after `column`, oldest first.
    pub fn columns_after(&self, column: u64) -> Vec<Column> {
        self.history().columns.iter().filter(|kept| kept.column > column).copied().collect()
    }

    /// Shows the progress of the first look.
    fn show_part(&self, lobbies: &mut [Arc<Lobby>], servers: &[Server]) {
        sort_newest_first(lobbies);
        let expected = servers.iter().map(|server| usize::try_from(server.used).unwrap_or_default()).sum();
        self.seen.send_replace(Snapshot {
            lobbies: lobbies.into(),
            servers: servers.into(),
            expected: Some(expected),
            ..Snapshot::default()
        });
    }

    fn note(
        &self,
        read: Result<(Vec<Arc<Lobby>>, Vec<Server>), Error>,
        at: Timestamp,
        (took, pause): (Duration, Duration),
        tape: Option<&Tape>,
    ) {
        let before = self.seen();
        let next = match read {
            Ok((lobbies, servers)) => {
                let (lobbies, servers) = (lobbies.into(), servers.into());
                Snapshot { at, lobbies, servers, took, pause, problem: None, expected: None }
            }
            Err(error) => {
                let cause = error.cause().map(|cause| format!(": {cause}")).unwrap_or_default();
                Snapshot { took, pause, problem: Some(format!("{error}{cause}")), ..before.clone() }
            }
        };
        let mut history = self.history();
        if before.at != Timestamp::default() {
            let earlier = Look { at: before.at, lobbies: &before.lobbies, servers: &before.servers };
            let now = Look { at, lobbies: &next.lobbies, servers: &next.servers };
            history.note(changes(earlier, now), at);
        }
        let players = next.lobbies.iter().map(|lobby| lobby.held_seats(at)).sum();
        let finds = |of| tape.map(|tape| tape.finds(of, &self.namespace_id)).unwrap_or_default();
        // Finds may have come since the last look at the column that was under way.
        if let Some(last) = history.columns.back_mut() {
            last.finds = finds(last.column);
        }
        let (lobbies, column) = (next.lobbies.len(), column(at));
        history.column(Column { column, players, lobbies, finds: finds(column) });
        drop(history);
        self.seen.send_replace(next);
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sort_newest_first(lobbies: &mut [Arc<Lobby>]) {
    lobbies.sort_by(|one, other| (other.created_at, &other.lobby_id).cmp(&(one.created_at, &one.lobby_id)));
}

impl History {
    fn note(&mut self, changes: Vec<(&'static str, String, String)>, at: Timestamp) {
        for (of, id, what) in changes {
            self.last_change += 1;
            self.changes.push_back(Change { number: self.last_change, at, of, id, what });
        }
        self.changes.drain(..self.changes.len().saturating_sub(CHANGES_MAX));
    }

    /// Keeps the latest figures of a column.
    fn column(&mut self, column: Column) {
        match self.columns.back_mut() {
            Some(last) if last.column == column.column => *last = column,
            _ => self.columns.push_back(column),
        }
        self.columns.drain(..self.columns.len().saturating_sub(COLUMNS));
    }
}
