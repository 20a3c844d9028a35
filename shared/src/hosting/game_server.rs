//! The operations of a game server: register, heartbeat, deregister.
//!
//! A server can retry each of them after a crash. A registration by another start closes the server, ends the
//! lobbies of earlier starts page by page, and opens it when it runs none (decision 35). Lobbies of a
//! deregistered server keep their leases and end when they are empty, or when the server sends no more
//! heartbeats (decision 36).

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use crate::{
    auth::{matchmaker::GameServerRight, settings::Settings},
    base::{
        ambient::{Ambient, Timestamp},
        pauses::Pauses,
    },
    hosting::freed_seats::show_more_room,
    models::{
        errors::Error,
        ids::{GameMode, LobbyId, ServerId, ServerKey, StartId, StartMark, WriteId},
        lifecycle::{Illegal, Transition},
        lobby::{EndCause, Lobby, Stage},
        rights::NamespaceRight,
        server::Server,
        token::Owner,
        violations::{Violations, listed},
    },
    rules::registration::{Registration, Start},
    store::{
        client::Store,
        ending::{EndOutcome, end_in_passing},
        listing::all_pages,
        lobbies::LobbyCursor,
        servers::HeartbeatOutcome,
        transitions::TransitionOutcome,
    },
};

/// Lobbies in one response to a heartbeat.
pub const LOBBIES_A_PAGE: usize = 100;
/// Lobbies written to at the same time.
const WRITES_AT_ONCE: usize = 16;
/// Tries of closing a lobby permanently: it can become ready once meanwhile.
const DRAIN_ATTEMPTS: usize = 3;
/// Tries of a registration while the server's places change.
const REGISTRATION_ATTEMPTS: usize = 8;
/// Passes over a server's lobbies until all are found, since the index may lag behind the last creation.
const INDEX_PASSES: u32 = 8;
/// Pauses between such passes.
const INDEX_PAUSES: Pauses = Pauses::doubling(Duration::from_millis(20));

/// Tries of allotting a new server's first block of the cap while other writes conflict at the ledger, and
/// the pauses between them.
const ALLOTMENTS_MAX: u32 = 6;
const ALLOTMENT_PAUSES: Pauses = Pauses::doubling(Duration::from_millis(20)).jittered();

/// The result of a heartbeat.
#[derive(Debug)]
pub struct Heartbeat {
    /// The server.
    pub server: Server,
    /// A page of its lobbies, oldest first.
    pub lobbies: Vec<Lobby>,
    /// Where the next page begins, when there is one.
    pub next: Option<LobbyCursor>,
}

/// The game servers of all namespaces.
#[derive(Clone, Debug)]
pub struct GameServers {
    pub(super) store: Store,
    pub(super) ambient: Ambient,
}

impl GameServers {
    /// Game servers in `store`.
    #[must_use]
    pub const fn new(store: Store, ambient: Ambient) -> Self {
        Self { store, ambient }
    }

