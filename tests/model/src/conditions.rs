//! Every condition that matchmaking's writes carry, by name: what the model checks, what the simulation
//! removes.
//!
//! A [`Write`] is recognised on the wire by its table and a piece of its update expression, a [`Condition`]
//! by the clause of the condition expression, in the store's own placeholders. The model and the simulation
//! are compared with this list, the list with what the store sends: a condition that is missing here fails a
//! test.

use std::fmt;

/// The tables that matchmaking writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Lobbies with their seats.
    Lobbies,
    /// Game servers.
    Servers,
    /// What is allotted or elected.
    Ledger,
    /// What is remembered of clients.
    Clients,
}

macro_rules! writes {
    ($($write:ident: $table:ident $update:literal $name:literal,)*) => {
        /// A write of the store, single or as a part of a transaction.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Write {
            $(#[doc = $name] $write,)*
        }

        impl Write {
            /// Every write, the more particular ones first.
            pub const ALL: &[Self] = &[$(Self::$write,)*];

            /// What it does.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$write => $name,)* }
            }

            /// The table that it writes to.
            #[must_use]
            pub const fn table(self) -> Table {
                self.shape().0
            }

            const fn shape(self) -> (Table, &'static str) {
                match self { $(Self::$write => (Table::$table, $update),)* }
            }
        }
    };
}

/// Stands for the update expression of a put.
pub const PUT: &str = "PUT";

