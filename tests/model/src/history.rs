//! What happened so far, kept beside the tables: every write is judged by it at its instant, by rules of its
//! own.

use std::iter::once;

use super::{
    tables::{
        Access, EndCause, LOBBIES, LaunchStage, Lobby, Mate, NEVER, Nursery, Process, REQUEST, Rules, SEATS,
        SERVERS, Server, Stage, Starts, Tokens, first,
    },
    writes::Creation,
};

/// An invariant's number and what broke it.
pub(super) type Broken = (u8, &'static str);

/// `Err` when `is_broken`.
pub(super) const fn broken(is_broken: bool, invariant: u8, what: &'static str) -> Result<(), Broken> {
    if is_broken { Err((invariant, what)) } else { Ok(()) }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct History {
    pub(super) lobbies: [LobbyHistory; LOBBIES],
    pub(super) seats: [SeatHistory; SEATS],
    pub(super) servers: [ServerHistory; SERVERS],
    /// Lobbies that drew, or were placed on a started server, a bit each.
    placed: u8,
    /// Servers that were requested, and those of them that are over.
    requested: u8,
    over: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LobbyHistory {
    pub(super) was_created: bool,
    pub(super) has_ended: bool,
    pub(super) is_closed: bool,
    pub(super) is_draining: bool,
    pub(super) was_ready: bool,
    pub(super) created_at: u8,
    /// When a seat was given up last.
    left_at: u8,
    /// Until when its server has said that it lives.
    pub(super) leased_until: u8,
    version: u8,
    server: u8,
    /// Where there is an election: the last change of its index entry, the worst earlier value, and since
    /// when the lobby can be entered.
    pub(super) indexed_at: u8,
    pub(super) indexed_before: u8,
    pub(super) joinable_since: u8,
    /// Whether a seat was free then, and not only lapsed.
    pub(super) was_free: bool,
    /// Whether it waited for its server, which has come.
    was_opened: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Seat {
    #[default]
    Unknown,
    Reserved,
    Connected,
    Left,
    Lapsed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct SeatHistory {
    pub(super) state: Seat,
    pub(super) lobby: u8,
    until: u8,
    /// The tokens that were issued after the first.
    pub(super) newest: u8,
    /// The number of the token that connected last, and 1.
    connected: u8,
    /// Whether its player left while connected, with the newest token.
    is_leaving: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ServerHistory {
    pub(super) is_deregistered: bool,
    pub(super) leased_until: u8,
    registration: u8,
    capacity: u8,
    /// Whether its registration was not answered so far.
    pub(super) is_unanswered: bool,
    /// Of one that Muster had started: whether it was given up or has stopped.
    is_over: bool,
}

impl LobbyHistory {
    pub(super) const fn lives(&self) -> bool {
        self.was_created && !self.has_ended
    }

    pub(super) const fn runs_on(&self, server: usize) -> bool {
        self.lives() && self.server as usize == server
    }

    const fn should_have_started(&self, rules: &Rules, now: u8) -> bool {
        !self.was_ready && self.created_at + rules.starting_max <= now
    }
}

impl ServerHistory {
    const fn is_silent(&self, now: u8) -> bool {
        self.registration > 0 && !self.is_over && self.leased_until <= now
    }
}

impl SeatHistory {
    const fn reserved(at: usize, until: u8) -> Self {
        Self { state: Seat::Reserved, lobby: at as u8, until, newest: 0, connected: 0, is_leaving: false }
    }

    pub(super) fn is_held_in(&self, lobby: usize) -> bool {
        matches!(self.state, Seat::Reserved | Seat::Connected) && usize::from(self.lobby) == lobby
    }
}

impl History {
    /// A server that was there from the beginning.
    pub(super) fn found_server(&mut self, at: usize, item: &Server) {
        let Server { lease_until: leased_until, registration, capacity, .. } = *item;
        self.servers[at] = ServerHistory { leased_until, registration, capacity, ..ServerHistory::default() };
    }

    /// A lobby that was there from the beginning.
    pub(super) fn found_lobby(&mut self, at: usize, item: &Lobby) {
        self.lobbies[at] = LobbyHistory {
            was_created: true,
            has_ended: item.stage == Stage::Ended,
            is_closed: item.closed,
            is_draining: item.is_draining,
            was_ready: item.stage == Stage::Ready,
            created_at: item.created_at,
            leased_until: item.lease_until,
            version: item.version,
            server: item.server.saturating_sub(1),
            ..LobbyHistory::default()
        };
        for seat in 0..SEATS {
            let seats = [(Seat::Reserved, item.reserved[seat]), (Seat::Connected, item.connected[seat])];
            if let Some((state, until)) = seats.into_iter().find(|(_, until)| *until > 0) {
                let tokens = item.tokens[seat];
                let has_connected = state == Seat::Connected || tokens.are_there();
                self.seats[seat] = SeatHistory {
                    state,
                    lobby: at as u8,
                    until,
                    newest: tokens.newest(),
                    connected: if has_connected { tokens.connected() + 1 } else { 0 },
                    is_leaving: tokens.is_leaving(),
                };
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what a seat is made of")]
    pub(super) fn granted(
        &mut self,
        rules: &Rules,
        item: &Lobby,
        at: usize,
        (seat, mate): (usize, Mate),
        until: u8,
        access: Access,
        now: u8,
    ) -> Result<(), Broken> {
        let seats = || once(seat).chain(mate);
        let held = seats().filter(|seat| self.seats[*seat].is_held_in(at)).count();
        broken(held == 1 && mate.is_some(), 13, "one seat of a party was taken without the other")?;
        broken(seats().any(|seat| item.reserved[seat] != until), 13, "a party was seated in part")?;
        let lobby = &self.lobbies[at];
        broken(lobby.has_ended, 6, "a seat in an ended lobby")?;
        broken(lobby.leased_until <= now, 6, "a seat in a lobby of a dead server")?;
        broken(lobby.should_have_started(rules, now), 6, "a seat in a lobby that never became ready")?;
        let of_party = if mate.is_some() { item.max_party } else { 0 };
        if let Access::Find(version) = access {
            broken(lobby.is_closed || lobby.is_draining, 6, "a find's seat in a closed lobby")?;
            broken(item.is_private, 6, "a find's seat in a private lobby")?;
            broken(lobby.version != version, 6, "a seat in another version's lobby")?;
            let capacity = rules.max_players.max(of_party);
            broken(item.entries() > capacity, 1, "a find's seat beyond the capacity")?;
        }
        broken(item.entries() > rules.max_direct.max(of_party), 1, "a seat beyond the capacity")?;
        broken(held > 0, 1, "one find holds two seats")?;
        for seat in seats() {
            self.seats[seat] = SeatHistory::reserved(at, until);
        }
        Ok(())
    }

    pub(super) fn taken_over(&mut self, at: usize, seats: u8, now: u8) -> Result<(), Broken> {
        for seat in first(seats) {
            let held = &mut self.seats[seat];
            let starts = !self.lobbies[at].was_ready;
            broken(held.is_held_in(at) && (starts || held.until > now), 4, "a held seat was taken over")?;
            held.state = Seat::Lapsed;
        }
        Ok(())
    }

    pub(super) fn became_ready(&mut self, rules: &Rules, at: usize, anew: u8, now: u8) -> Result<(), Broken> {
        let lobby = &mut self.lobbies[at];
        broken(lobby.has_ended, 10, "an ended lobby became ready")?;
        broken(lobby.should_have_started(rules, now), 10, "a lobby became ready too late")?;
        broken(lobby.was_ready, 7, "reservations were renewed twice")?;
        lobby.was_ready = true;
        for seat in &mut self.seats {
            if seat.is_held_in(at) {
                seat.until = anew;
            }
        }
        Ok(())
    }

    pub(super) fn closed(&mut self, at: usize) -> Result<(), Broken> {
        let lobby = &mut self.lobbies[at];
        lobby.is_closed = true;
        broken(lobby.has_ended, 10, "an ended lobby was closed")
    }

    pub(super) fn reopened(&mut self, at: usize) -> Result<(), Broken> {
        let lobby = &mut self.lobbies[at];
        lobby.is_closed = false;
        broken(lobby.has_ended, 10, "an ended lobby was reopened")?;
        broken(lobby.is_draining, 10, "a lobby closed for good was reopened")
    }

    /// Made private.
    pub(super) fn hidden(&self, at: usize) -> Result<(), Broken> {
        broken(self.lobbies[at].has_ended, 10, "an ended lobby was made private")
    }

    /// Made public.
    pub(super) fn shown(&self, at: usize) -> Result<(), Broken> {
        broken(self.lobbies[at].has_ended, 10, "an ended lobby was made public")
    }

    pub(super) fn drained(&mut self, rules: &Rules, at: usize, now: u8) -> Result<(), Broken> {
        let lobby = &mut self.lobbies[at];
        lobby.is_draining = true;
        broken(lobby.should_have_started(rules, now), 10, "a lobby that never became ready lives on")?;
        broken(lobby.has_ended, 10, "an ended lobby drains")
    }

    pub(super) fn connected(
        &mut self,
        at: usize,
        seat: usize,
        token: u8,
        until: u8,
        now: u8,
    ) -> Result<(), Broken> {
        let lobby = &self.lobbies[at];
        let held = &mut self.seats[seat];
        broken(held.connected > token, 7, "a player connected twice, or with a token before the last")?;
        broken(held.newest != token, 7, "a player connected with an older token than the newest")?;
        broken(held.is_leaving, 7, "a player connected with a token that was left with")?;
        broken(lobby.has_ended, 7, "a player connected after the end")?;
        broken(!lobby.was_ready, 7, "a player connected before the lobby was ready")?;
        broken(!held.is_held_in(at) || held.until <= now, 7, "a player connected too late")?;
        *held = SeatHistory { state: Seat::Connected, until, connected: token + 1, ..*held };
        Ok(())
    }

    /// `by` is the token of the player who left, if that counts.
    pub(super) fn left(
        &mut self,
        rules: &Rules,
        at: usize,
        seat: usize,
        by: Option<u8>,
        now: u8,
    ) -> Result<(), Broken> {
        broken(self.lobbies[at].has_ended, 10, "an ended lobby was left")?;
        self.lobbies[at].left_at = now;
        let held = &mut self.seats[seat];
        if held.is_held_in(at) {
            let is_there = held.state == Seat::Connected && held.until > now;
            let is_others = by.is_some_and(|token| token + 1 != held.connected);
            broken(is_there && is_others, 4, "the seat of a player who is there was given up")?;
            let is_kept_for = rules.keep > 0 || held.newest >= held.connected;
            let is_lost = is_there && is_kept_for && !held.is_leaving && by.is_some();
            broken(is_lost, 4, "the seat of a player who may come back was given up")?;
            held.state = Seat::Left;
        }
        Ok(())
    }

    /// The player who has `token` disconnected, and the seat is kept.
    pub(super) fn kept(&mut self, at: usize, seat: usize, token: u8, until: u8) -> Result<(), Broken> {
        broken(self.lobbies[at].has_ended, 10, "an ended lobby keeps a seat")?;
        let held = &mut self.seats[seat];
        let is_there = held.is_held_in(at) && held.state == Seat::Connected;
        broken(!is_there, 4, "a seat is kept in which nobody was")?;
        broken(token + 1 != held.connected, 4, "the seat of a player who is there was given up")?;
        broken(held.is_leaving, 4, "a seat is kept for a player who will not return")?;
        (held.state, held.until) = (Seat::Reserved, until);
        Ok(())
    }

    /// Another token was issued, or its player left with the newest.
    pub(super) fn tokens_changed(
        &mut self,
        at: usize,
        seat: usize,
        next: Tokens,
        now: u8,
    ) -> Result<(), Broken> {
        broken(self.lobbies[at].has_ended, 10, "an ended lobby issues tokens")?;
        let held = &mut self.seats[seat];
        broken(!held.is_held_in(at) || held.until <= now, 7, "a token for a seat that is not held")?;
        broken(next.newest() < held.newest, 7, "a token was forgotten")?;
        (held.newest, held.is_leaving) = (next.newest(), next.is_leaving());
        Ok(())
    }

    pub(super) fn hidden_as_silent(&self, at: usize, now: u8) -> Result<(), Broken> {
        broken(self.lobbies[at].leased_until > now, 10, "a revived lobby was put out of sight")
    }

    pub(super) fn lease_extended(&mut self, at: usize, server: usize, until: u8) -> Result<(), Broken> {
        let lobby = &mut self.lobbies[at];
        broken(lobby.has_ended, 10, "an ended lobby's lease was extended")?;
        broken(!lobby.runs_on(server), 10, "another server's lobby was revived")?;
        broken(lobby.leased_until < NEVER && until < lobby.leased_until, 10, "a lease was shortened")?;
        lobby.leased_until = until;
        Ok(())
    }

    /// `idle` is how long the lobby stays empty.
    pub(super) fn ended(
        &mut self,
        at: usize,
        server: usize,
        cause: EndCause,
        idle: u8,
        now: u8,
    ) -> Result<(), Broken> {
        let held = self.seats.iter().any(|seat| seat.is_held_in(at) && seat.until > now);
        let was_leased = self.lobbies[at].leased_until > now;
        let lobby = &mut self.lobbies[at];
        // Without an idle time it ends with its last player, at any time of another clock.
        let is_early = idle > 0 && lobby.left_at > 0 && lobby.left_at + idle > now;
        let had_ended = std::mem::replace(&mut lobby.has_ended, true);
        broken(had_ended, 4, "a lobby ended twice")?;
        let lives = self.servers[server].leased_until > now;
        match cause {
            EndCause::Asked => Ok(()),
            EndCause::ServerDead => broken(lives || was_leased, 10, "a living server's lobby was replaced"),
            EndCause::NeverReady => broken(lobby.was_ready, 4, "a ready lobby ended as if it had never been"),
            EndCause::Unused => {
                let seats = self.seats.iter();
                let is_used = seats.into_iter().any(|seat| seat.is_held_in(at) && seat.connected > 0);
                broken(is_used, 4, "a lobby made room with a player in it")
            }
            EndCause::Idle => {
                broken(held, 4, "a lobby ended with a held seat")?;
                broken(is_early, 4, "a lobby ended before its idle time was over")
            }
        }
    }

    /// `cap_now` is the cap as it is, which the creator may not know yet.
    pub(super) fn created(
        &mut self,
        rules: &Rules,
        creation: &Creation,
        item: &Lobby,
        cap_now: u8,
    ) -> Result<(), Broken> {
        let Creation { lobby: at, seat, mate, until, version, server, seen, cap, now, .. } = *creation;
        let existed = self.lobbies[at].was_created;
        if seen.launch.stage.is_some() {
            self.placed |= 1 << at;
        }
        self.lobbies[at] = LobbyHistory {
            was_created: true,
            was_ready: seen.auto_ready,
            created_at: now,
            leased_until: seen.lease_until,
            version,
            server: server as u8,
            ..LobbyHistory::default()
        };
        broken(existed, 4, "a lobby was created over another one")?;
        let host = &self.servers[server];
        broken(!creation.may_create, 8, "a find created that may not")?;
        let live = self.lobbies.iter().filter(|lobby| lobby.lives()).count();
        broken(live > usize::from(cap.max(cap_now)), 2, "more lobbies than the cap")?;
        let runs = self.lobbies.iter().filter(|lobby| lobby.runs_on(server)).count();
        broken(host.is_deregistered, 6, "a lobby on a server that deregistered")?;
        broken(host.leased_until <= now, 6, "a lobby on a dead server")?;
        broken(host.registration != seen.registration, 6, "a lobby with ports of an earlier registration")?;
        broken(runs > usize::from(host.capacity), 2, "more lobbies than the server has places")?;
        let of_party = if mate.is_some() { item.max_party } else { 0 };
        broken(item.entries() > rules.max_players.max(of_party), 1, "a seat beyond the capacity")?;
        for seat in once(seat).chain(mate) {
            broken(item.reserved[seat] != until, 13, "a party was seated in part")?;
            self.seats[seat] = SeatHistory::reserved(at, until);
        }
        Ok(())
    }

    pub(super) fn registered(&mut self, at: usize, item: &Server) -> Result<(), Broken> {
        broken(self.servers[at].is_over, 10, "a server that is over registered")?;
        self.found_server(at, item);
        self.servers[at].is_unanswered = true;
        Ok(())
    }

    /// The registration that `actor` made is answered, if no other one followed it.
    pub(super) const fn answered(&mut self, at: usize, actor: usize) {
        let server = &mut self.servers[at];
        if server.registration as usize % 8 == actor {
            server.is_unanswered = false;
        }
    }

    pub(super) fn expired(&self, at: usize, now: u8) -> Result<(), Broken> {
        let server = &self.servers[at];
        let lives = !server.is_deregistered && server.leased_until > now;
        broken(lives, 4, "a living server's places are lost with its record")
    }

    pub(super) fn beat(&mut self, at: usize, until: u8) -> Result<(), Broken> {
        let runs_none = !self.lobbies.iter().any(|lobby| lobby.runs_on(at));
        let server = &mut self.servers[at];
        broken(server.is_deregistered && runs_none, 10, "a server that deregistered revived")?;
        broken(until < server.leased_until, 10, "a server's lease was shortened")?;
        server.leased_until = until;
        Ok(())
    }

    /// A lobby drew in the nursery.
    pub(super) const fn drew(&mut self, mark: u8) {
        self.placed |= 1 << ((mark - 1) / 4);
    }

    /// A nursery begins in place of `old`, by a find that saw no place at `looked_at`. An old one whose draws
    /// the index shows by then is replaced, and one of which a server is full.
    pub(super) fn nursery_begun(
        &self,
        servers: &[Server; SERVERS],
        old: &Nursery,
        looked_at: u8,
        window: u8,
    ) -> Result<(), Broken> {
        let is_young = old.first > 0 && old.drawn_at + window > looked_at;
        let mut requested = servers.iter().filter(|server| server.is_requested());
        let is_any_full = requested.clone().any(|server| server.used >= server.capacity);
        let has_place = requested.next().is_some();
        broken(is_young && has_place && !is_any_full, 15, "a nursery began beside a server just requested")
    }

    /// A server is requested for lobbies that found no place: so many were placed before, or have drawn, that
    /// the others have no place for this one unless they are over or silent.
    pub(super) fn requested(
        &mut self,
        starts: &Starts,
        at: usize,
        item: &Server,
        now: u8,
    ) -> Result<(), Broken> {
        let silent = self.servers.iter().filter(|server| server.is_silent(now)).count() as u8;
        self.found_server(at, item);
        self.requested += 1;
        let needed = self.placed.count_ones().div_ceil(starts.capacity.into()) as u8;
        let is_one_too_many = self.requested > needed + self.over + silent;
        broken(is_one_too_many, 15, "more servers than the lobbies without a place need")
    }

    pub(super) fn opened(&mut self, at: usize, server: usize, until: u8) -> Result<(), Broken> {
        let lobby = &mut self.lobbies[at];
        broken(lobby.has_ended, 10, "an ended lobby was opened")?;
        broken(!lobby.runs_on(server), 10, "another server's lobby was opened")?;
        let is_shortened = lobby.was_opened && until < lobby.leased_until;
        (lobby.was_opened, lobby.leased_until) = (true, until);
        broken(is_shortened, 10, "a lease was shortened")
    }

    pub(super) fn failed(&mut self, at: usize) -> Result<(), Broken> {
        let has_registered = self.servers[at].registration != REQUEST;
        self.ends_places(at);
        broken(has_registered, 10, "a server that registered was given up")
    }

    pub(super) fn retired(&mut self, at: usize, process: Process, now: u8) -> Result<(), Broken> {
        let lives = process == Process::Runs && self.servers[at].leased_until > now;
        self.ends_places(at);
        broken(lives, 10, "a living server was retired")
    }

    pub(super) fn stopped(&mut self, at: usize) -> Result<(), Broken> {
        let runs_any = self.lobbies.iter().any(|lobby| lobby.runs_on(at));
        self.ends_places(at);
        broken(runs_any, 4, "a server with a lobby was stopped")
    }

    fn ends_places(&mut self, at: usize) {
        let server = &mut self.servers[at];
        self.over += u8::from(!server.is_over);
        (server.is_deregistered, server.is_over) = (true, true);
    }

    /// The stage of a started server goes one way.
    pub(super) fn check_stages(before: &[Server; SERVERS], after: &[Server; SERVERS]) -> Result<(), Broken> {
        use LaunchStage::{Gone, Requested, Running, Stopping};
        let goes = |before: &Server, after: &Server| match (before.launch.stage, after.launch.stage) {
            (None, after) => after.is_none_or(|after| after == Requested),
            (Some(Requested), Some(after)) => after != Stopping,
            (Some(Running), Some(after)) => matches!(after, Running | Stopping | Gone),
            (Some(Stopping), Some(after)) => matches!(after, Stopping | Gone),
            (before, after) => before == after || after.is_none(),
        };
        let go = before.iter().zip(after).all(|(before, after)| goes(before, after));
        broken(!go, 16, "the stage of a server went back")
    }
}
