//! The tables as they truly are, small: time in ticks, identifiers as positions, an absent attribute as 0.

/// Lobbies that a configuration may have; the second half are second lobbies of bursts where there is an
/// election.
pub(super) const LOBBIES: usize = 6;
/// Seats, each one find's; the last one is the settling's.
pub(super) const SEATS: usize = 5;
/// The seat that tries whether a lobby can be entered once all is settled.
pub(super) const SPARE: usize = SEATS - 1;
/// Game servers.
pub(super) const SERVERS: usize = 3;
/// Draws of a nursery.
pub(super) const DRAWS: usize = 6;
/// The registration of a server that has only been requested.
pub(super) const REQUEST: u8 = 7;
/// When every configuration begins; far enough from 0 that no time before it is negative.
pub(super) const EPOCH: u8 = 20;
/// Later than everything but [`NEVER`].
pub(super) const FAR: u8 = 200;
/// As in the product: no such time.
pub(super) const NEVER: u8 = 255;

/// One time for each seat; 0 for a seat that is not there.
pub(super) type Seats = [u8; SEATS];

/// The seat that is taken together with another one, if any.
pub(super) type Mate = Option<usize>;

/// The generations of a seat's tokens in one number, so that a state stays small; 0 where the lobby has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Tokens(u8);

impl Tokens {
    pub(super) const fn none() -> Self {
        Self(0)
    }

    pub(super) const fn new(newest: u8, connected: u8, is_leaving: bool) -> Self {
        Self(1 + is_leaving as u8 + 2 * (connected + 8 * newest))
    }

    pub(super) const fn are_there(self) -> bool {
        self.0 > 0
    }

    /// Those that are not there are as if the first token had connected.
    pub(super) const fn newest(self) -> u8 {
        self.0.saturating_sub(1) / 16
    }

    pub(super) const fn connected(self) -> u8 {
        self.0.saturating_sub(1) / 2 % 8
    }

    pub(super) const fn is_leaving(self) -> bool {
        self.0.saturating_sub(1) % 2 == 1
    }

    pub(super) const fn are_awaited(self) -> bool {
        self.connected() < self.newest() && !self.is_leaving()
    }

    pub(super) const fn renewed(self) -> Self {
        Self::new(self.newest() + 1, self.connected(), false)
    }

    pub(super) const fn joined(self) -> Self {
        Self::new(self.newest(), self.newest(), self.is_leaving())
    }

    pub(super) const fn left(self) -> Self {
        Self::new(self.newest(), self.connected(), true)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    #[default]
    Missing,
    Starting,
    Ready,
    Ended,
}

/// A lobby's item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Lobby {
    pub(super) stage: Stage,
    /// The pool is the version here.
    pub(super) version: u8,
    pub(super) joinable_from: u8,
    pub(super) created_at: u8,
    pub(super) closed: bool,
    pub(super) is_private: bool,
    pub(super) is_draining: bool,
    /// Its server's position and 1.
    pub(super) server: u8,
    pub(super) lease_until: u8,
    /// When its server last gave up its lease.
    pub(super) freed_at: u8,
    pub(super) idle: u8,
    /// Its capacity for parties, where finds' is lower; 0 where its mode seats none.
    pub(super) max_party: u8,
    /// Whether it waits for its server to be started.
    pub(super) waits: bool,
    pub(super) taken: u8,
    pub(super) reserved: Seats,
    pub(super) connected: Seats,
    /// Whether there is a map of tokens, empty or not.
    pub(super) has_tokens: bool,
    pub(super) tokens: [Tokens; SEATS],
    pub(super) vacated_at: u8,
    /// A bit for each seat.
    pub(super) lapsed: u8,
    pub(super) connected_by: u8,
}

/// A game server's item; nothing is there while its registration is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Server {
    pub(super) registration: u8,
    pub(super) used: u8,
    pub(super) allotted: u8,
    pub(super) cap_checked: u8,
    pub(super) capacity: u8,
    pub(super) lease_until: u8,
    /// 0 without lease.
    pub(super) lease: u8,
    pub(super) beat_at: u8,
    pub(super) free_from: u8,
    pub(super) ranked_at: u8,
    pub(super) auto_ready: bool,
    pub(super) expires: bool,
    pub(super) launch: Launch,
}

/// What a server has that Muster had started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Launch {
    /// None of a server that Muster had not started.
    pub(super) stage: Option<LaunchStage>,
    pub(super) deadline: u8,
    pub(super) idle_since: u8,
    pub(super) has_handle: bool,
    pub(super) has_ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum LaunchStage {
    Requested,
    Running,
    Stopping,
    Failed,
    Gone,
}

