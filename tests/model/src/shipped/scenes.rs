//! Random scenes of each write: what is in the tables, what its writer saw, and how the store is called.

use std::{future::Future, iter::once, pin::Pin, time::Duration};

use muster_local::emulator::in_process::WireAnswer;
use shared::{
    base::ambient::Ambient,
    models::{errors::Error, generations, lifecycle, pool::Tags, seats::Seats, tag_digests::TagDigests},
    store::{
        allotment::AllotmentOutcome,
        client::Store,
        creation::{Beginning, Creation as StoredCreation, CreationOutcome, HeadKey},
        ending::EndOutcome,
        seats::{Hiding as StoredHiding, PartyCapacity, SeatClaim},
    },
};

use super::{mapping, wire};
use crate::{
    State,
    history::History,
    programs::{Actor, end_as_seen, hide_full, registration_of, take_over},
    tables::{
        Access, Availability, EPOCH, EndCause, Head, Hiding, LOBBIES, Launch, Lease, Lobby, Mate, NEVER,
        OnDemand, Rules, SEATS, SERVERS, Server, Stage, Starts, Tokens,
    },
    writes::{Claim, Creation, Gone, Left, Outcome, Part, SeenSeat, Sent},
};

mod on_demand;

fn shown(seat: usize, token: u8) -> generations::ShownSeat {
    generations::ShownSeat { seat_id: mapping::seat_id(seat), generation: token.into() }
}

fn connect_of(seat: usize, token: u8, write: u8, until: u8) -> lifecycle::Transition {
    let (write, until) = (mapping::write_id(write), mapping::time(until));
    lifecycle::Transition::Connect(lifecycle::Connect { seat: shown(seat, token), write, until })
}

type Sending = Pin<Box<dyn Future<Output = Vec<Outcome>>>>;

/// A write to be judged.
pub(super) struct Scene {
    pub(super) rules: Rules,
    pub(super) before: State,
    pub(super) sent: Sent,
    /// Answers to the calls before it.
    pub(super) prior: Vec<WireAnswer>,
    /// Has the store send it. Returns the outcomes that the store's result allows; none when it allows any.
    pub(super) send: Box<dyn FnOnce(Store) -> Sending>,
}

/// Random numbers, and worlds of them.
pub(super) struct Dice {
    random: fastrand::Rng,
    rules: Rules,
    now: u8,
}

/// What a write is called, and its scenes. `None` where chance gave none.
pub(super) type Kind = (&'static str, fn(&mut Dice) -> Option<Scene>);

pub(super) const KINDS: &[Kind] = &[
    ("take a free seat: a find's", |dice| dice.take_free(false, |_| Hiding::No)),
    ("take a free seat: a find's, and hide its lobby with the last", |dice| {
        dice.take_free(false, |dice| Hiding::IfLast { taken: dice.rules.max_players - 1, lapse: dice.time() })
    }),
    ("take a free seat: a find's, and hide its lobby", |dice| {
        dice.take_free(false, |dice| Hiding::Promised(dice.time()))
    }),
    ("take a free seat: a join's", |dice| dice.take_free(true, |_| Hiding::No)),
    ("take free seats: a party's", |dice| dice.take_party(false, |_| Hiding::No)),
    ("take free seats: a party's, and hide its lobby with the last", |dice| {
        dice.take_party(false, |dice| Hiding::IfLast { taken: dice.within(0, 1), lapse: dice.time() })
    }),
    ("take free seats: a party's, and hide its lobby", |dice| {
        dice.take_party(false, |dice| Hiding::Promised(dice.time()))
    }),
    ("take free seats: a party's that joins", |dice| dice.take_party(true, |_| Hiding::No)),
    ("take free seats: a party's, after a refusal", Dice::take_party_again),
    ("take over lapsed seats: a find's", |dice| dice.take_over(false, false)),
    ("take over lapsed seats: a join's", |dice| dice.take_over(true, false)),
    ("take over lapsed seats: a party's", |dice| dice.take_over(false, true)),
    ("take over lapsed seats: a party's that joins", |dice| dice.take_over(true, true)),
    ("hide a full lobby", Dice::hide_full),
    ("hide a silent server's lobby", Dice::hide_silent),
    ("become ready: full", |dice| dice.ready(true)),
    ("become ready: not full", |dice| dice.ready(false)),
    ("close", |dice| {
        let (at, now) = (dice.below(LOBBIES), dice.now);
        let lobby = dice.lobby();
        dice.transition(at, lobby, None, Sent::Close { lobby: at, now }, lifecycle::Transition::Close)
    }),
    ("reopen: public", |dice| dice.reopen(false)),
    ("reopen: private", |dice| dice.reopen(true)),
    ("make private", |dice| {
        let (at, now) = (dice.below(LOBBIES), dice.now);
        let lobby = dice.lobby();
        let transition = lifecycle::Transition::MakePrivate;
        dice.transition(at, lobby, None, Sent::MakePrivate { lobby: at, now }, transition)
    }),
    ("make public: open", |dice| dice.make_public(false)),
    ("make public: closed", |dice| dice.make_public(true)),
    ("drain", |dice| {
        let (at, now) = (dice.below(LOBBIES), dice.now);
        let lobby = dice.lobby();
        let transition = lifecycle::Transition::Drain(Some(mapping::start().mark()));
        dice.transition(at, lobby, None, Sent::Drain { lobby: at, now }, transition)
    }),
    ("connect", Dice::connect),
    ("connect: by a later token", |dice| dice.connect_again(true)),
    ("replace a connection", |dice| dice.connect_again(false)),
    ("keep a seat: the lobby's first", |dice| dice.keep(false, false)),
    ("keep a seat: the player's first", |dice| dice.keep(true, false)),
    ("keep a seat: again", |dice| dice.keep(true, true)),
    ("issue a token: the lobby's first", |dice| dice.rejoin(false, false)),
    ("issue a token: of a connected player", |dice| dice.rejoin(false, true)),
    ("issue a token: of a kept seat", |dice| dice.rejoin(true, true)),
    ("leave while connected", Dice::mark_leaving),
    ("disconnect", Dice::disconnect),
    ("leave: connected, in sight", |dice| dice.leave(false, false)),
    ("leave: connected, out of sight", |dice| dice.leave(false, true)),
    ("leave: reserved, in sight", |dice| dice.leave(true, false)),
    ("leave: reserved, out of sight", |dice| dice.leave(true, true)),
    ("give a party's seats back: in sight", |dice| dice.give_back(false)),
    ("give a party's seats back: out of sight", |dice| dice.give_back(true)),
    ("extend a lobby's lease", Dice::extend_lease),
    ("show a revived lobby", Dice::show_revived),
    ("end: on request", |dice| dice.end(EndCause::Asked)),
    ("end: of a silent server", |dice| dice.end(EndCause::ServerDead)),
    ("end: never ready", |dice| dice.end(EndCause::NeverReady)),
    ("end: idle", |dice| dice.end(EndCause::Idle)),
    ("end: unused", |dice| dice.end(EndCause::Unused)),
    ("create: allotted", |dice| dice.create(None)),
    ("create: allotted under another cap", |dice| dice.create(Some(0))),
    ("create: with a block", |dice| {
        let block = dice.within(1, 2);
        dice.create(Some(block))
    }),
    ("begin a burst", |dice| dice.begin(false)),
    ("begin a burst in place of an exhausted one", |dice| dice.begin(true)),
    ("announce a free seat", Dice::announce),
    ("draw a position", Dice::draw),
    ("register: new", |dice| dice.register(false)),
    ("register: again", |dice| dice.register(true)),
    ("allot a first block", Dice::allot_ahead),
    ("extend a server's lease", Dice::heartbeat),
    ("show a revived server", Dice::show_server),
    ("deregister", Dice::deregister),
    ("hide a silent server", Dice::hide_server),
    ("let a silent server go", |dice| dice.let_go(true, false)),
    ("let a silent server go with its allotment", |dice| dice.let_go(true, true)),
    ("let a deregistered server go", |dice| dice.let_go(false, false)),
    ("let a deregistered server go with its allotment", |dice| dice.let_go(false, true)),
    ("take an allotment back", Dice::take_back),
    ("let a deregistered server go after its last lobby", Dice::let_emptied_go),
    ("request a server", Dice::request),
    ("begin a nursery", |dice| dice.begin_nursery(false)),
    ("begin a nursery in place of a full one", |dice| dice.begin_nursery(true)),
    ("draw in a nursery", Dice::draw_in_nursery),
    ("note how long a start took", Dice::note_start),
    ("note a failed start", Dice::note_failure),
    ("block a nursery", Dice::block_nursery),
    ("fail a requested server", Dice::fail),
    ("retire a silent started server", Dice::retire),
    ("stop an idle server", Dice::stop_idle),
    ("note that a server is idle", |dice| dice.note_idle(true)),
    ("note that a server has lobbies", |dice| dice.note_idle(false)),
    ("note a started server's handle", Dice::note_handle),
    ("note the end of a process", Dice::note_ended),
    ("open a lobby on its started server", Dice::open_on_launched),
    ("let a started server go", Dice::let_launched_go),
    ("register: a requested one", Dice::register_requested),
];

/// Nothing that the store returns is judged beyond its call.
fn any<F: Future + 'static>(send: impl FnOnce(Store) -> F + 'static) -> Box<dyn FnOnce(Store) -> Sending> {
    Box::new(|store| {
        let sending = send(store);
        Box::pin(async {
            let _outcome = sending.await;
            Vec::new()
        })
    })
}