    /// Registers a server of a namespace with `settings`, or registers it again under its `server_id`. The
    /// same start is updated and keeps its lobbies, which lose their leases if it gives up its own. A new
    /// start ends the lobbies of the starts before it, a page in one call.
    ///
    /// # Errors
    /// [`Error::InvalidServer`] when it names a mode that no version of the game has, and when region or
    /// ports would change under live lobbies; [`Error::LobbyStateConflict`] when the start deregistered and
    /// still runs lobbies, when a later one registered, and when it is a new one while the server of another
    /// token is alive; [`Error::Clearing`] when more lobbies have to end, for
    /// which the server registers again; [`Error::Contention`], [`Error::Unavailable`], [`Error::Bug`].
    pub async fn register(
        &self,
        right: &GameServerRight,
        server_id: Option<ServerId>,
        registration: &Registration,
        settings: &Settings,
    ) -> Result<Server, Error> {
        if right.only().is_some_and(|only| server_id.as_ref().is_some_and(|named| *named != only)) {
            return Err(Error::ServerNotFound);
        }
        self.check_modes(registration, settings).await?;
        let lobby_count_max = settings.namespace.lobby_count_max;
        let owner = right.owner();
        let unnamed = || registration.unnamed_server(right.namespace_id(), &owner.token_id);
        let server_id = right.only().or(server_id).or_else(unnamed);
        let key = key_of(right, server_id.unwrap_or_else(|| self.ambient.uuid().into()));
        for _ in 0..REGISTRATION_ATTEMPTS {
            let seen = self.store.server(&key).await?;
            let now = self.ambient.now();
            // A token of one server creates none.
            if right.only().is_some() && seen.as_ref().is_none_or(|seen| seen.launch.is_none()) {
                return Err(Error::ServerNotFound);
            }
            if let Some(seen) = &seen {
                let start = registration.start(seen, now);
                if seen.launch.is_some() && (start != Start::Same || seen.is_over()) {
                    return Err(Error::ServerNotFound);
                }
                refuse_what_is_over(seen, start)?;
                if start == Start::New && is_kept_from(seen, &owner, settings, now) {
                    return Err(Error::LobbyStateConflict(
                        "another token's game server is alive under this `server_id`",
                    ));
                }
            }
            let (unnamed, write) = (StartId::random(&self.ambient), WriteId::random(&self.ambient));
            let server = registration.clone().into_server(key.clone(), seen.as_ref(), unnamed, write, now);
            let server = Server {
                game_id: Some(right.game_id().clone()),
                owner: Some(owner.clone()),
                ..server.map_err(Error::InvalidServer)?
            };
            let is_written = match &seen {
                Some(seen) => self.store.replace_server(&server, seen).await?,
                None => self.store.add_server(&server).await?,
            };
            if is_written {
                let server = if server.is_clearing { self.clear(server).await? } else { server };
                if server.lease_ms.is_none() && server.used > 0 {
                    self.free_lobbies_of_leases(&server, now).await?;
                }
                if server.build_id.is_some() && server.launch.is_none() {
                    self.store.note_placement(&server.pool(), now).await?;
                }
                if let Some(seen) = seen.filter(Server::is_requested) {
                    self.begin_launched(&seen, &server, now).await?;
                }
                return self.allot(server, lobby_count_max).await;
            }
        }
        Err(Error::Contention)
    }

    /// Opens the lobbies that waited for a requested server, and notes how long it took to register. A
    /// failure to note that fails nothing.
    async fn begin_launched(&self, seen: &Server, server: &Server, now: Timestamp) -> Result<(), Error> {
        if let Some(launch) = &seen.launch {
            let took = now.since(launch.requested_at);
            if let Err(error) = self.store.note_start(&server.pool(), took, now).await {
                let cause = error.cause().unwrap_or("refused").to_owned();
                tracing::warn!(server.id = %server.server.server_id, cause, "it is not noted how long a start took");
            }
        }
        // The index may lag behind the last creation.
        for pass in 0..INDEX_PASSES {
            let page = self.store.lobbies_of_server(&server.server, None, LOBBIES_A_PAGE).await?;
            let lobbies = self.store.lobbies(&page.lobby_ids).await?;
            let opened = stream::iter(lobbies).map(|lobby| self.open_on_launched(lobby, server, now));
            let opened: Vec<Option<Lobby>> = opened.buffer_unordered(WRITES_AT_ONCE).try_collect().await?;
            let count = opened.into_iter().flatten().count();
            if page.next.is_some() || count >= usize::try_from(server.used).unwrap_or(usize::MAX) {
                break;
            }
            INDEX_PAUSES.wait(pass, &self.ambient).await;
        }
        Ok(())
    }

