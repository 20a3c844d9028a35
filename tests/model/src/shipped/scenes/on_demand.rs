//! Scenes of the writes for servers on demand.

use serde_json::json;
use shared::store::nursery::{Drawing, NurseryServer};

use super::*;
use crate::tables::{DRAWS, LaunchStage, Nursery};

impl Dice {
    fn starts(&self) -> Starts {
        self.rules.starts.unwrap()
    }

    fn launch(&mut self) -> Launch {
        use LaunchStage::{Failed, Gone, Requested, Running, Stopping};
        let stages = [Requested, Running, Running, Stopping, Failed, Gone];
        Launch {
            stage: Some(stages[self.below(stages.len())]),
            deadline: self.time(),
            idle_since: self.maybe_time(),
            has_handle: self.one_in(2),
            has_ended: self.one_in(3),
        }
    }

    /// A server that Muster had started.
    fn launched(&mut self) -> Server {
        let (server, launch) = (self.server(), self.launch());
        if server.is_there() { Server { launch, ..server } } else { server }
    }

    /// The same a while after it was `seen`.
    fn launched_later(&mut self, seen: &Server) -> Server {
        let (mut server, other) = (self.server_later(seen), self.launch());
        if !server.is_there() {
            return server;
        }
        server.launch = seen.launch;
        match self.within(0, 7) {
            0 | 1 => server.launch.stage = other.stage,
            2 => server.launch.idle_since = other.idle_since,
            3 => server.launch.has_handle = !server.launch.has_handle,
            4 => server.launch.has_ended = !server.launch.has_ended,
            5 => server.launch = Launch::default(),
            _ => {}
        }
        server
    }

    /// A write to a server that was seen by nobody, or as `seen`.
    fn on_started(
        &mut self,
        seen: &Server,
        sent: impl FnOnce(usize) -> Sent,
        send: impl FnOnce(usize) -> Box<dyn FnOnce(Store) -> Sending>,
    ) -> Option<Scene> {
        let (at, truth) = (self.below(SERVERS), self.launched_later(seen));
        self.scene(sent(at), |state| state.servers[at] = truth, [], send(at))
    }

    pub(super) fn fail(&mut self) -> Option<Scene> {
        let (now, seen) = (self.now, self.launched());
        let send = |at| {
            let stored = mapping::server(at, &seen);
            any(move |store| async move { store.fail_launch(&stored, "why", mapping::time(now)).await })
        };
        if !seen.is_there() {
            return None;
        }
        self.on_started(&seen, |server| Sent::FailLaunch { server, now }, send)
    }

    pub(super) fn retire(&mut self) -> Option<Scene> {
        let (now, mut seen) = (self.now, self.launched());
        if !seen.is_there() {
            return None;
        }
        seen.lease_until = self.within(now - 1, now + 1);
        let send = |at| {
            let stored = mapping::server(at, &seen);
            any(move |store| async move { store.retire_launched(&stored, mapping::time(now)).await })
        };
        self.on_started(&seen, |server| Sent::Retire { server, now }, send)
    }

    pub(super) fn stop_idle(&mut self) -> Option<Scene> {
        let (now, mut seen) = (self.now, self.launched());
        let since = seen.launch.idle_since;
        if !seen.is_there() || since == 0 {
            return None;
        }
        seen.used = self.within(0, 1);
        let send = |at| {
            let stored = mapping::server(at, &seen);
            any(move |store| async move { store.stop_idle(&stored, mapping::time(now)).await })
        };
        self.on_started(&seen, |server| Sent::StopIdle { server, since, now }, send)
    }

    pub(super) fn note_idle(&mut self, is_idle: bool) -> Option<Scene> {
        let (seen, since) = (self.launched(), if is_idle { self.time() } else { 0 });
        let send = |at| {
            let since = (since > 0).then(|| mapping::time(since));
            any(move |store| async move { store.note_idle(&mapping::server_key(at), since).await })
        };
        self.on_started(&seen, |server| Sent::NoteIdle { server, since }, send)
    }

