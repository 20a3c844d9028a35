//! Each condition taken away, one at a time: which invariant fails then, and in which configuration?
//!
//! A condition matters to a configuration only where it is the only one that refuses some write; so it is
//! taken away in those configurations alone, the smallest first.

use super::{Configuration, Outcomes, check};
use Verdict::{Needless, Unproved};

use crate::conditions::{CLAIM, Condition, LATEST, NO_PLACE, OF_START, TAGGED, Table, UNVACATED, Write};

/// Why nothing fails without a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Something else already makes sure of it.
    Needless(&'static str),
    /// It has a purpose that no configuration shows.
    Unproved(&'static str),
}

/// What became of a condition's removal.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The condition.
    pub condition: Condition,
    /// The configuration that fails without it, and the invariant.
    pub broken: Option<(&'static str, &'static str)>,
    /// Whether it ever is the only one that refuses a write.
    pub is_decisive: bool,
}

/// Conditions that the model does not evaluate, and why.
pub const LEFT_OUT: &[(Write, &str, &str)] = &[
    (Write::TakeFreeSeat, UNVACATED, LATE),
    (Write::TakeFreeSeat, TAGGED, TAGS),
    (Write::TakeParty, TAGGED, TAGS),
    (Write::TakeOverSeat, TAGGED, TAGS),
    (
        Write::NoteState,
        "attribute_exists(#server)",
        "a lobby's state is no part of matching: no invariant speaks of it",
    ),
    (Write::Drain, OF_START, STARTS),
    (Write::ExtendLease, OF_START, STARTS),
    (Write::Heartbeat, "#start_id = :start_id", STARTS),
    (Write::GiveBackPlace, "attribute_exists(#is_clearing)", STARTS),
    (Write::PutServer, "attribute_exists(#is_clearing)", STARTS),
    (Write::PutServer, "#owner = :owner", OWNERS),
    (Write::PutServer, "attribute_not_exists(#owner)", OWNERS),
    (Write::PutServer, "#lease_until = :seen_lease", OWNERS),
    (Write::Deregister, "#owner = :owner", OWNERS),
    (
        Write::Deregister,
        "#free_from <= :never",
        "the model knows one way of being out of sight, which a deregistration does not leave",
    ),
    (Write::TransferServer, "#start_id = :start_id", OWNERS),
    (Write::OpenServer, "#registration = :registration", STARTS),
    (Write::OpenServer, "attribute_exists(#is_clearing)", STARTS),
    (Write::OpenServer, "#used = :zero", STARTS),
    (Write::OpenServer, "attribute_not_exists(#expires_at)", STARTS),
    (
        Write::HideFull,
        "#joinable_from > :lapse",
        "all reservations of the model are as long, so none lapses before the lobby comes into sight",
    ),
    (
        Write::DrawInNursery,
        "size(#drawn) < :most",
        "no nursery of the model has 256 draws; a test of the store has them",
    ),
    (Write::ForgetPlacement, "#servers = :zero", PLACEMENTS),
    (Write::ForgetPlacement, "(attribute_not_exists(#noted_at) OR #noted_at <= :listed)", PLACEMENTS),
    (Write::HideFullServer, "#free_from <= :now", FULL_AGAIN),
    (Write::HideFullServer, NO_PLACE, FULL_AGAIN),
    (Write::ShowServer, "attribute_not_exists(#expires_at)", LATE),
    (
        Write::RenewBurst,
        "#first = :first",
        "no time passes in the model between an election and its lobby; a test of elections lets it pass",
    ),
    (Write::ClaimSearch, CLAIM, SEARCHES),
    (Write::NoteVainSearch, LATEST, SEARCHES),
    (Write::Close, "(attribute_not_exists(#toggled_at) OR #toggled_at < :toggled)", LATE),
    (Write::Reopen, "(attribute_not_exists(#toggled_at) OR #toggled_at < :toggled)", LATE),
    (Write::MakePrivate, "(attribute_not_exists(#toggled_at) OR #toggled_at < :toggled)", LATE),
    (Write::MakePublic, "(attribute_not_exists(#toggled_at) OR #toggled_at < :toggled)", LATE),
];