writes! {
    OpenOnLaunched: Lobbies "SET #ports = :ports" "open a lobby on its started server",
    TakeFreeSeat: Lobbies "#taken = #taken + :one" "take a free seat",
    TakeParty: Lobbies "#taken = #taken + :count" "take free seats of a party",
    TakeOverSeat: Lobbies "#taken = #taken - :freed" "take over a lapsed seat",
    Leave: Lobbies "#taken = #taken - :" "leave",
    Connect: Lobbies "#connected.#seat = :until" "connect",
    Replace: Lobbies "#connected_by = :write" "replace a connection",
    Keep: Lobbies "#reserved.#kept" "keep a seat",
    ChangeTokens: Lobbies "SET #generations" "change a seat's tokens",
    Ready: Lobbies "#stage = :ready" "become ready",
    End: Lobbies "#stage = :ended" "end",
    Drain: Lobbies "#is_draining = :true" "drain",
    Close: Lobbies "#closed = :true" "close",
    Reopen: Lobbies "#closed = :false" "reopen",
    MakePrivate: Lobbies "#is_private = :true" "make private",
    MakePublic: Lobbies "REMOVE #is_private" "make public",
    ExtendLease: Lobbies "#lease_until = :until" "extend a lobby's lease",
    HideFull: Lobbies "SET #joinable_from = :lapse" "hide a full lobby",
    HideSilent: Lobbies "SET #joinable_from = :never" "hide a silent server's lobby",
    ShowRevived: Lobbies "SET #joinable_from = #created_at" "show a revived lobby",
    ShowRoom: Lobbies "SET #room = :room" "show a lobby's room for parties",
    HideRoom: Lobbies "REMOVE #room" "hide a lobby without room from parties",
    NoteState: Lobbies "#has_state = :true" "note that a lobby has a state",
    PutLobby: Lobbies "PUT" "create a lobby",
    RequestServer: Servers "PUT" "request a server",
    FailLaunch: Servers "#stage = :failed" "fail a requested server",
    RetireLaunched: Servers "#stage = :gone" "retire a silent started server",
    StopIdle: Servers "#stage = :stopping" "stop an idle server",
    LetLaunchedGo: Servers "#stage = :over" "let a started server go",
    NoteHandle: Servers "SET #handle = :handle" "note a started server's handle",
    NoteEnded: Servers "SET #ended_at = :now" "note the end of a process",
    NoteIdle: Servers "SET #idle_since = :since" "note that a server is idle",
    TakePlace: Servers "#used = #used + :one" "take a server's place",
    GiveBackPlace: Servers "#used = #used - :one" "give a server's place back",
    AllotAhead: Servers "#allotted = #allotted + :block" "allot a server its first block",
    GiveBackAllotment: Servers "#allotted = #allotted - :block" "take a server's allotment back",
    PutServer: Servers "#registration = :new_registration" "register a server",
    NoteBusy: Servers "REMOVE #idle_since" "note that a server has lobbies",
    Deregister: Servers "#ranked_at = :later" "deregister a server",
    Heartbeat: Servers "#lease_until = :now + #lease_ms" "extend a server's lease",
    TransferServer: Servers "SET #owner = :token" "have a server without lease belong to another token",
    OpenServer: Servers "REMOVE #is_clearing" "open a server",
    ShowServer: Servers "SET #free_from = #ranked_at" "show a revived server",
    HideServer: Servers "SET #free_from = :later" "hide a silent server",
    HideFullServer: Servers "SET #free_from = :again" "hide a full server",
    LetServerGo: Servers "SET #expires_at = :expiry" "let a deregistered server go",
    CountServer: Ledger "#servers, :zero) + :one" "count a requested server",
    UncountServer: Ledger "#servers = #servers - :one" "count a server no more",
    NotePlacement: Ledger "SET #servers = if_not_exists" "note a placement",
    ForgetPlacement: Ledger "REMOVE #servers, #noted_at" "forget a placement",
    BeginNursery: Ledger "#drawn = :drawn" "begin a nursery",
    DrawInNursery: Ledger "list_append(#drawn" "draw in a nursery",
    NoteStart: Ledger "SET #start_ms = :mean" "note how long a start took",
    NoteFailedStart: Ledger "#failures, :zero) + :one" "note a failed start",
    BlockNursery: Ledger "SET #blocked_until = :until" "block a nursery",
    Allot: Ledger "#allotted, :zero) + :block" "allot a block of the cap",
    ReturnAllotment: Ledger "#allotted = #allotted - :block" "return a block of the cap",
    BeginBurst: Ledger "#first = :new" "begin a burst",
    DrawPosition: Ledger "#positions = #positions + :drawn" "draw a position of a burst",
    RenewBurst: Ledger "#opened_at = :renewed_at" "renew a burst",
    ClaimSearch: Ledger "#claimed_at = :now" "claim a search for room",
    NoteVainSearch: Ledger "#found_at = :at" "note a search in vain",
    HoldSeat: Clients "#held = if_not_exists(#held, :zero) +" "hold a seat of a client",
    PointHold: Clients "#seat = :hold" "point a client's hold to its lobby",
    ReleaseHold: Clients "#held = #held - :" "release a client's hold",
    KeepOut: Clients "#removed_from = :readmitted_at" "keep a removed player's client out",
    Readmit: Clients "REMOVE #readmitted" "readmit a removed player's client",
    AimRun: Clients "#body = :body" "note what a repeatable request is about to do",
    KeepAnswer: Clients "#answer = :answer" "keep the answer to a repeatable request",
    ReleaseRun: Clients "SET #lease_until = :now" "leave a repeatable request to its repetition",
    ForgetRun: Clients "#expires_at = :now" "forget a repeatable request",
    WaitForRun: Clients "= :waits_until" "wait for a repeatable request",
}

impl Write {
    /// Whether only servers on demand need it.
    #[must_use]
    pub const fn is_on_demand(self) -> bool {
        matches!(
            self,
            Self::OpenOnLaunched
                | Self::RequestServer
                | Self::FailLaunch
                | Self::RetireLaunched
                | Self::StopIdle
                | Self::LetLaunchedGo
                | Self::NoteHandle
                | Self::NoteEnded
                | Self::NoteIdle
                | Self::NoteBusy
                | Self::CountServer
                | Self::UncountServer
                | Self::NotePlacement
                | Self::ForgetPlacement
                | Self::BeginNursery
                | Self::DrawInNursery
                | Self::NoteStart
                | Self::NoteFailedStart
                | Self::BlockNursery
                | Self::ReleaseRun
        )
    }

    /// The write that sends `update` (or [`PUT`]) to `table`.
    #[must_use]
    pub fn of(table: Table, update: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|write| {
            let (its_table, piece) = write.shape();
            its_table == table && if piece == PUT { update == PUT } else { update.contains(piece) }
        })
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One clause of a write's condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Condition {
    /// The write.
    pub write: Write,
    /// The clause, as [`clauses`] returns it.
    pub clause: &'static str,
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.write, self.clause)
    }
}