/// What there is for servers on demand beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct OnDemand {
    /// Servers that count in the ledger.
    pub(super) counted: u8,
    pub(super) nursery: Nursery,
    /// The servers of nurseries that have a place in the tables, as somebody first came to it.
    pub(super) nests: [NestAt; SERVERS],
    pub(super) processes: [Process; SERVERS],
}

/// The nursery of the one placement pool there is; nothing is there while `first` is 0 and no start failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Nursery {
    /// What its first server is known by.
    pub(super) first: u8,
    pub(super) drawn_at: u8,
    /// The draws, each a lobby's; 0 is none.
    pub(super) drawn: [u8; DRAWS],
    pub(super) failures: u8,
    pub(super) blocked_until: u8,
}

/// A server of a nursery: that one's first, 0 for none, and the number counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct NestAt {
    pub(super) first: u8,
    pub(super) nth: u8,
}

/// The process of a start: the starter starts it once, however often it is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Process {
    #[default]
    None,
    Runs,
    Ended,
}

/// A lease as a server set it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Lease {
    pub(super) until: u8,
    pub(super) heartbeat_at: u8,
}

/// The head of the one criteria there is; nothing is there while `first` is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Head {
    /// The first lobby's position and 1.
    pub(super) first: u8,
    pub(super) opened_at: u8,
    pub(super) positions: u8,
    pub(super) is_announced: bool,
}

/// How a player enters a lobby.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Access {
    Find(u8),
    Direct,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Hiding {
    No,
    IfLast { taken: u8, lapse: u8 },
    Promised(u8),
}

/// Whether a lobby has a seat for an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Availability {
    Free(u8),
    /// The lapsed seats, a bit each.
    TakeOver(u8),
    LeaseLapsed,
    Overdue,
    Full,
    /// For a party: fewer seats are free than it has players.
    TooFull,
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum EndCause {
    Asked,
    ServerDead,
    NeverReady,
    Idle,
    Unused,
}

/// How long things last, in ticks, and how many fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) max_players: u8,
    pub(super) max_direct: u8,
    /// New lobbies' capacity for parties, which finds assume of others.
    pub(super) max_party: u8,
    /// Seats that one request takes together: its own and its mate's.
    pub(super) parties: &'static [(usize, usize)],
    pub(super) reservation: u8,
    pub(super) starting_max: u8,
    pub(super) connected_max: u8,
    pub(super) idle: u8,
    /// For how long a seat is kept for a player who disconnected.
    pub(super) keep: u8,
    /// The namespace's cap at first.
    pub(super) cap: u8,
    /// Ticks that pass.
    pub(super) ticks: u8,
    /// Rounds of a find.
    pub(super) rounds: u8,
    /// Writes whose first attempt arrives late.
    pub(super) late: u8,
    /// How many allotted at once, at most.
    pub(super) block: u8,
    /// Whether creations are elected, and by how much the index lags at most then; without, it shows
    /// anything.
    pub(super) election: Option<u8>,
    /// Whether a deregistration without a response is retried, once all is settled.
    pub(super) deregisters_again: bool,
    /// Whether a server without lease sends heartbeats all the same, once all is settled.
    pub(super) sends_heartbeats_without_lease: bool,
    /// How long a burst is going on.
    pub(super) window: u8,
    /// Ticks that may pass between a find's look and its election, and between that and the lobby, where
    /// there is one.
    pub(super) patience: u8,
    /// Whether a needless burst fails that was counted only if the index showed what it missed.
    pub(super) counts_exactly: bool,
    /// How long a burst is young.
    pub(super) young: u8,
    /// What the version says of servers on demand, if it has them.
    pub(super) starts: Option<Starts>,
}

/// Servers on demand: how many, and how long things last, in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Starts {
    /// Lobbies of one server.
    pub(super) capacity: u8,
    /// Servers that may be requested or run at one time.
    pub(super) servers_max: u8,
    /// How long one may take to register.
    pub(super) start: u8,
    /// How much longer its places count.
    pub(super) grace: u8,
    /// How long one stays without lobbies.
    pub(super) idle: u8,
    /// By how much the index of servers lags at most.
    pub(super) lag: u8,
    /// Failures in a row that block the nursery, and for how long.
    pub(super) failures: u8,
    pub(super) blocked: u8,
}

pub(super) fn first(bits: u8) -> impl Iterator<Item = usize> {
    (0..SEATS).filter(move |seat| bits & (1 << seat) != 0)
}