/// Attributes that the store writes and the model lacks, and why.
pub const UNMAPPED: &[(Table, &str, &str)] = &[
    (Table::Lobbies, "toggled_at", LATE),
    (Table::Lobbies, "expires_at", "no lobby of the model's is forgotten"),
    (Table::Lobbies, "joined_at", "it decides which lobby makes room first, and no write"),
    (Table::Servers, "placement_pool", "the index shows any game server, in its one region"),
    (Table::Ledger, "expires_at", "no head and no nursery of the model's is forgotten"),
    (Table::Servers, "failure", REASON),
    (Table::Ledger, "failure", REASON),
    (Table::Ledger, "start_ms", "it decides how long a find waits, and no write"),
];

/// Differences in a call that the comparison with the model does not notice, and why.
pub const UNSEEN: &[(Write, &str, &str)] = &[
    (Write::TakeFreeSeat, ":vacated_at +1", CONDITION),
    (Write::TakeParty, "REMOVE #room", ATTRIBUTE),
    (Write::End, "REMOVE #room", ATTRIBUTE),
    (Write::Drain, "REMOVE #room", ATTRIBUTE),
    (Write::Close, "REMOVE #room", ATTRIBUTE),
    (Write::MakePrivate, "REMOVE #room", ATTRIBUTE),
    (Write::HideSilent, "REMOVE #room", ATTRIBUTE),
    (Write::Deregister, ":never", CONDITION),
    (Write::Close, "SET #toggled_at = :toggled", ATTRIBUTE),
    (Write::Close, ":toggled", ATTRIBUTE),
    (Write::Reopen, "SET #toggled_at = :toggled", ATTRIBUTE),
    (Write::Reopen, ":toggled", ATTRIBUTE),
    (Write::MakePrivate, "SET #toggled_at = :toggled", ATTRIBUTE),
    (Write::MakePrivate, ":toggled", ATTRIBUTE),
    (Write::MakePublic, "SET #toggled_at = :toggled", ATTRIBUTE),
    (Write::MakePublic, ":toggled", ATTRIBUTE),
    (Write::Connect, "SET #joined_at = if_not_exists(#joined_at, :now)", ATTRIBUTE),
    (Write::End, "SET #expires_at = :expiry", ATTRIBUTE),
    (Write::End, ":expiry", ATTRIBUTE),
    (Write::BeginBurst, "SET #expires_at = :expiry", ATTRIBUTE),
    (Write::BeginBurst, ":expiry", ATTRIBUTE),
    (Write::PutServer, "SET #placement_pool = :new_placement_pool", ATTRIBUTE),
    (Write::PutServer, ":new_placement_pool", ATTRIBUTE),
    (Write::ShowServer, "SET #placement_pool = :pool", ATTRIBUTE),
    (Write::ShowServer, ":pool", ATTRIBUTE),
    (Write::LetServerGo, "REMOVE #placement_pool", ATTRIBUTE),
    (Write::HideServer, ":expiry", "the model knows that a record expires, not when"),
    (Write::LetServerGo, ":expiry", "the model knows that a record expires, not when"),
    (Write::HideFull, "SET #pool = :pool", SAME),
    (Write::Heartbeat, "SET #owner = :token", SAME),
    (Write::PutServer, "REMOVE #build_id", ATTRIBUTE),
    (Write::PutServer, "REMOVE #failure", ATTRIBUTE),
    (Write::PutServer, "REMOVE #launch", ATTRIBUTE),
    (Write::PutServer, "REMOVE #stage", ATTRIBUTE),
    (Write::PutServer, "REMOVE #former_starts", SAME),
    (Write::PutServer, "REMOVE #game_modes", SAME),
    (Write::PutServer, "REMOVE #is_clearing", SAME),
    (Write::TakePlace, ":later", SIGHT),
    (Write::Deregister, ":later", SIGHT),
    (Write::HideServer, ":later", SIGHT),
    (Write::ShowServer, ":now +1", SIGHT),
    (Write::RequestServer, "placement_pool", ATTRIBUTE),
    (Write::FailLaunch, "SET #failure = :failure", ATTRIBUTE),
    (Write::FailLaunch, ":failure", ATTRIBUTE),
    (Write::FailLaunch, ":later", SIGHT),
    (Write::RetireLaunched, ":later", SIGHT),
    (Write::StopIdle, ":later", SIGHT),
    (Write::LetLaunchedGo, "REMOVE #placement_pool", ATTRIBUTE),
    (Write::LetLaunchedGo, ":expiry", "the model knows that a record expires, not when"),
    (Write::NoteEnded, ":now", "the model knows that a process has ended, not when"),
    (Write::OpenOnLaunched, "SET #ports = :ports", SAME),
    (Write::BeginNursery, "SET #expires_at = :expiry", ATTRIBUTE),
    (Write::BeginNursery, ":expiry", ATTRIBUTE),
    (Write::DrawInNursery, ":most", CONDITION),
    (Write::NoteStart, "SET #start_ms = :mean", ATTRIBUTE),
    (Write::NoteStart, ":mean", ATTRIBUTE),
    (Write::NoteStart, "REMOVE #failure", ATTRIBUTE),
    (Write::NoteStart, "SET #expires_at = :expiry", ATTRIBUTE),
    (Write::NoteStart, ":expiry", ATTRIBUTE),
    (Write::NoteFailedStart, "SET #failure = :reason", ATTRIBUTE),
    (Write::NoteFailedStart, ":reason", ATTRIBUTE),
    (Write::NoteFailedStart, "SET #expires_at = :expiry", ATTRIBUTE),
    (Write::NoteFailedStart, ":expiry", ATTRIBUTE),
    (Write::Drain, "#closed IN (:true, :false)", "the other conditions hold for no lobby that is not there"),
];

