//! A reference model, which shares no code with the product: it sees every committed write as the item before
//! and after it, every operation's beginning and answer, and says which invariant was broken.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;

use super::{history::History, wire::Part};
use model::conditions::{Table, Write};

pub(crate) mod answers;
mod clients;
mod lives;
mod lobby;
pub(crate) mod on_demand;
mod returns;
mod room;
mod seats;
mod starts;

pub(crate) use lobby::{Lobby, Stage};

/// Stands for "never" in the tables.
pub(crate) const NEVER: u64 = 99_999_999_999_999;
/// Maximum age of the version that an operation uses, in milliseconds: settings are read every 30 s, by a
/// read that may lag.
const SETTINGS_AGE_MS: u64 = 31_000;
/// How long an index may lag.
pub(crate) const LAG_MS: u64 = 2_000;
/// Maximum age of what a refusal for lack of capacity relies on, in milliseconds: an unsuccessful search is
/// not repeated within a second, and the servers it read were up to a second old.
const ROOM_AGE_MS: u64 = 2_100;

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its name, as tests/README.md has it.
    pub invariant: &'static str,
    /// What was seen.
    pub what: String,
}

/// One item that a committed write changed.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// When, in milliseconds since the run began.
    pub(crate) at: u64,
    /// By which operation.
    pub(crate) operation: Option<usize>,
    /// Whether it arrived so late that its operation may have given it up.
    pub(crate) is_late: bool,
    pub(crate) part: Part,
    pub(crate) before: Option<Arc<Value>>,
    pub(crate) after: Option<Arc<Value>>,
}

/// An operation's request.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Find {
        modes: Vec<String>,
        regions: Vec<String>,
        tags: BTreeMap<String, String>,
        may_create: bool,
        /// Whether it measured its regions, all of them near enough for a new lobby.
        is_measured: bool,
        /// One of the regions, so far away that a lobby is rather created nearer.
        beyond: Option<String>,
    },
    Create {
        mode: String,
        region: String,
    },
    Join {
        lobby: String,
    },
    Connect {
        seat: String,
        lobby: String,
        /// The generation of the player's token.
        token: u64,
    },
    Disconnect {
        seat: String,
        lobby: String,
        token: u64,
        /// For how many seconds the seat is kept, if the server says so.
        keep: Option<u64>,
    },
    /// A server that crashed keeps all seats.
    Everyone {
        lobby: String,
        keep: Option<u64>,
    },
    GiveUp {
        seat: String,
        lobby: String,
        token: u64,
    },
    Rejoin {
        seat: String,
        lobby: String,
    },
    Remove {
        seat: String,
        lobby: String,
        secs: u64,
    },
    Ready {
        lobby: String,
    },
    Close {
        lobby: String,
        is_closed: bool,
    },
    SetPublicity {
        lobby: String,
        is_private: bool,
    },
    End {
        lobby: String,
    },
    SetState,
    Register {
        server: String,
        start: String,
    },
    Heartbeat {
        server: String,
        start: String,
    },
    Deregister {
        server: String,
        start: String,
        ends_lobbies: bool,
    },
    SwitchVersion,
    /// A look at a server on demand, by its starter's function.
    Look {
        server: String,
    },
}

/// One delivery of a request.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// The function that runs it.
    pub(crate) function: &'static str,
    pub(crate) instance: usize,
    pub(crate) namespace: usize,
    /// The last number of the address that it came from.
    pub(crate) client: u8,
    /// Its `Idempotency-Key`.
    pub(crate) key: Option<String>,
    /// Players for whom it requests seats.
    pub(crate) party: u64,
    pub(crate) action: Action,
    pub(crate) began_at: u64,
    pub(crate) has_ended: bool,
    /// Never, when it crashed.
    pub(crate) answered_at: Option<u64>,
    /// 200 or the code that it was answered.
    pub(crate) answered: Option<String>,
    pub(crate) calls: u32,
    /// Seats that it added, each with its lobby.
    pub(crate) seats: Vec<(String, String)>,
    /// Lobbies that it created.
    pub(crate) created: Vec<String>,
    /// Whether it connected its player.
    pub(crate) has_connected: bool,
}

impl Operation {
    /// One that begins at an instance for a namespace.
    pub(crate) fn new(
        function: &'static str,
        (instance, namespace): (usize, usize),
        action: Action,
        began_at: u64,
    ) -> Self {
        Self {
            function,
            instance,
            namespace,
            client: 0,
            key: None,
            party: 1,
            action,
            began_at,
            has_ended: false,
            answered_at: None,
            answered: None,
            calls: 0,
            seats: Vec::new(),
            created: Vec::new(),
            has_connected: false,
        }
    }
}

/// What the model knows of a namespace.
#[derive(Clone, Debug)]
pub(crate) struct Namespace {
    pub(crate) id: String,
    pub(crate) lobby_count_max: u32,
    /// Seats that a client may hold.
    pub(crate) holds_max: u32,
    /// The versions that it ran, each since when.
    pub(crate) versions: Vec<(u64, String)>,
    /// How many lobbies lived, each since when.
    live: Vec<(u64, u32)>,
}

