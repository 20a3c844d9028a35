//! The deeds of a run, their frequencies, and those favored while a write is under suspicion.

use std::sync::Arc;

use super::{
    super::{chance::Chance, requests::Request, wire::Place, world::KEEP_SECS_MAX},
    Player, Workload,
};
use model::conditions::Write;

/// Kinds of things to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Find,
    FindOnly,
    Burst,
    Join,
    Create,
    Rush,
    Connect,
    Disconnect,
    GiveUp,
    Rejoin,
    Everyone,
    Remove,
    Ready,
    Close,
    Reopen,
    MakePrivate,
    MakePublic,
    End,
    SetState,
    Beat,
    Silence,
    Register,
    Deregister,
    SwitchVersion,
    /// Waits until what is crossed has arrived.
    Wait,
}

impl Workload {
    /// Does `deed`. Where any lobby or server would do, it takes that of `focus`.
    pub(super) fn act(&mut self, deed: Deed, focus: Option<&Place>) {
        let world = Arc::clone(&self.world);
        let namespace = self.chance.below(world.namespaces.len());
        match deed {
            Deed::Wait => {}
            Deed::Find => self.find(namespace, true),
            Deed::FindOnly => self.find(namespace, false),
            Deed::Burst => {
                for _ in 0..self.chance.range(2..=6) {
                    self.find(namespace, true);
                }
            }
            Deed::Create | Deed::Rush => {
                let mode = self.chance.pick(&world.plan.modes).expect("a mode").clone();
                let region = *self.chance.pick(&mode.regions).expect("a region");
                let is_private = self.chance.one_in(2);
                // All of a rush want places of the same servers at one instant.
                let lobbies = if deed == Deed::Rush { self.chance.range(3..=6) } else { 1 };
                for _ in 0..lobbies {
                    self.send(Request::create(&world, namespace, mode.name, region, is_private));
                }
            }
            Deed::Connect
            | Deed::Disconnect
            | Deed::GiveUp
            | Deed::Rejoin
            | Deed::Everyone
            | Deed::Remove => self.play(deed, focus),
            Deed::SwitchVersion => {
                let version = self.chance.below(world.versions.len());
                self.send(Request::switch_version(&world, namespace, version));
            }
            Deed::Beat | Deed::Silence | Deed::Register | Deed::Deregister => self.serve(deed, focus),
            Deed::Join
            | Deed::Ready
            | Deed::Close
            | Deed::Reopen
            | Deed::MakePrivate
            | Deed::MakePublic
            | Deed::End
            | Deed::SetState => {
                let ended_too = self.chance.one_in(6);
                let mut lobbies = self.lobbies(|lobby| ended_too || lobby.lives());
                prefer(&mut lobbies, |(_, lobby)| focus.is_some_and(|place| place.key == *lobby));
                let Some((owner, lobby)) = self.chance.pick(&lobbies).cloned() else { return };
                // Sometimes in another namespace than the lobby's, which must not show it.
                let stranger = if self.chance.one_in(8) { namespace } else { owner };
                self.send(match deed {
                    Deed::Join => Request::join(&world, stranger, &lobby),
                    Deed::Ready => Request::ready(&world, owner, &lobby),
                    Deed::Close => Request::close(&world, owner, &lobby, true),
                    Deed::Reopen => Request::close(&world, owner, &lobby, false),
                    Deed::MakePrivate => Request::set_publicity(&world, owner, &lobby, true),
                    Deed::MakePublic => Request::set_publicity(&world, owner, &lobby, false),
                    Deed::End => Request::end(&world, stranger, &lobby),
                    _ => Request::set_state(&world, owner, &lobby),
                });
            }
        }
    }

    fn find(&mut self, namespace: usize, may_create: bool) {
        let world = Arc::clone(&self.world);
        let first = self.chance.pick(&world.plan.modes).expect("a mode").clone();
        let modes: Vec<&str> = if self.chance.one_in(4) {
            world.plan.modes.iter().map(|mode| mode.name).collect()
        } else {
            vec![first.name]
        };
        let regions = if self.chance.one_in(4) {
            first.regions
        } else {
            vec![*self.chance.pick(&first.regions).expect("a region")]
        };
        let has_tags = world.plan.has_tags && self.chance.one_in(2);
        let tag = self.chance.pick(&["blue", "red"]).map(|tag| ("team".to_owned(), (*tag).to_owned()));
        let tags = tag.into_iter().filter(|_| has_tags).collect();
        let find = Request::find(&world, namespace, &modes, &regions, tags, may_create);
        let far = if self.chance.one_in(2) { self.chance.pick(&regions).copied() } else { None };
        let is_measured = regions.len() > 1 && self.chance.one_in(2);
        self.send(if is_measured { find.measured(far) } else { find });
    }

