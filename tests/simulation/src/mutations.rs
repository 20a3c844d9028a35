//! Each condition taken away, one at a time: does a run notice?
//!
//! A condition whose loss nothing notices is one of [`VERDICTS`], which say why. If runs notice the loss so
//! rarely that luck decides, it is one of [`RARE`], which say what notices it without luck. Everything else
//! must be noticed.

use super::run::{Options, run};
use model::conditions::{CLAIM, Condition, LATEST, TAGGED, Write};

/// What became of a condition's removal.
#[derive(Clone, Debug)]
pub struct Found {
    /// The condition.
    pub condition: Condition,
    /// The seed that failed without it, and the invariant that it broke.
    pub broken: Option<(u64, &'static str)>,
    /// A seed that fails with it, too: then the product is wrong, or a requirement.
    pub fails_with_it: Option<(u64, &'static str)>,
    /// Seeds in which a write went without it.
    pub sent: u64,
}

/// Conditions whose loss breaks no invariant, and why they are there all the same.
pub const VERDICTS: &[(Write, &str, &str)] = &[
    (Write::TakeFreeSeat, "#pool = :pool", SAME_POOL),
    (Write::TakeOverSeat, "#pool = :pool", SAME_POOL),
    (Write::TakeFreeSeat, TAGGED, SAME_TAGS),
    (Write::TakeOverSeat, TAGGED, SAME_TAGS),
    (
        Write::TakeOverSeat,
        "(#stage = :ready OR #created_at > :start_limit)",
        "nothing lapses while a lobby starts, and none starts again",
    ),
    (
        Write::TakeOverSeat,
        "attribute_not_exists(#reserved.#seat)",
        "a repetition finds the lapsed seats gone",
    ),
    (
        Write::TakeOverSeat,
        "attribute_not_exists(#connected.#seat)",
        "a repetition finds the lapsed seats gone",
    ),
    (Write::TakeOverSeat, "#lease_until > :now", "judged by the same clock before, and a lease grows"),
    (Write::TakeParty, "#pool = :pool", SAME_POOL),
    (Write::TakeParty, TAGGED, SAME_TAGS),
    (Write::ChangeTokens, "#reserved.#seat > :now", "judged by the same clock before"),
    (
        Write::Leave,
        "attribute_exists(#reserved.#member)",
        "a party's seats lapse at one instant, and one write takes all of them over in so small a lobby",
    ),
    (Write::Ready, "#created_at > :start_limit", SAME_CREATION),
    (Write::Leave, "(#stage = :ready OR #created_at > :start_limit)", SAME_CREATION),
    (Write::End, "#created_at <= :start_limit", SAME_CREATION),
    (Write::End, "attribute_exists(#server)", "an ended lobby is known by its stage, too"),
    (Write::End, "#stage <> :ended", "an ended lobby has no server"),
    (Write::End, "#stage = :ready", "it was ready when seen, and ended has no server"),
    (Write::Drain, "#closed IN (:true, :false)", SAME_ITEM),
    (Write::Drain, "attribute_not_exists(#is_draining)", SAME_AGAIN),
    (Write::Close, "#closed = :false", SAME_AGAIN),
    (Write::Reopen, "#closed = :true", HINT),
    (Write::MakePrivate, "attribute_not_exists(#is_private)", SAME_AGAIN),
    (Write::MakePublic, "attribute_exists(#is_private)", HINT),
    (Write::ExtendLease, "#stage <> :ended", "an ended lobby has no server"),
    (Write::ExtendLease, "#server = :server", "a lobby's server changes by its end alone"),
    (Write::TakePlace, "#cap_checked = :cap", "the cap never changes in a simulation"),
    (Write::TakePlace, "#allotted = :allotted", TAKEN_BACK),
    (
        Write::TakePlace,
        "#lease_until > :now",
        "judged by the same clock before, and a registration's lease grows",
    ),
    (Write::GiveBackPlace, "#used > :zero", "a lobby that lives is counted"),
    (Write::AllotAhead, "#registration = :registration", TAKEN_BACK),
    (Write::AllotAhead, "#capacity > :zero", TAKEN_BACK),
    (Write::AllotAhead, "attribute_not_exists(#expires_at)", NO_EXPIRY),
    (Write::TakePlace, "attribute_not_exists(#expires_at)", NO_EXPIRY),
    (Write::PutServer, "#registration = :registration", "the later of two registrations counts"),
    (Write::ShowServer, "#used < #capacity", HINT),
    (Write::ShowServer, "#free_from > :now", SAME_AGAIN),
    (Write::HideServer, "#used = :used", HINT),
    (
        Write::HideFullServer,
        "#free_from <= :now",
        "of many looks that meet it each would move it on, at a unit more",
    ),
    (Write::ReturnAllotment, "#allotted >= :block", COUNTED),
    (Write::BeginBurst, "attribute_not_exists(#first) OR #opened_at <= :stale", RACE),
    (
        Write::BeginBurst,
        "attribute_not_exists(#first) OR #opened_at <= :stale OR (#first = :seen AND #opened_at = :seen_at AND #positions <= :drawn)",
        RACE,
    ),
    (Write::DrawPosition, "#first = :first", RACE),
    (Write::ClaimSearch, CLAIM, "more than one searches, no more"),
    (Write::NoteVainSearch, LATEST, "an earlier search is believed for less long"),
    (Write::HoldSeat, "(attribute_exists(#proven_at) OR attribute_not_exists(#strikes))", STANDING),
    (
        Write::HoldSeat,
        "(attribute_exists(#proven_at) OR attribute_not_exists(#held) OR #held < :unproven)",
        STANDING,
    ),
    (Write::HoldSeat, "(attribute_exists(#proven_at) OR #held < :unproven)", STANDING),
    (Write::PointHold, "#member = :seen", TOGETHER),
    (Write::ReleaseHold, "#member = :seen", TOGETHER),
    (Write::HideFull, "#joinable_from > :lapse", HINT),
    (
        Write::TakeParty,
        "(attribute_not_exists(#vacated_at) OR #vacated_at <= :vacated_at)",
        "a copy that comes after both players left takes their seats again, until they lapse",
    ),
    (
        Write::TakeOverSeat,
        "attribute_not_exists(#generations)",
        "the numbers of a seat's tokens outlive the seat, which costs room in the item",
    ),
    (
        Write::BeginNursery,
        "(attribute_not_exists(#blocked_until) OR #blocked_until <= :now)",
        "what fails is requested again sooner, and no more than `server_count_max`",
    ),
    (Write::DrawInNursery, "#first = :first", "the answer shows the nursery that was drawn in"),
    (Write::DrawInNursery, "size(#drawn) < :most", "no nursery of a simulation has so many draws"),
    (Write::ReleaseRun, "attribute_not_exists(#answer)", "a run is answered or refused, not both"),
    (Write::BlockNursery, "#failures = :failures", "a minute without requests, after which they go on"),
    (Write::UncountServer, "#allotted >= :block", COUNTED),
    (Write::UncountServer, "#servers >= :one", COUNTED),
    (Write::RetireLaunched, "#stage = :running", "a server that is over is stopped once more"),
    (Write::StopIdle, "#idle_since = :since", "a server that had a lobby meanwhile ends sooner after it"),
    (
        Write::LetLaunchedGo,
        "#capacity = :zero",
        "a process that registers again while this is on its way learns of it by its next heartbeat",
    ),
    (Write::NoteHandle, "attribute_exists(#launch)", NO_EXPIRY),
    (
        Write::NoteHandle,
        "attribute_not_exists(#handle)",
        "a start has one name, and what was ended is ended again",
    ),
    (Write::NoteBusy, "attribute_exists(#launch)", NO_EXPIRY),
    (
        Write::ReleaseRun,
        "#run = :run",
        "a later run loses its lease, and a repetition takes the request over a little sooner",
    ),
    (Write::NoteIdle, "attribute_exists(#launch)", NO_EXPIRY),
    (Write::NoteEnded, "attribute_exists(#launch)", NO_EXPIRY),
    (
        Write::NoteEnded,
        "attribute_not_exists(#ended_at)",
        "its seconds would be counted twice, which no run counts",
    ),
    (Write::OpenOnLaunched, "#stage <> :ended", "an ended lobby has no server"),
    (Write::OpenOnLaunched, "#server = :server", "a lobby's server changes by its end alone"),
    (Write::ForgetRun, "attribute_not_exists(#answer)", "a run is answered or refused, not both"),
    (Write::WaitForRun, "#run = :seen", "who waits for a later run than it saw waits for the same request"),
    (
        Write::WaitForRun,
        "(attribute_not_exists(#first_waits_until) OR #first_waits_until <= :now)",
        MORE_WAIT,
    ),
    (
        Write::WaitForRun,
        "(attribute_not_exists(#second_waits_until) OR #second_waits_until <= :now)",
        MORE_WAIT,
    ),
];

/// What notices a condition's loss without luck.
#[derive(Clone, Copy, Debug)]
pub enum Elsewhere {
    /// The model: its table has an invariant that breaks.
    Model,
    /// The test of this name in `it`.
    Test(&'static str),
}

const LATE: &str = "what_is_late_neither_retires_a_server_nor_shortens_the_lease_of_its_lobby";

/// Conditions whose loss shows only in an order of writes too rare for these seeds to contain it reliably.
pub const RARE: &[(Write, &str, Elsewhere)] = &[
    (Write::End, "#lease_until <= :now", Elsewhere::Model),
    (
        Write::Drain,
        "(attribute_not_exists(#start) OR #start = :start)",
        Elsewhere::Test("what_an_earlier_start_writes_late_changes_nothing"),
    ),
    (
        Write::ExtendLease,
        "(attribute_not_exists(#start) OR #start = :start)",
        Elsewhere::Test("what_an_earlier_start_writes_late_changes_nothing"),
    ),
    (Write::TakeParty, "#max_players_party = :capacity", Elsewhere::Model),
    (Write::TakeParty, "#stage <> :ended", Elsewhere::Model),
    (Write::TakeParty, "#taken = :last", Elsewhere::Model),
    (Write::TakeParty, "attribute_not_exists(#reserved.#seat)", Elsewhere::Model),
    (Write::TakeParty, "attribute_not_exists(#connected.#seat)", Elsewhere::Model),
    (Write::TakeParty, "attribute_not_exists(#reserved.#member)", Elsewhere::Model),
    (Write::TakeParty, "attribute_not_exists(#connected.#member)", Elsewhere::Model),
    (Write::Keep, "attribute_not_exists(#generations.#kept)", Elsewhere::Model),
    (Write::Replace, "#connected.#seat > :now", Elsewhere::Model),
    (Write::Replace, "#stage = :ready", Elsewhere::Model),
    (Write::ChangeTokens, "#connected.#seat > :now", Elsewhere::Model),
    (Write::ChangeTokens, "attribute_not_exists(#generations.#seat)", Elsewhere::Model),
    (Write::Reopen, "attribute_exists(#is_private)", Elsewhere::Model),
    (Write::HideFull, "#vacated_at = :vacated_at", Elsewhere::Model),
    (Write::TakePlace, "#used < :last", Elsewhere::Model),
    (
        Write::LetLaunchedGo,
        "#used = :zero",
        Elsewhere::Test("a_server_that_changed_since_it_was_read_is_let_go_at_the_next_look"),
    ),
    (Write::OpenOnLaunched, "attribute_exists(#launch)", Elsewhere::Test(LATE)),
    (Write::RetireLaunched, "#lease_until <= :now", Elsewhere::Test(LATE)),
    (
        Write::LetServerGo,
        "attribute_not_exists(#launch)",
        Elsewhere::Test("a_server_whose_allotment_was_taken_back_counts_no_more_once_its_last_lobby_ends"),
    ),
    (
        Write::ForgetPlacement,
        "(attribute_not_exists(#noted_at) OR #noted_at <= :listed)",
        Elsewhere::Test("a_build_is_forgotten_with_its_last_server"),
    ),
    (
        Write::GiveBackPlace,
        "attribute_exists(#is_clearing)",
        Elsewhere::Test("a_slow_call_of_a_start_ends_no_lobby_created_since_the_server_opened"),
    ),
    (
        Write::OpenServer,
        "attribute_exists(#is_clearing)",
        Elsewhere::Test("an_opening_that_is_repeated_late_shows_no_server_that_was_let_go"),
    ),
    (
        Write::OpenServer,
        "attribute_not_exists(#expires_at)",
        Elsewhere::Test("a_server_that_was_let_go_before_it_opened_stays_out_of_sight"),
    ),
    (
        Write::PutServer,
        "attribute_exists(#is_clearing)",
        Elsewhere::Test("a_repeated_registration_clears_no_server_that_has_opened_since"),
    ),
    (
        Write::PutServer,
        "#ranked_at = :ranked_at",
        Elsewhere::Test(
            "a_registration_that_a_deregistration_outran_brings_no_server_back_while_it_runs_lobbies",
        ),
    ),
    (
        Write::RenewBurst,
        "#first = :first",
        Elsewhere::Test("a_find_that_stalls_after_its_election_makes_no_second_lobby"),
    ),
    (
        Write::PutServer,
        "#owner = :owner",
        Elsewhere::Test("a_new_start_is_refused_that_a_transfer_to_another_token_outran"),
    ),
    (
        Write::PutServer,
        "attribute_not_exists(#owner)",
        Elsewhere::Test("a_new_start_is_refused_that_the_first_owner_outran"),
    ),
    (
        Write::PutServer,
        "#lease_until = :seen_lease",
        Elsewhere::Test("a_new_start_of_another_token_is_refused_that_a_heartbeat_outran"),
    ),
    (
        Write::Deregister,
        "#owner = :owner",
        Elsewhere::Test("a_server_that_another_token_took_over_meanwhile_is_not_removed_with_the_first"),
    ),
    (
        Write::TransferServer,
        "#start_id = :start_id",
        Elsewhere::Test(
            "a_server_without_lease_that_started_again_is_not_transferred_by_an_earlier_heartbeat",
        ),
    ),
    (Write::ForgetRun, "#run = :run", Elsewhere::Test("a_run_that_was_overtaken_gives_no_seat_back")),
];

const MORE_WAIT: &str = "more repetitions wait, which breaks no promise to a player; a test counts them";
const SAME_POOL: &str = "a lobby's pool never changes, and whoever claims a seat has it from there";
const SAME_TAGS: &str = "a lobby's tags never change, and whoever claims a seat has seen them";
const SAME_CREATION: &str = "judged by the same clock before, and a lobby's creation never changes";
const TAKEN_BACK: &str = "a block too many is in the sum, and taken back at the cap";
const TOGETHER: &str = "a party's holds change together until its answer is out";
const NO_EXPIRY: &str = "nothing expires in a simulation";
const SAME_AGAIN: &str = "doing it again changes nothing";
const STANDING: &str =
    "whose holds are not compared is in no doubt: the storms of `capacity` show what it is for";
const HINT: &str = "a hint: wrong it costs a refused write";
const RACE: &str = "an election: without it finds of one burst make lobbies of their own, which is counted";
const COUNTED: &str = "what a server has is in the sum";
const SAME_ITEM: &str = "the item is there for a day after the lobby's end";

/// Factor by which more seeds are searched for a condition whose loss must be noticed.
const PERSISTENCE: u64 = 5;

impl Found {
    /// Why nothing needs to notice, if so.
    #[must_use]
    pub fn verdict(&self) -> Option<&'static str> {
        verdict(self.condition)
    }

    /// Whether outcome and verdict contradict each other.
    #[must_use]
    pub fn is_unexpected(&self) -> bool {
        let contradicts = self.broken.is_some() == self.verdict().is_some();
        contradicts && noticed_elsewhere(self.condition).is_none() || self.fails_with_it.is_some()
    }

    /// Its row of the table.
    #[must_use]
    pub fn row(&self) -> String {
        let Condition { write, clause } = self.condition;
        if let Some((seed, invariant)) = self.fails_with_it {
            return format!("| {write} | `{clause}` | {invariant} fails with it, too | {seed} |");
        }
        let (found, seed) = match (self.broken, self.verdict()) {
            (Some((seed, invariant)), _) => (invariant.to_owned(), seed.to_string()),
            (None, Some(why)) => (format!("not found: {why}"), String::new()),
            (None, None) => (not_found(self.condition), String::new()),
        };
        format!("| {write} | `{clause}` | {found} | {seed} |")
    }
}

fn verdict(condition: Condition) -> Option<&'static str> {
    let Condition { write, clause } = condition;
    VERDICTS.iter().find(|known| (known.0, known.1) == (write, clause)).map(|known| known.2)
}

fn noticed_elsewhere(condition: Condition) -> Option<Elsewhere> {
    let Condition { write, clause } = condition;
    RARE.iter().find(|known| (known.0, known.1) == (write, clause)).map(|known| known.2)
}

fn not_found(condition: Condition) -> String {
    match noticed_elsewhere(condition) {
        Some(Elsewhere::Model) => "rare: the model notices it".to_owned(),
        Some(Elsewhere::Test(name)) => format!("rare: the test `{name}` notices it"),
        None => "not found".to_owned(),
    }
}

/// Runs `seeds` without `condition`, several times as many when something must notice, until an invariant
/// breaks; and that seed once more with it.
#[must_use]
pub fn search(condition: Condition, seeds: u64, options: &Options) -> Found {
    let with = Options { bias: Some(condition.write), ..*options };
    let without = Options { without: Some(condition), ..with };
    let mut found = Found { condition, broken: None, fails_with_it: None, sent: 0 };
    let is_sure = verdict(condition).is_none() && noticed_elsewhere(condition).is_none();
    let seeds_max = if is_sure { seeds * PERSISTENCE } else { seeds };
    for seed in 0..seeds_max {
        let outcome = run(seed, &without);
        found.sent += u64::from(outcome.seen.contains(&condition));
        let Some(failure) = outcome.failure else { continue };
        match run(seed, &with).failure {
            None => found.broken = Some((seed, failure.invariant)),
            Some(failure) => found.fails_with_it = Some((seed, failure.invariant)),
        }
        break;
    }
    found
}