/// The clauses that a condition expression joins by AND, outermost, without the numbers of numbered
/// placeholders.
#[must_use]
pub fn clauses(expression: &str) -> Vec<String> {
    let mut clauses = vec![String::new()];
    let mut depth = 0_i32;
    for word in expression.split_whitespace() {
        if depth == 0 && word == "AND" {
            clauses.push(String::new());
            continue;
        }
        let opened = i32::try_from(word.matches('(').count()).unwrap_or(0);
        let closed = i32::try_from(word.matches(')').count()).unwrap_or(0);
        depth += opened - closed;
        if let Some(clause) = clauses.last_mut() {
            if !clause.is_empty() {
                clause.push(' ');
            }
            clause.push_str(word);
        }
    }
    clauses.retain(|clause| !clause.is_empty());
    clauses.iter().map(|clause| normalized(clause)).collect()
}

/// `clause` without the numbers of numbered placeholders.
pub(super) fn normalized(clause: &str) -> String {
    NUMBERED.iter().fold(clause.to_owned(), |clause, placeholder| {
        let mut text = String::new();
        let mut rest = clause.as_str();
        while let Some(at) = rest.find(placeholder) {
            let (before, numbered) = rest.split_at(at + placeholder.len());
            text.push_str(before);
            rest = numbered.trim_start_matches(|c: char| c.is_ascii_digit());
        }
        text.push_str(rest);
        text
    })
}

/// Placeholders that may occur several times in a condition, each with a number.
const NUMBERED: [&str; 4] = ["lapsed", "kept", "#member", ":tag"];

const ENTERABLE: [&str; 5] = [
    "#stage <> :ended",
    "(#stage = :ready OR #created_at > :start_limit)",
    "#lease_until > :now",
    "attribute_not_exists(#reserved.#seat)",
    "attribute_not_exists(#connected.#seat)",
];
const FINDABLE: [&str; 3] = ["#pool = :pool", "attribute_exists(#joinable_from)", TAGGED];
/// That a lobby has a queried tag.
pub const TAGGED: &str = "contains(#tag_digests, :tag)";
/// That no later write closed or reopened the lobby, or made it private or public.
const TOGGLED: &str = "(attribute_not_exists(#toggled_at) OR #toggled_at < :toggled)";
/// That a lease is later than the lobby's, or of a later heartbeat than the one that gave the lease up.
pub const GRANTED: &str = "(#lease_until < :until OR (#lease_until = :never AND #created_at < :heartbeat_at \
                           AND (attribute_not_exists(#freed_at) OR #freed_at < :heartbeat_at)))";
/// No player has left since the write was sent: its own player may have been the one.
pub const UNVACATED: &str = "(attribute_not_exists(#vacated_at) OR #vacated_at <= :vacated_at)";
/// That a lobby is of the start that speaks of it.
pub const OF_START: &str = "(attribute_not_exists(#start) OR #start = :start)";
/// That a server has no place.
pub const NO_PLACE: &str = "(#used >= #capacity OR attribute_exists(#is_clearing))";
/// That Muster had a server started.
const LAUNCHED: &str = "attribute_exists(#launch)";
/// That nobody searches.
pub const CLAIM: &str = "attribute_not_exists(#claimed_at) OR #claimed_at <= :stale";
/// That no later search was in vain.
pub const LATEST: &str = "attribute_not_exists(#found_at) OR #found_at < :at";
/// That a seat's tokens are as they were seen.
const TOKENS: [&str; 2] = ["attribute_not_exists(#generations.#seat)", "#generations.#seat = :seen"];
const ALIVE: [&str; 2] = ["#stage <> :ended", "(#stage = :ready OR #created_at > :start_limit)"];