    fn play(&mut self, deed: Deed, focus: Option<&Place>) {
        let mut players = self.players.lock().expect("no panic").clone();
        prefer(&mut players, |player| focus.is_some_and(|place| place.key == player.lobby));
        // The latest ones most.
        let recent = players.len().saturating_sub(6);
        let chosen = if self.chance.one_in(4) {
            self.chance.pick(&players).cloned()
        } else {
            self.chance.pick(&players[recent..]).cloned()
        };
        let is_there = |player: &Player| focus.is_some_and(|place| place.key == player.lobby);
        let newest = if self.chance.one_in(3) { None } else { players.last().cloned() };
        let Some(player) = newest.filter(is_there).or(chosen) else { return };
        let is_by_player = matches!(deed, Deed::GiveUp | Deed::Rejoin);
        let shown_in = if !is_by_player && self.chance.one_in(20) {
            self.chance.pick(&players).expect("one at least").clone()
        } else {
            player.clone()
        };
        let (lobby, Player { namespace, token, .. }) = (shown_in.lobby, player);
        // The lobby's token is the right here, and is of the lobby's namespace.
        let namespace = if deed == Deed::Everyone { shown_in.namespace } else { namespace };
        let sent = match deed {
            Deed::GiveUp => Request::give_up(&self.world, namespace, &lobby, &token),
            Deed::Remove => {
                let secs = self.chance.range(0..=40);
                Request::remove(&self.world, namespace, &lobby, &token, secs)
            }
            Deed::Rejoin => Request::rejoin(&self.world, namespace, &lobby, &token),
            Deed::Connect => Request::connect(&self.world, namespace, &lobby, &token),
            _ => {
                let secs = self.chance.weighted(&[(0, 1), (2, 1), (KEEP_SECS_MAX, 1)]);
                let keep = if self.chance.one_in(4) { Some(secs) } else { None };
                match deed {
                    Deed::Everyone => Request::everyone(&self.world, namespace, &lobby, keep),
                    _ => Request::disconnect(&self.world, namespace, &lobby, &token, keep),
                }
            }
        };
        self.send(sent);
    }

    /// Connects the player who was seated last.
    pub(crate) fn connect_newest(&mut self) {
        let newest = self.players.lock().expect("no panic").last().cloned();
        let Some(Player { namespace, lobby, token }) = newest else { return };
        self.send(Request::connect(&self.world, namespace, &lobby, &token));
    }

    fn serve(&mut self, deed: Deed, focus: Option<&Place>) {
        let mut servers: Vec<usize> = (0..self.world.plan.servers.len()).collect();
        if let Some(place) = focus {
            let lobby = self.network.state().model.lobbies.get(&place.key).cloned();
            let key = lobby.and_then(|lobby| lobby.server).unwrap_or_else(|| place.key.clone());
            prefer(&mut servers, |server| Request::server_key(&self.world, *server) == key);
        }
        let Some(server) = self.chance.pick(&servers).copied() else { return };
        match deed {
            Deed::Beat => {
                self.beating[server] = !self.falls_silent;
                self.send(Request::heartbeat(&self.world, server, &self.start(server)));
            }
            Deed::Silence => self.beating[server] = false,
            Deed::Register => {
                let port = if self.chance.one_in(3) { 8_888 } else { 7_777 };
                self.register(server, port);
            }
            _ => self.send(Request::deregister(&self.world, server, &self.start(server), false)),
        }
    }

    pub(super) fn register(&mut self, server: usize, port: u64) {
        let places = self.world.plan.servers[server].places;
        let places = match self.resizes {
            true => *self.chance.pick(&[2, 5]).expect("two"),
            false if self.chance.one_in(4) => self.chance.range(1..=3),
            false => places,
        };
        self.beating[server] = !self.falls_silent;
        self.send(Request::register(&self.world, server, &self.start(server), places, port));
    }