    pub(super) fn note_handle(&mut self) -> Option<Scene> {
        let seen = self.launched();
        let send = |at| {
            any(
                move |store| async move { store.note_handle(&mapping::server_key(at), mapping::HANDLE).await },
            )
        };
        self.on_started(&seen, |server| Sent::NoteHandle { server }, send)
    }

    pub(super) fn note_ended(&mut self) -> Option<Scene> {
        let (now, seen) = (mapping::time(self.now), self.launched());
        let send =
            |at| any(move |store| async move { store.note_ended(&mapping::server_key(at), now).await });
        self.on_started(&seen, |server| Sent::NoteEnded { server }, send)
    }

    pub(super) fn open_on_launched(&mut self) -> Option<Scene> {
        let (at, mut seen, until) = (self.below(LOBBIES), self.lobby(), self.time());
        if !seen.is_there() || seen.server == 0 {
            return None;
        }
        seen.waits = true;
        let (server, mut lobby) = (usize::from(seen.server) - 1, self.later(&seen));
        if lobby.is_there() {
            lobby.waits = !self.one_in(4);
        }
        let stored = mapping::lobby(&self.rules, at, &seen);
        let granting = Server { registration: 1, lease_until: until, ..Server::default() };
        let granting = mapping::server(server, &granting);
        let send = any(move |store| async move { store.put_on_registered(&stored, &granting).await });
        let sent = Sent::OpenOnLaunched { lobby: at, server, until };
        self.scene(sent, |state| state.lobbies[at] = lobby, [], send)
    }

    pub(super) fn let_launched_go(&mut self) -> Option<Scene> {
        let (at, now, mut seen) = (self.below(SERVERS), mapping::time(self.now), self.launched());
        if !seen.is_there() {
            return None;
        }
        (seen.capacity, seen.used, seen.expires) = (0, 0, false);
        let (truth, ledger, counted) = (self.launched_later(&seen), self.within(0, 3), self.within(0, 2));
        if truth.is_there() && truth.launch.stage.is_none() {
            return None;
        }
        let stored = mapping::server(at, &seen);
        let send = move |store: Store| -> Sending {
            Box::pin(async move {
                match store.let_launched_server_go(&stored, now).await {
                    Ok(true) => vec![Outcome::Made],
                    Ok(false) => vec![Outcome::Refused(Part::Server)],
                    Err(error) => vec![bug(&error)],
                }
            })
        };
        let has_failed = seen.launch.stage == Some(LaunchStage::Failed);
        let sent = Sent::LetLaunchedGo { server: at, allotted: seen.allotted, has_failed };
        let set = |state: &mut State| {
            (state.servers[at], state.ledger, state.on_demand.counted) = (truth, ledger, counted);
        };
        self.scene(sent, set, [], Box::new(send))
    }

    /// After the last lobby of a server that may have deregistered has ended.
    pub(super) fn let_emptied_go(&mut self) -> Option<Scene> {
        let (at, now, lobby) = (self.below(LOBBIES), self.now, self.lobby());
        if !lobby.is_there() || lobby.server == 0 || lobby.stage == Stage::Ended {
            return None;
        }
        let seen = Server { capacity: 0, used: 0, allotted: 0, ..self.launched() };
        let host = usize::from(lobby.server) - 1;
        let truth = self.launched_later(&seen);
        let stored = mapping::lobby(&self.rules, at, &Lobby { is_draining: true, ..lobby });
        let prior = [wire::answer(200, &json!({}))];
        let send = any(move |store| async move {
            let ambient = Ambient::new(move || mapping::time(now), |bytes| bytes.fill(7));
            store.end_lobby(&stored, mapping::cause(EndCause::Asked), &ambient).await
        });
        let sent = Sent::LetGo { server: host, allotted: 0, how: Gone::Emptied, now };
        self.scene(sent, |state| state.servers[host] = truth, prior, send)
    }