impl Lobby {
    pub(super) fn is_there(&self) -> bool {
        self.stage != Stage::Missing
    }

    /// The entries that it has, counted.
    pub(super) fn entries(&self) -> u8 {
        (self.reserved.iter().chain(&self.connected).filter(|until| **until > 0).count()) as u8
    }

    fn has_lapsed(&self, until: u8, now: u8) -> bool {
        until > 0 && self.stage != Stage::Starting && until <= now
    }

    pub(super) fn lapsed_seats(&self, now: u8) -> u8 {
        (0..SEATS)
            .filter(|seat| {
                self.has_lapsed(self.reserved[*seat], now) || self.has_lapsed(self.connected[*seat], now)
            })
            .fold(0, |bits, seat| bits | (1 << seat))
    }

    pub(super) fn held(&self, now: u8) -> u8 {
        self.entries() - self.lapsed_seats(now).count_ones() as u8
    }

    pub(super) fn holds(&self, seat: usize) -> bool {
        self.reserved[seat] > 0 || self.connected[seat] > 0
    }

    /// Whether the newest token of a seat that it holds has not connected yet, and still may.
    pub(super) fn awaits(&self, seat: usize) -> bool {
        let tokens = self.tokens[seat];
        if tokens.are_there() { tokens.are_awaited() } else { self.reserved[seat] > 0 }
    }

    /// Whether a disconnect with a seat's `token` changes it.
    pub(super) fn is_released_by(&self, seat: usize, token: u8) -> bool {
        let is_first = !self.tokens[seat].are_there();
        token == self.tokens[seat].connected()
            && (self.connected[seat] > 0 || self.reserved[seat] > 0 && is_first)
    }

    /// Whether a disconnect with a seat's `token` comes before its connect.
    pub(super) fn is_spent_by(&self, seat: usize, token: u8) -> bool {
        let tokens = self.tokens[seat];
        self.holds(seat) && tokens.are_awaited() && token == tokens.newest()
    }

    /// Whether its player changes a seat by leaving with its `token`.
    pub(super) fn is_given_up_by(&self, rules: &Rules, seat: usize, token: u8) -> bool {
        let may_be_kept = rules.keep > 0 || self.has_tokens;
        let is_connected = self.connected[seat] > 0 && may_be_kept && !self.tokens[seat].is_leaving();
        token == self.tokens[seat].newest() && (self.reserved[seat] > 0 || is_connected)
    }

    /// Until when a connected seat is kept for a player who disconnects; 0 when it is not.
    pub(super) fn kept_until(&self, rules: &Rules, seat: usize, now: u8) -> u8 {
        let tokens = self.tokens[seat];
        let keep = if tokens.are_awaited() { rules.keep.max(rules.reservation) } else { rules.keep };
        let until = self.connected[seat].min(now + keep);
        if until > now && !tokens.is_leaving() { until } else { 0 }
    }

    /// When a find can take the first of its seats to lapse: a later one where joins filled it beyond what
    /// finds may take.
    pub(super) fn first_lapse(&self, rules: &Rules) -> u8 {
        let seats = self.reserved.iter().chain(&self.connected);
        let mut untils: Vec<u8> = seats.copied().filter(|until| *until > 0).collect();
        if self.stage == Stage::Starting && !untils.is_empty() {
            return self.created_at + rules.starting_max;
        }
        untils.sort_unstable();
        let beyond = usize::from(self.taken.saturating_sub(rules.max_players));
        untils.get(beyond).copied().unwrap_or(NEVER)
    }

    pub(super) fn is_overdue(&self, rules: &Rules, now: u8) -> bool {
        self.stage == Stage::Starting && self.created_at + rules.starting_max <= now
    }

    /// Its capacity for so many `seats` taken together.
    pub(super) fn capacity(&self, rules: &Rules, access: Access, seats: u8) -> u8 {
        rules.capacity(access).max(if seats > 1 { self.max_party } else { 0 })
    }

    pub(super) fn availability(&self, rules: &Rules, access: Access, seats: u8, now: u8) -> Availability {
        if self.stage == Stage::Ended || !self.is_there() {
            return Availability::Refused;
        }
        if self.is_overdue(rules, now) {
            return Availability::Overdue;
        }
        if let Access::Find(version) = access
            && (self.version != version || self.joinable_from == 0 || self.closed)
        {
            return Availability::Refused;
        }
        if self.lease_until <= now {
            return Availability::LeaseLapsed;
        }
        let capacity = self.capacity(rules, access, seats);
        if self.taken + seats <= capacity {
            return Availability::Free(capacity - self.taken);
        }
        let lapsed = self.lapsed_seats(now);
        let held = self.taken.saturating_sub(lapsed.count_ones() as u8);
        match capacity.saturating_sub(held) {
            left if left >= seats => Availability::TakeOver(lapsed),
            0 => Availability::Full,
            _ => Availability::TooFull,
        }
    }

