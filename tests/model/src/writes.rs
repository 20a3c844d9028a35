//! The store's writes on the model's tables, each with exactly its conditions, by name.

use std::{
    iter::once,
    sync::atomic::{AtomicU64, Ordering},
};

use super::{
    State,
    history::{Broken, broken},
    tables::{
        Access, EndCause, Head, Hiding, LOBBIES, Lease, Lobby, Mate, NEVER, Rules, SEATS, Seats, Server,
        Stage, Tokens, first,
    },
};
use crate::{
    conditions::{self, Condition, Write},
    mutations::left_out,
};

/// A write, single or a transaction, with everything that its writer put into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Sent {
    TakeFree {
        lobby: usize,
        seat: usize,
        until: u8,
        access: Access,
        hiding: Hiding,
        now: u8,
    },
    TakeParty(Claim),
    TakeOver {
        lobby: usize,
        seat: usize,
        mate: Mate,
        until: u8,
        access: Access,
        seen: SeenLapsed,
        now: u8,
    },
    HideFull {
        lobby: usize,
        lapse: u8,
        vacated_at: u8,
    },
    HideSilent {
        lobby: usize,
        now: u8,
    },
    Ready {
        lobby: usize,
        reserved: Seats,
        anew: u8,
        is_full: bool,
        now: u8,
    },
    Close {
        lobby: usize,
        now: u8,
    },
    Reopen {
        lobby: usize,
        is_private: bool,
        now: u8,
    },
    MakePrivate {
        lobby: usize,
        now: u8,
    },
    MakePublic {
        lobby: usize,
        is_closed: bool,
        now: u8,
    },
    Drain {
        lobby: usize,
        now: u8,
    },
    Connect {
        lobby: usize,
        seat: usize,
        token: u8,
        write: u8,
        until: u8,
        seen: SeenSeat,
        now: u8,
    },
    Leave {
        lobby: usize,
        seat: usize,
        mate: Mate,
        how: Left,
        is_hidden: bool,
        seen: SeenSeat,
        now: u8,
    },
    Keep {
        lobby: usize,
        seat: usize,
        token: u8,
        until: u8,
        is_early: bool,
        seen: SeenSeat,
        now: u8,
    },
    ChangeTokens {
        lobby: usize,
        seat: usize,
        next: Tokens,
        seen: SeenSeat,
        now: u8,
    },
    ExtendLease {
        lobby: usize,
        server: usize,
        lease: Lease,
    },
    ShowRevived {
        lobby: usize,
    },
    End {
        seen: SeenIdle,
        lobby: usize,
        server: usize,
        cause: EndCause,
        now: u8,
    },
    Create(Creation),
    Begin {
        seen: Option<Head>,
        first: usize,
        taken: Option<u8>,
        now: u8,
    },
    Draw {
        first: u8,
    },
    Register {
        server: usize,
        item: Server,
        seen: Option<Server>,
    },
    AllotAhead {
        server: usize,
        registration: u8,
        block: u8,
        cap: u8,
    },
    Heartbeat {
        server: usize,
        now: u8,
    },
    ShowServer {
        server: usize,
        registration: u8,
    },
    Deregister {
        server: usize,
        registration: u8,
    },
    HideServer {
        server: usize,
        used: u8,
        now: u8,
    },
    LetGo {
        server: usize,
        allotted: u8,
        how: Gone,
        now: u8,
    },
    TakeBack {
        server: usize,
        allotted: u8,
        block: u8,
    },
    BeginNursery {
        first: u8,
        mark: u8,
        seen: Option<SeenNursery>,
        looked_at: u8,
        now: u8,
    },
    DrawInNursery {
        first: u8,
        mark: u8,
        now: u8,
    },
    NoteStart,
    NoteFailure,
    BlockNursery {
        failures: u8,
        until: u8,
    },
    FailLaunch {
        server: usize,
        now: u8,
    },
    Retire {
        server: usize,
        now: u8,
    },
    StopIdle {
        server: usize,
        since: u8,
        now: u8,
    },
    /// Since when a server is without lobbies; 0 for one that has some.
    NoteIdle {
        server: usize,
        since: u8,
    },
    NoteHandle {
        server: usize,
    },
    NoteEnded {
        server: usize,
    },
    OpenOnLaunched {
        lobby: usize,
        server: usize,
        until: u8,
    },
    LetLaunchedGo {
        server: usize,
        allotted: u8,
        has_failed: bool,
    },
}

/// A nursery as it was seen, by its first server and the number of its draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SeenNursery {
    pub(super) first: u8,
    pub(super) count: u8,
}

/// A party's claim on free seats of a lobby.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Claim {
    pub(super) lobby: usize,
    pub(super) seat: usize,
    pub(super) mate: usize,
    pub(super) until: u8,
    pub(super) access: Access,
    pub(super) hiding: Hiding,
    /// The lobby's capacity for parties.
    pub(super) capacity: u8,
    /// Whether it is what lobbies usually have, instead of what this one showed.
    pub(super) is_assumed: bool,
    /// The last known time of a leave, or now.
    pub(super) vacated_at: u8,
    pub(super) now: u8,
}

/// What a take-over saw of the lobby: seats, a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SeenLapsed {
    /// The lapsed ones that were reserved.
    pub(super) reserved: u8,
    /// The lapsed ones that were connected.
    pub(super) connected: u8,
    /// What the lobby remembers as lapsed with these.
    pub(super) remembered: u8,
    /// Whether the lobby had a map of tokens.
    pub(super) has_map: bool,
}

/// What a write of a seat saw of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct SeenSeat {
    pub(super) is_reserved: bool,
    pub(super) tokens: Tokens,
    /// Whether the lobby had a map of tokens.
    pub(super) has_map: bool,
}

impl SeenSeat {
    pub(super) const fn of(lobby: &Lobby, seat: usize) -> Self {
        let (is_reserved, has_map) = (lobby.reserved[seat] > 0, lobby.has_tokens);
        Self { is_reserved, tokens: lobby.tokens[seat], has_map }
    }
}

/// Why a server is let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Gone {
    /// It is silent.
    Silent,
    /// It deregistered.
    Deregistered,
    /// It deregistered, and its last lobby has just ended: unless it counts in the ledger.
    Emptied,
}

/// How a seat is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Left {
    /// By anybody, whatever its token.
    Anyhow,
    /// By the player who has the token.
    By(u8),
    /// The same on the guess that the lobby keeps no seats.
    ByUnlessKept(u8),
}