    /// A creation that requests its server.
    pub(super) fn request(&mut self) -> Option<Scene> {
        let (at, seat, now, slot) = (self.below(LOBBIES), self.below(SEATS), self.now, self.below(SERVERS));
        let (cap, ledger, counted) = (self.within(2, 4), self.within(0, 3), self.within(0, 3));
        let (starts, block) = (self.starts(), self.within(1, 2));
        let creation = Creation {
            lobby: at,
            seat,
            mate: None,
            until: now + self.rules.reservation,
            version: self.within(0, 1),
            is_private: self.one_in(3),
            server: slot,
            seen: Server { cap_checked: cap, ..Server::requested(&starts, now) },
            block: Some(block),
            cap,
            may_create: true,
            requests: true,
            now,
        };
        let lobby = if self.one_in(6) { self.lobby() } else { Lobby::default() };
        let truth = if self.one_in(4) { self.launched() } else { Server::default() };
        let stored = StoredCreation {
            lobby: self.new_lobby(&creation),
            server: mapping::server(slot, &creation.seen),
            lobby_count_max: cap.into(),
            requests: Some(starts.servers_max.into()),
            block: Some(block.into()),
            renewal: None,
            tags: Tags::new(),
            config: None,
        };
        let set = |state: &mut State| {
            (state.lobbies[at], state.servers[slot]) = (lobby, truth);
            (state.ledger, state.on_demand.counted) = (ledger, counted);
        };
        self.scene(Sent::Create(creation), set, [], creating(stored, now))
    }

    fn mark(&mut self) -> u8 {
        4 * self.below(LOBBIES) as u8 + self.within(0, 3) + 1
    }

    fn nursery(&mut self) -> Nursery {
        let mut nursery = Nursery {
            failures: if self.one_in(2) { 0 } else { self.within(1, 4) },
            blocked_until: if self.one_in(3) { self.time() } else { 0 },
            ..Nursery::default()
        };
        if self.one_in(5) {
            return nursery;
        }
        (nursery.first, nursery.drawn_at) = (self.within(1, 2), self.within(self.now - 4, self.now));
        for _ in 0..self.within(1, 3) {
            let mark = self.mark();
            if nursery.position(mark).is_none() {
                nursery.draw(mark);
            }
        }
        nursery
    }

    fn nursery_later(&mut self, seen: &Nursery) -> Nursery {
        let (mut nursery, other, mark) = (*seen, self.nursery(), self.mark());
        match self.within(0, 6) {
            0 => return other,
            1 => nursery.first = 3 - nursery.first,
            2 if nursery.position(mark).is_none() => {
                nursery.draw(mark);
            }
            3 => nursery.drawn_at = other.drawn_at,
            4 => nursery.blocked_until = other.blocked_until,
            5 => nursery.failures = other.failures,
            _ => {}
        }
        if nursery.first == 0 { other } else { nursery }
    }

    /// A draw of a lobby, whose calls before the one that is judged are answered with `prior`.
    fn drawing(
        &mut self,
        (mark, in_vain_at, looked_at): (u8, Option<(u8, u8)>, u8),
        truth: Nursery,
        prior: Vec<WireAnswer>,
        sent: Sent,
    ) -> Option<Scene> {
        let (capacity, now) = (self.starts().capacity.into(), mapping::head_time(self.now));
        let (Sent::BeginNursery { first, .. } | Sent::DrawInNursery { first, .. }) = sent else {
            return None;
        };
        let send = any(move |store| async move {
            let (lobby_id, in_vain) = mapping::lobby_and_vain(mark);
            let full = in_vain_at
                .map(|(first, nth)| NurseryServer { first: mapping::first_server(first), nth: nth.into() });
            let looked_at = mapping::head_time(looked_at);
            let drawing = Drawing { lobby_id: &lobby_id, in_vain, full: full.as_ref(), capacity, looked_at };
            let fresh = (&mapping::first_server(first), &mapping::secret());
            store.draw_in_nursery(&mapping::placement(), &drawing, fresh, now).await
        });
        self.scene(sent, |state| state.on_demand.nursery = truth, prior, send)
    }