    /// Game servers crash and restart, or leave and end their lobbies, and copies of their requests arrive
    /// minutes late.
    pub(super) fn live(&mut self) {
        if !self.world.plan.has_restarts || !self.lives.one_in(4) {
            return;
        }
        let server = self.lives.below(self.beating.len());
        match self.lives.below(8) {
            0..=3 => {
                self.starts[server] += 1;
                let port = 7_777 + self.lives.range(0..=2);
                self.register(server, port);
            }
            4 => self.send(Request::deregister(&self.world, server, &self.start(server), true)),
            _ => {
                let Some(said) = self.lives.pick(&self.said).cloned() else { return };
                let delay = self.lives.weighted(&[(0, 2), (40, 2), (2_000, 1), (200_000, 1)]);
                self.deliver(said, delay);
            }
        }
    }
}

/// Keeps only those of `all` that are `preferred`, if there are any.
fn prefer<T: Clone>(all: &mut Vec<T>, preferred: impl Fn(&T) -> bool) {
    let chosen: Vec<T> = all.iter().filter(|one| preferred(one)).cloned().collect();
    if !chosen.is_empty() {
        *all = chosen;
    }
}

/// The deeds of a run with their weights: some never happen, and those that lead to `bias` happen more often.
pub(super) fn deeds(chance: &mut Chance, bias: Option<Write>) -> Vec<(Deed, u64)> {
    use Deed::{
        Beat, Burst, Close, Connect, Create, Deregister, Disconnect, End, Everyone, Find, FindOnly, GiveUp,
        Join, MakePrivate, MakePublic, Ready, Register, Rejoin, Remove, Reopen, Rush, SetState, Silence,
        SwitchVersion,
    };
    let usual = [
        (Find, 24),
        (FindOnly, 2),
        (Burst, 8),
        (Join, 6),
        (Create, 4),
        (Connect, 20),
        (Disconnect, 12),
        (GiveUp, 4),
        (Rejoin, 6),
        (Everyone, 1),
        (Remove, 2),
        (Ready, 2),
        (Close, 4),
        (Reopen, 3),
        (MakePrivate, 1),
        (MakePublic, 2),
        (End, 4),
        (SetState, 1),
        (Beat, 5),
        (Silence, 4),
        (Register, 3),
        (Deregister, 2),
        (SwitchVersion, 1),
    ];
    let favoured = favoured(bias);
    let weigh = |(deed, weight): (Deed, u64)| {
        let is_rare = matches!(deed, Find | Connect | Disconnect);
        let drawn = if !is_rare && chance.one_in(4) { 0 } else { weight * chance.range(1..=3) };
        (deed, if favoured.contains(&deed) { (drawn + weight) * 3 + 4 } else { drawn })
    };
    let mut deeds: Vec<_> = usual.into_iter().map(weigh).collect();
    if bias == Some(Write::TakePlace) {
        deeds.push((Rush, 40));
    }
    deeds
}

/// Sequences of deeds that cross a delayed `bias`, or come at its last moment.
pub(super) const fn crossings(bias: Option<Write>) -> &'static [&'static [Deed]] {
    use Deed::{
        Beat, Burst, Close, Connect, Deregister, Disconnect, End, Find, FindOnly, GiveUp, Join, MakePrivate,
        Ready, Rejoin, Wait,
    };
    match bias {
        Some(Write::ShowRoom | Write::HideRoom) => {
            &[&[Close], &[MakePrivate], &[Disconnect], &[GiveUp], &[Join]]
        }
        Some(Write::TakeFreeSeat) => &[&[Connect, Disconnect, Wait, Connect], &[Burst], &[Join], &[Close]],
        Some(Write::End) => &[
            &[Join, Connect],
            &[Join, Disconnect],
            &[Join, Connect, Disconnect],
            &[Deregister],
            &[Beat],
            &[Ready],
        ],
        Some(Write::Keep | Write::Replace | Write::ChangeTokens) => &[
            &[Disconnect],
            &[Rejoin, Wait, Connect],
            &[Rejoin],
            &[Connect],
            &[GiveUp],
            &[Join],
            &[Close],
            &[End],
        ],
        Some(Write::GiveBackPlace) => &[&[Beat], &[Beat], &[Deregister]],
        Some(Write::HideFull) => &[&[Disconnect, FindOnly], &[Disconnect, Join], &[Burst], &[Close], &[Join]],
        Some(Write::HideServer) => &[&[Find], &[Beat]],
        _ => &[],
    }
}