/// Has the store create a lobby.
fn creating(creation: StoredCreation, now: u8) -> Box<dyn FnOnce(Store) -> Sending> {
    Box::new(move |store| {
        Box::pin(async move {
            vec![match store.create_lobby(&creation, mapping::time(now)).await.unwrap() {
                CreationOutcome::Created => Outcome::Made,
                CreationOutcome::CreatedBefore(_) | CreationOutcome::Exists(_) => {
                    Outcome::Refused(Part::Lobby)
                }
                CreationOutcome::AtCap | CreationOutcome::AtServerMax => Outcome::Refused(Part::Ledger),
                CreationOutcome::NoPlace(_) => Outcome::Refused(Part::Server),
                other => panic!("{other:?}"),
            }]
        })
    })
}

fn bug(error: &Error) -> Outcome {
    let causes = ["a lobby's game server does not know of it", "the ledger does not know of an allotment"];
    let known = causes.into_iter().find(|known| error.cause() == Some(*known));
    Outcome::Bug(known.unwrap_or_else(|| panic!("{error:?}")))
}

impl Dice {
    /// Those of one scene.
    pub(super) fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let max_players = random.u8(1..=2);
        let rules = Rules {
            max_players,
            max_direct: max_players + random.u8(0..=1),
            max_party: random.u8(2..=4),
            parties: &[],
            reservation: 2,
            starting_max: 2,
            connected_max: 192,
            idle: random.u8(0..=2),
            keep: random.u8(0..=2),
            cap: 0,
            ticks: 0,
            rounds: 0,
            late: 0,
            block: 1,
            election: None,
            deregisters_again: true,
            sends_heartbeats_without_lease: true,
            window: 2,
            patience: 0,
            counts_exactly: false,
            young: 0,
            starts: Some(Starts {
                capacity: random.u8(1..=3),
                servers_max: random.u8(1..=3),
                start: 1,
                grace: 1,
                idle: 1,
                lag: 1,
                failures: 3,
                blocked: 60,
            }),
        };
        let now = EPOCH + random.u8(1..=4);
        Self { random, rules, now }
    }

    fn below(&mut self, end: usize) -> usize {
        self.random.usize(..end)
    }

    fn within(&mut self, low: u8, high: u8) -> u8 {
        self.random.u8(low..=high)
    }

    /// True in one of `count`.
    fn one_in(&mut self, count: u8) -> bool {
        self.random.u8(..count) == 0
    }

    fn time(&mut self) -> u8 {
        self.within(EPOCH, EPOCH + 6)
    }

    fn maybe_time(&mut self) -> u8 {
        if self.one_in(2) { 0 } else { self.time() }
    }

    /// `usual`, or in one of four `other`.
    fn usually<T>(&mut self, usual: T, other: T) -> T {
        if self.one_in(4) { other } else { usual }
    }

    fn lobby(&mut self) -> Lobby {
        let now = self.now;
        let stage = match self.within(0, 15) {
            0 => return Lobby::default(),
            1..=2 => Stage::Ended,
            3..=7 => Stage::Starting,
            _ => Stage::Ready,
        };
        let created_at = self.within(now - 3, now);
        let (hidden, shown_at) = (self.time(), self.usually(created_at, NEVER));
        let other_party = self.within(0, 4);
        let late = self.time();
        let mut lobby = Lobby {
            stage,
            version: self.usually(0, 1),
            joinable_from: self.usually(shown_at, hidden),
            created_at,
            closed: self.one_in(3),
            is_private: self.one_in(3),
            is_draining: self.one_in(5),
            server: self.within(1, SERVERS as u8),
            lease_until: self.usually(now + 2, late),
            freed_at: self.maybe_time(),
            idle: self.within(0, 2),
            max_party: self.usually(self.rules.max_party, other_party),
            vacated_at: self.maybe_time(),
            connected_by: self.within(0, 3),
            ..Lobby::default()
        };
        if self.one_in(4) {
            lobby.lease_until = NEVER;
        }
        if self.one_in(3) {
            lobby.joinable_from = 0;
        }
        if stage == Stage::Ended && !self.one_in(4) {
            (lobby.joinable_from, lobby.server) = (0, 0);
        }
        for seat in 0..SEATS {
            let until = self.time();
            match self.within(0, 7) {
                0 => lobby.reserved[seat] = until,
                1 => lobby.connected[seat] = until,
                2 => lobby.lapsed |= 1 << seat,
                _ => {}
            }
        }
        lobby.has_tokens = self.one_in(2);
        for seat in 0..SEATS {
            if lobby.has_tokens && lobby.holds(seat) {
                lobby.tokens[seat] = self.tokens();
            }
        }
        lobby.taken = lobby.entries();
        lobby
    }

    /// Tokens of a seat, or none.
    fn tokens(&mut self) -> Tokens {
        if self.one_in(3) {
            return Tokens::none();
        }
        let newest = self.within(0, 2);
        Tokens::new(newest, self.within(0, newest), self.one_in(4))
    }

    /// The lobby a while after it was `seen`: as it was, or with something of another one.
    fn later(&mut self, seen: &Lobby) -> Lobby {
        let (mut lobby, other) = (*seen, self.lobby());
        if !other.is_there() {
            return other;
        }
        let (now, seat) = (self.now, self.below(SEATS));
        match self.within(0, 26) {
            0 if lobby.stage == Stage::Ended => lobby.stage = Stage::Ready,
            0 | 1 => lobby.stage = Stage::Ended,
            2 => lobby.stage = other.stage,
            3 => lobby.version = 1 - lobby.version,
            4 => lobby.joinable_from = if lobby.joinable_from == 0 { lobby.created_at } else { 0 },
            5 => lobby.joinable_from = other.joinable_from,
            6 => lobby.created_at = self.within(now - 3, now),
            7 | 19 => (lobby.stage, lobby.created_at) = (Stage::Starting, self.within(now - 3, now)),
            8 => lobby.closed = !lobby.closed,
            9 => lobby.is_private = !lobby.is_private,
            10 => lobby.is_draining = !lobby.is_draining,
            11 => lobby.server = other.server,
            12 => lobby.lease_until = self.within(now - 1, now + 1),
            13 => lobby.vacated_at = if lobby.vacated_at == 0 { now } else { 0 },
            14 => lobby.vacated_at = other.vacated_at,
            15 => (lobby.reserved, lobby.connected) = (other.reserved, other.connected),
            16 => std::mem::swap(&mut lobby.reserved[seat], &mut lobby.connected[seat]),
            17 => (lobby.reserved[seat], lobby.connected[seat]) = (self.maybe_time(), 0),
            18 => lobby.lapsed |= other.lapsed,
            20 | 21 => (lobby.has_tokens, lobby.tokens[seat]) = (true, self.tokens()),
            22 if !lobby.has_tokens => lobby.has_tokens = true,
            22 => lobby.tokens = [Tokens::none(); SEATS],
            _ => {}
        }
        lobby.taken = lobby.entries();
        for seat in 0..SEATS {
            if !lobby.holds(seat) {
                lobby.tokens[seat] = Tokens::none();
            }
        }
        let held = (0..SEATS).filter(|seat| lobby.holds(*seat)).fold(0, |bits, seat| bits | 1 << seat);
        lobby.lapsed &= !held;
        lobby
    }

    fn server(&mut self) -> Server {
        if self.one_in(16) {
            return Server::default();
        }
        let now = self.now;
        let ranked_at = self.within(now - 3, now);
        let (early, late) = (self.within(now - 2, now), self.time());
        let mut server = Server {
            registration: self.usually(1, 2),
            used: self.within(0, 2),
            allotted: self.within(0, 3),
            cap_checked: self.within(1, 3),
            capacity: self.within(1, 3),
            lease_until: self.usually(now + 2, late),
            lease: self.within(0, 3),
            beat_at: self.usually(early, late),
            free_from: self.usually(ranked_at, NEVER),
            ranked_at,
            auto_ready: self.one_in(2),
            expires: self.one_in(6),
            launch: Launch::default(),
        };
        if self.one_in(4) {
            (server.capacity, server.ranked_at, server.free_from) = (0, NEVER, NEVER);
        }
        if server.lease == 0 {
            server.lease_until = NEVER;
        }
        server
    }

    /// The game server a while after it was `seen`.
    fn server_later(&mut self, seen: &Server) -> Server {
        let (mut server, other) = (*seen, self.server());
        if !other.is_there() {
            return other;
        }
        match self.within(0, 13) {
            0 => server.registration = 3 - server.registration,
            1 => server.used = other.used,
            2 => server.used += 1,
            3 => server.allotted = other.allotted,
            4 => server.allotted += 1,
            5 => server.cap_checked = other.cap_checked,
            6 => server.capacity = other.capacity,
            7 => server.lease_until = self.within(self.now - 1, self.now + 1),
            8 => server.beat_at = other.beat_at,
            9 => server.free_from = other.free_from,
            10 => server.ranked_at = other.ranked_at,
            11 => server.expires = !server.expires,
            _ => {}
        }
        server
    }

    fn head(&mut self) -> Head {
        if self.one_in(6) {
            return Head::default();
        }
        let opened_at = self.within(self.now - 4, self.now);
        let (first, positions) = (self.within(1, 2), self.within(1, 3));
        Head { first, opened_at, positions, is_announced: self.one_in(2) }
    }

    fn scene(
        &self,
        sent: Sent,
        set: impl FnOnce(&mut State),
        prior: impl Into<Vec<WireAnswer>>,
        send: Box<dyn FnOnce(Store) -> Sending>,
    ) -> Option<Scene> {
        let mut before = State {
            now: self.now,
            cap: 0,
            version: 0,
            ledger: 0,
            head: Head::default(),
            lobbies: Default::default(),
            servers: Default::default(),
            on_demand: OnDemand::default(),
            actors: [Actor::default(); crate::ACTORS],
            late: None,
            copies: 0,
            history: History::default(),
            broken: None,
        };
        set(&mut before);
        Some(Scene { rules: self.rules, before, sent, prior: prior.into(), send })
    }

    fn lobby_item(&self, at: usize, lobby: &Lobby) -> mapping::Item {
        mapping::lobby_item(&self.rules, at, lobby).unwrap()
    }

    fn claim(
        &self,
        at: usize,
        (seat, mate): (usize, Mate),
        until: u8,
        access: Access,
        hiding: Hiding,
    ) -> SeatClaim {
        let hiding = match hiding {
            Hiding::No => StoredHiding::No,
            Hiding::IfLast { taken, lapse } => {
                StoredHiding::IfLast { taken: taken.into(), lapse: mapping::time(lapse) }
            }
            Hiding::Promised(lapse) => {
                StoredHiding::Promised { lapse: mapping::time(lapse), from_parties: false }
            }
        };
        let access = mapping::access(access);
        let (lobby_id, seat_id) = (mapping::lobby_id(at), mapping::seat_id(seat));
        SeatClaim {
            lobby_id,
            access,
            seats: Seats::together(seat_id, mate.map(mapping::seat_id).into_iter().collect()),
            until: mapping::time(until),
            capacity: PartyCapacity::Known(0),
            hiding,
        }
    }

    fn take_free(&mut self, is_direct: bool, hiding: fn(&mut Self) -> Hiding) -> Option<Scene> {
        let (at, seat, now) = (self.below(LOBBIES), self.below(SEATS), self.now);
        let mut lobby = self.lobby();
        if lobby.is_there() && self.one_in(8) {
            lobby.stage = Stage::Ended;
        }
        // Its own condition on the time of a leave is left out.
        lobby.vacated_at = lobby.vacated_at.min(now);
        let (until, hiding) = (now + self.rules.reservation, hiding(self));
        let access = if is_direct { Access::Direct } else { Access::Find(0) };
        let claim = self.claim(at, (seat, None), until, access, hiding);
        let send = any(move |store| async move { store.take_seat(&claim, mapping::time(now)).await });
        let sent = Sent::TakeFree { lobby: at, seat, until, access, hiding, now };
        self.scene(sent, |state| state.lobbies[at] = lobby, [], send)
    }

    /// A party's seats in a lobby whose capacity is assumed, or known where it joins.
    fn take_party(&mut self, is_direct: bool, hiding: fn(&mut Self) -> Hiding) -> Option<Scene> {
        let (at, lobby, hiding) = (self.below(LOBBIES), self.lobby(), hiding(self));
        let access = if is_direct { Access::Direct } else { Access::Find(0) };
        let capacity = if is_direct { self.within(1, 4) } else { self.rules.max_party };
        let claim = self.party(at, access, hiding, (capacity, !is_direct), self.now);
        self.party_scene(&claim, lobby, None)
    }

    /// The same once a refused write showed the lobby.
    fn take_party_again(&mut self) -> Option<Scene> {
        let (at, seen, access) = (self.below(LOBBIES), self.lobby(), Access::Find(0));
        let (capacity, vacated_at) = (seen.capacity(&self.rules, access, 2), seen.vacated_at.max(self.now));
        let claim = self.party(at, access, Hiding::No, (capacity, false), vacated_at);
        let is_free = matches!(seen.availability(&self.rules, access, 2, self.now), Availability::Free(_));
        if !is_free || seen.holds(claim.seat) {
            return None;
        }
        let mut lobby = self.later(&seen);
        if lobby.is_there() && self.one_in(3) {
            lobby.vacated_at = vacated_at + self.within(0, 1);
        }
        self.party_scene(&claim, lobby, Some(wire::refused(&self.lobby_item(at, &seen))))
    }

    fn party(
        &mut self,
        lobby: usize,
        access: Access,
        hiding: Hiding,
        (capacity, is_assumed): (u8, bool),
        vacated_at: u8,
    ) -> Claim {
        let (seat, now) = (self.below(SEATS), self.now);
        let (mate, until) = ((seat + 1) % SEATS, now + self.rules.reservation);
        Claim { lobby, seat, mate, until, access, hiding, capacity, is_assumed, vacated_at, now }
    }

    fn party_scene(&self, claim: &Claim, lobby: Lobby, prior: Option<WireAnswer>) -> Option<Scene> {
        let Claim { lobby: at, seat, mate, until, access, hiding, now, .. } = *claim;
        let capacity = claim.capacity.into();
        let claimed = SeatClaim {
            capacity: if claim.is_assumed {
                PartyCapacity::Assumed(capacity)
            } else {
                PartyCapacity::Known(capacity)
            },
            ..self.claim(at, (seat, Some(mate)), until, access, hiding)
        };
        let send = any(move |store| async move { store.take_seat(&claimed, mapping::time(now)).await });
        let set = |state: &mut State| state.lobbies[at] = lobby;
        self.scene(Sent::TakeParty(*claim), set, Vec::from_iter(prior), send)
    }

    fn take_over(&mut self, is_direct: bool, is_party: bool) -> Option<Scene> {
        let (at, seat, now) = (self.below(LOBBIES), self.below(SEATS), self.now);
        let access = if is_direct { Access::Direct } else { Access::Find(0) };
        let seen = self.lobby();
        let mate = is_party.then_some((seat + 1) % SEATS);
        let count = 1 + u8::from(is_party);
        let Availability::TakeOver(lapsed) = seen.availability(&self.rules, access, count, now) else {
            return None;
        };
        let is_known = |seat: usize| seen.holds(seat) || seen.lapsed & (1 << seat) != 0;
        if is_known(seat) || mate.is_some_and(is_known) {
            return None;
        }
        let until = now + self.rules.reservation;
        let claim = self.claim(at, (seat, mate), until, access, Hiding::No);
        let send = any(move |store| async move { store.take_seat(&claim, mapping::time(now)).await });
        let mut lobby = self.later(&seen);
        let other = self.below(SEATS);
        if lobby.is_there() && self.one_in(2) {
            let held = (0..SEATS).find(|at| lapsed & (1 << *at) == 0 && seen.holds(*at));
            match self.within(0, 5) {
                // An earlier copy took the seat, and another player left.
                choice @ 0..2 => {
                    let left = held.unwrap_or(seat);
                    (lobby.reserved[left], lobby.connected[left]) = (0, 0);
                    (if choice == 0 { &mut lobby.reserved } else { &mut lobby.connected })[seat] = until;
                }
                // A lapsed one is held after all.
                2 if lobby.connected[other] > 0 => lobby.connected[other] = now + 1,
                2 => lobby.reserved[other] = now + 1,
                // Joins took the free ones.
                3 => (0..SEATS).filter(|at| *at != seat && !seen.holds(*at)).for_each(|at| {
                    (lobby.reserved[at], lobby.connected[at]) = (until, 0);
                }),
                4 => lobby.version = 1,
                _ => (lobby.stage, lobby.created_at) = (Stage::Starting, self.within(now - 2, now - 1)),
            }
            (lobby.taken, lobby.lapsed) = (lobby.entries(), 0);
        }
        let sent = take_over(&seen, lapsed, (at, seat, mate), access, (until, now));
        let prior = [wire::refused(&self.lobby_item(at, &seen))];
        self.scene(sent, |state| state.lobbies[at] = lobby, prior, send)
    }

    fn hide_full(&mut self) -> Option<Scene> {
        let at = self.below(LOBBIES);
        let mut seen = self.lobby();
        if seen.taken < self.rules.max_players {
            return None;
        }
        seen.joinable_from = self.usually(seen.created_at, seen.joinable_from);
        if (seen.first_lapse(&self.rules)..NEVER).contains(&seen.joinable_from) {
            // No reservation of the model's is shorter than another.
            return None;
        }
        let mut lobby = self.later(&seen);
        match self.within(0, 5) {
            _ if !lobby.is_there() => {}
            0 => (lobby.reserved, lobby.connected, lobby.taken) = ([0; SEATS], [0; SEATS], 0),
            1 if seen.vacated_at > 0 => lobby.vacated_at = 0,
            1 => lobby.vacated_at = self.now,
            2 => lobby.vacated_at = self.time(),
            _ => {}
        }
        lobby.version = if lobby.is_there() { seen.version } else { 0 };
        let stored = mapping::lobby(&self.rules, at, &seen);
        let send = any(move |store| async move { store.hide_full_lobby(&stored).await });
        let sent = hide_full(&seen, at, &self.rules);
        self.scene(sent, |state| state.lobbies[at] = lobby, [], send)
    }

    fn hide_silent(&mut self) -> Option<Scene> {
        let (at, now, mut lobby) = (self.below(LOBBIES), self.now, self.lobby());
        if lobby.is_there() {
            lobby.lease_until = self.within(now - 1, now + 1);
        }
        let send = any(move |store| async move {
            store.hide_dead_lobby(&mapping::lobby_id(at), mapping::time(now)).await
        });
        self.scene(Sent::HideSilent { lobby: at, now }, |state| state.lobbies[at] = lobby, [], send)
    }

    /// A transition after the answer `prior`, if any.
    fn transition(
        &mut self,
        at: usize,
        lobby: Lobby,
        prior: Option<WireAnswer>,
        sent: Sent,
        transition: lifecycle::Transition,
    ) -> Option<Scene> {
        let now = mapping::time(self.now);
        let send = any(move |store| async move {
            store.make_transition(&mapping::lobby_id(at), &transition, now).await
        });
        self.scene(sent, |state| state.lobbies[at] = lobby, Vec::from_iter(prior), send)
    }

    fn is_alive(&self, seen: &Lobby) -> bool {
        matches!(seen.stage, Stage::Starting | Stage::Ready) && !seen.is_overdue(&self.rules, self.now)
    }

    fn ready(&mut self, is_full: bool) -> Option<Scene> {
        let (at, now, seen) = (self.below(LOBBIES), self.now, self.lobby());
        let seems_full = seen.joinable_from > 0 && seen.taken >= self.rules.max_players;
        if seen.stage != Stage::Starting || !self.is_alive(&seen) || seems_full != is_full {
            return None;
        }
        let anew = now + self.rules.reservation;
        let sent = Sent::Ready { lobby: at, reserved: seen.reserved, anew, is_full, now };
        let (lobby, prior) = (self.later(&seen), wire::read(&self.lobby_item(at, &seen)));
        self.transition(at, lobby, Some(prior), sent, lifecycle::Transition::Ready)
    }

    fn reopen(&mut self, is_private: bool) -> Option<Scene> {
        let (at, now, seen) = (self.below(LOBBIES), self.now, self.lobby());
        let sent = Sent::Reopen { lobby: at, is_private, now };
        if !is_private {
            return self.transition(at, seen, None, sent, lifecycle::Transition::Reopen);
        }
        if !seen.is_private || !seen.closed || seen.is_draining || !self.is_alive(&seen) {
            return None;
        }
        let (lobby, prior) = (self.later(&seen), wire::refused(&self.lobby_item(at, &seen)));
        self.transition(at, lobby, Some(prior), sent, lifecycle::Transition::Reopen)
    }

    fn make_public(&mut self, is_closed: bool) -> Option<Scene> {
        let (at, now, seen) = (self.below(LOBBIES), self.now, self.lobby());
        let sent = Sent::MakePublic { lobby: at, is_closed, now };
        if !is_closed {
            return self.transition(at, seen, None, sent, lifecycle::Transition::MakePublic);
        }
        if !seen.is_private || !seen.closed || !self.is_alive(&seen) {
            return None;
        }
        let (lobby, prior) = (self.later(&seen), wire::refused(&self.lobby_item(at, &seen)));
        self.transition(at, lobby, Some(prior), sent, lifecycle::Transition::MakePublic)
    }

    fn connect(&mut self) -> Option<Scene> {
        let (at, seat, now, write) = (self.below(LOBBIES), self.below(SEATS), self.now, self.within(1, 4));
        let mut lobby = self.lobby();
        if lobby.is_there() && !lobby.holds(seat) && !self.one_in(3) {
            lobby.reserved[seat] = self.time();
            (lobby.taken, lobby.lapsed) = (lobby.entries(), lobby.lapsed & !(1 << seat));
        }
        if lobby.reserved[seat] > 0 && self.one_in(3) {
            (lobby.has_tokens, lobby.tokens[seat]) = (true, self.tokens());
        }
        let until = self.time();
        let transition = connect_of(seat, 0, write, until);
        let seen = SeenSeat { is_reserved: true, ..SeenSeat::default() };
        let sent = Sent::Connect { lobby: at, seat, token: 0, write, until, seen, now };
        self.transition(at, lobby, None, sent, transition)
    }

    /// A lobby with a seat whose player has connected and may have come back.
    fn lobby_with(&mut self, is_reserved: bool, tokens: Tokens) -> (usize, Lobby) {
        let (mut lobby, seat) = (self.lobby(), self.below(SEATS));
        (lobby.reserved[seat], lobby.connected[seat]) = (0, 0);
        let until = self.now + self.within(1, 6);
        (if is_reserved { &mut lobby.reserved } else { &mut lobby.connected })[seat] = until;
        (lobby.stage, lobby.has_tokens) = (Stage::Ready, lobby.has_tokens || tokens.are_there());
        (lobby.taken, lobby.lapsed) = (lobby.entries(), lobby.lapsed & !(1 << seat));
        lobby.tokens[seat] = tokens;
        (seat, lobby)
    }

    /// A later token's connect, which reads the lobby first.
    fn connect_again(&mut self, is_reserved: bool) -> Option<Scene> {
        let (at, now, write) = (self.below(LOBBIES), self.now, self.within(1, 4));
        let (newest, until) = (self.within(1, 2), self.now + self.within(1, 6));
        let tokens = Tokens::new(newest, self.within(0, newest - 1), false);
        let (seat, seen) = self.lobby_with(is_reserved, tokens);
        let transition = connect_of(seat, newest, write, until);
        let seat_seen = SeenSeat::of(&seen, seat);
        let sent = Sent::Connect { lobby: at, seat, token: newest, write, until, seen: seat_seen, now };
        let (lobby, prior) = (self.later_of(&seen, seat), wire::read(&self.lobby_item(at, &seen)));
        self.transition(at, lobby, Some(prior), sent, transition)
    }

    /// The lobby a while after it was `seen`, often with a change of this seat.
    fn later_of(&mut self, seen: &Lobby, seat: usize) -> Lobby {
        let mut lobby = self.later(seen);
        if !lobby.is_there() {
            return lobby;
        }
        let now = self.now;
        match self.within(0, 9) {
            0 => (lobby.reserved[seat], lobby.connected[seat]) = (0, 0),
            1 if lobby.reserved[seat] > 0 => lobby.reserved[seat] = self.within(now - 1, now + 1),
            1 if lobby.connected[seat] > 0 => lobby.connected[seat] = self.within(now - 1, now + 1),
            2 if lobby.holds(seat) => (lobby.has_tokens, lobby.tokens[seat]) = (true, self.tokens()),
            _ => {}
        }
        if !lobby.holds(seat) {
            lobby.tokens[seat] = Tokens::none();
        }
        lobby.taken = lobby.entries();
        lobby
    }

    fn keep(&mut self, has_map: bool, has_tokens: bool) -> Option<Scene> {
        let (at, now) = (self.below(LOBBIES), self.now);
        let newest = self.within(0, 2);
        let tokens = Tokens::new(newest, self.within(0, newest), false);
        let (seat, mut seen) = self.lobby_with(false, if has_tokens { tokens } else { Tokens::none() });
        if !has_map {
            (seen.has_tokens, seen.tokens) = (false, [Tokens::none(); SEATS]);
        } else {
            seen.has_tokens = true;
        }
        let (token, until) = (seen.tokens[seat].connected(), seen.kept_until(&self.rules, seat, now));
        if until == 0 {
            return None;
        }
        let (is_early, seat_seen) = (seen.joinable_from > until, SeenSeat::of(&seen, seat));
        let sent = Sent::Keep { lobby: at, seat, token, until, is_early, seen: seat_seen, now };
        let transition = lifecycle::Transition::Disconnect(shown(seat, token), None);
        let item = self.lobby_item(at, &seen);
        let prior = if token > 0 { wire::read(&item) } else { wire::refused(&item) };
        let mut lobby = self.later_of(&seen, seat);
        if lobby.is_there() && self.one_in(5) {
            lobby.joinable_from = until + self.within(0, 1);
        }
        self.transition(at, lobby, Some(prior), sent, transition)
    }

    fn rejoin(&mut self, is_reserved: bool, has_map: bool) -> Option<Scene> {
        let (at, now) = (self.below(LOBBIES), self.now);
        let newest = self.within(0, 1);
        let has_tokens = is_reserved || has_map && self.one_in(2);
        let tokens = if has_tokens { Tokens::new(newest, newest, self.one_in(3)) } else { Tokens::none() };
        let (seat, mut seen) = self.lobby_with(is_reserved, tokens);
        if !has_map {
            (seen.has_tokens, seen.tokens) = (false, [Tokens::none(); SEATS]);
        } else {
            seen.has_tokens = true;
        }
        let next = seen.tokens[seat].renewed();
        let sent = Sent::ChangeTokens { lobby: at, seat, next, seen: SeenSeat::of(&seen, seat), now };
        let transition = lifecycle::Transition::Rejoin(shown(seat, 0));
        let (lobby, prior) = (self.later_of(&seen, seat), wire::read(&self.lobby_item(at, &seen)));
        self.transition(at, lobby, Some(prior), sent, transition)
    }

    /// A player leaves who is connected, and whose seat might be kept.
    fn mark_leaving(&mut self) -> Option<Scene> {
        let (at, now, newest) = (self.below(LOBBIES), self.now, self.within(0, 1));
        let tokens = Tokens::new(newest, self.within(0, newest), false);
        let (seat, seen) = self.lobby_with(false, tokens);
        let next = seen.tokens[seat].left();
        let sent = Sent::ChangeTokens { lobby: at, seat, next, seen: SeenSeat::of(&seen, seat), now };
        let transition = lifecycle::Transition::GiveUp(shown(seat, newest));
        let item = self.lobby_item(at, &seen);
        let prior = if newest > 0 { wire::read(&item) } else { wire::refused(&item) };
        let lobby = self.later_of(&seen, seat);
        self.transition(at, lobby, Some(prior), sent, transition)
    }

    fn leave(&mut self, is_reserved: bool, is_hidden: bool) -> Option<Scene> {
        let (at, seat, now, seen) = (self.below(LOBBIES), self.below(SEATS), self.now, self.lobby());
        let transition = lifecycle::Transition::Leave(mapping::seat_id(seat));
        let how = Left::Anyhow;
        if !is_reserved && !is_hidden {
            let sent =
                Sent::Leave { lobby: at, seat, mate: None, how, is_hidden, seen: SeenSeat::default(), now };
            return self.transition(at, seen, None, sent, transition);
        }
        let is_so = seen.holds(seat) && is_reserved == (seen.reserved[seat] > 0);
        if !is_so || is_hidden != (seen.joinable_from == 0) || !self.is_alive(&seen) {
            return None;
        }
        let sent =
            Sent::Leave { lobby: at, seat, mate: None, how, is_hidden, seen: SeenSeat::of(&seen, seat), now };
        let (lobby, prior) = (self.later_of(&seen, seat), wire::refused(&self.lobby_item(at, &seen)));
        self.transition(at, lobby, Some(prior), sent, transition)
    }

    /// A party gives its seats back.
    fn give_back(&mut self, is_hidden: bool) -> Option<Scene> {
        let (at, now, mut seen) = (self.below(LOBBIES), self.now, self.lobby());
        let seat = self.below(SEATS);
        let mate = (seat + 1) % SEATS;
        let are_reserved = [seat, mate].iter().all(|seat| seen.reserved[*seat] > 0);
        if !are_reserved || is_hidden != (seen.joinable_from == 0) || !self.is_alive(&seen) {
            return None;
        }
        seen.tokens[mate] = Tokens::none();
        let (how, of_seat) = (Left::Anyhow, SeenSeat::of(&seen, seat));
        let sent = Sent::Leave { lobby: at, seat, mate: Some(mate), how, is_hidden, seen: of_seat, now };
        let seats = Seats::together(mapping::seat_id(seat), vec![mapping::seat_id(mate)]);
        let read = mapping::lobby(&self.rules, at, &seen);
        let send = any(move |store| async move { store.give_back(read, &seats, mapping::time(now)).await });
        let lobby = self.later_of(&seen, seat);
        self.scene(sent, |state| state.lobbies[at] = lobby, Vec::new(), send)
    }

    /// A player disconnects, on the guess that no seat is kept.
    fn disconnect(&mut self) -> Option<Scene> {
        let (at, seat, now, seen) = (self.below(LOBBIES), self.below(SEATS), self.now, self.lobby());
        let how = Left::ByUnlessKept(0);
        let sent = Sent::Leave {
            lobby: at,
            seat,
            mate: None,
            how,
            is_hidden: false,
            seen: SeenSeat::default(),
            now,
        };
        let transition = lifecycle::Transition::Disconnect(shown(seat, 0), None);
        self.transition(at, seen, None, sent, transition)
    }

    fn lease_of_lobby(
        &mut self,
        at: usize,
        lobby: Lobby,
        prior: Option<WireAnswer>,
        sent: Sent,
        (server, lease): (usize, Lease),
    ) -> Option<Scene> {
        let granting = Server { registration: 1, lease_until: lease.until, ..Server::default() };
        let stored = mapping::server(server, &granting);
        let heartbeat_at = mapping::time(lease.heartbeat_at);
        let send = any(move |store| async move {
            store.extend_lease(&mapping::lobby_id(at), &stored, heartbeat_at).await
        });
        self.scene(sent, |state| state.lobbies[at] = lobby, Vec::from_iter(prior), send)
    }

    fn lease(&mut self) -> Lease {
        let (until, heartbeat_at) = (self.time(), self.time());
        Lease { until: self.usually(until, NEVER), heartbeat_at }
    }

    fn extend_lease(&mut self) -> Option<Scene> {
        let (at, seen, lease) = (self.below(LOBBIES), self.lobby(), self.lease());
        let (server, lobby) = (usize::from(seen.server.max(1)) - 1, self.later(&seen));
        let sent = Sent::ExtendLease { lobby: at, server, lease };
        self.lease_of_lobby(at, lobby, None, sent, (server, lease))
    }

    fn show_revived(&mut self) -> Option<Scene> {
        let (at, seen, lease) = (self.below(LOBBIES), self.lobby(), self.lease());
        if !seen.is_there() {
            return None;
        }
        let seen = Lobby { joinable_from: NEVER, ..seen };
        let (lobby, prior) = (self.later(&seen), wire::written(&self.lobby_item(at, &seen)));
        self.lease_of_lobby(at, lobby, Some(prior), Sent::ShowRevived { lobby: at }, (0, lease))
    }

    fn end(&mut self, cause: EndCause) -> Option<Scene> {
        let (at, now, mut seen, mut host) = (self.below(LOBBIES), self.now, self.lobby(), self.server());
        if cause == EndCause::ServerDead && seen.is_there() && host.is_there() {
            (seen.lease_until, host.lease_until) = (self.within(now - 1, now), self.within(now - 1, now + 1));
        }
        let is_meant = match cause {
            EndCause::NeverReady => seen.stage == Stage::Starting,
            EndCause::Idle | EndCause::Unused => seen.stage == Stage::Ready,
            _ => matches!(seen.stage, Stage::Starting | Stage::Ready),
        };
        if seen.server == 0 || !is_meant {
            return None;
        }
        let (mut lobby, stored) = (self.later(&seen), mapping::lobby(&self.rules, at, &seen));
        if cause == EndCause::ServerDead && lobby.is_there() && self.one_in(4) {
            lobby.lease_until = now + 1;
        }
        if cause == EndCause::Unused && self.one_in(2) {
            (seen.connected_by, lobby.connected_by) =
                (0, if self.one_in(2) { 0 } else { lobby.connected_by });
        }
        if matches!(cause, EndCause::Idle | EndCause::Unused) && lobby.is_there() && self.one_in(4) {
            let (seat, until) =
                ((0..SEATS).find(|seat| !lobby.holds(*seat)).unwrap_or_default(), self.time());
            (if self.one_in(2) { &mut lobby.reserved } else { &mut lobby.connected })[seat] = until;
            (lobby.taken, lobby.lapsed) = (lobby.entries(), 0);
        }
        let send = move |store: Store| -> Sending {
            let ambient = Ambient::new(move || mapping::time(now), |bytes| bytes.fill(7));
            Box::pin(async move {
                match store.end_lobby(&stored, mapping::cause(cause), &ambient).await {
                    Ok(EndOutcome::Ended) => vec![Outcome::Made],
                    Ok(EndOutcome::AlreadyEnded) => vec![Outcome::Refused(Part::Lobby)],
                    Ok(EndOutcome::Outdated) if cause == EndCause::ServerDead => {
                        vec![Outcome::Refused(Part::Lobby), Outcome::Refused(Part::Server)]
                    }
                    Ok(EndOutcome::Outdated) => vec![Outcome::Refused(Part::Lobby)],
                    Err(error) => vec![bug(&error)],
                }
            })
        };
        let host_at = usize::from(seen.server) - 1;
        let set = |state: &mut State| (state.lobbies[at], state.servers[host_at]) = (lobby, host);
        self.scene(end_as_seen(&seen, at, cause, now), set, [], Box::new(send))
    }

    /// A creation without a write to a head: the model leaves its renewal out.
    fn create(&mut self, block: Option<u8>) -> Option<Scene> {
        let (at, seat, now, server) = (self.below(LOBBIES), self.below(SEATS), self.now, self.below(SERVERS));
        let (mut seen, cap, ledger) = (self.server(), self.within(2, 4), self.within(0, 3));
        if !seen.is_there() || seen.used >= seen.capacity {
            return None;
        }
        seen.expires = self.one_in(8);
        seen.allotted = self.within(seen.used, seen.used + 2);
        seen.cap_checked = if block.is_none() { cap } else { seen.cap_checked };
        seen.lease_until = self.within(now, now + 3);
        let until = now + self.rules.reservation;
        let is_private = self.one_in(3);
        let creation = Creation {
            lobby: at,
            seat,
            mate: (self.rules.max_players > 1 && self.one_in(2)).then_some((seat + 1) % SEATS),
            until,
            version: self.within(0, 1),
            is_private,
            server,
            seen,
            block,
            cap,
            may_create: true,
            requests: false,
            now,
        };
        let lobby = if self.one_in(6) { self.lobby() } else { Lobby::default() };
        let mut host = self.server_later(&seen);
        match self.within(0, 9) {
            _ if !host.is_there() => {}
            0 => host.used = seen.capacity - 1,
            1 => (host.used, host.allotted) = (seen.capacity, seen.capacity + 1),
            2 => host.allotted += 1,
            3 => host.cap_checked += 1,
            4 => host.registration = 3 - seen.registration,
            _ => {}
        }
        let stored = StoredCreation {
            lobby: self.new_lobby(&creation),
            server: mapping::server(server, &seen),
            lobby_count_max: cap.into(),
            requests: None,
            block: block.map(Into::into),
            renewal: None,
            tags: Tags::new(),
            config: None,
        };
        let set = |state: &mut State| {
            (state.lobbies[at], state.servers[server], state.ledger) = (lobby, host, ledger);
        };
        self.scene(Sent::Create(creation), set, [], creating(stored, now))
    }

    /// The lobby that a find puts, whose fields matchmaking fills from the find and the game server.
    fn new_lobby(&self, creation: &Creation) -> shared::models::lobby::Lobby {
        let Creation { lobby, seat, mate, until, version, is_private, server, seen, now, .. } = *creation;
        let stage = if seen.auto_ready { Stage::Ready } else { Stage::Starting };
        let (taken, max_party) = (1 + u8::from(mate.is_some()), self.rules.max_party);
        let waits = seen.is_requested();
        let bare = Lobby { stage, version, created_at: now, max_party, waits, taken, ..Lobby::default() };
        let stored = shared::models::lobby::Lobby {
            is_private,
            server: Some(mapping::server_key(server)),
            lease_until: mapping::time(seen.lease_until),
            idle_secs: u32::try_from(mapping::span(self.rules.idle).as_secs()).unwrap(),
            reserved: once(seat)
                .chain(mate)
                .map(|seat| (mapping::seat_id(seat), mapping::time(until)))
                .collect(),
            ..mapping::lobby(&self.rules, lobby, &bare)
        };
        let is_full = stored.taken >= stored.max_players;
        let in_sight_from = if is_full { stored.first_lapse() } else { mapping::time(now) };
        shared::models::lobby::Lobby { joinable_from: (!is_private).then_some(in_sight_from), ..stored }
    }

    fn key(&self) -> HeadKey {
        HeadKey::new(&mapping::pool(0), &TagDigests::default(), self.rules.max_players.into())
    }

    fn begin(&mut self, replaces: bool) -> Option<Scene> {
        let (first, now, head) = (self.below(LOBBIES), self.now, self.head());
        let mut seen = self.head();
        if self.one_in(2) {
            seen = head;
        }
        if replaces && seen.first == 0 {
            return None;
        }
        let seen = replaces.then_some(seen);
        let exhausted = seen.as_ref().map(mapping::burst);
        let (key, secret) = (self.key(), mapping::secret());
        let beginning = Beginning { key, secret, positions: 1, has_parties: false, exhausted };
        let send = any(move |store| async move {
            store
                .begin_burst(&beginning, &mapping::lobby_id(first), Duration::ZERO, mapping::head_time(now))
                .await
        });
        self.scene(Sent::Begin { seen, first, taken: None, now }, |state| state.head = head, [], send)
    }

    fn announce(&mut self) -> Option<Scene> {
        let (first, now, head, taken) = (self.below(LOBBIES), self.now, self.head(), self.within(0, 3));
        let lobby = Lobby { stage: Stage::Ready, taken, ..Lobby::default() };
        let (key, stored) = (self.key(), mapping::lobby(&self.rules, first, &lobby));
        let send = any(move |store| async move {
            store.announce_free_seat(key, mapping::secret(), &stored, mapping::head_time(now)).await
        });
        let sent = Sent::Begin { seen: None, first, taken: Some(taken), now };
        self.scene(sent, |state| state.head = head, [], send)
    }

    fn draw(&mut self) -> Option<Scene> {
        let (head, seen, key) = (self.head(), self.head(), self.key());
        if seen.first == 0 {
            return None;
        }
        let burst = mapping::burst(&seen);
        let send =
            any(move |store| async move { store.draw_positions(&key, &burst, 1, Duration::ZERO).await });
        self.scene(Sent::Draw { first: seen.first }, |state| state.head = head, [], send)
    }

    fn register(&mut self, is_known: bool) -> Option<Scene> {
        let (at, now, registration) = (self.below(SERVERS), self.now, self.within(3, 4));
        let seen = Some(self.server()).filter(|_| is_known);
        if seen.is_some_and(|seen| !seen.is_there()) {
            return None;
        }
        let truth = match seen {
            Some(seen) => self.server_later(&seen),
            None if self.one_in(2) => Server::default(),
            None => self.server(),
        };
        let item = registration_of(seen, registration, self.within(1, 3), self.within(0, 3), now);
        let (new, old) = (mapping::server(at, &item), seen.map(|seen| mapping::server(at, &seen)));
        let send = any(move |store| async move {
            match old {
                Some(old) => store.replace_server(&new, &old).await,
                None => store.add_server(&new).await,
            }
        });
        let sent = Sent::Register { server: at, item, seen };
        self.scene(sent, |state| state.servers[at] = truth, [], send)
    }

    fn allot_ahead(&mut self) -> Option<Scene> {
        let (at, ledger, seen) = (self.below(SERVERS), self.within(0, 3), self.server());
        // From a cap of 128 on, a 64th of it is more than one lobby.
        let cap = [2, 3, 4, 128, 200][self.below(5)];
        self.rules.block = cap / 64;
        let seen = Server { allotted: 0, ..seen };
        let block = seen.next_block(&self.rules, cap).unwrap();
        if !seen.is_there() {
            return None;
        }
        let ledger = if cap < 128 { ledger } else { cap / 2 - block + ledger - 1 };
        let (truth, stored) = (self.server_later(&seen), mapping::server(at, &seen));
        let send = move |store: Store| -> Sending {
            Box::pin(async move {
                let allotted = store.allot_at_registration(&stored, cap.into()).await.unwrap().unwrap();
                let refused = [Part::Server, Part::Ledger].map(Outcome::Refused).to_vec();
                if allotted.allotted > 0 { vec![Outcome::Made] } else { refused }
            })
        };
        let sent = Sent::AllotAhead { server: at, registration: seen.registration, block, cap };
        let set = |state: &mut State| (state.servers[at], state.ledger) = (truth, ledger);
        self.scene(sent, set, [], Box::new(send))
    }

    fn beat(&self, at: usize, truth: Server, prior: Option<WireAnswer>, sent: Sent) -> Option<Scene> {
        let now = mapping::time(self.now);
        let send = any(move |store| async move {
            let (start, owner) = (mapping::start(), mapping::owner());
            store.extend_server_lease(&mapping::server_key(at), Some(&start), &owner, now).await
        });
        self.scene(sent, |state| state.servers[at] = truth, Vec::from_iter(prior), send)
    }

    fn heartbeat(&mut self) -> Option<Scene> {
        let (at, truth) = (self.below(SERVERS), self.server());
        self.beat(at, truth, None, Sent::Heartbeat { server: at, now: self.now })
    }

    fn show_server(&mut self) -> Option<Scene> {
        let (at, seen) = (self.below(SERVERS), self.server());
        if seen.free_from != NEVER || seen.used >= seen.capacity {
            return None;
        }
        // Its own condition on a record that expires is left out.
        let mut truth = Server { expires: false, ..self.server_later(&seen) };
        if self.one_in(6) && truth.ranked_at < NEVER {
            truth.free_from = truth.ranked_at;
        }
        let prior = wire::written(&mapping::server_item(at, &seen).unwrap());
        let sent = Sent::ShowServer { server: at, registration: seen.registration };
        self.beat(at, truth, Some(prior), sent)
    }

    fn deregister(&mut self) -> Option<Scene> {
        let (at, now, seen) = (self.below(SERVERS), mapping::time(self.now), self.server());
        if !seen.is_there() {
            return None;
        }
        let (truth, stored) = (self.server_later(&seen), mapping::server(at, &seen));
        let send = any(move |store| async move { store.deregister_server(&stored, now).await });
        let sent = Sent::Deregister { server: at, registration: seen.registration };
        self.scene(sent, |state| state.servers[at] = truth, [], send)
    }

    /// A look for places that meets `seen`.
    fn look(&mut self, at: usize, seen: &Server, sent: Sent) -> Option<Scene> {
        let (now, truth, ledger) = (mapping::time(self.now), self.server_later(seen), self.within(0, 3));
        let prior = wire::listed(&mapping::server_item(at, seen).unwrap());
        let send = move |store: Store| -> Sending {
            Box::pin(async move {
                let looked =
                    store.servers_with_places(&mapping::placement(), &mapping::parsed("arena"), now).await;
                looked.map_or_else(|error| vec![bug(&error)], |_| Vec::new())
            })
        };
        let set = |state: &mut State| (state.servers[at], state.ledger) = (truth, ledger);
        self.scene(sent, set, prior, Box::new(send))
    }

    fn hide_server(&mut self) -> Option<Scene> {
        let (at, now, seen) = (self.below(SERVERS), self.now, self.server());
        if !seen.is_there() || seen.lease_until > now || seen.used == 0 {
            return None;
        }
        self.look(at, &seen, Sent::HideServer { server: at, used: seen.used, now })
    }

    fn let_go(&mut self, is_silent: bool, has_allotment: bool) -> Option<Scene> {
        let (at, now, seen) = (self.below(SERVERS), self.now, self.server());
        let is_over = if is_silent { seen.lease_until <= now } else { seen.is_deregistered() };
        let seen = Server { used: 0, ..seen };
        let is_meant = is_silent != seen.is_deregistered() && has_allotment == (seen.allotted > 0);
        if !seen.is_there() || !is_over || !is_meant {
            return None;
        }
        let how = if is_silent { Gone::Silent } else { Gone::Deregistered };
        self.look(at, &seen, Sent::LetGo { server: at, allotted: seen.allotted, how, now })
    }

    fn take_back(&mut self) -> Option<Scene> {
        let (at, ledger, seen, cap) =
            (self.below(SERVERS), self.within(0, 3), self.server(), self.within(1, 3));
        let left = seen.left();
        let block = if seen.cap_checked == cap { left.div_ceil(2) } else { left };
        if block == 0 {
            return None;
        }
        let (truth, stored) = (self.server_later(&seen), mapping::server(at, &seen));
        let send = move |store: Store| -> Sending {
            Box::pin(async move {
                match store.take_allotment_back(&stored, cap.into()).await {
                    Ok(AllotmentOutcome::Moved) => vec![Outcome::Made],
                    Ok(_) => vec![Outcome::Refused(Part::Server)],
                    Err(error) => vec![bug(&error)],
                }
            })
        };
        let sent = Sent::TakeBack { server: at, allotted: seen.allotted, block };
        let set = |state: &mut State| (state.servers[at], state.ledger) = (truth, ledger);
        self.scene(sent, set, [], Box::new(send))
    }
}