    pub(super) fn begin_nursery(&mut self, replaces: bool) -> Option<Scene> {
        let (now, mark, first) = (self.now, self.mark(), self.within(3, 4));
        let (looked_at, seen) = (self.within(now - 2, now), self.nursery());
        if !replaces {
            let sent = Sent::BeginNursery { first, mark, seen: None, looked_at, now };
            return self.drawing((mark, None, looked_at), seen, Vec::new(), sent);
        }
        let nth = self.within(0, 2);
        let is_beyond = seen.first > 0 && seen.count() <= (nth + 1) * self.starts().capacity;
        if !is_beyond || seen.blocked_until > now || seen.position(mark).is_some() {
            return None;
        }
        let full = Some((seen.first, nth));
        let truth = self.nursery_later(&seen);
        let prior = vec![wire::refused(&mapping::nursery_item(&seen).unwrap())];
        let seen = Some(crate::writes::SeenNursery { first: seen.first, count: seen.count() });
        let sent = Sent::BeginNursery { first, mark, seen, looked_at, now };
        self.drawing((mark, full, looked_at), truth, prior, sent)
    }

    pub(super) fn draw_in_nursery(&mut self) -> Option<Scene> {
        let (now, mark, seen) = (self.now, self.mark(), self.nursery());
        if seen.first == 0 || seen.blocked_until > now || seen.position(mark).is_some() {
            return None;
        }
        let mut truth = self.nursery_later(&seen);
        if truth.first > 0 && self.one_in(5) && truth.position(mark).is_none() {
            truth.draw(mark);
        }
        assert!(usize::from(truth.count()) < DRAWS, "there is room for a draw");
        let prior = vec![wire::refused(&mapping::nursery_item(&seen).unwrap())];
        let sent = Sent::DrawInNursery { first: seen.first, mark, now };
        self.drawing((mark, None, now), truth, prior, sent)
    }

    pub(super) fn note_start(&mut self) -> Option<Scene> {
        let (now, truth) = (mapping::head_time(self.now), self.nursery());
        let prior =
            mapping::nursery_item(&truth).map_or_else(|| wire::answer(200, &json!({})), |of| wire::read(&of));
        let send = any(move |store| async move {
            store.note_start(&mapping::placement(), mapping::span(1), now).await
        });
        self.scene(Sent::NoteStart, |state| state.on_demand.nursery = truth, [prior], send)
    }

    pub(super) fn note_failure(&mut self) -> Option<Scene> {
        let (now, truth) = (mapping::head_time(self.now), self.nursery());
        let send =
            any(move |store| async move { store.note_failed_start(&mapping::placement(), "why", now).await });
        self.scene(Sent::NoteFailure, |state| state.on_demand.nursery = truth, [], send)
    }

    pub(super) fn block_nursery(&mut self) -> Option<Scene> {
        let (now, mut seen) = (self.now, self.nursery());
        // The third failure in a row blocks for a minute, the fourth for two.
        seen.failures = self.within(3, 4);
        let (failures, until) = (seen.failures, now + 60 * (seen.failures - 2));
        let truth = self.nursery_later(&seen);
        let prior = [wire::written(&mapping::nursery_item(&seen).unwrap())];
        let send = any(move |store| async move {
            store.note_failed_start(&mapping::placement(), "why", mapping::head_time(now)).await
        });
        let sent = Sent::BlockNursery { failures, until };
        self.scene(sent, |state| state.on_demand.nursery = truth, prior, send)
    }

    /// The registration of a requested server, as the process of its start sends it.
    pub(super) fn register_requested(&mut self) -> Option<Scene> {
        let (at, now, seen) = (self.below(SERVERS), self.now, self.launched());
        if !seen.is_there() || !seen.is_requested() {
            return None;
        }
        let (registration, truth) = (self.within(3, 4), self.launched_later(&seen));
        let item = registration_of(Some(seen), registration, self.within(1, 3), self.within(1, 3), now);
        let (new, old) = (mapping::server(at, &item), mapping::server(at, &seen));
        let send = any(move |store| async move { store.replace_server(&new, &old).await });
        let sent = Sent::Register { server: at, item, seen: Some(seen) };
        self.scene(sent, |state| state.servers[at] = truth, [], send)
    }
}