/// What an end for idleness saw of the lobby.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct SeenIdle {
    pub(super) reserved: Seats,
    pub(super) connected: Seats,
    pub(super) vacated_at: u8,
}

/// The transaction that creates a lobby.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Creation {
    pub(super) lobby: usize,
    pub(super) seat: usize,
    pub(super) mate: Mate,
    pub(super) until: u8,
    pub(super) version: u8,
    pub(super) is_private: bool,
    pub(super) server: usize,
    /// The server as seen.
    pub(super) seen: Server,
    pub(super) block: Option<u8>,
    pub(super) cap: u8,
    pub(super) may_create: bool,
    /// Whether it requests the server.
    pub(super) requests: bool,
    pub(super) now: u8,
}

/// What came of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Made,
    Refused(Part),
    /// Not a refused condition, but a failure: the database refuses the expression, or the item is none that
    /// can be read.
    Bug(&'static str),
}

/// Whose condition counts among those that refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Lobby,
    Head,
    Ledger,
    Server,
    Nursery,
}

/// Which conditions were evaluated, and which refused a write alone.
#[derive(Debug, Default)]
pub(super) struct Seen {
    evaluated: [AtomicU64; WORDS],
    decisive: [AtomicU64; WORDS],
}

/// The part of the cap that must be left for a registration to allot some.
pub(super) const LEFT_AT_REGISTRATION: u8 = 2;

/// Words of a set of conditions.
const WORDS: usize = 4;

/// A bit for each of [`modelled`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bits([u64; WORDS]);

impl Bits {
    fn one(at: usize) -> Self {
        let mut words = [0; WORDS];
        words[at / 64] = 1 << (at % 64);
        Self(words)
    }

    const fn has(self, at: usize) -> bool {
        self.0[at / 64] & (1 << (at % 64)) != 0
    }

    fn and(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }

    fn without(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] & !other.0[at]))
    }

    fn is_empty(self) -> bool {
        self == Self::default()
    }

    fn is_one(self) -> bool {
        self.0.iter().map(|word| word.count_ones()).sum::<u32>() == 1
    }
}

/// Those of [`conditions::all`] that the model evaluates.
fn modelled() -> impl Iterator<Item = Condition> {
    conditions::all().into_iter().filter(|condition| left_out(*condition).is_none())
}

pub(super) fn bit(condition: Condition) -> Bits {
    let at = modelled().position(|known| known == condition);
    Bits::one(at.unwrap_or_else(|| {
        panic!("the store has no such condition, or the model leaves it out: {condition}")
    }))
}

pub(super) fn conditions_of(bits: Bits) -> impl Iterator<Item = Condition> {
    modelled().enumerate().filter(move |(at, _)| bits.has(*at)).map(|(_, known)| known)
}

impl Seen {
    fn note(&self, evaluated: Bits, failed: Bits) {
        add(&self.evaluated, evaluated);
        if failed.is_one() {
            add(&self.decisive, failed);
        }
    }

    pub(super) fn evaluated(&self) -> Bits {
        read(&self.evaluated)
    }

    pub(super) fn decisive(&self) -> Bits {
        read(&self.decisive)
    }
}

fn add(set: &[AtomicU64; WORDS], bits: Bits) {
    for (word, bits) in set.iter().zip(bits.0) {
        if word.load(Ordering::Relaxed) & bits != bits {
            word.fetch_or(bits, Ordering::Relaxed);
        }
    }
}

fn read(set: &[AtomicU64; WORDS]) -> Bits {
    Bits(set.each_ref().map(|word| word.load(Ordering::Relaxed)))
}

/// A condition expression being evaluated.
#[derive(Default)]
struct Check {
    evaluated: Bits,
    failed: Bits,
}

impl Check {
    fn clause(&mut self, bit: Bits, holds: bool) {
        self.evaluated = self.evaluated.and(bit);
        if !holds {
            self.failed = self.failed.and(bit);
        }
    }
}

/// Evaluates one clause, known by its write and its text in the store.
macro_rules! clause {
    ($check:ident, $write:ident, $clause:expr, $holds:expr) => {{
        static BIT: std::sync::LazyLock<Bits> =
            std::sync::LazyLock::new(|| bit(Condition { write: Write::$write, clause: $clause }));
        $check.clause(*BIT, $holds);
    }};
}

macro_rules! enterable {
    ($check:ident, $write:ident, $lobby:ident, $seat:ident, $access:ident, $now:ident, $limit:expr) => {
        clause!($check, $write, "#stage <> :ended", $lobby.stage != Stage::Ended);
        clause!(
            $check,
            $write,
            "(#stage = :ready OR #created_at > :start_limit)",
            $lobby.stage == Stage::Ready || $lobby.is_there() && $lobby.created_at > $limit
        );
        clause!($check, $write, "#lease_until > :now", $lobby.is_there() && $lobby.lease_until > $now);
        clause!($check, $write, "attribute_not_exists(#reserved.#seat)", $lobby.reserved[$seat] == 0);
        clause!($check, $write, "attribute_not_exists(#connected.#seat)", $lobby.connected[$seat] == 0);
        if let Access::Find(version) = $access {
            clause!($check, $write, "#pool = :pool", $lobby.is_there() && $lobby.version == version);
            clause!($check, $write, "attribute_exists(#joinable_from)", $lobby.joinable_from > 0);
        }
    };
}

/// That the tokens of a seat are as they were seen.
macro_rules! as_seen {
    ($check:ident, $write:ident, $lobby:ident, $seat:ident, $seen:ident) => {
        let is_as_seen = $lobby.tokens[$seat] == $seen.tokens;
        if $seen.tokens.are_there() {
            clause!($check, $write, "#generations.#seat = :seen", is_as_seen);
        } else {
            clause!($check, $write, "attribute_not_exists(#generations.#seat)", is_as_seen);
        }
    };
}

macro_rules! alive {
    ($check:ident, $write:ident, $lobby:ident, $limit:expr) => {
        clause!($check, $write, "#stage <> :ended", $lobby.stage != Stage::Ended);
        clause!(
            $check,
            $write,
            "(#stage = :ready OR #created_at > :start_limit)",
            $lobby.stage == Stage::Ready || $lobby.is_there() && $lobby.created_at > $limit
        );
    };
}

/// What every write is evaluated with.
#[derive(Clone, Copy)]
pub(super) struct Store<'a> {
    pub(super) rules: &'a Rules,
    /// The condition that every write goes without.
    pub(super) without: Bits,
    pub(super) seen: &'a Seen,
}