const REASON: &str = "it says why a start failed, and decides no write";
const CONDITION: &str = "it is a value of a condition that the model leaves out";
const ATTRIBUTE: &str = "the model has no such attribute";
const SAME: &str = "all items of the model have the same";
const SIGHT: &str = "the model knows one way of being out of sight";

const ROOM: &str =
    "any find of the model sees any lobby, so it has no index for parties; the simulation has it";
const CLIENTS: &str = "what is remembered of clients is no part of the model; the simulation has it";
const PLACEMENTS: &str =
    "the model has one placement pool, which nobody has to look for; the simulation forgets them";
const LATE: &str = "the model repeats no write after its request was answered; the simulation does";
const TAGS: &str = "no lobby of the model has tags, which never change; a test of the store refuses by it";
const STARTS: &str = "each server of the model starts once; the simulation's start again";
const OWNERS: &str = "all servers of the model belong to one token; tests of the store refuse others";
const FULL_AGAIN: &str = "a server without a place comes into sight after an hour, which the model has not";
const SEARCHES: &str =
    "that a search was in vain is believed for a second, which the model's refusals allow for";

/// Conditions without which nothing fails, and why.
pub const VERDICTS: &[(Write, &str, Verdict)] = &[
    (
        Write::TakeParty,
        UNVACATED,
        Unproved("a copy that comes after both players left takes their seats again, until they lapse"),
    ),
    (
        Write::TakeOverSeat,
        "attribute_not_exists(#generations)",
        Unproved("without it the numbers of a seat's tokens outlive the seat, which costs room in the item"),
    ),
    (Write::ChangeTokens, "#reserved.#seat > :now", Needless("judged by the same clock before")),
    (
        Write::TakeOverSeat,
        "(#stage = :ready OR #created_at > :start_limit)",
        Needless("nothing lapses while a lobby starts, and none starts again"),
    ),
    (
        Write::TakeOverSeat,
        "attribute_not_exists(#connected.#seat)",
        Needless("a repetition finds the lapsed seats gone"),
    ),
    (
        Write::TakeOverSeat,
        "#pool = :pool",
        Needless("the write before it was refused by a lobby of that pool, which never changes"),
    ),
    (Write::Leave, "(#stage = :ready OR #created_at > :start_limit)", Needless(SAME_CLOCK)),
    (
        Write::Leave,
        "attribute_exists(#reserved.#member)",
        Unproved("a party's seats lapse at one instant, and one write takes over all lapsed ones up to 90"),
    ),
    (Write::Ready, "#created_at > :start_limit", Needless(SAME_CLOCK)),
    (Write::End, "attribute_exists(#server)", Needless("an ended lobby is known by its stage, too")),
    (Write::End, "#stage <> :ended", Needless("an ended lobby has no server")),
    (Write::End, "#created_at <= :start_limit", Needless(SAME_CLOCK)),
    (Write::End, "#stage = :ready", Needless("it was ready when seen, and an ended lobby has no server")),
    (
        Write::Drain,
        "#closed IN (:true, :false)",
        Needless("the lobby is there: its server's index showed it"),
    ),
    (Write::Drain, "attribute_not_exists(#is_draining)", Needless(AGAIN)),
    (Write::Close, "(#stage = :ready OR #created_at > :start_limit)", Needless(NEVER_READY)),
    (Write::Close, "#closed = :false", Needless(AGAIN)),
    (Write::Reopen, "(#stage = :ready OR #created_at > :start_limit)", Needless(NEVER_READY)),
    (
        Write::Reopen,
        "#closed = :true",
        Needless("a lobby that is open comes into sight at most too early, which is a hint"),
    ),
    (Write::MakePrivate, "(#stage = :ready OR #created_at > :start_limit)", Needless(NEVER_READY)),
    (Write::MakePrivate, "attribute_not_exists(#is_private)", Needless(AGAIN)),
    (Write::MakePublic, "(#stage = :ready OR #created_at > :start_limit)", Needless(NEVER_READY)),
    (
        Write::MakePublic,
        "attribute_exists(#is_private)",
        Needless("a lobby that is public comes into sight at most too early, which is a hint"),
    ),
    (Write::ExtendLease, "#stage <> :ended", Needless("an ended lobby has no server")),
    (Write::ExtendLease, "#server = :server", Needless("a lobby's server changes by its end alone")),
    (
        Write::TakePlace,
        "#cap_checked = :cap",
        Unproved(
            "it takes a cap that is lowered, raised and lowered again within the age of what one find knows",
        ),
    ),
    (
        Write::TakePlace,
        "#allotted = :allotted",
        Needless(
            "what a server is allotted beyond its need is taken back at the cap, at a cost: many finds that see one exhausted \
             server would each bring it a block",
        ),
    ),
    (Write::GiveBackPlace, "#used > :zero", Needless("a lobby that lives is counted, by I2")),
    (
        Write::AllotAhead,
        "#registration = :registration",
        Needless("what a server is allotted beyond its need is taken back at the cap, however it came"),
    ),
    (
        Write::AllotAhead,
        "#capacity > :zero",
        Needless("what a server that deregistered is allotted is taken back at the cap"),
    ),
    (
        Write::PutServer,
        "#registration = :registration",
        Needless("of two registrations the later one counts"),
    ),
    (Write::ShowServer, "#used < #capacity", Needless(HINT)),
    (Write::ShowServer, "#free_from > :now", Needless(AGAIN)),
    (Write::ShowServer, "#registration = :registration", Needless("the model has one region")),
    (
        Write::HideServer,
        "#used = :used",
        Needless(
            "a silent server out of sight too early keeps its record, no more: what it has left is taken back at the cap",
        ),
    ),
    (Write::OpenOnLaunched, "#stage <> :ended", Needless("an ended lobby has no server")),
    (Write::OpenOnLaunched, "#server = :server", Needless("a lobby's server changes by its end alone")),
    (Write::RetireLaunched, "#stage = :running", Needless("one that is over is stopped once more")),
    (
        Write::StopIdle,
        "#idle_since = :since",
        Needless("a server that had a lobby meanwhile ends sooner after it"),
    ),
    (
        Write::NoteHandle,
        "attribute_not_exists(#handle)",
        Needless("a start has one name, and what was ended is ended again"),
    ),
    (
        Write::NoteEnded,
        "attribute_not_exists(#ended_at)",
        Needless("the seconds that a process ran would be counted twice, which no invariant speaks of"),
    ),
    (
        Write::LetLaunchedGo,
        "#used = :zero",
        Unproved(
            "it takes a server that registers, gets a lobby and deregisters again while one write is on its way; a test of the store has it",
        ),
    ),
    (Write::UncountServer, "#allotted >= :block", Needless("what a server has is in the sum, by I2")),
    (Write::UncountServer, "#servers >= :one", Needless("what a server has is in the sum, by I18")),
    (
        Write::BeginNursery,
        "(attribute_not_exists(#blocked_until) OR #blocked_until <= :now)",
        Needless("what fails is requested again sooner, and no more than `server_count_max`"),
    ),
    (Write::DrawInNursery, "#first = :first", Needless("the answer says which nursery was drawn in")),
    (
        Write::BlockNursery,
        "#failures = :failures",
        Needless("a minute without requests, after which they go on"),
    ),
    (
        Write::LetServerGo,
        "#used = :zero",
        Unproved(
            "it takes a server that registers, gets a lobby and deregisters again while one write is on its way; the simulation has it",
        ),
    ),
    (Write::ReturnAllotment, "#allotted >= :block", Needless("what a server has is in the sum, by I2")),
    (
        Write::BeginBurst,
        "attribute_not_exists(#first) OR #opened_at <= :stale OR (#first = :seen AND #opened_at = :seen_at AND #positions <= :drawn)",
        Unproved(
            "it keeps finds that saw a burst exhausted in one lobby; without it each makes its own, which is counted as a race",
        ),
    ),
    (
        Write::DrawPosition,
        "#first = :first",
        Needless("the answer says which burst the position was drawn from"),
    ),
];