/// The model's knowledge.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) namespaces: Vec<Namespace>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) lobbies: BTreeMap<String, Lobby>,
    /// When each lobby was first written, in milliseconds of the run: after many attempts, later than its
    /// `created_at`.
    appeared: BTreeMap<String, u64>,
    /// When the run's first instant was, in the tables' time.
    pub(crate) epoch: u64,
    /// Whether faults may still occur.
    pub(crate) has_faults: bool,
    /// The seats of each mode's lobbies, for finds and for joins.
    pub(crate) capacities: BTreeMap<String, (u64, u64)>,
    /// The largest party of each mode.
    pub(crate) party_size_max: u64,
    failure: Option<Failure>,
    /// Texts, separated by `|`, of known failures to ignore.
    pub(crate) tolerated: Option<&'static str>,
    /// The tags of each lobby created with some, for operations that return them.
    tags: BTreeMap<String, BTreeMap<String, String>>,
    /// The start of its server that each lobby was placed on.
    born_on: BTreeMap<String, String>,
    /// The starts of each server that registered, in their order.
    starts: BTreeMap<String, Vec<String>>,
    /// How often each seat of a lobby was added.
    added: BTreeMap<(String, String), u32>,
    /// Seats in responses, each with its lobby, and their holders; `None` once the seat was given up or
    /// lapsed.
    given: BTreeMap<(String, String), Option<clients::Holder>>,
    /// Who was removed from which lobby, when that was, and until when they are kept out.
    kept_out: BTreeMap<(clients::Holder, String), (u64, u64)>,
    /// Who held the seats of lobbies that players were removed from.
    removed: BTreeMap<(String, String), clients::Holder>,
    /// Seats whose `connected` came after their reservation had expired, by which a client may exceed its
    /// limit: `infra/docs/limits.md`.
    connected_late: BTreeSet<(String, String)>,
    /// Seats taken by writes that arrived late, each with its lobby: they belong to no player if the
    /// operation took another seat.
    late: BTreeSet<(String, String)>,
    /// Seats that their players left, or were removed from, each with its lobby.
    left: BTreeSet<(String, String)>,
    /// What the requests of each key were answered.
    kept: BTreeMap<String, Value>,
    /// Connects that were answered 200, by seat.
    connects: BTreeMap<(String, u64), u32>,
    /// What it knows of servers on demand, if the world has some.
    pub(crate) on_demand: Option<on_demand::OnDemand>,
    /// How many operations were answered how.
    pub(crate) outcomes: BTreeMap<(&'static str, String), u64>,
}

impl Model {
    /// Notes a namespace of the world.
    pub(crate) fn add_namespace(
        &mut self,
        id: String,
        lobby_count_max: u32,
        holds_max: u32,
        version: String,
    ) {
        let (versions, live) = (vec![(0, version)], vec![(0, 0)]);
        self.namespaces.push(Namespace { id, lobby_count_max, holds_max, versions, live });
    }

    /// Notes that `invariant` does not hold; the first failure counts.
    pub(crate) fn fail(&mut self, invariant: &'static str, what: impl Into<String>) {
        let failure = Failure { invariant, what: what.into() };
        let mut texts = self.tolerated.into_iter().flat_map(|texts| texts.split('|'));
        if !texts.any(|text| failure.what.contains(text)) {
            self.failure.get_or_insert(failure);
        }
    }

    pub(crate) const fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Notes an operation that begins; its number.
    pub(crate) fn began(&mut self, operation: Operation) -> usize {
        self.operations.push(operation);
        self.operations.len() - 1
    }

    pub(crate) fn called(&mut self, operation: usize) {
        self.operations[operation].calls += 1;
    }

    /// Whether an operation has ended or never began.
    pub(crate) fn has_ended(&self, operation: usize) -> bool {
        self.operations.get(operation).is_none_or(|operation| operation.has_ended)
    }

    pub(crate) fn name(&self, operation: usize) -> String {
        let Operation { function, instance, .. } = &self.operations[operation];
        format!("#{operation} {function} @{instance}")
    }

    /// The tables' time at `at` milliseconds of the run.
    pub(crate) const fn time(&self, at: u64) -> u64 {
        self.epoch + at
    }

    /// Checks what one write, single or a transaction, changed.
    pub(crate) fn committed(&mut self, changes: &[Change], history: &History) {
        changes.iter().for_each(|change| self.note_tags(change));
        for change in changes {
            self.check_namespace(change);
            match super::wire::known_table(&change.part.place.table) {
                Some(Table::Lobbies) if change.part.write.is_some() => self.lobby_changed(change, history),
                Some(Table::Servers) => {
                    self.check_start_of_server(change);
                    self.check_server(change);
                    self.check_stage(change);
                }
                Some(Table::Clients) => {
                    self.check_count_of_holds(change);
                    self.note_removed_again(change);
                }
                Some(Table::Ledger) => self.check_draw(change, history),
                Some(Table::Lobbies) => {}
                None => self.note_version(change),
            }
        }
        if changes.iter().any(|change| super::wire::known_table(&change.part.place.table).is_some()) {
            self.check_room(history, changes);
            self.check_counted(history, changes);
        }
    }