impl Store<'_> {
    /// Makes `sent`, or says what refused it; what breaks thereby is noted.
    #[expect(clippy::too_many_lines, reason = "an arm for each write")]
    pub(super) fn apply(&self, state: &mut State, sent: &Sent) -> Outcome {
        if let Sent::Create(creation) = sent {
            return self.create(state, creation);
        }
        let limit = |now: u8| now - self.rules.starting_max;
        let mut check = Check::default();
        match *sent {
            Sent::TakeFree { lobby: at, seat, until, access, hiding, now } => {
                let lobby = state.lobbies[at];
                enterable!(check, TakeFreeSeat, lobby, seat, access, now, limit(now));
                if access == Access::Direct {
                    let has_room = lobby.is_there() && lobby.taken < self.rules.max_direct;
                    clause!(check, TakeFreeSeat, "#taken < #max_players_direct", has_room);
                } else {
                    let has_room = lobby.is_there() && lobby.taken < self.rules.max_players;
                    clause!(check, TakeFreeSeat, "#taken < #max_players", has_room);
                }
                if let Hiding::IfLast { taken, .. } = hiding {
                    clause!(check, TakeFreeSeat, "#taken = :last", lobby.is_there() && lobby.taken == taken);
                }
                self.on_lobby(state, at, &check, |state, lobby| {
                    lobby.taken += 1;
                    lobby.reserved[seat] = until;
                    if let Hiding::IfLast { lapse, .. } | Hiding::Promised(lapse) = hiding {
                        lobby.joinable_from = lapse;
                    }
                    state.history.granted(self.rules, lobby, at, (seat, None), until, access, now)
                })
            }
            Sent::TakeParty(claim) => {
                let Claim { lobby: at, seat, mate, until, access, hiding, capacity, now, .. } = claim;
                let lobby = state.lobbies[at];
                enterable!(check, TakeParty, lobby, seat, access, now, limit(now));
                clause!(
                    check,
                    TakeParty,
                    "attribute_not_exists(#reserved.#member)",
                    lobby.reserved[mate] == 0
                );
                clause!(
                    check,
                    TakeParty,
                    "attribute_not_exists(#connected.#member)",
                    lobby.connected[mate] == 0
                );
                clause!(check, TakeParty, "#taken <= :room", lobby.is_there() && lobby.taken + 2 <= capacity);
                if claim.is_assumed {
                    let is_so = lobby.max_party > 0 && lobby.max_party == capacity;
                    clause!(check, TakeParty, "#max_players_party = :capacity", is_so);
                }
                if let Hiding::IfLast { taken, .. } = hiding {
                    clause!(check, TakeParty, "#taken = :last", lobby.is_there() && lobby.taken == taken);
                }
                let is_unvacated = lobby.vacated_at <= claim.vacated_at;
                clause!(check, TakeParty, conditions::UNVACATED, is_unvacated);
                self.on_lobby(state, at, &check, |state, lobby| {
                    lobby.taken += 2;
                    (lobby.reserved[seat], lobby.reserved[mate]) = (until, until);
                    if let Hiding::IfLast { lapse, .. } | Hiding::Promised(lapse) = hiding {
                        lobby.joinable_from = lapse;
                    }
                    state.history.granted(self.rules, lobby, at, (seat, Some(mate)), until, access, now)
                })
            }
            Sent::TakeOver { lobby: at, seat, mate, until, access, seen, now } => {
                let lobby = state.lobbies[at];
                let SeenLapsed { reserved, connected, remembered, has_map } = seen;
                enterable!(check, TakeOverSeat, lobby, seat, access, now, limit(now));
                let count = (reserved | connected).count_ones() as u8;
                let others = u8::from(mate.is_some());
                let capacity = lobby.capacity(self.rules, access, 1 + others);
                let has_room = lobby.is_there() && lobby.taken + others < capacity + count;
                clause!(check, TakeOverSeat, "#taken < :limit", has_room);
                let is_over = |until: u8| until > 0 && until <= now;
                if reserved > 0 {
                    let all = first(reserved).all(|seat| is_over(lobby.reserved[seat]));
                    clause!(check, TakeOverSeat, "#reserved.#lapsed <= :now", all);
                }
                if connected > 0 {
                    let all = first(connected).all(|seat| is_over(lobby.connected[seat]));
                    clause!(check, TakeOverSeat, "#connected.#lapsed <= :now", all);
                }
                if !has_map {
                    let has_none = !lobby.has_tokens;
                    clause!(check, TakeOverSeat, "attribute_not_exists(#generations)", has_none);
                }
                self.on_lobby(state, at, &check, |state, lobby| {
                    lobby.taken = lobby.taken.wrapping_sub(count).wrapping_add(1 + others);
                    first(reserved).for_each(|seat| lobby.reserved[seat] = 0);
                    first(connected).for_each(|seat| lobby.connected[seat] = 0);
                    first(reserved | connected).for_each(|seat| lobby.tokens[seat] = Tokens::none());
                    once(seat).chain(mate).for_each(|seat| lobby.reserved[seat] = until);
                    lobby.lapsed = remembered;
                    state.history.taken_over(at, reserved | connected, now)?;
                    state.history.granted(self.rules, lobby, at, (seat, mate), until, access, now)
                })
            }
            Sent::HideFull { lobby: at, lapse, vacated_at } => {
                let lobby = state.lobbies[at];
                clause!(check, HideFull, "#taken >= #max_players", lobby.taken >= self.rules.max_players);
                let is_earlier = lobby.joinable_from > 0 && lobby.joinable_from < lapse;
                clause!(check, HideFull, "#joinable_from < :lapse", is_earlier);
                if vacated_at == 0 {
                    let is_unvacated = lobby.vacated_at == 0;
                    clause!(check, HideFull, "attribute_not_exists(#vacated_at)", is_unvacated);
                } else {
                    let is_as_seen = lobby.vacated_at == vacated_at;
                    clause!(check, HideFull, "#vacated_at = :vacated_at", is_as_seen);
                }
                self.on_lobby(state, at, &check, |_, lobby| {
                    lobby.joinable_from = lapse;
                    Ok(())
                })
            }
            Sent::HideSilent { lobby: at, now } => {
                let lobby = state.lobbies[at];
                clause!(
                    check,
                    HideSilent,
                    "#lease_until <= :now",
                    lobby.is_there() && lobby.lease_until <= now
                );
                clause!(check, HideSilent, "attribute_exists(#joinable_from)", lobby.joinable_from > 0);
                self.on_lobby(state, at, &check, |state, lobby| {
                    lobby.joinable_from = NEVER;
                    state.history.hidden_as_silent(at, now)
                })
            }
            Sent::Ready { lobby: at, reserved, anew, is_full, now } => {
                let lobby = state.lobbies[at];
                clause!(check, Ready, "#stage = :starting", lobby.stage == Stage::Starting);
                clause!(
                    check,
                    Ready,
                    "#reserved = :reserved",
                    lobby.is_there() && lobby.reserved == reserved
                );
                clause!(check, Ready, "#created_at > :start_limit", lobby.created_at > limit(now));
                if is_full {
                    clause!(check, Ready, "attribute_exists(#joinable_from)", lobby.joinable_from > 0);
                }
                self.on_lobby(state, at, &check, |state, lobby| {
                    lobby.stage = Stage::Ready;
                    lobby.reserved = reserved.map(|until| if until > 0 { anew } else { 0 });
                    lobby.vacated_at = now;
                    if is_full {
                        lobby.joinable_from = anew;
                    }
                    state.history.became_ready(self.rules, at, anew, now)
                })
            }
            Sent::Close { lobby: at, now } => {
                let lobby = state.lobbies[at];
                alive!(check, Close, lobby, limit(now));
                clause!(check, Close, "#closed = :false", lobby.is_there() && !lobby.closed);
                self.on_lobby(state, at, &check, |state, lobby| {
                    lobby.closed = true;
                    lobby.joinable_from = 0;
                    state.history.closed(at)
                })
            }
            Sent::Reopen { lobby: at, is_private, now } => {
                let lobby = state.lobbies[at];
                alive!(check, Reopen, lobby, limit(now));
                clause!(check, Reopen, "#closed = :true", lobby.closed);
                if is_private {
                    clause!(check, Reopen, "attribute_exists(#is_private)", lobby.is_private);
                } else {
                    clause!(check, Reopen, "attribute_not_exists(#is_private)", !lobby.is_private);
                }
                clause!(check, Reopen, "attribute_not_exists(#is_draining)", !lobby.is_draining);
                self.on_lobby(state, at, &check, |state, lobby| {
                    lobby.closed = false;
                    if !is_private {
                        lobby.joinable_from = lobby.created_at;
                    }
                    state.history.reopened(at)
                })
            }
            Sent::MakePrivate { lobby: at, now } => {
                let lobby = state.lobbies[at];
                alive!(check, MakePrivate, lobby, limit(now));
                clause!(check, MakePrivate, "attribute_not_exists(#is_private)", !lobby.is_private);
                self.on_lobby(state, at, &check, |state, lobby| {
                    lobby.is_private = true;
                    lobby.joinable_from = 0;
                    state.history.hidden(at)
                })
            }
            Sent::MakePublic { lobby: at, is_closed, now } => {
                let lobby = state.lobbies[at];
                alive!(check, MakePublic, lobby, limit(now));
                clause!(check, MakePublic, "attribute_exists(#is_private)", lobby.is_private);
                if is_closed {
                    clause!(check, MakePublic, "#closed = :true", lobby.closed);
                } else {
                    clause!(check, MakePublic, "#closed = :false", lobby.is_there() && !lobby.closed);
                }
                self.on_lobby(state, at, &check, |state, lobby| {
                    lobby.is_private = false;
                    if !is_closed {
                        lobby.joinable_from = lobby.created_at;
                    }
                    state.history.shown(at)
                })
            }
            Sent::Drain { lobby: at, now } => {
                let lobby = state.lobbies[at];
                alive!(check, Drain, lobby, limit(now));
                clause!(check, Drain, "#closed IN (:true, :false)", lobby.is_there());
                clause!(check, Drain, "attribute_not_exists(#is_draining)", !lobby.is_draining);
                self.on_lobby(state, at, &check, |state, lobby| {
                    lobby.closed = true;
                    lobby.is_draining = true;
                    lobby.joinable_from = 0;
                    lobby.idle = 0;
                    state.history.drained(self.rules, at, now)
                })
            }
            Sent::Connect { .. } => self.connect(state, sent),
            Sent::Leave { lobby: at, seat, mate, how, is_hidden, seen, now } => {
                let lobby = state.lobbies[at];
                alive!(check, Leave, lobby, limit(now));
                if seen.is_reserved {
                    clause!(check, Leave, "attribute_exists(#reserved.#seat)", lobby.reserved[seat] > 0);
                } else {
                    clause!(check, Leave, "attribute_exists(#connected.#seat)", lobby.connected[seat] > 0);
                }
                if let Some(mate) = mate {
                    clause!(check, Leave, "attribute_exists(#reserved.#member)", lobby.reserved[mate] > 0);
                }
                if is_hidden {
                    clause!(check, Leave, "attribute_not_exists(#joinable_from)", lobby.joinable_from == 0);
                } else {
                    clause!(check, Leave, "attribute_exists(#joinable_from)", lobby.joinable_from > 0);
                }
                as_seen!(check, Leave, lobby, seat, seen);
                if let Left::ByUnlessKept(_) = how {
                    let keeps_none = !lobby.is_there() || self.rules.keep == 0;
                    clause!(check, Leave, "attribute_not_exists(#keep_secs)", keeps_none);
                }
                self.on_lobby(state, at, &check, |state, lobby| {
                    lobby.taken = lobby.taken.wrapping_sub(1 + u8::from(mate.is_some()));
                    lobby.vacated_at = now;
                    if !is_hidden {
                        lobby.joinable_from = lobby.created_at;
                    }
                    if seen.is_reserved {
                        lobby.reserved[seat] = 0;
                    } else {
                        lobby.connected[seat] = 0;
                    }
                    if seen.tokens.are_there() {
                        lobby.tokens[seat] = Tokens::default();
                    }
                    let by = match how {
                        Left::Anyhow => None,
                        Left::By(token) | Left::ByUnlessKept(token) => Some(token),
                    };
                    if let Some(mate) = mate {
                        lobby.reserved[mate] = 0;
                        state.history.left(self.rules, at, mate, by, now)?;
                    }
                    state.history.left(self.rules, at, seat, by, now)
                })
            }
            Sent::Keep { .. } => self.keep(state, sent),
            Sent::ChangeTokens { lobby: at, seat, next, seen, now } => {
                let lobby = state.lobbies[at];
                clause!(check, ChangeTokens, "#stage = :ready", lobby.stage == Stage::Ready);
                if seen.is_reserved {
                    clause!(check, ChangeTokens, "#reserved.#seat > :now", lobby.reserved[seat] > now);
                } else {
                    clause!(check, ChangeTokens, "#connected.#seat > :now", lobby.connected[seat] > now);
                }
                if seen.has_map {
                    as_seen!(check, ChangeTokens, lobby, seat, seen);
                } else {
                    let has_none = !lobby.has_tokens;
                    clause!(check, ChangeTokens, "attribute_not_exists(#generations)", has_none);
                }
                self.on_lobby(state, at, &check, |state, lobby| {
                    if !seen.has_map {
                        (lobby.has_tokens, lobby.tokens) = (true, [Tokens::default(); SEATS]);
                    }
                    lobby.tokens[seat] = next;
                    state.history.tokens_changed(at, seat, next, now)
                })
            }
            Sent::ExtendLease { lobby: at, server, lease: Lease { until, heartbeat_at } } => {
                let lobby = state.lobbies[at];
                let is_freed_before = lobby.created_at < heartbeat_at && lobby.freed_at < heartbeat_at;
                clause!(check, ExtendLease, "#stage <> :ended", lobby.stage != Stage::Ended);
                clause!(check, ExtendLease, "#server = :server", lobby.server == server as u8 + 1);
                clause!(
                    check,
                    ExtendLease,
                    conditions::GRANTED,
                    lobby.is_there()
                        && (lobby.lease_until < until || (lobby.lease_until == NEVER && is_freed_before))
                );
                self.on_lobby(state, at, &check, |state, lobby| {
                    lobby.lease_until = until;
                    if until == NEVER {
                        lobby.freed_at = heartbeat_at;
                    }
                    state.history.lease_extended(at, server, until)
                })
            }
            Sent::ShowRevived { lobby: at } => {
                let lobby = state.lobbies[at];
                clause!(check, ShowRevived, "#joinable_from = :never", lobby.joinable_from == NEVER);
                self.on_lobby(state, at, &check, |_, lobby| {
                    lobby.joinable_from = lobby.created_at;
                    Ok(())
                })
            }
            Sent::End { lobby: at, server, cause, seen, now } => {
                self.end(state, at, server, cause, &seen, now)
            }
            Sent::Begin { seen, first, taken, now } => {
                self.check_head(&mut check, &state.head, seen, now);
                if self.is_refused(&check) {
                    return Outcome::Refused(Part::Head);
                }
                replace_head(state, first, taken, now);
                Outcome::Made
            }
            Sent::Draw { first } => {
                clause!(check, DrawPosition, "#first = :first", state.head.first == first);
                if self.is_refused(&check) {
                    return Outcome::Refused(Part::Head);
                }
                state.head.positions += 1;
                Outcome::Made
            }
            _ => self.on_servers(state, sent),
        }
    }

    #[expect(clippy::too_many_lines, reason = "an arm for each write")]
    fn on_servers(&self, state: &mut State, sent: &Sent) -> Outcome {
        let mut check = Check::default();
        match *sent {
            Sent::Register { server: at, item, seen } => {
                let server = state.servers[at];
                if let Some(seen) = seen {
                    clause!(check, PutServer, "#used = :used", server.is_there() && server.used == seen.used);
                    clause!(
                        check,
                        PutServer,
                        "#allotted = :allotted",
                        server.is_there() && server.allotted == seen.allotted
                    );
                    clause!(
                        check,
                        PutServer,
                        "#registration = :registration",
                        server.registration == seen.registration
                    );
                    clause!(
                        check,
                        PutServer,
                        "#ranked_at = :ranked_at",
                        server.is_there() && server.ranked_at == seen.ranked_at
                    );
                } else {
                    clause!(check, PutServer, "attribute_not_exists(#server)", !server.is_there());
                }
                self.on_server(state, at, &check, |state, server| {
                    *server = item;
                    state.history.registered(at, &item)
                })
            }
            Sent::AllotAhead { server: at, registration, block, cap } => {
                let server = state.servers[at];
                let is_seen = server.is_there() && server.registration == registration;
                clause!(check, AllotAhead, "#registration = :registration", is_seen);
                let is_registered = server.is_there() && server.capacity > 0;
                clause!(check, AllotAhead, "#capacity > :zero", is_registered);
                clause!(check, AllotAhead, "attribute_not_exists(#expires_at)", !server.expires);
                let room = cap / LEFT_AT_REGISTRATION;
                let ledger = self.allotting(state, room, block);
                self.note(&[&check, &ledger]);
                if self.is_failing(&check) {
                    return Outcome::Refused(Part::Server);
                }
                if self.is_failing(&ledger) {
                    return Outcome::Refused(Part::Ledger);
                }
                if !server.is_there() {
                    return Outcome::Bug("a block for a server that is not there");
                }
                let server = &mut state.servers[at];
                server.allotted += block;
                server.cap_checked = cap;
                state.ledger += block;
                Outcome::Made
            }
            Sent::Heartbeat { server: at, now } => {
                let server = state.servers[at];
                clause!(
                    check,
                    Heartbeat,
                    "attribute_exists(#lease_ms)",
                    server.is_there() && server.lease > 0
                );
                clause!(
                    check,
                    Heartbeat,
                    "(#capacity > :zero OR #used > :zero)",
                    server.is_there() && (server.capacity > 0 || server.used > 0)
                );
                clause!(check, Heartbeat, "#beat_at <= :now", server.is_there() && server.beat_at <= now);
                if !self.is_failing(&check) && server.lease == 0 {
                    return Outcome::Bug("a lease is extended by nothing");
                }
                self.on_server(state, at, &check, |state, server| {
                    server.lease_until = now + server.lease;
                    server.beat_at = now;
                    server.expires = false;
                    state.history.beat(at, server.lease_until)
                })
            }
            Sent::ShowServer { server: at, registration } => {
                let server = state.servers[at];
                let is_same = server.registration == registration;
                clause!(check, ShowServer, "#registration = :registration", is_same);
                clause!(check, ShowServer, "#used < #capacity", server.used < server.capacity);
                clause!(check, ShowServer, "#free_from > :now", server.free_from == NEVER);
                self.on_server(state, at, &check, |_, server| {
                    server.free_from = server.ranked_at;
                    Ok(())
                })
            }
            Sent::Deregister { server: at, registration } => {
                let is_same = state.servers[at].registration == registration;
                clause!(check, Deregister, "#registration = :registration", is_same);
                self.on_server(state, at, &check, |state, server| {
                    server.ranked_at = NEVER;
                    server.free_from = NEVER;
                    server.capacity = 0;
                    state.history.servers[at].is_deregistered = true;
                    Ok(())
                })
            }
            Sent::HideServer { server: at, used, now } => {
                let server = state.servers[at];
                clause!(
                    check,
                    HideServer,
                    "#lease_until <= :now",
                    server.is_there() && server.lease_until <= now
                );
                clause!(check, HideServer, "#used = :used", server.is_there() && server.used == used);
                self.on_server(state, at, &check, |_, server| {
                    server.free_from = NEVER;
                    Ok(())
                })
            }
            Sent::LetGo { server: at, allotted, how, now } => {
                let server = state.servers[at];
                if how == Gone::Silent {
                    clause!(
                        check,
                        HideServer,
                        "#lease_until <= :now",
                        server.is_there() && server.lease_until <= now
                    );
                    clause!(check, HideServer, "#used = :zero", server.is_there() && server.used == 0);
                    clause!(
                        check,
                        HideServer,
                        "#allotted = :allotted",
                        server.is_there() && server.allotted == allotted
                    );
                } else {
                    clause!(check, LetServerGo, "#capacity = :zero", server.is_deregistered());
                    clause!(check, LetServerGo, "#used = :zero", server.is_there() && server.used == 0);
                    clause!(
                        check,
                        LetServerGo,
                        "#allotted = :allotted",
                        server.is_there() && server.allotted == allotted
                    );
                }
                if how == Gone::Emptied {
                    let is_uncounted = server.launch.stage.is_none();
                    clause!(check, LetServerGo, "attribute_not_exists(#launch)", is_uncounted);
                }
                let write = |server: &mut Server| {
                    server.expires = true;
                    server.allotted = 0;
                    if how == Gone::Silent {
                        server.free_from = NEVER;
                    }
                };
                if allotted == 0 {
                    return self.on_server(state, at, &check, |_, server| {
                        write(server);
                        Ok(())
                    });
                }
                self.return_allotment(state, at, &check, (allotted, false), write)
            }
            Sent::TakeBack { server: at, allotted, block } => {
                let server = state.servers[at];
                clause!(
                    check,
                    GiveBackAllotment,
                    "#allotted = :allotted",
                    server.is_there() && server.allotted == allotted
                );
                let rest = allotted.saturating_sub(block);
                clause!(check, GiveBackAllotment, "#used <= :rest", server.is_there() && server.used <= rest);
                self.return_allotment(state, at, &check, (block, false), |server| {
                    server.allotted = server.allotted.wrapping_sub(block);
                })
            }
            _ => self.on_demand(state, sent),
        }
    }

    /// Connects a player to a reserved seat, or to one that an older token connected.
    fn connect(&self, state: &mut State, sent: &Sent) -> Outcome {
        let Sent::Connect { lobby: at, seat, token, write, until, seen, now } = *sent else {
            return Outcome::Bug("no connect");
        };
        let lobby = state.lobbies[at];
        let mut check = Check::default();
        if seen.is_reserved {
            clause!(check, Connect, "#stage = :ready", lobby.stage == Stage::Ready);
            clause!(check, Connect, "#reserved.#seat > :now", lobby.reserved[seat] > now);
            as_seen!(check, Connect, lobby, seat, seen);
        } else {
            clause!(check, Replace, "#stage = :ready", lobby.stage == Stage::Ready);
            clause!(check, Replace, "#connected.#seat > :now", lobby.connected[seat] > now);
            let is_as_seen = lobby.tokens[seat] == seen.tokens;
            clause!(check, Replace, "#generations.#seat = :seen", is_as_seen);
        }
        self.on_lobby(state, at, &check, |state, lobby| {
            if seen.is_reserved {
                lobby.connected[seat] = until;
                lobby.reserved[seat] = 0;
            }
            if seen.tokens.are_there() {
                lobby.tokens[seat] = seen.tokens.joined();
            }
            lobby.connected_by = write;
            state.history.connected(at, seat, token, lobby.connected[seat], now)
        })
    }

    /// Keeps a connected seat for its player.
    fn keep(&self, state: &mut State, sent: &Sent) -> Outcome {
        let Sent::Keep { lobby: at, seat, token, until, is_early, seen, now } = *sent else {
            return Outcome::Bug("no keep");
        };
        let lobby = state.lobbies[at];
        let mut check = Check::default();
        clause!(check, Keep, "#stage = :ready", lobby.stage == Stage::Ready);
        if is_early {
            clause!(check, Keep, "#joinable_from > :lapse", lobby.joinable_from > until);
        } else {
            let is_seen = lobby.joinable_from <= until;
            clause!(
                check,
                Keep,
                "(attribute_not_exists(#joinable_from) OR #joinable_from <= :lapse)",
                is_seen
            );
        }
        clause!(check, Keep, "#connected.#kept > :now", lobby.connected[seat] > now);
        let is_as_seen = lobby.tokens[seat] == seen.tokens;
        if !seen.has_map {
            clause!(check, Keep, "attribute_not_exists(#generations)", !lobby.has_tokens);
        } else if seen.tokens.are_there() {
            clause!(check, Keep, "#generations.#kept = :kept_tokens", is_as_seen);
        } else {
            clause!(check, Keep, "attribute_not_exists(#generations.#kept)", is_as_seen);
        }
        self.on_lobby(state, at, &check, |state, lobby| {
            if !seen.has_map {
                (lobby.has_tokens, lobby.tokens) = (true, [Tokens::default(); SEATS]);
            }
            if !seen.tokens.are_there() {
                lobby.tokens[seat] = Tokens::new(0, 0, false);
            }
            if is_early {
                lobby.joinable_from = until;
            }
            (lobby.reserved[seat], lobby.connected[seat], lobby.vacated_at) = (until, 0, now);
            state.history.kept(at, seat, token, until)
        })
    }

    fn allotting(&self, state: &State, cap: u8, block: u8) -> Check {
        let mut ledger = Check::default();
        clause!(
            ledger,
            Allot,
            "attribute_not_exists(#allotted) OR #allotted <= :room",
            state.ledger <= cap.saturating_sub(block)
        );
        ledger
    }

    fn return_allotment(
        &self,
        state: &mut State,
        at: usize,
        server: &Check,
        (block, is_counted): (u8, bool),
        write: impl FnOnce(&mut Server),
    ) -> Outcome {
        let mut ledger = Check::default();
        if is_counted {
            clause!(ledger, UncountServer, "#allotted >= :block", state.ledger >= block);
            clause!(ledger, UncountServer, "#servers >= :one", state.on_demand.counted >= 1);
        } else {
            clause!(ledger, ReturnAllotment, "#allotted >= :block", state.ledger >= block);
        }
        self.note(&[server, &ledger]);
        if self.is_failing(server) {
            return Outcome::Refused(Part::Server);
        }
        if self.is_failing(&ledger) {
            return Outcome::Bug("the ledger does not know of an allotment");
        }
        write(&mut state.servers[at]);
        state.ledger = state.ledger.wrapping_sub(block);
        state.on_demand.counted = state.on_demand.counted.wrapping_sub(is_counted.into());
        Outcome::Made
    }

    fn end(
        &self,
        state: &mut State,
        at: usize,
        server_at: usize,
        cause: EndCause,
        seen: &SeenIdle,
        now: u8,
    ) -> Outcome {
        let (lobby, server) = (state.lobbies[at], state.servers[server_at]);
        let mut check = Check::default();
        clause!(check, End, "attribute_exists(#server)", lobby.server > 0);
        match cause {
            EndCause::Asked => clause!(check, End, "#stage <> :ended", lobby.stage != Stage::Ended),
            EndCause::ServerDead => {
                clause!(check, End, "#stage <> :ended", lobby.stage != Stage::Ended);
                clause!(check, End, "#lease_until <= :now", lobby.lease_until <= now);
            }
            EndCause::NeverReady => {
                clause!(check, End, "#stage = :starting", lobby.stage == Stage::Starting);
                let is_over = lobby.created_at <= now - self.rules.starting_max;
                clause!(check, End, "#created_at <= :start_limit", is_over);
            }
            EndCause::Unused => {
                clause!(check, End, "#stage = :ready", lobby.stage == Stage::Ready);
                clause!(check, End, "#reserved = :reserved", lobby.reserved == seen.reserved);
            }
            EndCause::Idle => {
                clause!(check, End, "#stage = :ready", lobby.stage == Stage::Ready);
                clause!(check, End, "#reserved = :reserved", lobby.reserved == seen.reserved);
                clause!(check, End, "#connected = :connected", lobby.connected == seen.connected);
                let is_unvacated = lobby.vacated_at == seen.vacated_at;
                if seen.vacated_at == 0 {
                    clause!(check, End, "attribute_not_exists(#vacated_at)", is_unvacated);
                } else {
                    clause!(check, End, "#vacated_at = :vacated_at", is_unvacated);
                }
            }
        }
        let mut place = Check::default();
        clause!(place, GiveBackPlace, "#used > :zero", server.is_there() && server.used > 0);
        if cause == EndCause::ServerDead {
            let is_dead = server.is_there() && server.lease_until <= now;
            clause!(place, GiveBackPlace, "#lease_until <= :now", is_dead);
        }
        self.note(&[&check, &place]);
        if self.is_failing(&check) {
            return Outcome::Refused(Part::Lobby);
        }
        if self.is_failing(&place) {
            return if cause == EndCause::ServerDead {
                Outcome::Refused(Part::Server)
            } else {
                Outcome::Bug("a lobby's game server does not know of it")
            };
        }
        let ended = &mut state.lobbies[at];
        ended.stage = Stage::Ended;
        ended.joinable_from = 0;
        ended.server = 0;
        let server = &mut state.servers[server_at];
        server.used = server.used.wrapping_sub(1);
        server.free_from = server.ranked_at;
        let ended = state.history.ended(at, server_at, cause, lobby.idle, now);
        note(state, ended);
        Outcome::Made
    }

    fn create(&self, state: &mut State, creation: &Creation) -> Outcome {
        let Creation { lobby: at, seat, mate, until, version, is_private, server: server_at, .. } = *creation;
        let Creation { seen, block, cap, now, .. } = *creation;
        let (lobby, server) = (state.lobbies[at], state.servers[server_at]);
        let mut check = Check::default();
        clause!(check, PutLobby, "attribute_not_exists(#lobby_id)", !lobby.is_there());
        let last = seen.capacity.saturating_sub(1);
        let is_last = seen.used >= last;
        let place = if creation.requests {
            let mut place = Check::default();
            clause!(place, RequestServer, "attribute_not_exists(#server)", !server.is_there());
            place
        } else {
            Self::taking_place(&server, creation)
        };
        let ledger = match block {
            Some(block) if creation.requests => self.allotting_and_counting(state, cap, block),
            Some(block) => self.allotting(state, cap, block),
            None => Check::default(),
        };
        self.note(&[&check, &place, &ledger]);
        // A server that was to be requested and is there may have a place, whatever counts.
        let (first, second) = ((&ledger, Part::Ledger), (&place, Part::Server));
        let (first, second) = if creation.requests { (second, first) } else { (first, second) };
        for (check, part) in [(&check, Part::Lobby), first, second] {
            if self.is_failing(check) {
                return Outcome::Refused(part);
            }
        }
        if creation.requests {
            let requested = self.request(state, server_at, &seen, now);
            note(state, requested);
        } else if !server.is_there() {
            return Outcome::Bug("a place on a server that is not there");
        }
        let mut new = Lobby {
            stage: if seen.auto_ready { Stage::Ready } else { Stage::Starting },
            version,
            created_at: now,
            is_private,
            server: server_at as u8 + 1,
            lease_until: seen.lease_until,
            idle: self.rules.idle,
            max_party: self.rules.max_party,
            waits: seen.is_requested(),
            taken: 1 + u8::from(mate.is_some()),
            ..Lobby::default()
        };
        once(seat).chain(mate).for_each(|seat| new.reserved[seat] = until);
        if !is_private {
            let is_full = new.taken >= self.rules.max_players;
            new.joinable_from = if is_full { new.first_lapse(self.rules) } else { now };
        }
        state.lobbies[at] = new;
        let server = &mut state.servers[server_at];
        server.used += 1;
        if let Some(block) = block {
            server.allotted += block;
            server.cap_checked = cap;
            state.ledger += block;
        }
        if is_last {
            server.free_from = NEVER;
        }
        let created = state.history.created(self.rules, creation, &new, state.cap);
        note(state, created);
        Outcome::Made
    }

    /// The condition of a place on `server`, which its creation saw.
    fn taking_place(server: &Server, creation: &Creation) -> Check {
        let Creation { seen, block, cap, now, .. } = *creation;
        let mut place = Check::default();
        let last = seen.capacity.saturating_sub(1);
        if seen.used >= last {
            clause!(place, TakePlace, "#used = :last", server.is_there() && server.used == last);
        } else {
            clause!(place, TakePlace, "#used < :last", server.is_there() && server.used < last);
        }
        if block.is_none_or(|block| block == 0) {
            clause!(place, TakePlace, "#used < #allotted", server.used < server.allotted);
        }
        if block.is_none() {
            clause!(place, TakePlace, "#cap_checked = :cap", server.cap_checked == cap);
        }
        if block.is_some_and(|block| block > 0) {
            clause!(place, TakePlace, "#allotted = :allotted", server.allotted == seen.allotted);
        }
        clause!(
            place,
            TakePlace,
            "#capacity = :capacity",
            server.is_there() && server.capacity == seen.capacity
        );
        clause!(place, TakePlace, "#registration = :registration", server.registration == seen.registration);
        clause!(place, TakePlace, "#lease_until > :now", server.lease_until > now);
        clause!(place, TakePlace, "attribute_not_exists(#expires_at)", !server.expires);
        place
    }

    fn check_head(&self, check: &mut Check, head: &Head, seen: Option<Head>, now: u8) {
        let is_stale = head.first == 0 || head.opened_at <= now - self.rules.window;
        match seen {
            None => {
                clause!(check, BeginBurst, "attribute_not_exists(#first) OR #opened_at <= :stale", is_stale)
            }
            Some(seen) => {
                let is_seen = head.first == seen.first
                    && head.opened_at == seen.opened_at
                    && head.positions <= seen.positions;
                clause!(
                    check,
                    BeginBurst,
                    "attribute_not_exists(#first) OR #opened_at <= :stale OR (#first = :seen AND #opened_at = :seen_at AND #positions <= :drawn)",
                    is_stale || is_seen
                );
            }
        }
    }

    fn note(&self, checks: &[&Check]) {
        let none = (Bits::default(), Bits::default());
        let merged = checks.iter().fold(none, |(evaluated, failed), check| {
            (evaluated.and(check.evaluated), failed.and(check.failed))
        });
        self.seen.note(merged.0, merged.1);
    }

    fn is_failing(&self, check: &Check) -> bool {
        !check.failed.without(self.without).is_empty()
    }

    fn is_refused(&self, check: &Check) -> bool {
        self.note(&[check]);
        self.is_failing(check)
    }

    fn on_lobby(
        &self,
        state: &mut State,
        at: usize,
        check: &Check,
        write: impl FnOnce(&mut State, &mut Lobby) -> Result<(), Broken>,
    ) -> Outcome {
        if self.is_refused(check) {
            return Outcome::Refused(Part::Lobby);
        }
        let mut lobby = state.lobbies[at];
        if !lobby.is_there() {
            return Outcome::Bug("a lobby that is not there was written to");
        }
        let result = write(state, &mut lobby);
        state.lobbies[at] = lobby;
        note(state, result);
        Outcome::Made
    }

    fn on_server(
        &self,
        state: &mut State,
        at: usize,
        check: &Check,
        write: impl FnOnce(&mut State, &mut Server) -> Result<(), Broken>,
    ) -> Outcome {
        if self.is_refused(check) {
            return Outcome::Refused(Part::Server);
        }
        let mut server = state.servers[at];
        let was_there = server.is_there();
        let result = write(state, &mut server);
        if !was_there && !server.is_there() {
            return Outcome::Bug("a server that is not there was written to");
        }
        state.servers[at] = server;
        note(state, result);
        Outcome::Made
    }
}