    /// Gives a lobby that waited for its server ports, and has it ready where the server's lobbies are so at
    /// once. Returns the lobby as it then is, unless it ended.
    async fn open_on_launched(
        &self,
        lobby: Lobby,
        server: &Server,
        now: Timestamp,
    ) -> Result<Option<Lobby>, Error> {
        if lobby.stage == Stage::Ended || !server.runs(&lobby) {
            return Ok(None);
        }
        let opened = match lobby.launch {
            Some(_) => self.store.put_on_registered(&lobby, server).await?,
            None => Some(lobby),
        };
        let Some(lobby) = opened else { return Ok(None) };
        if lobby.stage != Stage::Starting || !server.auto_ready {
            return Ok(Some(lobby));
        }
        Ok(match self.store.make_transition(&lobby.lobby_id, &Transition::Ready, now).await? {
            TransitionOutcome::Made(lobby) | TransitionOutcome::AlreadyMade(lobby) => Some(*lobby),
            TransitionOutcome::Illegal(..) | TransitionOutcome::Missing => None,
        })
    }

    /// Has a server end that Muster had started and that is without lobbies for its idle time. Returns the
    /// server as it then is.
    async fn stop_if_idle(&self, server: Box<Server>, now: Timestamp) -> Result<Box<Server>, Error> {
        let Some(launch) = &server.launch else { return Ok(server) };
        match server.idle_since {
            Some(since) if server.used == 0 && launch.is_idle(since, now) => {
                let stopped = self.store.stop_idle(&server, now).await?;
                return Ok(stopped.map_or(server, Box::new));
            }
            None if server.used == 0 => self.store.note_idle(&server.server, Some(now)).await?,
            Some(_) if server.used > 0 => self.store.note_idle(&server.server, None).await?,
            _ => {}
        }
        Ok(server)
    }

    /// Retries, because a fleet registers at one time, and without a block a server's first creations would
    /// conflict at the ledger.
    async fn allot(&self, server: Server, lobby_count_max: u32) -> Result<Server, Error> {
        for tries in 0..ALLOTMENTS_MAX {
            if let Some(allotted) = self.store.allot_at_registration(&server, lobby_count_max).await? {
                return Ok(allotted);
            }
            ALLOTMENT_PAUSES.wait(tries, &self.ambient).await;
        }
        Ok(server)
    }

    /// A server with a misspelt mode would never get a lobby, and finds of the right mode would have no
    /// server. Modes of other versions are allowed, for a version to come or to roll back to.
    async fn check_modes(&self, registration: &Registration, settings: &Settings) -> Result<(), Error> {
        let current = &settings.version.config.game_modes;
        let mut unknown: Vec<_> =
            registration.game_modes().filter(|mode| !current.contains_key(*mode)).collect();
        if !unknown.is_empty() {
            let versions = self.store.listed_versions(&settings.game.game_id).await?;
            let has = |mode: &GameMode| versions.iter().any(|version| version.game_modes.contains(mode));
            unknown.retain(|mode| !has(mode));
        }
        if unknown.is_empty() {
            return Ok(());
        }
        let modes: Vec<_> = current.keys().map(GameMode::as_str).collect();
        let mut violations = Violations::default();
        for mode in unknown {
            let allowed = format!("no version of this game has it; the current one has {}", listed(&modes));
            violations.add(&["game_modes", mode.as_str(), "not-found"], allowed);
        }
        Err(Error::InvalidServer(violations))
    }

