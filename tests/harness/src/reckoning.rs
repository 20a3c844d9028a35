//! What a load came to, compared as sets with what the tables hold.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    process::ExitCode,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;
use shared::{
    models::{ids::NamespaceId, lobby::Lobby},
    store::client::Store,
};

use crate::{load::Reply, tables::all_servers};

/// Differing entries that are printed of each comparison.
const SHOWN: usize = 20;

/// A lobby and a seat in it.
pub type Seat = (String, String);

/// A table, a column for each phase of a load, and everything that differs.
#[derive(Debug, Default)]
pub struct Report {
    rows: Vec<(String, Vec<String>)>,
    differences: Vec<String>,
}

impl Report {
    /// Adds a value to the row of `what`.
    pub fn tell(&mut self, what: &str, value: impl ToString) {
        match self.rows.iter_mut().find(|(known, _)| known == what) {
            Some((_, values)) => values.push(value.to_string()),
            None => self.rows.push((what.to_owned(), vec![value.to_string()])),
        }
    }

    /// Reports whether both sets are the same.
    pub fn compare<T: Ord + Debug>(&mut self, what: &str, wanted: &BTreeSet<T>, found: &BTreeSet<T>) {
        if wanted == found {
            return self.tell(what, format!("equal ({})", wanted.len()));
        }
        self.tell(what, "DIFFERENT");
        let show = |entries: BTreeSet<&T>| {
            let shown: Vec<_> = entries.iter().take(SHOWN).collect();
            format!("{}: {shown:?}", entries.len())
        };
        self.differences.push(format!(
            "{what}:\n  missing {}\n  too many {}",
            show(wanted.difference(found).collect()),
            show(found.difference(wanted).collect())
        ));
    }

    /// Prints the table under `heading`, and every difference; a failure when there is one.
    #[expect(clippy::print_stdout, clippy::print_stderr, reason = "benchmarks print their figures")]
    #[must_use]
    pub fn print(self, heading: &str) -> ExitCode {
        println!("{heading}");
        for (what, values) in self.rows {
            println!("| {what} | {} |", values.join(" | "));
        }
        if self.differences.is_empty() {
            return ExitCode::SUCCESS;
        }
        for difference in self.differences {
            eprintln!("DIFFERENT: {difference}");
        }
        ExitCode::FAILURE
    }
}

/// Compares the tables of a namespace with themselves: no lobby above its capacity, each lobby's count as its
/// entries, each game server's as its lobbies among `live`, and what is allotted to all as the ledger has it
/// (I1, I2, I4).
pub async fn compare_tables(report: &mut Report, store: &Store, namespace_id: &NamespaceId, live: &[Lobby]) {
    let too_full = live.iter().filter(|lobby| lobby.taken > lobby.max_players_direct);
    let too_full = too_full.map(|lobby| (lobby.lobby_id.to_string(), lobby.taken)).collect();
    report.compare("lobbies above their capacity", &BTreeSet::new(), &too_full);
    let count = |lobby: &Lobby| lobby.reserved.len() + lobby.connected.len();
    let entries = live.iter().map(|lobby| (lobby.lobby_id.to_string(), count(lobby))).collect();
    let taken = live.iter().map(|lobby| (lobby.lobby_id.to_string(), lobby.taken as usize)).collect();
    report.compare("entries of each lobby = its `taken`", &entries, &taken);

    let servers = all_servers(store, namespace_id).await;
    let used = servers.iter().map(|server| (server.server.server_id.to_string(), server.used)).collect();
    let mut run: BTreeMap<_, u32> =
        servers.iter().map(|server| (server.server.server_id.to_string(), 0)).collect();
    for server in live.iter().filter_map(|lobby| lobby.server.as_ref()) {
        *run.entry(server.server_id.to_string()).or_default() += 1;
    }
    report.compare("lobbies of each game server = its `used`", &run.into_iter().collect(), &used);
    let above = servers.iter().filter(|server| server.used > server.allotted);
    let above = above.map(|server| (server.server.server_id.to_string(), server.used)).collect();
    report.compare("game servers above what is allotted to them", &BTreeSet::new(), &above);
    let allotted: u32 = servers.iter().map(|server| server.allotted).sum();
    let noted = store.allotted_lobbies(namespace_id).await.expect("a read");
    let (allotted, noted) = (BTreeSet::from([allotted]), BTreeSet::from([noted]));
    report.compare("what is allotted to all = what the ledger knows", &allotted, &noted);
}

/// The seat of a player token, which anyone can read without a key.
#[must_use]
pub fn seat_of(token: &str) -> Seat {
    let payload =
        token.strip_prefix("player_").and_then(|jwt| jwt.split('.').nth(1)).expect("a player token");
    let payload = URL_SAFE_NO_PAD.decode(payload).expect("base64");
    let claims: Value = serde_json::from_slice(&payload).expect("claims");
    let [lobby, seat] = ["lobby", "seat"].map(|claim| claims[claim].as_str().expect("text").to_owned());
    (lobby, seat)
}

/// Status and code of a refusal.
#[must_use]
pub fn refusal(reply: &Reply) -> String {
    format!("{} {}", reply.status.as_u16(), reply.json()["code"].as_str().unwrap_or("without a code"))
}