const SAME_CLOCK: &str = "judged by the same clock before, and a lobby's creation never changes";
const AGAIN: &str = "doing it again changes nothing";
const NEVER_READY: &str = "a lobby that never became ready takes nobody, and ends";
const HINT: &str = "a full server in sight is a hint, and costs a refused write";

impl Found {
    /// Why nothing fails without it, if that is known.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        let Condition { write, clause } = self.condition;
        VERDICTS.iter().find(|known| (known.0, known.1) == (write, clause)).map(|known| known.2)
    }

    /// Whether outcome and verdict contradict each other.
    #[must_use]
    pub fn is_unexpected(&self) -> bool {
        self.broken.is_some() == self.verdict().is_some()
    }

    /// Its row of the table.
    #[must_use]
    pub fn row(&self) -> String {
        let Condition { write, clause } = self.condition;
        let (invariant, configuration) = match (self.broken, self.verdict()) {
            (Some((configuration, invariant)), _) => (invariant.to_owned(), configuration),
            (None, Some(Needless(why))) => (format!("none: needless, because {why}"), ""),
            (None, Some(Unproved(why))) => (format!("none: unproved, because {why}"), ""),
            (None, None) if self.is_decisive => ("none".to_owned(), ""),
            (None, None) => ("none, and never alone in refusing".to_owned(), ""),
        };
        format!("| {write} | `{clause}` | {invariant} | {configuration} |")
    }
}

/// Why the model does not evaluate `condition`, if so.
#[must_use]
pub fn left_out(condition: Condition) -> Option<&'static str> {
    let Condition { write, clause } = condition;
    if matches!(write, Write::ShowRoom | Write::HideRoom) {
        return Some(ROOM);
    }
    if write.table() == Table::Clients {
        return Some(CLIENTS);
    }
    LEFT_OUT.iter().find(|left| (left.0, left.1) == (write, clause)).map(|left| left.2)
}

/// Takes `condition` away in each configuration whose outcome says that it matters, until an invariant fails.
#[must_use]
pub fn search(condition: Condition, outcomes: &[(Configuration, Outcomes)]) -> Found {
    let mut decided: Vec<_> =
        outcomes.iter().filter(|(_, outcomes)| outcomes.decisive.contains(&condition)).collect();
    decided.sort_by_key(|(_, outcomes)| outcomes.states);
    let broken = decided.iter().find_map(|(configuration, _)| {
        let violation = check(*configuration, Some(condition)).violation?;
        Some((configuration.name, violation.name()))
    });
    Found { condition, broken, is_decisive: !decided.is_empty() }
}