fn replace_head(state: &mut State, first: usize, taken: Option<u8>, now: u8) {
    let is_announced = taken.is_some();
    state.head = Head { first: first as u8 + 1, opened_at: now, positions: taken.unwrap_or(1), is_announced };
}

pub(super) fn note(state: &mut State, result: Result<(), Broken>) {
    if let Err(found) = result {
        state.broken.get_or_insert(found);
    }
}

mod on_demand;

/// What holds of the tables at every instant.
pub(super) fn check_tables(rules: &Rules, state: &State) -> Result<(), Broken> {
    let mut allotted = 0_u32;
    for (at, server) in state.servers.iter().enumerate() {
        allotted += u32::from(server.allotted);
        let runs = (0..LOBBIES).filter(|lobby| state.history.lobbies[*lobby].runs_on(at)).count();
        broken(server.is_there() && usize::from(server.used) != runs, 2, "a server's places are miscounted")?;
        broken(server.used > server.allotted, 2, "a server runs more than it is allotted")?;
    }
    broken(allotted != u32::from(state.ledger), 2, "what is allotted does not add up to the ledger")?;
    if let Some(starts) = &rules.starts {
        let counted = state.servers.iter().filter(|server| server.is_counted()).count();
        broken(counted != usize::from(state.on_demand.counted), 18, "the ledger counts other servers")?;
        broken(counted > usize::from(starts.servers_max), 15, "more servers than may be started")?;
    }
    for (at, lobby) in state.lobbies.iter().enumerate().filter(|(_, lobby)| lobby.is_there()) {
        let history = &state.history.lobbies[at];
        let is_over = lobby.stage == Stage::Ended;
        broken(history.has_ended != is_over, 10, "an ended lobby lives")?;
        if is_over {
            broken(lobby.joinable_from > 0 || lobby.server > 0, 10, "an ended lobby is in sight")?;
            continue;
        }
        broken(lobby.taken != lobby.entries(), 1, "the seats taken are miscounted")?;
        broken(lobby.entries() > rules.max_direct.max(lobby.max_party), 1, "more seats than there are")?;
        let is_hidden = history.is_closed || history.is_draining || lobby.is_private;
        broken(is_hidden && lobby.joinable_from > 0, 6, "a closed or private lobby is in sight")?;
        for seat in 0..SEATS {
            let is_held = state.history.seats[seat].is_held_in(at);
            broken(is_held && !lobby.holds(seat), 4, "a seat was lost")?;
            let outlives = lobby.tokens[seat].are_there() && !lobby.holds(seat);
            broken(outlives, 4, "the tokens of a seat that is free stay")?;
        }
    }
    Ok(())
}