    /// Extends the lease of a server, if `start_id` is given only of that start, and the leases of a page of
    /// its lobbies. Ends lobbies that are empty past their idle time or never became ready. Lobbies of an
    /// earlier start also end, and are not returned. A lobby whose lease had lapsed is found again, unless a
    /// find needed its capacity (I10).
    ///
    /// One write unit for the server and for each lobby; for each page 0.5 read units per started 4 KB of
    /// keys and 0.5 per lobby.
    ///
    /// # Errors
    /// [`Error::ServerNotFound`], [`Error::OtherStart`]; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn heartbeat(
        &self,
        right: &GameServerRight,
        (server_id, start_id): (ServerId, Option<&StartId>),
        cursor: Option<&LobbyCursor>,
    ) -> Result<Heartbeat, Error> {
        let (key, now) = (key(right, server_id)?, self.ambient.now());
        let server = match self.store.extend_server_lease(&key, start_id, &right.owner(), now).await? {
            HeartbeatOutcome::Alive(server) => server,
            HeartbeatOutcome::OtherStart => return Err(Error::OtherStart),
            HeartbeatOutcome::Unknown => return Err(Error::ServerNotFound),
        };
        let server = if server.is_stopping() { server } else { self.stop_if_idle(server, now).await? };
        if server.is_stopping() {
            return Ok(Heartbeat { server: *server, lobbies: Vec::new(), next: None });
        }
        if server.is_clearing {
            if !self.end_earlier_lobbies(&server).await? {
                let _is_open = self.store.open_server(&server).await?;
            }
            return Ok(Heartbeat { server: *server, lobbies: Vec::new(), next: None });
        }
        let page = self.store.lobbies_of_server(&key, cursor, LOBBIES_A_PAGE).await?;
        let lobbies = self.store.lobbies(&page.lobby_ids).await?;
        let kept = stream::iter(lobbies).map(|lobby| self.keep(lobby, &server, now));
        let kept: Vec<Option<Lobby>> = kept.buffer_unordered(WRITES_AT_ONCE).try_collect().await?;
        let mut lobbies: Vec<Lobby> = kept.into_iter().flatten().collect();
        lobbies.sort_by(|a, b| (a.created_at, &a.lobby_id).cmp(&(b.created_at, &b.lobby_id)));
        Ok(Heartbeat { server: *server, lobbies, next: page.next })
    }

    /// Removes a server from the matching permanently: it gets no more lobbies, its lobbies close, and each
    /// ends when it is empty, or immediately if `ends_lobbies`. Until then its heartbeats keep them alive. A
    /// retry is harmless. With `start_id`, only a server of that start.
    ///
    /// # Errors
    /// [`Error::ServerNotFound`], [`Error::OtherStart`]; [`Error::Contention`] when not every lobby could be
    /// closed yet, for which the server retries; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn deregister(
        &self,
        right: &GameServerRight,
        (server_id, start_id): (ServerId, Option<&StartId>),
        ends_lobbies: bool,
    ) -> Result<(), Error> {
        self.take_out_of_service(&key(right, server_id)?, start_id, None, ends_lobbies).await
    }

    /// The same for the operator: removes a server that vanished, and its lobbies.
    ///
    /// # Errors
    /// As [`GameServers::deregister`].
    pub async fn remove(&self, right: &NamespaceRight, server_id: ServerId) -> Result<(), Error> {
        let key = ServerKey { namespace_id: right.namespace_id().clone(), server_id };
        self.take_out_of_service(&key, None, None, true).await
    }

    pub(super) async fn take_out_of_service(
        &self,
        key: &ServerKey,
        start_id: Option<&StartId>,
        owner: Option<&Owner>,
        ends_lobbies: bool,
    ) -> Result<(), Error> {
        let mut seen = self.store.server(key).await?.ok_or(Error::ServerNotFound)?;
        if start_id.is_some() && seen.start_id.as_ref() != start_id {
            return Err(Error::OtherStart);
        }
        let is_others = |seen: &Server| owner.is_some() && seen.owner.as_ref() != owner;
        if is_others(&seen) {
            return Err(Error::ServerNotFound);
        }
        let start = seen.start();
        for pass in 0..INDEX_PASSES {
            seen = match self.store.deregister_server(&seen, self.ambient.now()).await? {
                Ok(server) if server.is_clearing && server.used > 0 => {
                    let _are_more = self.end_earlier_lobbies(&server).await?;
                    server
                }
                Ok(server) if self.drain_lobbies(&server, ends_lobbies).await? >= server.used => {
                    return Ok(());
                }
                Ok(server) => server,
                // A later start has registered, which this call does not concern.
                Err(Some(other)) if other.start() != start => return Ok(()),
                Err(Some(same)) if !is_others(&same) => same,
                Err(_) => return Err(Error::ServerNotFound),
            };
            INDEX_PAUSES.wait(pass, &self.ambient).await;
        }
        Err(Error::Contention)
    }

    /// Ends the lobbies of earlier starts, at most a page, and opens the server once none is left. Returns it
    /// as it then is.
    async fn clear(&self, server: Server) -> Result<Server, Error> {
        for pass in 0..INDEX_PASSES {
            let are_more = self.end_earlier_lobbies(&server).await?;
            match self.store.open_server(&server).await? {
                Ok(open) => return Ok(open),
                // A retry has opened it.
                Err(Some(other)) if other.start_id == server.start_id && !other.is_clearing => {
                    return Ok(other);
                }
                Err(_) if are_more => break,
                Err(_) => {}
            }
            INDEX_PAUSES.wait(pass, &self.ambient).await;
        }
        Err(Error::Clearing)
    }

    /// Ends a page of the lobbies of a server that gets none until all have ended. Returns whether there are
    /// more.
    async fn end_earlier_lobbies(&self, server: &Server) -> Result<bool, Error> {
        let page = self.store.lobbies_of_server(&server.server, None, LOBBIES_A_PAGE).await?;
        let lobbies = self.store.lobbies(&page.lobby_ids).await?;
        let ended = stream::iter(lobbies).map(async |lobby: Lobby| {
            match self.store.end_lobby(&lobby, EndCause::ServerRestarted, &self.ambient).await {
                // The next call tries it again.
                Ok(_) | Err(Error::Contention) => Ok(()),
                Err(error) => Err(error),
            }
        });
        ended.buffer_unordered(WRITES_AT_ONCE).try_collect::<()>().await?;
        Ok(page.next.is_some())
    }

    /// A server that registered without lease may send no heartbeats, so its lobbies must not keep an earlier
    /// lease.
    async fn free_lobbies_of_leases(&self, server: &Server, registered_at: Timestamp) -> Result<(), Error> {
        for pass in 0..INDEX_PASSES {
            let frees =
                |id: LobbyId| async move { self.store.extend_lease(&id, server, registered_at).await };
            let living = self.each_lobby(server, frees).await?;
            // Some lobbies end meanwhile.
            let now = self.store.server(&server.server).await?;
            if now.is_none_or(|now| living >= now.used) {
                return Ok(());
            }
            INDEX_PAUSES.wait(pass, &self.ambient).await;
        }
        Err(Error::Contention)
    }

    /// Extends a lobby's lease, or ends the lobby. Returns the lobby if it still lives.
    async fn keep(&self, lobby: Lobby, server: &Server, now: Timestamp) -> Result<Option<Lobby>, Error> {
        // The server may have registered again since the heartbeat.
        if lobby.stage == Stage::Ended || !server.runs(&lobby) {
            return Ok(None);
        }
        // Its registration left this lobby waiting: it crashed, or had more than a page of them.
        let waits = lobby.launch.is_some() || (server.launch.is_some() && lobby.stage == Stage::Starting);
        let opened = if waits { self.open_on_launched(lobby, server, now).await? } else { Some(lobby) };
        let Some(lobby) = opened else { return Ok(None) };
        if let Some(cause @ (EndCause::Idle | EndCause::NeverReady)) = lobby.end_cause(now) {
            match self.store.end_lobby(&lobby, cause, &self.ambient).await {
                Ok(EndOutcome::Ended | EndOutcome::AlreadyEnded) => return Ok(None),
                Ok(EndOutcome::Outdated) | Err(Error::Contention) => {}
                Err(error) => return Err(error),
            }
        }
        // Its deregistration crashed before it closed this lobby.
        if server.is_deregistered() && !lobby.is_draining {
            self.drain(lobby.lobby_id.clone(), server.start(), false).await?;
        }
        // A hidden lobby may already have this lease, after a registration with a shorter one.
        let is_hidden = lobby.joinable_from == Some(Timestamp::NEVER);
        let needs_write = lobby.lease_until != server.lease_until || is_hidden;
        let lives = !needs_write || self.store.extend_lease(&lobby.lobby_id, server, now).await?;
        if lives {
            show_more_room(&self.store, &lobby, now).await;
        }
        Ok(lives.then_some(lobby))
    }

    /// Closes every lobby of a deregistered server, and ends the empty ones, or all. Returns how many lived.
    async fn drain_lobbies(&self, server: &Server, ends_all: bool) -> Result<u32, Error> {
        let start = server.start();
        self.each_lobby(server, |lobby_id| self.drain(lobby_id, start.clone(), ends_all)).await
    }

    /// Runs `work` on every lobby of a server, page by page. Returns for how many it was true.
    async fn each_lobby<F>(&self, server: &Server, work: impl Fn(LobbyId) -> F) -> Result<u32, Error>
    where
        F: Future<Output = Result<bool, Error>>,
    {
        let work = &work;
        let done = all_pages(|cursor: Option<LobbyCursor>| async move {
            let page = self.store.lobbies_of_server(&server.server, cursor.as_ref(), LOBBIES_A_PAGE).await?;
            let done = stream::iter(page.lobby_ids).map(work).buffer_unordered(WRITES_AT_ONCE);
            Ok((done.try_collect().await?, page.next))
        });
        Ok(done.await?.into_iter().map(u32::from).sum())
    }

    /// Closes a lobby permanently, and ends it if it is empty or never became ready, or if `ends_it`. Returns
    /// whether it lived.
    async fn drain(&self, lobby_id: LobbyId, start: Option<StartMark>, ends_it: bool) -> Result<bool, Error> {
        let drain = Transition::Drain(start);
        for _ in 0..DRAIN_ATTEMPTS {
            let now = self.ambient.now();
            match self.store.make_transition(&lobby_id, &drain, now).await? {
                TransitionOutcome::Made(lobby) | TransitionOutcome::AlreadyMade(lobby) => {
                    if ends_it {
                        self.store.end_lobby(&lobby, EndCause::Requested, &self.ambient).await?;
                    } else if lobby.end_cause(now) == Some(EndCause::Idle) {
                        end_in_passing(&self.store, &lobby, EndCause::Idle, &self.ambient).await;
                    }
                    return Ok(true);
                }
                TransitionOutcome::Illegal(Illegal::Ended, lobby) if lobby.stage == Stage::Starting => {
                    match self.store.end_lobby(&lobby, EndCause::NeverReady, &self.ambient).await? {
                        EndOutcome::Ended | EndOutcome::AlreadyEnded => return Ok(true),
                        // A `ready` outran the end.
                        EndOutcome::Outdated => {}
                    }
                }
                TransitionOutcome::Illegal(..) | TransitionOutcome::Missing => return Ok(false),
            }
        }
        Err(Error::Contention)
    }
}

