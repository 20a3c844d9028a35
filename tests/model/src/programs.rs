//! What the actors do, step by step: each step is one write, or one read and the choice that follows from it.

use std::iter::once;

use super::{
    State,
    tables::{
        Access, Availability, EPOCH, EndCause, Head, Hiding, LOBBIES, Launch, LaunchStage, Lease, Lobby,
        Mate, NEVER, Rules, SERVERS, Server, Stage, first,
    },
    writes::{
        Claim, Creation, Gone, LEFT_AT_REGISTRATION, Left, Outcome, Part, SeenIdle, SeenLapsed, SeenNursery,
        SeenSeat, Sent, Store, note,
    },
};

mod on_demand;

use on_demand::{Drawing, Hatch};

/// Of a sweep that grants none.
const NO_LEASE: Lease = Lease { until: 0, heartbeat_at: 0 };
/// Writes that one seat is taken with at most.
const TAKES_MAX: u8 = 3;
/// Transactions that one creation tries.
const CREATIONS_MAX: u8 = 3;
/// Times that a creation makes room.
const ROOMS_MAX: u8 = 2;
/// Writes of one transition.
const TRANSITIONS_MAX: u8 = 4;
/// Elections that one find takes part in.
const ELECTIONS_MAX: u8 = 2;
/// Passes over a server's lobbies.
const PASSES_MAX: u8 = 2;

/// What an actor is there for, with the lobby, the seat or the game server. Its find's seat and its own lobby
/// have the number of the actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Find {
        may_create: bool,
    },
    Join(usize),
    Create {
        is_private: bool,
    },
    Ready(usize),
    Close(usize),
    Reopen(usize),
    MakePrivate(usize),
    MakePublic(usize),
    End(usize),
    /// With a token of the seat: the first one is 0, one of a later generation is used once it was issued.
    Connect(usize, u8),
    Leave(usize),
    Disconnect(usize, u8),
    GiveUp(usize, u8),
    Rejoin(usize),
    /// So many times.
    Beat(usize, u8),
    Register {
        server: usize,
        capacity: u8,
        lease: u8,
    },
    Deregister(usize),
    /// Looks after a started server, so many times.
    Look(usize, u8),
    /// The process of a started server ends by itself, and its starter sees it.
    Die(usize),
    SetCap(u8),
    SetVersion(u8),
}