    /// The same where its place is needed. The model doubts every client.
    pub(super) fn cause_to_make_room(&self, rules: &Rules, now: u8) -> Option<EndCause> {
        let is_unused = self.stage == Stage::Ready && self.connected_by == 0;
        self.end_cause(rules, now).or_else(|| is_unused.then_some(EndCause::Unused))
    }

    pub(super) fn end_cause(&self, rules: &Rules, now: u8) -> Option<EndCause> {
        match self.stage {
            Stage::Missing | Stage::Ended => return None,
            _ if self.lease_until <= now => return Some(EndCause::ServerDead),
            Stage::Starting => return self.is_overdue(rules, now).then_some(EndCause::NeverReady),
            Stage::Ready => {}
        }
        let seats = self.reserved.iter().chain(&self.connected);
        let last_held = seats.fold(self.created_at.max(self.vacated_at), |last, until| last.max(*until));
        // Reservations that lapse keep no lobby.
        let idle = if self.connected_by > 0 { self.idle } else { 0 };
        (last_held.saturating_add(idle) <= now).then_some(EndCause::Idle)
    }
}

impl LaunchStage {
    pub(super) const fn is_over(self) -> bool {
        matches!(self, Self::Stopping | Self::Failed | Self::Gone)
    }
}

impl Nursery {
    pub(super) fn count(&self) -> u8 {
        self.drawn.iter().filter(|mark| **mark > 0).count() as u8
    }

    /// The position of a draw.
    pub(super) fn position(&self, mark: u8) -> Option<u8> {
        self.drawn.iter().position(|drawn| *drawn == mark).map(|position| position as u8)
    }

    /// Adds a draw, unless there are as many as the model holds.
    pub(super) fn draw(&mut self, mark: u8) -> bool {
        let free = self.drawn.iter_mut().find(|drawn| **drawn == 0);
        free.map(|free| *free = mark).is_some()
    }
}

impl Server {
    /// As its request puts it, without a lobby so far.
    pub(super) fn requested(starts: &Starts, now: u8) -> Self {
        Self {
            registration: REQUEST,
            used: 0,
            allotted: 0,
            cap_checked: 0,
            capacity: starts.capacity,
            lease_until: now + starts.start + starts.grace,
            lease: 0,
            beat_at: now,
            free_from: now,
            ranked_at: now,
            auto_ready: false,
            expires: false,
            launch: Launch {
                stage: Some(LaunchStage::Requested),
                deadline: now + starts.start,
                ..Launch::default()
            },
        }
    }

    pub(super) fn is_requested(&self) -> bool {
        self.launch.stage == Some(LaunchStage::Requested)
    }

    /// Whether Muster had it started, and it is to end or has ended.
    pub(super) fn is_over(&self) -> bool {
        self.launch.stage.is_some_and(LaunchStage::is_over)
    }

    /// Whether it counts in the ledger.
    pub(super) fn is_counted(&self) -> bool {
        self.is_there() && self.launch.stage.is_some() && !self.expires
    }

    pub(super) fn is_there(&self) -> bool {
        self.registration > 0
    }

    pub(super) fn is_deregistered(&self) -> bool {
        self.is_there() && self.capacity == 0
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_deregistered() && self.used == 0
    }

    pub(super) fn fits(&self, now: u8) -> bool {
        self.is_there() && self.used < self.capacity && self.lease_until > now && !self.is_deregistered()
    }

    pub(super) fn left(&self) -> u8 {
        self.allotted.saturating_sub(self.used)
    }

    pub(super) fn next_block(&self, rules: &Rules, cap: u8) -> Option<u8> {
        if self.left() > 0 {
            return (self.cap_checked != cap).then_some(0);
        }
        Some(rules.block.min(cap).min(self.capacity.saturating_sub(self.allotted)).max(1))
    }
}

impl Rules {
    /// The rules of servers on demand, in a world that has them.
    pub(super) fn starts(&self) -> Starts {
        self.starts.unwrap_or_else(|| panic!("a world without servers on demand"))
    }

    pub(super) fn capacity(&self, access: Access) -> u8 {
        match access {
            Access::Find(_) => self.max_players,
            Access::Direct => self.max_direct,
        }
    }
}