/// The deeds that lead to `bias`, and to what its conditions guard against.
pub(super) const fn favoured(bias: Option<Write>) -> &'static [Deed] {
    use Deed::{
        Beat, Burst, Close, Connect, Create, Deregister, Disconnect, End, Everyone, Find, GiveUp, Join,
        MakePrivate, MakePublic, Ready, Register, Rejoin, Remove, Reopen, SetState, Silence,
    };
    match bias {
        Some(Write::TakeParty) => &[Burst, Find, Join, Close, Connect],
        Some(Write::ShowRoom | Write::HideRoom) => &[Burst, Find, Disconnect, Close, Reopen],
        Some(Write::TakeFreeSeat | Write::DrawPosition | Write::BeginBurst | Write::RenewBurst) => {
            &[Burst, Join, Close, Connect]
        }
        Some(Write::TakeOverSeat) => &[Burst, Join, Close, Connect, End],
        Some(Write::Leave) => &[Disconnect, GiveUp, Close, Reopen, Burst],
        Some(Write::Connect) => &[Connect, Rejoin, Disconnect],
        Some(Write::Replace) => &[Connect, Rejoin, Disconnect, End],
        Some(Write::Keep) => &[Connect, Disconnect, Everyone, Rejoin, Join, Close, End],
        Some(Write::ChangeTokens) => &[Connect, Rejoin, GiveUp, Disconnect, End],
        Some(Write::Ready) => &[Ready, Close, Join],
        Some(Write::End) => &[Disconnect, Connect, Silence, Beat, Join, Find, Deregister, Ready],
        Some(Write::GiveBackPlace) => &[Silence, Beat, Join, Find],
        Some(Write::Drain | Write::Deregister | Write::LetServerGo) => &[Deregister, Register, Close, Reopen],
        Some(Write::Close | Write::Reopen) => &[Close, Reopen, MakePublic, Deregister, Create],
        Some(Write::MakePrivate | Write::MakePublic) => &[MakePrivate, MakePublic, Close, Reopen, Create],
        Some(Write::OpenServer) => &[Burst, Create, Find, Register],
        Some(Write::ExtendLease | Write::Heartbeat | Write::TransferServer) => &[Beat, End, Deregister],
        Some(Write::HideFull) => &[Burst, Close, Connect, Disconnect, Join],
        Some(Write::HideSilent | Write::ShowRevived) => &[Silence, Beat, Close, Find],
        Some(Write::HideServer | Write::HideFullServer | Write::ShowServer) => {
            &[Silence, Beat, Create, Find, End]
        }
        Some(Write::NoteState) => &[SetState, End],
        Some(Write::KeepOut | Write::Readmit) => &[Remove, Find, Join],
        Some(Write::PutLobby) => &[Burst],
        Some(Write::TakePlace) => &[Burst, Create, End, Register, Deregister],
        Some(Write::PutServer) => &[Register, Deregister, Create, End],
        Some(Write::GiveBackAllotment | Write::AllotAhead | Write::Allot | Write::ReturnAllotment) => {
            &[Create, End, Register, Deregister]
        }
        Some(Write::ClaimSearch | Write::NoteVainSearch) => &[Burst, Create, End, Disconnect],
        Some(Write::HoldSeat | Write::PointHold | Write::ReleaseHold) => &[Burst, Join, Disconnect, Find],
        Some(Write::AimRun | Write::KeepAnswer | Write::ForgetRun | Write::WaitForRun) => {
            &[Burst, Join, Find, Create]
        }
        // Processes register, send heartbeats and end by themselves.
        Some(
            Write::OpenOnLaunched
            | Write::RequestServer
            | Write::FailLaunch
            | Write::RetireLaunched
            | Write::StopIdle
            | Write::LetLaunchedGo
            | Write::NoteHandle
            | Write::NoteEnded
            | Write::NoteIdle
            | Write::NoteBusy
            | Write::CountServer
            | Write::UncountServer
            | Write::NotePlacement
            | Write::ForgetPlacement
            | Write::BeginNursery
            | Write::DrawInNursery
            | Write::NoteStart
            | Write::NoteFailedStart
            | Write::BlockNursery
            | Write::ReleaseRun,
        ) => &[Burst, Create, Find, End, Disconnect],
        None => &[],
    }
}