/// An actor's place in its program, and what it knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Actor {
    pub(super) mind: Mind,
    /// Settings as they were when its request began.
    cap: u8,
    version: u8,
    /// Whether its find conflicted with others.
    is_contended: bool,
    /// When its find looked last; a party's, until when its last write allows for leaves.
    looked_at: u8,
    /// How often it has done all that it does.
    times: u8,
    /// How often it has made room for the lobby that it creates.
    rooms: u8,
    /// What its creation knows of servers on demand.
    hatch: Hatch,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Mind {
    #[default]
    Idle,
    /// Looks for a seat, for the last time when there is no room for another lobby.
    Look {
        round: u8,
        tried: u8,
        last: Option<NoRoom>,
    },
    /// Chooses a server.
    Place {
        round: u8,
        tries: u8,
        allotment: Allotment,
        burst: Burst,
    },
    /// Draws a place on a server that is to be requested.
    Draw {
        drawing: Drawing,
        exhausted: Option<SeenNursery>,
    },
    /// Has the starter start a server.
    Order {
        server: usize,
    },
    /// Has the starter end a server's process.
    EndProcess {
        server: usize,
        is_released: bool,
    },
    /// Ends the lobbies of a server that is over, then lets it go.
    Clear {
        server: usize,
        lobby: usize,
    },
    /// Makes room.
    Room {
        round: u8,
        needed: NoRoom,
        burst: Burst,
    },
    /// Waits for its lobby to become ready.
    Wait {
        lobby: usize,
    },
    /// Takes part in an election.
    Elect {
        round: u8,
        tries: u8,
        exhausted: Option<Head>,
    },
    /// Goes to the burst's lobby of the last position drawn.
    Position {
        round: u8,
        tries: u8,
        burst: Head,
    },
    /// Reads the next of a server's lobbies.
    Sweep {
        lobby: usize,
        lease: Lease,
        pass: u8,
    },
    Send {
        sent: Sent,
        then: Then,
    },
    Done(Answer),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Answer {
    Found(usize),
    Refused,
    NoRoom(NoRoom),
    Contention,
    Made,
    Bug,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum NoRoom {
    AtCap,
    NoServer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Allotment {
    InBlocks,
    Singly,
    None,
}

/// How a lobby to be created belongs to a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Burst {
    /// Not at all.
    None,
    /// It is the lobby of its last position.
    Has { burst: Head, tries: u8 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Transition {
    Ready,
    Close,
    Reopen,
    MakePrivate,
    MakePublic,
    Drain,
    Connect { seat: usize, token: u8, write: u8 },
    Leave(usize),
    GiveBack,
    Disconnect { seat: usize, token: u8 },
    GiveUp { seat: usize, token: u8 },
    Rejoin { seat: usize },
}

/// Where a pass over a server's lobbies stands, of which something else is a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Swept {
    lobby: usize,
    lease: Lease,
    pass: u8,
}

/// What a write was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Then {
    Taken { round: u8, tried: u8, last: Option<NoRoom>, tries: u8, burst: Option<Head> },
    Corrected { round: u8, tried: u8, last: Option<NoRoom>, burst: Option<Head> },
    Hidden { lobby: usize },
    Placed { round: u8, tries: u8, allotment: Allotment, burst: Burst },
    ServerHidden { round: u8, tries: u8, allotment: Allotment, burst: Burst },
    RoomMade { round: u8, burst: Burst },
    Begun { round: u8, tries: u8 },
    Drawn { round: u8, tries: u8 },
    Transition { transition: Transition, tries: u8, sweep: Option<Swept> },
    Ended { sweep: Option<Swept>, is_draining: bool, server: usize },
    CleanedUp { sweep: Option<Swept>, server: usize, now: u8 },
    Hinted,
    Beat { server: usize, now: u8 },
    ServerShown { lease: Lease },
    Kept { lobby: usize, lease: Lease },
    LeaseExtended { lobby: usize, lease: Lease, pass: u8 },
    Revived { lobby: usize, lease: Lease, pass: u8 },
    Registered,
    AllottedAhead,
    Deregistered { pass: u8, now: u8 },
    LetGo { pass: u8 },
    NurseryBegun(Drawing),
    NurseryDrawn(Drawing),
    StartNoted { lease: Lease },
    Opened { lobby: usize, lease: Lease, pass: u8 },
    IdleNoted { lease: Lease },
    Stopped { lease: Lease },
    HandleNoted,
    Failed,
    FailureNoted,
    Blocked,
    Retired,
    EndNoted { is_released: bool },
    Cleared { lobby: usize },
    Released,
}

enum TransitionState {
    Due,
    Done,
    Illegal { is_over: bool },
}

impl Mind {
    /// Whether it is about to create one lobby, or makes room for that.
    const fn is_creating(&self) -> bool {
        use Then::{NurseryBegun, NurseryDrawn, Placed, RoomMade, ServerHidden};
        match self {
            Self::Place { .. } | Self::Room { .. } | Self::Draw { .. } => true,
            Self::Send { then, .. } => matches!(
                then,
                Placed { .. } | RoomMade { .. } | ServerHidden { .. } | NurseryBegun(_) | NurseryDrawn(_)
            ),
            _ => false,
        }
    }

    pub(super) const fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}

/// One actor's next steps in a state.
pub(super) struct Program<'a> {
    pub(super) store: Store<'a>,
    pub(super) roles: &'a [Role],
    pub(super) actor: usize,
}

impl Program<'_> {
    const fn rules(&self) -> &Rules {
        self.store.rules
    }

    fn role(&self) -> Role {
        self.roles[self.actor]
    }

    /// The seat that its request takes together with its own.
    fn mate(&self) -> Mate {
        self.party_of(self.actor).map(|(_, mate)| mate).filter(|mate| *mate != self.actor)
    }

    fn party_of(&self, seat: usize) -> Option<(usize, usize)> {
        self.rules().parties.iter().copied().find(|(first, mate)| seat == *first || seat == *mate)
    }

    fn count(&self) -> u8 {
        1 + u8::from(self.mate().is_some())
    }

    /// The steps that it may take next, each by a number.
    pub(super) fn choices(&self, state: &State, choices: &mut Vec<u8>) {
        choices.clear();
        let now = state.now;
        match state.actors[self.actor].mind {
            Mind::Done(_) => {}
            Mind::Idle => {
                if self.can_begin(state) {
                    choices.push(0);
                }
            }
            Mind::Look { tried, .. } => {
                let mut may_see_nothing = true;
                for (at, lobby) in state.lobbies.iter().enumerate() {
                    if !lobby.is_there() || tried & (1 << at) != 0 {
                        continue;
                    }
                    choices.push(at as u8);
                    if self.hiding(lobby, now).is_some() {
                        choices.push((LOBBIES + at) as u8);
                    }
                    may_see_nothing &= !self.must_be_seen(state, at);
                }
                if may_see_nothing {
                    choices.push(2 * LOBBIES as u8);
                }
            }
            Mind::Place { .. } if state.actors[self.actor].hatch.nest.is_some() => choices.push(0),
            Mind::Place { allotment, burst, .. } => {
                let cap = state.actors[self.actor].cap;
                for (at, server) in state.servers.iter().enumerate() {
                    let is_allotted = server.next_block(self.rules(), cap).is_none();
                    if server.fits(now) && (is_allotted || allotment != Allotment::None) {
                        choices.push(at as u8);
                    } else if server.is_there()
                        && server.lease_until <= now
                        && server.free_from < NEVER
                        && burst == Burst::None
                    {
                        choices.push((SERVERS + at) as u8);
                    }
                }
                let sees_none = choices.iter().all(|choice| {
                    let server = usize::from(*choice);
                    server >= SERVERS || self.may_be_unseen(state, server)
                });
                if sees_none {
                    choices.push(2 * SERVERS as u8);
                }
            }
            Mind::Room { needed, .. } => {
                if needed == NoRoom::AtCap {
                    let left = state.servers.iter().enumerate().filter(|(_, server)| server.left() > 0);
                    choices.extend(left.map(|(at, _)| at as u8));
                }
                let may_end = |lobby: &Lobby| lobby.cause_to_make_room(self.rules(), now).is_some();
                let ends = state.lobbies.iter().enumerate().filter(|(_, lobby)| may_end(lobby));
                choices.extend(ends.map(|(at, _)| (SERVERS + at) as u8));
                choices.push((SERVERS + LOBBIES) as u8);
            }
            Mind::Position { burst, .. } => {
                let (at, is_creator) = self.position(&burst);
                // Every position but the first waits for the lobby, and gives up on its creator in the end.
                if is_creator || !state.lobbies[at].is_there() {
                    choices.push(0);
                }
                if state.lobbies[at].is_there() {
                    choices.push(1);
                }
            }
            Mind::Order { .. } => choices.extend([0, 1]),
            Mind::Wait { .. }
            | Mind::Elect { .. }
            | Mind::Sweep { .. }
            | Mind::Send { .. }
            | Mind::Draw { .. }
            | Mind::EndProcess { .. }
            | Mind::Clear { .. } => choices.push(0),
        }
    }

    fn can_begin(&self, state: &State) -> bool {
        match self.role() {
            Role::Leave(seat) | Role::Rejoin(seat) => {
                self.lobby_of(state, seat).is_some() && self.party_knew_at(state, seat) < state.now
            }
            Role::Connect(seat, token) => {
                self.lobby_of(state, seat).is_some() && state.history.seats[seat].newest >= token
            }
            Role::Disconnect(seat, token) | Role::GiveUp(seat, token) => {
                self.lobby_of(state, seat).is_some()
                    && state.history.seats[seat].newest >= token
                    && self.party_knew_at(state, seat) < state.now
            }
            Role::Ready(lobby)
            | Role::Close(lobby)
            | Role::Reopen(lobby)
            | Role::MakePrivate(lobby)
            | Role::MakePublic(lobby)
            | Role::End(lobby) => state.lobbies[lobby].is_there(),
            Role::Register { server, .. }
            | Role::Beat(server, _)
            | Role::Deregister(server)
            | Role::Die(server) => self.has_process(state, server),
            Role::Look(server, _) => state.servers[server].is_there(),
            _ => true,
        }
    }

    /// When the request of a seat's party knew its lobby: its players leave later than any leave that it
    /// allowed for.
    fn party_knew_at(&self, state: &State, seat: usize) -> u8 {
        self.party_of(seat).map_or(0, |(first, _)| state.actors[first].looked_at)
    }

    /// The lobby in which `seat` was given to a player.
    fn lobby_of(&self, state: &State, seat: usize) -> Option<usize> {
        let holder = self.party_of(seat).map_or(seat, |(first, _)| first);
        match self.roles.get(holder) {
            Some(Role::Find { .. } | Role::Join(_) | Role::Create { .. }) => {
                match state.actors[holder].mind {
                    Mind::Done(Answer::Found(lobby)) => Some(lobby),
                    _ => None,
                }
            }
            _ => Some(usize::from(state.history.seats[seat].lobby)),
        }
    }

    /// How an instance that saw one seat left would take it.
    fn hiding(&self, lobby: &Lobby, now: u8) -> Option<Hiding> {
        // The instance took a seat itself, so it knows of no first lapse later than that one's.
        let lapse = lobby.first_lapse(self.rules()).min(now + self.rules().reservation);
        let is_guessed = self.rules().election.is_none() && self.rules().max_players > 1;
        let is_last = lobby.taken + self.count() >= self.rules().max_players;
        (is_guessed && is_last && lapse > now)
            .then(|| Hiding::IfLast { taken: self.rules().max_players - self.count(), lapse })
    }

    /// Whether no time may pass before its next step: an election is between a look and the lobby that comes
    /// of it.
    pub(super) fn is_pressed(&self, state: &State) -> bool {
        if let Some(since) = self.drew_at(state) {
            return state.now >= since + self.rules().patience;
        }
        if self.rules().election.is_none() {
            return false;
        }
        let actor = &state.actors[self.actor];
        let since = match actor.mind {
            Mind::Look { tried: 0, .. } => return false,
            Mind::Look { .. } | Mind::Elect { .. } => actor.looked_at,
            Mind::Place { burst: Burst::Has { burst, .. }, .. } | Mind::Position { burst, .. } => {
                burst.opened_at
            }
            Mind::Send { sent, then } => match (sent, then) {
                (Sent::Begin { taken: Some(_), now, .. }, _) => now,
                (Sent::Begin { .. }, _) => actor.looked_at,
                (_, Then::Placed { burst: Burst::Has { burst, .. }, .. }) => burst.opened_at,
                _ => return false,
            },
            _ => return false,
        };
        state.now >= since + self.rules().patience
    }

    /// Whether the index cannot but show the lobby.
    fn must_be_seen(&self, state: &State, at: usize) -> bool {
        let Some(lag) = self.rules().election else { return false };
        let (lobby, history) = (&state.lobbies[at], &state.history.lobbies[at]);
        let is_shown = history.indexed_at + lag <= state.now || history.indexed_before <= state.now;
        is_shown && lobby.joinable_from > 0 && lobby.joinable_from <= state.now && history.joinable_since > 0
    }

    /// Takes a step.
    pub(super) fn step(&self, state: &mut State, choice: u8) {
        let choice = usize::from(choice);
        let mind = state.actors[self.actor].mind;
        let next = match mind {
            Mind::Idle => self.begin(state),
            Mind::Look { round, tried, last } => self.look(state, choice, round, tried, last),
            Mind::Place { round, tries, allotment, burst } => {
                self.place(state, choice, round, tries, allotment, burst)
            }
            Mind::Room { round, needed, burst } => self.make_room(state, choice, round, needed, burst),
            Mind::Wait { lobby } => self.wait(state, lobby),
            Mind::Elect { round, tries, exhausted } => self.elect(state, round, tries, exhausted),
            Mind::Position { round, tries, burst } => self.take_position(state, choice, round, tries, burst),
            Mind::Sweep { lobby, lease, pass } => self.sweep(state, lobby, lease, pass),
            Mind::Draw { drawing, exhausted } => self.draw(state, drawing, exhausted),
            Mind::Order { server } => self.order(state, choice, server),
            Mind::EndProcess { server, is_released } => self.end_process(state, server, is_released),
            Mind::Clear { server, lobby } => self.clear(state, server, lobby),
            Mind::Send { sent, then } => match self.store.apply(state, &sent) {
                Outcome::Bug(what) => {
                    note(state, Err((3, what)));
                    Mind::Done(Answer::Bug)
                }
                outcome => self.go_on(state, &sent, then, outcome),
            },
            Mind::Done(_) => mind,
        };
        if let Role::Register { server, .. } = self.role()
            && next == Mind::Done(Answer::Made)
        {
            state.history.answered(server, self.actor);
        }
        let actor = &mut state.actors[self.actor];
        actor.mind = next;
        if let Mind::Send { sent: Sent::TakeParty(Claim { vacated_at, .. }), .. } = next {
            actor.looked_at = vacated_at;
        }
        if !next.is_creating() {
            (actor.rooms, actor.hatch) = (0, Hatch::default());
        }
    }

    fn begin(&self, state: &mut State) -> Mind {
        let now = state.now;
        let (cap, version) = (state.cap, state.version);
        let actor = &mut state.actors[self.actor];
        (actor.cap, actor.version) = (cap, version);
        let times = actor.times;
        let transition = |lobby, transition| self.transition(transition, None, lobby, now, None);
        match self.role() {
            Role::Find { .. } => Mind::Look { round: 0, tried: 0, last: None },
            Role::Join(lobby) => {
                let until = now + self.rules().reservation;
                let capacity = state.lobbies[lobby].capacity(self.rules(), Access::Direct, self.count());
                let sent =
                    self.take_free((lobby, Some(capacity)), Access::Direct, Hiding::No, now, (until, now));
                let then = Then::Taken { round: 0, tried: 0, last: None, tries: 0, burst: None };
                Mind::Send { sent, then }
            }
            Role::Create { .. } => {
                Mind::Place { round: 0, tries: 0, allotment: Allotment::InBlocks, burst: Burst::None }
            }
            Role::Ready(lobby) => {
                let seen = state.lobbies[lobby];
                self.after_refusal(state, Transition::Ready, &seen, lobby, now, 0, None)
            }
            Role::Close(lobby) => transition(lobby, Transition::Close),
            Role::Reopen(lobby) => transition(lobby, Transition::Reopen),
            Role::MakePrivate(lobby) => transition(lobby, Transition::MakePrivate),
            Role::MakePublic(lobby) => transition(lobby, Transition::MakePublic),
            Role::Connect(seat, token) => {
                let write = self.actor as u8 + 1;
                self.begin_of_seat(state, seat, Transition::Connect { seat, token, write }, token > 0)
            }
            Role::Leave(seat) => self.begin_of_seat(state, seat, Transition::Leave(seat), false),
            Role::Disconnect(seat, token) => {
                self.begin_of_seat(state, seat, Transition::Disconnect { seat, token }, token > 0)
            }
            Role::GiveUp(seat, token) => {
                self.begin_of_seat(state, seat, Transition::GiveUp { seat, token }, token > 0)
            }
            Role::Rejoin(seat) => self.begin_of_seat(state, seat, Transition::Rejoin { seat }, true),
            Role::End(lobby) => self.end(state, lobby, EndCause::Asked, now, None),
            Role::Look(server, _) => self.look_after(state, server),
            Role::Die(server) => self.die(state, server),
            Role::Register { server, .. } if self.is_refused_as_over(state, server) => {
                self.exit(state, server)
            }
            Role::Beat(server, _) => {
                Mind::Send { sent: Sent::Heartbeat { server, now }, then: Then::Beat { server, now } }
            }
            Role::Register { server, capacity, lease } => {
                let seen = Some(state.servers[server]).filter(Server::is_there);
                let registration = 8 * (times + 1) + self.actor as u8;
                let item = registration_of(seen, registration, capacity, lease, now);
                Mind::Send { sent: Sent::Register { server, item, seen }, then: Then::Registered }
            }
            Role::Deregister(server) => self.deregister(state, server, 0),
            Role::SetCap(cap) => {
                state.cap = cap;
                Mind::Done(Answer::Made)
            }
            Role::SetVersion(version) => {
                state.version = version;
                Mind::Done(Answer::Made)
            }
        }
    }

    /// Begins a transition of a seat, after a look at its lobby or with a guess.
    fn begin_of_seat(&self, state: &State, seat: usize, transition: Transition, looks: bool) -> Mind {
        let (at, now) = (self.lobby_of(state, seat).unwrap_or_default(), state.now);
        if looks {
            let seen = state.lobbies[at];
            return self.after_refusal(state, transition, &seen, at, now, 0, None);
        }
        self.transition(transition, None, at, now, None)
    }

    fn may_create(&self) -> bool {
        !matches!(self.role(), Role::Find { may_create: false })
    }

    fn look(&self, state: &mut State, choice: usize, round: u8, tried: u8, last: Option<NoRoom>) -> Mind {
        let now = state.now;
        if tried == 0 {
            state.actors[self.actor].looked_at = now;
        }
        if choice < 2 * LOBBIES {
            let lobby = choice % LOBBIES;
            let hiding = self.hiding(&state.lobbies[lobby], now).filter(|_| choice >= LOBBIES);
            let then = Then::Taken { round, tried: tried | (1 << lobby), last, tries: 0, burst: None };
            return self.take(state, lobby, hiding.unwrap_or(Hiding::No), then);
        }
        match last {
            Some(needed) => Mind::Done(Answer::NoRoom(needed)),
            None if !self.may_create() => Mind::Done(Answer::Refused),
            None if self.rules().election.is_some() => Mind::Elect { round, tries: 0, exhausted: None },
            None => Mind::Place { round, tries: 0, allotment: Allotment::InBlocks, burst: Burst::None },
        }
    }

    fn take(&self, state: &State, lobby: usize, hiding: Hiding, then: Then) -> Mind {
        let now = state.now;
        let until = now + self.rules().reservation;
        Mind::Send {
            sent: self.take_free((lobby, None), self.access(state), hiding, now, (until, now)),
            then,
        }
    }

    /// Takes its seats in a lobby, whose `capacity` for them is known or else assumed, unless one was left
    /// after `vacated_at`.
    fn take_free(
        &self,
        (lobby, capacity): (usize, Option<u8>),
        access: Access,
        hiding: Hiding,
        vacated_at: u8,
        (until, now): (u8, u8),
    ) -> Sent {
        let seat = self.actor;
        let Some(mate) = self.mate() else {
            return Sent::TakeFree { lobby, seat, until, access, hiding, now };
        };
        let is_assumed = capacity.is_none();
        let capacity = capacity.unwrap_or(self.rules().max_party);
        Sent::TakeParty(Claim {
            lobby,
            seat,
            mate,
            until,
            access,
            hiding,
            capacity,
            is_assumed,
            vacated_at,
            now,
        })
    }

    fn access(&self, state: &State) -> Access {
        match self.role() {
            Role::Join(_) => Access::Direct,
            _ => Access::Find(state.actors[self.actor].version),
        }
    }

    /// Another round of looking and creating, if there is one.
    fn again(&self, round: u8) -> Mind {
        if round + 1 >= self.rules().rounds {
            return Mind::Done(Answer::Contention);
        }
        match self.role() {
            Role::Create { .. } => {
                Mind::Place { round: round + 1, tries: 0, allotment: Allotment::InBlocks, burst: Burst::None }
            }
            _ => Mind::Look { round: round + 1, tried: 0, last: None },
        }
    }

    /// What follows a seat taken: a full lobby is put out of sight, one that starts is waited for.
    fn learn(&self, state: &State, at: usize) -> Mind {
        let lobby = &state.lobbies[at];
        let is_full = lobby.taken >= self.rules().max_players;
        if is_full && (1..=state.now).contains(&lobby.joinable_from) {
            let sent = hide_full(lobby, at, self.rules());
            return Mind::Send { sent, then: Then::Hidden { lobby: at } };
        }
        self.found(state, at)
    }

    fn found(&self, state: &State, at: usize) -> Mind {
        match state.lobbies[at].stage {
            Stage::Starting => Mind::Wait { lobby: at },
            _ => Mind::Done(Answer::Found(at)),
        }
    }

    fn wait(&self, state: &State, at: usize) -> Mind {
        let lobby = &state.lobbies[at];
        match lobby.stage {
            Stage::Starting => self.transition(Transition::GiveBack, Some(lobby), at, state.now, None),
            Stage::Ready if lobby.holds(self.actor) => Mind::Done(Answer::Found(at)),
            _ => Mind::Done(Answer::Refused),
        }
    }

    fn place(
        &self,
        state: &mut State,
        choice: usize,
        round: u8,
        tries: u8,
        allotment: Allotment,
        burst: Burst,
    ) -> Mind {
        let (now, cap) = (state.now, state.actors[self.actor].cap);
        let nest = state.actors[self.actor].hatch.nest;
        if choice < SERVERS || nest.is_some() {
            let server = nest.map_or(choice, |nest| nest.slot);
            let (seen, block) = match nest {
                Some(nest) => self.nesting(state, nest, cap),
                None => (state.servers[server], state.servers[server].next_block(self.rules(), cap)),
            };
            let lobby = self.lobby_to_create(burst);
            let creation = Creation {
                lobby,
                seat: self.actor,
                mate: self.mate(),
                until: now + self.rules().reservation,
                version: state.actors[self.actor].version,
                is_private: self.role() == Role::Create { is_private: true },
                server,
                seen,
                block: block.map(|block| if allotment == Allotment::Singly { block.min(1) } else { block }),
                cap,
                may_create: self.may_create(),
                requests: nest.is_some_and(|nest| nest.requests),
                now,
            };
            let then = Then::Placed { round, tries, allotment, burst };
            return Mind::Send { sent: Sent::Create(creation), then };
        }
        if choice < 2 * SERVERS {
            let server = choice - SERVERS;
            let sent = self.hiding_silent(state, server, now);
            return Mind::Send { sent, then: Then::ServerHidden { round, tries, allotment, burst } };
        }
        if self.may_request(state, allotment) {
            state.actors[self.actor].hatch.looked_at = now;
            let drawing = Drawing { round, tries, allotment, burst, draws: 0 };
            return Mind::Draw { drawing, exhausted: None };
        }
        let is_at_cap = state.ledger >= cap;
        if !is_at_cap && allotment == Allotment::None {
            return if tries + 1 >= CREATIONS_MAX {
                self.again(round)
            } else {
                Mind::Place { round, tries: tries + 1, allotment: Allotment::Singly, burst }
            };
        }
        Mind::Room { round, needed: if is_at_cap { NoRoom::AtCap } else { NoRoom::NoServer }, burst }
    }

    /// Tries the same creation again, where there may be room for it now.
    fn in_room(&self, state: &mut State, round: u8, burst: Burst) -> Mind {
        let actor = &mut state.actors[self.actor];
        actor.rooms += 1;
        actor.hatch = actor.hatch.anew();
        if actor.rooms >= ROOMS_MAX {
            return self.again(round);
        }
        Mind::Place { round, tries: 0, allotment: Allotment::InBlocks, burst }
    }

    fn make_room(&self, state: &mut State, choice: usize, round: u8, needed: NoRoom, burst: Burst) -> Mind {
        let (now, cap) = (state.now, state.actors[self.actor].cap);
        if choice < SERVERS {
            let server = &state.servers[choice];
            if server.cap_checked == cap && server.fits(now) {
                return self.in_room(state, round, burst);
            }
            let left = server.left();
            let block = if server.cap_checked == cap { left.div_ceil(2) } else { left };
            let sent = Sent::TakeBack { server: choice, allotted: server.allotted, block };
            return Mind::Send { sent, then: Then::RoomMade { round, burst } };
        }
        if choice < SERVERS + LOBBIES {
            let at = choice - SERVERS;
            let lobby = &state.lobbies[at];
            let Some(cause) = lobby.cause_to_make_room(self.rules(), now) else {
                return Mind::Room { round, needed, burst };
            };
            let then = Then::RoomMade { round, burst };
            return Mind::Send { sent: end_as_seen(lobby, at, cause, now), then };
        }
        // What is left of the cap may be on its way.
        let used: u8 = state.servers.iter().map(|server| server.used).sum();
        if needed == NoRoom::AtCap && used < cap && state.actors[self.actor].rooms + 1 < ROOMS_MAX {
            return self.in_room(state, round, burst);
        }
        match self.role() {
            Role::Create { .. } => Mind::Done(Answer::NoRoom(needed)),
            _ => Mind::Look { round, tried: 0, last: Some(needed) },
        }
    }

    /// The lobby that a creation creates.
    fn lobby_to_create(&self, burst: Burst) -> usize {
        match burst {
            Burst::None => self.actor,
            Burst::Has { burst, .. } => self.position(&burst).0,
        }
    }

    /// The lobby of the last position drawn of `burst`, and whether the find that drew it creates the lobby.
    fn position(&self, burst: &Head) -> (usize, bool) {
        let (position, capacity) = (burst.positions.saturating_sub(1), self.rules().max_players);
        let nth = position / capacity;
        let is_there = burst.is_announced && nth == 0;
        let first = usize::from(burst.first.saturating_sub(1));
        let at = (first + usize::from(nth) * (LOBBIES / 2)) % LOBBIES;
        (at, !is_there && position % capacity == 0)
    }

    fn elect(&self, state: &State, round: u8, tries: u8, exhausted: Option<Head>) -> Mind {
        if tries >= ELECTIONS_MAX || state.history.lobbies[self.actor].was_created {
            return self.again(round);
        }
        let capacity = self.rules().max_players;
        // With the other positions of its last lobby.
        let seen =
            exhausted.map(|burst| Head { positions: burst.positions.next_multiple_of(capacity), ..burst });
        let sent = Sent::Begin { seen, first: self.actor, taken: None, now: state.now };
        Mind::Send { sent, then: Then::Begun { round, tries } }
    }

    fn take_position(&self, state: &State, choice: usize, round: u8, tries: u8, burst: Head) -> Mind {
        let (at, _) = self.position(&burst);
        if choice == 0 {
            let burst = Burst::Has { burst, tries };
            return Mind::Place { round, tries: 0, allotment: Allotment::InBlocks, burst };
        }
        let capacity = self.rules().max_players;
        let lapse = burst.opened_at + self.rules().reservation;
        let hiding = match burst.positions % capacity {
            0 if burst.is_announced => Hiding::IfLast { taken: capacity - 1, lapse },
            0 => Hiding::Promised(lapse),
            _ => Hiding::No,
        };
        let then = Then::Taken { round, tried: tries, last: None, tries: 0, burst: Some(burst) };
        self.take(state, at, hiding, then)
    }

    /// Goes on to the next lobby of its server.
    fn sweep(&self, state: &mut State, from: usize, lease: Lease, pass: u8) -> Mind {
        let now = state.now;
        let server = self.own_server();
        let drains = matches!(self.role(), Role::Deregister(_));
        let is_launched = state.servers[server].launch.stage.is_some();
        let runs = |at: &usize| usize::from(state.lobbies[*at].server) == server + 1;
        let Some(at) = (from..LOBBIES).find(runs) else {
            let mut left =
                (0..LOBBIES).filter(runs).map(|at| state.lobbies[at]).filter(|lobby| !lobby.is_draining);
            return match self.role() {
                Role::Beat(_, times) => self.repeat(state, times),
                Role::Register { .. } if is_launched => Mind::Done(Answer::Made),
                Role::Register { .. } if left.any(|lobby| lobby.lease_until < NEVER) => {
                    if pass + 1 < PASSES_MAX {
                        Mind::Sweep { lobby: 0, lease, pass: pass + 1 }
                    } else {
                        Mind::Done(Answer::Contention)
                    }
                }
                _ if drains && left.next().is_some() && pass + 1 < PASSES_MAX => {
                    self.deregister(state, server, pass + 1)
                }
                _ => Mind::Done(Answer::Made),
            };
        };
        if drains {
            let swept = Swept { lobby: at, lease: NO_LEASE, pass };
            return self.transition(Transition::Drain, None, at, now, Some(swept));
        }
        if is_launched && let Some(mind) = self.open(state, at, lease, pass) {
            return mind;
        }
        if matches!(self.role(), Role::Register { .. }) {
            if is_launched {
                return Mind::Sweep { lobby: at + 1, lease, pass };
            }
            return self.extend_lease(at, server, lease, pass);
        }
        let lobby = state.lobbies[at];
        match lobby.end_cause(self.rules(), now) {
            Some(cause @ (EndCause::Idle | EndCause::NeverReady)) => {
                let sent = end_as_seen(&lobby, at, cause, now);
                Mind::Send { sent, then: Then::Kept { lobby: at, lease } }
            }
            _ if lobby.lease_until != lease.until || lobby.joinable_from == NEVER => {
                self.extend_lease(at, server, lease, pass)
            }
            _ => Mind::Sweep { lobby: at + 1, lease, pass },
        }
    }

    /// Takes its server out of service, as it is now.
    fn deregister(&self, state: &State, server: usize, pass: u8) -> Mind {
        let seen = state.servers[server];
        if !seen.is_there() {
            return Mind::Done(Answer::Refused);
        }
        let sent = Sent::Deregister { server, registration: seen.registration };
        Mind::Send { sent, then: Then::Deregistered { pass, now: state.now } }
    }

    fn repeat(&self, state: &mut State, times: u8) -> Mind {
        let actor = &mut state.actors[self.actor];
        actor.times += 1;
        if actor.times < times { Mind::Idle } else { Mind::Done(Answer::Made) }
    }

    const fn extend_lease(&self, lobby: usize, server: usize, lease: Lease, pass: u8) -> Mind {
        Mind::Send {
            sent: Sent::ExtendLease { lobby, server, lease },
            then: Then::LeaseExtended { lobby, lease, pass },
        }
    }

    fn end(&self, state: &State, at: usize, cause: EndCause, now: u8, sweep: Option<Swept>) -> Mind {
        let lobby = &state.lobbies[at];
        if lobby.stage == Stage::Ended || lobby.server == 0 {
            return self.next_of(sweep);
        }
        let server = usize::from(lobby.server) - 1;
        let then = Then::Ended { sweep, is_draining: lobby.is_draining, server };
        Mind::Send { sent: end_as_seen(lobby, at, cause, now), then }
    }

    const fn next_of(&self, sweep: Option<Swept>) -> Mind {
        match sweep {
            Some(Swept { lobby, lease, pass }) => Mind::Sweep { lobby: lobby + 1, lease, pass },
            None => Mind::Done(Answer::Made),
        }
    }

    /// What an actor does once it knows what came of its write.
    #[expect(clippy::too_many_lines, reason = "an arm for each write")]
    fn go_on(&self, state: &mut State, sent: &Sent, then: Then, outcome: Outcome) -> Mind {
        let is_made = outcome == Outcome::Made;
        match then {
            Then::Taken { round, tried, last, tries, burst } => {
                self.taken(state, sent, outcome, (round, tried, last, tries, burst))
            }
            Then::Corrected { round, tried, last, burst } => self.refused(round, tried, last, burst),
            Then::Hidden { lobby } => self.found(state, lobby),
            Then::Placed { round, tries, allotment, burst } => {
                self.placed(state, sent, outcome, (round, tries, allotment, burst))
            }
            Then::ServerHidden { .. } if is_made && let Sent::Retire { server, now } = *sent => {
                Mind::Send { sent: letting_go(&state.servers[server], server, now), then }
            }
            Then::ServerHidden { round, tries, allotment, burst } if tries + 1 < CREATIONS_MAX => {
                Mind::Place { round, tries: tries + 1, allotment, burst }
            }
            Then::ServerHidden { round, .. } => self.again(round),
            Then::RoomMade { round, burst } => self.in_room(state, round, burst),
            Then::Begun { round, tries } => self.begun(state, sent, is_made, round, tries),
            Then::Drawn { round, tries } => {
                let burst = state.head;
                if is_made {
                    return Mind::Position { round, tries, burst };
                }
                let is_young = state.now < burst.opened_at + self.rules().young;
                if is_young {
                    self.join_burst(state, burst, round, tries + 1)
                } else {
                    Mind::Elect { round, tries: tries + 1, exhausted: None }
                }
            }
            Then::Transition { transition, tries, sweep } => {
                let (at, now) = lobby_and_time(sent);
                if !is_made {
                    let seen = state.lobbies[at];
                    return self.after_refusal(state, transition, &seen, at, now, tries + 1, sweep);
                }
                self.transition_made(state, transition, at, now, true, sweep)
            }
            Then::Ended { sweep, is_draining, server } => {
                if is_made && is_draining {
                    let now = state.now;
                    let sent = Sent::LetGo { server, allotted: 0, how: Gone::Emptied, now };
                    return Mind::Send { sent, then: Then::CleanedUp { sweep, server, now } };
                }
                self.next_of(sweep)
            }
            Then::CleanedUp { sweep, server, now } => {
                let seen = state.servers[server];
                let is_left = seen.allotted > 0 || seen.is_counted();
                if !is_made && seen.used == 0 && seen.is_deregistered() && is_left {
                    let sent = letting_go(&seen, server, now);
                    // Again, whatever the result.
                    return Mind::Send { sent, then: Then::Ended { sweep, is_draining: false, server } };
                }
                self.next_of(sweep)
            }
            Then::Hinted => Mind::Done(Answer::Made),
            Then::Beat { server, now } => {
                let seen = state.servers[server];
                let lives =
                    is_made || seen.is_there() && !seen.is_gone() && (seen.lease == 0 || seen.beat_at > now);
                if !lives || seen.is_over() || seen.is_requested() {
                    return self.exit(state, server);
                }
                let lease = Lease { until: seen.lease_until, heartbeat_at: now };
                if seen.free_from == NEVER && seen.used < seen.capacity {
                    return Mind::Send {
                        sent: Sent::ShowServer { server, registration: seen.registration },
                        then: Then::ServerShown { lease },
                    };
                }
                self.stop_if_idle(state, server, lease)
            }
            Then::ServerShown { lease } => self.stop_if_idle(state, self.own_server(), lease),
            Then::Kept { lobby, lease } => {
                let server = self.own_server();
                if is_made || state.lobbies[lobby].stage == Stage::Ended {
                    return Mind::Sweep { lobby: lobby + 1, lease, pass: 0 };
                }
                self.extend_lease(lobby, server, lease, 0)
            }
            Then::LeaseExtended { lobby: at, lease, pass } => {
                let lobby = &state.lobbies[at];
                let is_later =
                    lobby.lease_until >= lease.until && usize::from(lobby.server) == self.own_server() + 1;
                if (is_made || is_later) && lobby.joinable_from == NEVER {
                    let sent = Sent::ShowRevived { lobby: at };
                    return Mind::Send { sent, then: Then::Revived { lobby: at, lease, pass } };
                }
                Mind::Sweep { lobby: at + 1, lease, pass }
            }
            Then::Revived { lobby, lease, pass } => Mind::Sweep { lobby: lobby + 1, lease, pass },
            Then::Registered => {
                if is_made {
                    return self.registered(sent, state.actors[self.actor].cap);
                }
                if state.actors[self.actor].times > 0 {
                    return Mind::Done(Answer::Contention);
                }
                state.actors[self.actor].times += 1;
                Mind::Idle
            }
            // Best effort: the first creation there allots a block, too.
            Then::AllottedAhead => Mind::Done(Answer::Made),
            Then::Deregistered { pass, now } => {
                let server = self.own_server();
                if !is_made {
                    // It registered again meanwhile.
                    return if pass + 1 < PASSES_MAX {
                        self.deregister(state, server, pass + 1)
                    } else {
                        Mind::Done(Answer::Contention)
                    };
                }
                if state.servers[server].used == 0 {
                    let sent = letting_go(&state.servers[server], server, now);
                    return Mind::Send { sent, then: Then::LetGo { pass } };
                }
                Mind::Sweep { lobby: 0, lease: NO_LEASE, pass }
            }
            Then::LetGo { pass } => Mind::Sweep { lobby: 0, lease: NO_LEASE, pass },
            _ => self.go_on_with_launched(state, sent, then, is_made),
        }
    }

    /// What follows a registration: without lease it frees its lobbies of theirs, and a first block is
    /// allotted ahead.
    fn registered(&self, sent: &Sent, cap: u8) -> Mind {
        let Sent::Register { server, item, seen } = *sent else { return Mind::Done(Answer::Bug) };
        if item.launch.stage.is_some() {
            return self.began(seen.is_some_and(|seen| seen.is_requested()), &item);
        }
        if item.lease == 0 && item.used > 0 {
            let lease = Lease { until: item.lease_until, heartbeat_at: item.beat_at };
            return Mind::Sweep { lobby: 0, lease, pass: 0 };
        }
        let block = item.next_block(self.rules(), cap).unwrap_or_default();
        if item.allotted > 0 || block > cap / LEFT_AT_REGISTRATION {
            return Mind::Done(Answer::Made);
        }
        let sent = Sent::AllotAhead { server, registration: item.registration, block, cap };
        Mind::Send { sent, then: Then::AllottedAhead }
    }

    fn own_server(&self) -> usize {
        match self.role() {
            Role::Beat(server, _)
            | Role::Deregister(server)
            | Role::Register { server, .. }
            | Role::Look(server, _)
            | Role::Die(server) => server,
            _ => 0,
        }
    }

    fn taken(
        &self,
        state: &State,
        sent: &Sent,
        outcome: Outcome,
        (round, tried, last, tries, burst): (u8, u8, Option<NoRoom>, u8, Option<Head>),
    ) -> Mind {
        let (Sent::TakeFree { lobby: at, seat, until, access, now, .. }
        | Sent::TakeParty(Claim { lobby: at, seat, until, access, now, .. })
        | Sent::TakeOver { lobby: at, seat, until, access, now, .. }) = *sent
        else {
            return Mind::Done(Answer::Bug);
        };
        let lobby = &state.lobbies[at];
        if outcome == Outcome::Made || lobby.holds(seat) {
            return self.learn(state, at);
        }
        let then = Then::Taken { round, tried, last, tries: tries + 1, burst };
        if tries + 1 < TAKES_MAX {
            match lobby.availability(self.rules(), access, self.count(), now) {
                Availability::Free(_) => {
                    let capacity = lobby.capacity(self.rules(), access, self.count());
                    let known = (at, Some(capacity));
                    let vacated_at = lobby.vacated_at.max(now);
                    let sent = self.take_free(known, access, Hiding::No, vacated_at, (until, now));
                    return Mind::Send { sent, then };
                }
                Availability::TakeOver(lapsed) => {
                    let sent = take_over(lobby, lapsed, (at, seat, self.mate()), access, (until, now));
                    return Mind::Send { sent, then };
                }
                _ => {}
            }
        }
        let corrected = Then::Corrected { round, tried, last, burst };
        let in_sight = (1..=now).contains(&lobby.joinable_from);
        // A lobby that is too full for a party alone stays in sight.
        match lobby.availability(self.rules(), access, 1, now) {
            _ if access == Access::Direct => {}
            Availability::LeaseLapsed if in_sight => {
                return Mind::Send { sent: Sent::HideSilent { lobby: at, now }, then: corrected };
            }
            Availability::Overdue if lobby.server > 0 => {
                let sent = end_as_seen(lobby, at, EndCause::NeverReady, now);
                return Mind::Send { sent, then: corrected };
            }
            Availability::Full if in_sight => {
                let sent = hide_full(lobby, at, self.rules());
                return Mind::Send { sent, then: corrected };
            }
            _ => {}
        }
        self.refused(round, tried, last, burst)
    }

    /// What follows a lobby that had no seat.
    fn refused(&self, round: u8, tried: u8, last: Option<NoRoom>, burst: Option<Head>) -> Mind {
        if self.door_is_direct() {
            return Mind::Done(Answer::Refused);
        }
        match burst {
            Some(burst) => Mind::Elect { round, tries: tried + 1, exhausted: Some(burst) },
            None => Mind::Look { round, tried, last },
        }
    }

    fn door_is_direct(&self) -> bool {
        matches!(self.role(), Role::Join(_))
    }

    fn placed(
        &self,
        state: &mut State,
        sent: &Sent,
        outcome: Outcome,
        (round, tries, allotment, burst): (u8, u8, Allotment, Burst),
    ) -> Mind {
        let Sent::Create(Creation { lobby: at, seat, block, .. }) = *sent else {
            return Mind::Done(Answer::Bug);
        };
        let allotment = match outcome {
            Outcome::Made => return self.learn(state, at),
            Outcome::Refused(Part::Lobby) if state.lobbies[at].holds(seat) => return self.learn(state, at),
            Outcome::Refused(Part::Lobby) => {
                return match burst {
                    Burst::Has { burst, tries } => Mind::Position { round, tries, burst },
                    Burst::None => self.again(round),
                };
            }
            Outcome::Refused(Part::Ledger) if self.is_at_servers_max(state, sent) => allotment,
            Outcome::Refused(Part::Ledger) if block.is_some_and(|block| block > 1) => Allotment::Singly,
            Outcome::Refused(Part::Ledger) => Allotment::None,
            _ => allotment,
        };
        self.after_nest(state, sent, outcome, allotment);
        if tries + 1 >= CREATIONS_MAX {
            return self.again(round);
        }
        Mind::Place { round, tries: tries + 1, allotment, burst }
    }

    fn begun(&self, state: &mut State, sent: &Sent, is_made: bool, round: u8, tries: u8) -> Mind {
        let burst = state.head;
        let Sent::Begin { first, .. } = *sent else { return Mind::Done(Answer::Bug) };
        if is_made || usize::from(burst.first) == first + 1 {
            if is_made {
                self.judge_election(state, first, round);
            }
            return Mind::Position { round, tries, burst: Head { positions: 1, ..burst } };
        }
        state.actors[self.actor].is_contended = true;
        self.join_burst(state, burst, round, tries)
    }

    /// A burst has begun with the lobby `first`: was none joinable, as far as its find could know when it
    /// looked?
    fn judge_election(&self, state: &mut State, first: usize, round: u8) {
        let Actor { is_contended, looked_at, .. } = state.actors[self.actor];
        // After a race the find reads the index again, and counts what it shows.
        let is_looked_for = is_contended || round > 0;
        if is_looked_for && !self.rules().counts_exactly {
            return;
        }
        let is_needless = (0..LOBBIES).any(|at| {
            let since = state.history.lobbies[at].joinable_since;
            let is_counted = is_looked_for && self.must_be_seen(state, at);
            at != first && since > 0 && since + u8::from(is_looked_for) <= looked_at && !is_counted
        });
        if is_needless && !self.is_being_told(state) {
            note(state, Err((9, "a burst began although a lobby was joinable, uncounted")));
        }
    }

    /// Whether the request that freed a seat has still to write the head.
    fn is_being_told(&self, state: &State) -> bool {
        state.actors.iter().any(|actor| matches!(actor.mind, Mind::Send { then: Then::Hinted, .. }))
    }

    fn join_burst(&self, state: &State, burst: Head, round: u8, tries: u8) -> Mind {
        if tries >= ELECTIONS_MAX || burst.first == 0 {
            return self.again(round);
        }
        if state.now >= burst.opened_at + self.rules().young {
            let (at, _) = self.position(&burst);
            let then = Then::Taken { round, tried: tries, last: None, tries: 0, burst: Some(burst) };
            return self.take(state, at, Hiding::No, then);
        }
        Mind::Send { sent: Sent::Draw { first: burst.first }, then: Then::Drawn { round, tries } }
    }

    fn check(&self, transition: Transition, lobby: &Lobby, now: u8) -> TransitionState {
        let due = |is_due| if is_due { TransitionState::Due } else { TransitionState::Done };
        let has_left = match transition {
            Transition::Leave(seat) => !lobby.holds(seat),
            Transition::GiveBack => once(self.actor).chain(self.mate()).all(|seat| lobby.reserved[seat] == 0),
            Transition::Disconnect { seat, token } => {
                !lobby.is_released_by(seat, token) && !lobby.is_spent_by(seat, token)
            }
            Transition::GiveUp { seat, token } => !lobby.is_given_up_by(self.rules(), seat, token),
            _ => false,
        };
        if has_left {
            return TransitionState::Done;
        }
        if lobby.stage == Stage::Ended || lobby.is_overdue(self.rules(), now) {
            return TransitionState::Illegal { is_over: true };
        }
        match transition {
            Transition::Ready => due(lobby.stage == Stage::Starting),
            Transition::Close => due(!lobby.closed),
            Transition::Reopen if lobby.is_draining => TransitionState::Illegal { is_over: false },
            Transition::Reopen => due(lobby.closed),
            Transition::MakePrivate => due(!lobby.is_private),
            Transition::MakePublic => due(lobby.is_private),
            Transition::Drain => due(!lobby.is_draining),
            Transition::Connect { seat, token, write } => self.check_connect(lobby, seat, token, write, now),
            Transition::Rejoin { seat } => {
                let is_over = lobby.lapsed_seats(now) & (1 << seat) != 0;
                if !lobby.holds(seat) || is_over {
                    TransitionState::Illegal { is_over: false }
                } else {
                    due(!lobby.awaits(seat))
                }
            }
            Transition::Leave(_)
            | Transition::GiveBack
            | Transition::Disconnect { .. }
            | Transition::GiveUp { .. } => TransitionState::Due,
        }
    }

    fn check_connect(&self, lobby: &Lobby, seat: usize, token: u8, write: u8, now: u8) -> TransitionState {
        let held_until = lobby.connected[seat].max(lobby.reserved[seat]);
        let illegal = TransitionState::Illegal { is_over: false };
        if held_until == 0 || token != lobby.tokens[seat].newest() {
            return illegal;
        }
        if !lobby.awaits(seat) {
            let is_own = lobby.connected[seat] > 0 && lobby.connected_by == write;
            return if is_own { TransitionState::Done } else { illegal };
        }
        let is_held = held_until > now && self.connected_until(token, now) > now;
        if lobby.stage == Stage::Ready && is_held { TransitionState::Due } else { illegal }
    }

    /// When a seat lapses that `token` connects. All tokens count from the first, which is from the
    /// beginning.
    const fn connected_until(&self, token: u8, now: u8) -> u8 {
        let since = if token > 0 { EPOCH } else { now };
        since + self.rules().connected_max
    }

    #[expect(clippy::too_many_arguments, reason = "what a refused write is judged by")]
    fn after_refusal(
        &self,
        state: &State,
        transition: Transition,
        seen: &Lobby,
        at: usize,
        now: u8,
        tries: u8,
        sweep: Option<Swept>,
    ) -> Mind {
        match self.check(transition, seen, now) {
            TransitionState::Due if tries >= TRANSITIONS_MAX => Mind::Done(Answer::Contention),
            TransitionState::Due => {
                let mind = self.transition(transition, Some(seen), at, now, sweep);
                let Mind::Send { sent, .. } = mind else { return mind };
                Mind::Send { sent, then: Then::Transition { transition, tries, sweep } }
            }
            TransitionState::Done => self.transition_made(state, transition, at, now, false, sweep),
            TransitionState::Illegal { is_over } => {
                let is_overdue = is_over && seen.stage == Stage::Starting;
                if is_overdue && matches!(transition, Transition::Ready | Transition::Drain) {
                    return self.end(state, at, EndCause::NeverReady, now, sweep);
                }
                match sweep {
                    Some(_) => self.next_of(sweep),
                    None => Mind::Done(Answer::Refused),
                }
            }
        }
    }

    /// What follows a transition that was made, now or before.
    fn transition_made(
        &self,
        state: &State,
        transition: Transition,
        at: usize,
        now: u8,
        is_new: bool,
        sweep: Option<Swept>,
    ) -> Mind {
        let lobby = &state.lobbies[at];
        if transition == Transition::GiveBack {
            return Mind::Done(Answer::Refused);
        }
        let is_idle = lobby.end_cause(self.rules(), now) == Some(EndCause::Idle);
        let may_tell = self.rules().election.is_some()
            && is_new
            && lobby.joinable_from > 0
            && lobby.taken < self.rules().max_players;
        let announce = || Mind::Send {
            sent: Sent::Begin { seen: None, first: at, taken: Some(lobby.taken), now: state.now },
            then: Then::Hinted,
        };
        match transition {
            Transition::Leave(_) | Transition::Disconnect { .. } | Transition::Drain if is_idle => {
                self.end(state, at, EndCause::Idle, now, sweep)
            }
            Transition::Leave(_) | Transition::Disconnect { .. } | Transition::GiveUp { .. }
                if may_tell && lobby.taken + 1 >= self.rules().max_players =>
            {
                announce()
            }
            Transition::Reopen | Transition::MakePublic if may_tell => announce(),
            Transition::Connect { .. } if self.comes_into_sight_early(lobby) => {
                Mind::Send { sent: hide_full(lobby, at, self.rules()), then: Then::Hinted }
            }
            _ => self.next_of(sweep),
        }
    }

    /// Whether all players in a full lobby are connected, and a reservation that was to lapse would show it
    /// all the same.
    fn comes_into_sight_early(&self, lobby: &Lobby) -> bool {
        let is_unreserved = lobby.reserved.iter().all(|until| *until == 0);
        let is_early = (1..lobby.first_lapse(self.rules())).contains(&lobby.joinable_from);
        is_unreserved && is_early && lobby.taken >= self.rules().max_players
    }

    fn transition(
        &self,
        transition: Transition,
        seen: Option<&Lobby>,
        lobby: usize,
        now: u8,
        sweep: Option<Swept>,
    ) -> Mind {
        let sent = match transition {
            Transition::Ready => {
                let seen = seen.copied().unwrap_or_default();
                let is_full = seen.joinable_from > 0 && seen.taken >= self.rules().max_players;
                let anew = now + self.rules().reservation;
                Sent::Ready { lobby, reserved: seen.reserved, anew, is_full, now }
            }
            Transition::Close => Sent::Close { lobby, now },
            Transition::Reopen => {
                Sent::Reopen { lobby, is_private: seen.is_some_and(|seen| seen.is_private), now }
            }
            Transition::MakePrivate => Sent::MakePrivate { lobby, now },
            Transition::MakePublic => {
                Sent::MakePublic { lobby, is_closed: seen.is_some_and(|seen| seen.closed), now }
            }
            Transition::Drain => Sent::Drain { lobby, now },
            Transition::Connect { seat, token, write } => {
                let seen = seen.map_or(SeenSeat { is_reserved: true, ..SeenSeat::default() }, |seen| {
                    SeenSeat::of(seen, seat)
                });
                Sent::Connect {
                    lobby,
                    seat,
                    token,
                    write,
                    until: self.connected_until(token, now),
                    seen,
                    now,
                }
            }
            Transition::Leave(seat) => leave(lobby, seat, Left::Anyhow, seen, false, now),
            Transition::GiveBack => {
                let seen = seen.copied().unwrap_or_default();
                let mut held = once(self.actor).chain(self.mate()).filter(|seat| seen.reserved[*seat] > 0);
                let seat = held.next().unwrap_or(self.actor);
                let (mate, is_hidden) = (held.next(), seen.joinable_from == 0);
                let (how, seen) = (Left::Anyhow, SeenSeat::of(&seen, seat));
                Sent::Leave { lobby, seat, mate, how, is_hidden, seen, now }
            }
            Transition::Disconnect { seat, token } => match seen {
                None => leave(lobby, seat, Left::ByUnlessKept(token), None, false, now),
                Some(seen) if seen.is_spent_by(seat, token) && seen.lapsed_seats(now) & (1 << seat) == 0 => {
                    let next = seen.tokens[seat].renewed();
                    Sent::ChangeTokens { lobby, seat, next, seen: SeenSeat::of(seen, seat), now }
                }
                Some(seen) => match seen.kept_until(self.rules(), seat, now) {
                    until if seen.connected[seat] > 0 && until > 0 => {
                        let (is_early, seen) = (seen.joinable_from > until, SeenSeat::of(seen, seat));
                        Sent::Keep { lobby, seat, token, until, is_early, seen, now }
                    }
                    _ => leave(lobby, seat, Left::By(token), Some(seen), false, now),
                },
            },
            Transition::GiveUp { seat, token } => match seen {
                Some(seen) if seen.connected[seat] > 0 => {
                    let next = seen.tokens[seat].left();
                    Sent::ChangeTokens { lobby, seat, next, seen: SeenSeat::of(seen, seat), now }
                }
                _ => leave(lobby, seat, Left::By(token), seen, true, now),
            },
            Transition::Rejoin { seat } => {
                let seen = seen.copied().unwrap_or_default();
                let next = seen.tokens[seat].renewed();
                Sent::ChangeTokens { lobby, seat, next, seen: SeenSeat::of(&seen, seat), now }
            }
        };
        Mind::Send { sent, then: Then::Transition { transition, tries: 0, sweep } }
    }
}