/// Every condition of every write of matchmaking.
#[must_use]
#[expect(clippy::too_many_lines, reason = "a table")]
pub fn all() -> Vec<Condition> {
    let lists: &[(Write, &[&[&'static str]])] = &[
        (
            Write::TakeFreeSeat,
            &[
                &ENTERABLE,
                &FINDABLE,
                &["#taken < #max_players", "#taken < #max_players_direct", "#taken = :last", UNVACATED],
            ],
        ),
        (
            Write::TakeParty,
            &[
                &ENTERABLE,
                &FINDABLE,
                &[
                    "attribute_not_exists(#reserved.#member)",
                    "attribute_not_exists(#connected.#member)",
                    "#taken <= :room",
                    "#max_players_party = :capacity",
                    "#taken = :last",
                    UNVACATED,
                ],
            ],
        ),
        (
            Write::TakeOverSeat,
            &[
                &ENTERABLE,
                &FINDABLE,
                &[
                    "#taken < :limit",
                    "#reserved.#lapsed <= :now",
                    "#connected.#lapsed <= :now",
                    "attribute_not_exists(#generations)",
                ],
            ],
        ),
        (
            Write::Leave,
            &[
                &ALIVE,
                &[
                    "attribute_exists(#reserved.#seat)",
                    "attribute_exists(#connected.#seat)",
                    "attribute_exists(#reserved.#member)",
                    "attribute_exists(#joinable_from)",
                    "attribute_not_exists(#joinable_from)",
                    "attribute_not_exists(#keep_secs)",
                ],
                &TOKENS,
            ],
        ),
        (Write::Connect, &[&["#stage = :ready", "#reserved.#seat > :now"], &TOKENS]),
        (Write::Replace, &[&["#stage = :ready", "#connected.#seat > :now", "#generations.#seat = :seen"]]),
        (
            Write::Keep,
            &[&[
                "#stage = :ready",
                "#joinable_from > :lapse",
                "(attribute_not_exists(#joinable_from) OR #joinable_from <= :lapse)",
                "#connected.#kept > :now",
                "attribute_not_exists(#generations)",
                "attribute_not_exists(#generations.#kept)",
                "#generations.#kept = :kept_tokens",
            ]],
        ),
        (
            Write::ChangeTokens,
            &[
                &[
                    "#stage = :ready",
                    "#connected.#seat > :now",
                    "#reserved.#seat > :now",
                    "attribute_not_exists(#generations)",
                ],
                &TOKENS,
            ],
        ),
        (
            Write::Ready,
            &[&[
                "#stage = :starting",
                "#reserved = :reserved",
                "#created_at > :start_limit",
                "attribute_exists(#joinable_from)",
            ]],
        ),
        (
            Write::End,
            &[&[
                "attribute_exists(#server)",
                "#stage <> :ended",
                "#lease_until <= :now",
                "#stage = :starting",
                "#created_at <= :start_limit",
                "#stage = :ready",
                "#reserved = :reserved",
                "#connected = :connected",
                "attribute_not_exists(#vacated_at)",
                "#vacated_at = :vacated_at",
            ]],
        ),
        (
            Write::Drain,
            &[&ALIVE, &["#closed IN (:true, :false)", "attribute_not_exists(#is_draining)", OF_START]],
        ),
        (Write::Close, &[&ALIVE, &["#closed = :false", TOGGLED]]),
        (
            Write::Reopen,
            &[
                &ALIVE,
                &[
                    "#closed = :true",
                    TOGGLED,
                    "attribute_exists(#is_private)",
                    "attribute_not_exists(#is_private)",
                    "attribute_not_exists(#is_draining)",
                ],
            ],
        ),
        (Write::MakePrivate, &[&ALIVE, &["attribute_not_exists(#is_private)", TOGGLED]]),
        (
            Write::MakePublic,
            &[&ALIVE, &["attribute_exists(#is_private)", "#closed = :true", "#closed = :false", TOGGLED]],
        ),
        (Write::ExtendLease, &[&["#stage <> :ended", "#server = :server", OF_START, GRANTED]]),
        (
            Write::HideFull,
            &[&[
                "#taken >= #max_players",
                "#joinable_from < :lapse",
                "#joinable_from > :lapse",
                "attribute_not_exists(#vacated_at)",
                "#vacated_at = :vacated_at",
            ]],
        ),
        (Write::HideSilent, &[&["#lease_until <= :now", "attribute_exists(#joinable_from)"]]),
        (Write::ShowRevived, &[&["#joinable_from = :never"]]),
        (Write::ShowRoom, &[&["#taken = :taken", "attribute_exists(#joinable_from)"]]),
        (Write::HideRoom, &[&["#taken = :taken", "#stage = :stage"]]),
        (Write::NoteState, &[&["attribute_exists(#server)"]]),
        (Write::OpenOnLaunched, &[&["#stage <> :ended", "#server = :server", "attribute_exists(#launch)"]]),
        (Write::PutLobby, &[&["attribute_not_exists(#lobby_id)"]]),
        (Write::RequestServer, &[&["attribute_not_exists(#server)"]]),
        (Write::FailLaunch, &[&["#stage = :requested"]]),
        (Write::RetireLaunched, &[&["#stage = :running", "#lease_until <= :now"]]),
        (Write::StopIdle, &[&["#stage = :running", "#used = :zero", "#idle_since = :since"]]),
        (
            Write::LetLaunchedGo,
            &[&[
                "#capacity = :zero",
                "#used = :zero",
                "#allotted = :allotted",
                "attribute_not_exists(#expires_at)",
            ]],
        ),
        (Write::NoteHandle, &[&[LAUNCHED, "attribute_not_exists(#handle)"]]),
        (Write::NoteEnded, &[&[LAUNCHED, "attribute_not_exists(#ended_at)"]]),
        (Write::NoteIdle, &[&[LAUNCHED]]),
        (Write::NoteBusy, &[&[LAUNCHED]]),
        (
            Write::TakePlace,
            &[&[
                "#used = :last",
                "#used < :last",
                "#used < #allotted",
                "#allotted = :allotted",
                "#cap_checked = :cap",
                "#capacity = :capacity",
                "#registration = :registration",
                "#lease_until > :now",
                "attribute_not_exists(#expires_at)",
            ]],
        ),
        (
            Write::GiveBackPlace,
            &[&["#used > :zero", "#lease_until <= :now", "attribute_exists(#is_clearing)"]],
        ),
        (
            Write::AllotAhead,
            &[&["#registration = :registration", "#capacity > :zero", "attribute_not_exists(#expires_at)"]],
        ),
        (Write::GiveBackAllotment, &[&["#allotted = :allotted", "#used <= :rest"]]),
        (
            Write::PutServer,
            &[&[
                "attribute_not_exists(#server)",
                "#used = :used",
                "#allotted = :allotted",
                "#registration = :registration",
                "#ranked_at = :ranked_at",
                "#owner = :owner",
                "attribute_not_exists(#owner)",
                "#lease_until = :seen_lease",
                "attribute_exists(#is_clearing)",
            ]],
        ),
        (Write::Deregister, &[&["#registration = :registration", "#owner = :owner", "#free_from <= :never"]]),
        (
            Write::Heartbeat,
            &[&[
                "attribute_exists(#lease_ms)",
                "(#capacity > :zero OR #used > :zero)",
                "#beat_at <= :now",
                "#start_id = :start_id",
            ]],
        ),
        (Write::TransferServer, &[&["#start_id = :start_id"]]),
        (
            Write::OpenServer,
            &[&[
                "#registration = :registration",
                "attribute_exists(#is_clearing)",
                "#used = :zero",
                "attribute_not_exists(#expires_at)",
            ]],
        ),
        (
            Write::ShowServer,
            &[&[
                "#used < #capacity",
                "#free_from > :now",
                "#registration = :registration",
                "attribute_not_exists(#expires_at)",
            ]],
        ),
        (
            Write::HideServer,
            &[&["#lease_until <= :now", "#used = :used", "#used = :zero", "#allotted = :allotted"]],
        ),
        (Write::HideFullServer, &[&["#free_from <= :now", NO_PLACE]]),
        (
            Write::LetServerGo,
            &[&[
                "#used = :zero",
                "#allotted = :allotted",
                "#capacity = :zero",
                "attribute_not_exists(#launch)",
            ]],
        ),
        (
            Write::CountServer,
            &[&[
                "(attribute_not_exists(#allotted) OR #allotted <= :room)",
                "(attribute_not_exists(#servers) OR #servers < :servers)",
            ]],
        ),
        (Write::UncountServer, &[&["#allotted >= :block", "#servers >= :one"]]),
        (
            Write::ForgetPlacement,
            &[&["#servers = :zero", "(attribute_not_exists(#noted_at) OR #noted_at <= :listed)"]],
        ),
        (
            Write::BeginNursery,
            &[&[
                "(attribute_not_exists(#first) OR #drawn_at <= :stale)",
                "(attribute_not_exists(#first) OR #drawn_at <= :stale OR (#first = :seen AND size(#drawn) = :count))",
                "(attribute_not_exists(#blocked_until) OR #blocked_until <= :now)",
            ]],
        ),
        (
            Write::DrawInNursery,
            &[&["#first = :first", "NOT contains(#drawn, :mark)", "size(#drawn) < :most"]],
        ),
        (Write::BlockNursery, &[&["#failures = :failures"]]),
        (Write::Allot, &[&["attribute_not_exists(#allotted) OR #allotted <= :room"]]),
        (Write::ReturnAllotment, &[&["#allotted >= :block"]]),
        (
            Write::BeginBurst,
            &[&[
                "attribute_not_exists(#first) OR #opened_at <= :stale",
                "attribute_not_exists(#first) OR #opened_at <= :stale OR (#first = :seen AND #opened_at = :seen_at AND #positions <= :drawn)",
            ]],
        ),
        (Write::DrawPosition, &[&["#first = :first"]]),
        (Write::RenewBurst, &[&["#first = :first"]]),
        (Write::ClaimSearch, &[&[CLAIM]]),
        (Write::NoteVainSearch, &[&[LATEST]]),
        (
            Write::HoldSeat,
            &[&[
                "attribute_not_exists(#seat)",
                "(attribute_not_exists(#held) OR #held < :limit)",
                "(attribute_exists(#proven_at) OR attribute_not_exists(#strikes))",
                "(attribute_exists(#proven_at) OR attribute_not_exists(#held) OR #held < :unproven)",
                "(attribute_exists(#proven_at) OR #held < :unproven)",
                "#lapsed = :lapsed",
            ]],
        ),
        (Write::PointHold, &[&["#seat = :seen", "#member = :seen"]]),
        (Write::ReleaseHold, &[&["attribute_exists(#seat)"], &["#seat = :seen", "#member = :seen"]]),
        (
            Write::AimRun,
            &[&[
                "attribute_not_exists(#run) OR #expires_at <= :now_secs OR (#run = :run AND #lease_until <= :lease AND attribute_not_exists(#answer))",
                "attribute_not_exists(#run) OR #expires_at <= :now_secs OR (#run = :run AND #lease_until <= :lease AND attribute_not_exists(#answer)) OR (#run = :seen AND #lease_until <= :now AND attribute_not_exists(#answer))",
            ]],
        ),
        (Write::KeepAnswer, &[&["#run = :run"]]),
        (Write::ReleaseRun, &[&["#run = :run", "attribute_not_exists(#answer)"]]),
        (Write::ForgetRun, &[&["#run = :run", "attribute_not_exists(#answer)"]]),
        (
            Write::WaitForRun,
            &[&[
                "#run = :seen",
                "(attribute_not_exists(#first_waits_until) OR #first_waits_until <= :now)",
                "(attribute_not_exists(#second_waits_until) OR #second_waits_until <= :now)",
            ]],
        ),
    ];
    let conditions = lists.iter().flat_map(|(write, lists)| {
        lists.iter().flat_map(|clauses| clauses.iter().map(|clause| Condition { write: *write, clause }))
    });
    conditions.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_are_those_joined_outermost() {
        let expression =
            "#a <> :b AND (#c = :d AND #e > :f) AND #reserved.#lapsed12 <= :now AND contains(#x, :tag3)";
        let expected =
            ["#a <> :b", "(#c = :d AND #e > :f)", "#reserved.#lapsed <= :now", "contains(#x, :tag)"];
        assert_eq!(clauses(expression), expected);
        assert_eq!(clauses(""), Vec::<String>::new());
    }

    #[test]
    fn a_write_is_known_by_its_table_and_update() {
        let take = "SET #taken = #taken + :one, #reserved.#seat = :until, #joinable_from = :lapse";
        assert_eq!(Write::of(Table::Lobbies, take), Some(Write::TakeFreeSeat));
        assert_eq!(Write::of(Table::Lobbies, PUT), Some(Write::PutLobby));
        let give_back = "SET #used = #used - :one, #free_from = #ranked_at";
        assert_eq!(Write::of(Table::Servers, give_back), Some(Write::GiveBackPlace));
        assert_eq!(Write::of(Table::Ledger, "SET #count = :count"), None);
    }

    #[test]
    fn no_condition_is_listed_twice() {
        let all = all();
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