    fn lobby_changed(&mut self, change: &Change, history: &History) {
        let read = |item: &Option<Arc<Value>>| item.as_deref().map(Lobby::read);
        let (before, after) = (read(&change.before), read(&change.after));
        let after = match after {
            Some(Ok(after)) => after,
            Some(Err(problem)) => {
                return self.fail("I4", format!("lobby {}: {problem}", change.part.place.key));
            }
            None => return self.fail("I4", "a lobby was deleted"),
        };
        let before = match before {
            Some(Ok(before)) => Some(before),
            Some(Err(problem)) => return self.fail("I4", problem),
            None => None,
        };
        if let Some(operation) = change.operation
            && before.is_none()
        {
            self.operations[operation].created.push(after.id.clone());
        }
        self.count_live(change.at, before.as_ref(), &after);
        self.check_life(change, before.as_ref(), &after, history);
        self.check_seats(change, before.as_ref(), &after);
        if before.is_none() {
            self.appeared.insert(after.id.clone(), change.at);
            self.note_birth(&after, history);
            self.check_creation(change, &after, history);
        }
        self.lobbies.insert(after.id.clone(), after);
        if let Some(operation) = change.operation {
            self.check_one_seat(operation, change.at);
        }
    }

    fn count_live(&mut self, at: u64, before: Option<&Lobby>, after: &Lobby) {
        let lived = before.is_some_and(Lobby::lives);
        let Some(namespace) = self.namespaces.iter_mut().find(|namespace| namespace.id == after.namespace)
        else {
            return;
        };
        let count = namespace.live.last().map_or(0, |(_, count)| *count);
        let count = match (lived, after.lives()) {
            (false, true) => count + 1,
            (true, false) => count.saturating_sub(1),
            _ => return,
        };
        namespace.live.push((at, count));
    }

    /// I11: an operation writes to items of its own namespace alone.
    fn check_namespace(&mut self, change: &Change) {
        let Some(operation) = change.operation.map(|operation| &self.operations[operation]) else { return };
        let own = &self.namespaces[operation.namespace].id;
        let item = change.after.as_ref().or(change.before.as_ref());
        let owner = match super::wire::known_table(&change.part.place.table) {
            Some(Table::Lobbies) => item.and_then(|item| item["pool"]["S"].as_str()),
            Some(Table::Servers) => Some(change.part.place.key.as_str()),
            Some(Table::Ledger) => change.part.place.key.strip_prefix("allotted/"),
            Some(Table::Clients) => change.part.place.key.strip_prefix("holds/"),
            None => None,
        };
        let owner = owner.map(|owner| owner.split('/').next().unwrap_or_default());
        if owner.is_some_and(|owner| owner != own) {
            let what = format!("an operation of {own} wrote to {:?}", change.part.place);
            self.fail("I11", what);
        }
    }

    fn note_tags(&mut self, change: &Change) {
        let (Some(item), "LobbyDataTable") = (&change.after, change.part.place.table.as_str()) else {
            return;
        };
        let (Some(id), Some("tags")) = (item["lobby_id"]["S"].as_str(), item["part"]["S"].as_str()) else {
            return;
        };
        let tags = item["json"]["S"].as_str().and_then(|json| serde_json::from_str(json).ok());
        self.tags.insert(id.to_owned(), tags.unwrap_or_default());
    }

    /// Whether a lobby was created with each of `queried`.
    fn has_tags(&self, id: &str, queried: &BTreeMap<String, String>) -> bool {
        let tags = self.tags.get(id);
        queried.iter().all(|(name, value)| tags.and_then(|tags| tags.get(name)) == Some(value))
    }

    fn note_version(&mut self, change: &Change) {
        let Some(id) = change.part.place.key.split("|NAMESPACE#").nth(1) else { return };
        let version = change.after.as_ref().and_then(|item| item["version_id"]["S"].as_str());
        let namespace = self.namespaces.iter_mut().find(|namespace| namespace.id == id);
        if let (Some(version), Some(namespace)) = (version, namespace) {
            namespace.versions.push((change.at, version.to_owned()));
        }
    }

    /// Whether a namespace ran `version` at a time that an operation of `from..=until` may use.
    fn ran(&self, namespace: usize, version: &str, from: u64) -> bool {
        let versions = &self.namespaces[namespace].versions;
        let from = from.saturating_sub(SETTINGS_AGE_MS);
        let first = versions.iter().rposition(|(since, _)| *since <= from).unwrap_or(0);
        versions.iter().skip(first).any(|(_, id)| id == version)
    }

    /// The most lobbies of a namespace that lived at one time since `from`.
    fn most_live_since(&self, namespace: usize, from: u64) -> u32 {
        let from = from.saturating_sub(ROOM_AGE_MS);
        let live = &self.namespaces[namespace].live;
        let first = live.iter().rposition(|(since, _)| *since <= from).unwrap_or(0);
        live.iter().skip(first).map(|(_, count)| *count).max().unwrap_or(0)
    }
}

impl Change {
    /// Whether this is `write`.
    fn is(&self, write: Write) -> bool {
        self.part.write == Some(write)
    }
}