/// Leaves a seat, as seen or on the guess that it is reserved or connected.
fn leave(lobby: usize, seat: usize, how: Left, seen: Option<&Lobby>, is_reserved: bool, now: u8) -> Sent {
    let is_hidden = seen.is_some_and(|seen| seen.joinable_from == 0);
    let guess = SeenSeat { is_reserved, ..SeenSeat::default() };
    let seen = seen.map_or(guess, |seen| SeenSeat::of(seen, seat));
    Sent::Leave { lobby, seat, mate: None, how, is_hidden, seen, now }
}

/// Takes a seat, or a party's, in place of `all` that `lobby` shows lapsed, a bit each.
pub(super) fn take_over(
    lobby: &Lobby,
    all: u8,
    (at, seat, mate): (usize, usize, Mate),
    access: Access,
    (until, now): (u8, u8),
) -> Sent {
    let reserved = first(all).filter(|seat| lobby.reserved[*seat] > 0);
    let reserved = reserved.fold(0, |bits, seat| bits | (1 << seat));
    let tokens = first(all).filter(|seat| lobby.tokens[*seat].are_there());
    let tokens = tokens.fold(0, |bits, seat| bits | (1 << seat));
    let remembered = lobby.lapsed | reserved & !tokens;
    let (connected, has_map) = (all & !reserved, lobby.has_tokens);
    let seen = SeenLapsed { reserved, connected, remembered, has_map };
    Sent::TakeOver { lobby: at, seat, mate, until, access, seen, now }
}