/// Refuses a start that deregistered and still runs lobbies, and one that a later start replaced.
fn refuse_what_is_over(seen: &Server, start: Start) -> Result<(), Error> {
    match start {
        Start::Same if seen.is_deregistered() && seen.used > 0 => {
            Err(Error::LobbyStateConflict("the game server deregistered and still runs lobbies"))
        }
        Start::Former => Err(Error::LobbyStateConflict("a later start of the game server registered")),
        Start::Same | Start::New => Ok(()),
    }
}

/// Whether a new start by the token of `other` has to leave the server alone: it belongs to another token
/// that still counts, and is alive or runs lobbies.
fn is_kept_from(seen: &Server, other: &Owner, settings: &Settings, now: Timestamp) -> bool {
    let revocations = &settings.namespace.revocations;
    let is_theirs = |owner: &Owner| owner.token_id != other.token_id && revocations.respect(owner, now);
    seen.owner.as_ref().is_some_and(is_theirs) && seen.lease_until > now && !seen.is_gone()
}

/// The key of a server on which the token may act: a token of one server on that one alone.
fn key(right: &GameServerRight, server_id: ServerId) -> Result<ServerKey, Error> {
    match right.only() {
        Some(only) if only != server_id => Err(Error::ServerNotFound),
        _ => Ok(key_of(right, server_id)),
    }
}

fn key_of(right: &GameServerRight, server_id: ServerId) -> ServerKey {
    ServerKey { namespace_id: right.namespace_id().clone(), server_id }
}