pub(super) fn hide_full(lobby: &Lobby, at: usize, rules: &Rules) -> Sent {
    Sent::HideFull { lobby: at, lapse: lobby.first_lapse(rules), vacated_at: lobby.vacated_at }
}

pub(super) fn end_as_seen(lobby: &Lobby, at: usize, cause: EndCause, now: u8) -> Sent {
    let server = usize::from(lobby.server.saturating_sub(1));
    let Lobby { reserved, connected, vacated_at, .. } = *lobby;
    let seen = match cause {
        EndCause::Idle => SeenIdle { reserved, connected, vacated_at },
        EndCause::Unused => SeenIdle { reserved, ..SeenIdle::default() },
        _ => SeenIdle::default(),
    };
    Sent::End { lobby: at, server, cause, seen, now }
}

/// A server as its registration puts it.
pub(super) fn registration_of(
    seen: Option<Server>,
    registration: u8,
    capacity: u8,
    lease: u8,
    now: u8,
) -> Server {
    let ranked_at = seen.filter(|seen| !seen.is_deregistered()).map_or(now, |seen| seen.ranked_at);
    let Server { used, allotted, cap_checked, .. } = seen.unwrap_or_default();
    Server {
        registration,
        used,
        allotted,
        cap_checked,
        capacity,
        lease_until: if lease == 0 { NEVER } else { now + lease },
        lease,
        beat_at: now,
        free_from: if used < capacity { ranked_at } else { NEVER },
        ranked_at,
        auto_ready: true,
        expires: false,
        launch: seen.filter(|seen| seen.launch.stage.is_some()).map_or(Launch::default(), |seen| Launch {
            stage: Some(LaunchStage::Running),
            idle_since: 0,
            has_ended: false,
            ..seen.launch
        }),
    }
}

/// Lets a server go that deregistered and runs no lobby.
fn letting_go(seen: &Server, server: usize, now: u8) -> Sent {
    if seen.launch.stage.is_some() {
        let has_failed = seen.launch.stage == Some(LaunchStage::Failed);
        return Sent::LetLaunchedGo { server, allotted: seen.allotted, has_failed };
    }
    Sent::LetGo { server, allotted: seen.allotted, how: Gone::Deregistered, now }
}

const fn lobby_and_time(sent: &Sent) -> (usize, u8) {
    match *sent {
        Sent::Ready { lobby, now, .. }
        | Sent::Close { lobby, now }
        | Sent::Reopen { lobby, now, .. }
        | Sent::MakePrivate { lobby, now }
        | Sent::MakePublic { lobby, now, .. }
        | Sent::Drain { lobby, now }
        | Sent::Connect { lobby, now, .. }
        | Sent::Leave { lobby, now, .. }
        | Sent::Keep { lobby, now, .. }
        | Sent::ChangeTokens { lobby, now, .. } => (lobby, now),
        _ => (0, 0),
    }
}
