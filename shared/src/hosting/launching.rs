//! Game servers on demand, after their request (decision 76): has each started, watches it, and has it ended.
//!
//! What is done follows from the server's record alone, read consistently: each write of its stage, and the
//! time until something is due, only ask to look at it. So it does no harm if they ask twice, late or in any
//! order (I16), and whatever crashed is made up for at the next look.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::Value;

use crate::{
    auth::keys::TokenKeys,
    base::{
        ambient::{Ambient, Timestamp},
        pauses::Pauses,
    },
    models::{
        errors::Error,
        ids::{GameId, NamespaceId, RegionId, ServerId, ServerKey, StartId, TokenId},
        launch::{Launch, LaunchStage},
        lobby::EndCause,
        server::Server,
        token::{Credential, CredentialKind},
    },
    store::{client::Store, listing::lobbies_on},
};

/// The lease that a started process is to register with, in seconds.
const LEASE_SECONDS: u32 = 30;
/// Pauses between tries of a start or an end that a starter could not do.
const PAUSES: Pauses = Pauses::doubling(Duration::from_secs(1)).up_to(Duration::from_secs(30));
/// Tries of an end after which the server's place counts as free: its process ends by itself, since nobody
/// accepts its heartbeats.
const ENDS_TRIED_MAX: u32 = 8;
/// Longest reason that is kept of a failed start, in characters.
const REASON_CHARS_MAX: usize = 200;

/// A game server to start, or to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The game, whose region says how.
    pub game_id: GameId,
    /// The namespace.
    pub namespace_id: NamespaceId,
    /// The region.
    pub region_id: RegionId,
    /// The server.
    pub server_id: ServerId,
    /// The start: at most one process may ever have it.
    pub start_id: StartId,
    /// What to start.
    pub build: Value,
    /// What the process finds in its environment, the same at every try. It has a token that is good for this
    /// server alone.
    pub environment: BTreeMap<String, String>,
    /// What the starter called it when it started it, if it did and that was noted.
    pub handle: Option<String>,
}

/// Why a starter did not start a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotStarted {
    /// It never will, for this reason in few words and without secrets.
    Refused(String),
    /// It may at another try.
    NotNow(String),
}

/// What starts game servers, and ends them.
pub trait Starter {
    /// Has the server started unless it was before, and returns what it is called there.
    fn start(&self, order: &Order) -> impl Future<Output = Result<String, NotStarted>> + Send;

    /// Has it ended, if it was started and has not ended by itself.
    fn end(&self, order: &Order) -> impl Future<Output = Result<(), NotStarted>> + Send;
}

/// What is left to do for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing, unless its record changes.
    Nothing,
    /// To look again so much later, with so many tries made.
    Look {
        /// How much later.
        after: Duration,
        /// Tries in a row that the starter could not do.
        tries: u32,
    },
}

/// Looks after the requested game servers of all namespaces.
#[derive(Debug)]
pub struct Launching<S> {
    store: Store,
    keys: Arc<TokenKeys>,
    ambient: Ambient,
    api_url: String,
    starter: S,
    /// What [`Launching::take_ran_secs`] returns.
    ran_secs: AtomicU64,
}

impl<S: Starter + Sync> Launching<S> {
    /// Looks after the servers in `store` by `starter`; `keys` sign their tokens, and `api_url` is where they
    /// register.
    #[must_use]
    pub const fn new(
        store: Store,
        keys: Arc<TokenKeys>,
        ambient: Ambient,
        api_url: String,
        starter: S,
    ) -> Self {
        Self { store, keys, ambient, api_url, starter, ran_secs: AtomicU64::new(0) }
    }

    /// The seconds that processes ran, from their request on, whose end was noted since this was asked last.
    pub fn take_ran_secs(&self) -> u64 {
        self.ran_secs.swap(0, Ordering::Relaxed)
    }

    /// Its starter.
    #[must_use]
    pub const fn starter(&self) -> &S {
        &self.starter
    }

    /// Does what is due for a server, after so many `tries` in a row that the starter could not do.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`]: it is to be asked again.
    pub async fn look(&self, key: &ServerKey, tries: u32) -> Result<Next, Error> {
        let Some(server) = self.store.server(key).await? else { return Ok(Next::Nothing) };
        let (Some(launch), Some(stage)) = (&server.launch, server.stage) else { return Ok(Next::Nothing) };
        let now = self.ambient.now();
        match stage {
            LaunchStage::Requested if launch.deadline <= now => {
                let seconds = launch.deadline.since(launch.requested_at).as_secs();
                self.fail(&server, &format!("it did not register within {seconds} seconds")).await
            }
            LaunchStage::Requested if server.handle.is_some() => {
                Ok(Next::Look { after: launch.deadline.since(now), tries: 0 })
            }
            LaunchStage::Requested => self.start(&server, launch, tries).await,
            LaunchStage::Running => {
                let silent_from =
                    server.lease_until + Duration::from_millis(server.lease_ms.unwrap_or_default());
                if silent_from > now {
                    return Ok(Next::Look { after: silent_from.since(now), tries: 0 });
                }
                match self.store.retire_launched(&server, now).await? {
                    Ok(retired) => self.end(&retired, launch, 0).await,
                    Err(_) => Ok(Next::Look { after: PAUSES.nth(0), tries: 0 }),
                }
            }
            LaunchStage::Stopping | LaunchStage::Failed | LaunchStage::Gone => {
                self.end(&server, launch, tries).await
            }
            LaunchStage::Unknown => Ok(Next::Nothing),
        }
    }

    /// Does what is due for a server whose process, if `is_it`, has ended by itself, for this reason in few
    /// words and without secrets: nobody has to wait for its deadline or its lease.
    ///
    /// # Errors
    /// As [`Launching::look`].
    pub async fn process_ended(
        &self,
        key: &ServerKey,
        is_it: impl Fn(&Server) -> bool,
        reason: &str,
    ) -> Result<Next, Error> {
        let server = self.store.server(key).await?;
        let Some(server) = server.filter(is_it) else { return Ok(Next::Nothing) };
        match (&server.launch, server.stage) {
            (Some(_), Some(LaunchStage::Requested)) => self.fail(&server, reason).await,
            (Some(launch), Some(LaunchStage::Running)) => {
                // Its lease is over already: the process that it was of is.
                let now = self.ambient.now().max(server.lease_until);
                match self.store.retire_launched(&server, now).await? {
                    Ok(retired) => {
                        tracing::warn!(server.id = %server.server.server_id, reason, "a game server ended by itself");
                        self.end(&retired, launch, 0).await
                    }
                    // Its last heartbeat is still executed.
                    Err(_) => Err(Error::Contention),
                }
            }
            _ => self.look(key, 0).await,
        }
    }

    async fn start(&self, server: &Server, launch: &Launch, tries: u32) -> Result<Next, Error> {
        let Some(order) = self.order(server, launch).await? else {
            return self.fail(server, "its version was deleted").await;
        };
        let now = self.ambient.now();
        match self.starter.start(&order).await {
            Ok(handle) => {
                let noted = self.store.note_handle(&server.server, &handle).await?;
                tracing::info!(server.id = %server.server.server_id, handle, "a game server was started");
                if let Some(over) = noted.filter(|noted| noted.stage.is_some_and(LaunchStage::is_over)) {
                    // It was given up while it was started.
                    return self.end(&over, launch, 0).await;
                }
                Ok(Next::Look { after: launch.deadline.since(now), tries: 0 })
            }
            Err(NotStarted::Refused(reason)) => self.fail(server, &reason).await,
            Err(NotStarted::NotNow(reason)) => {
                let pause = PAUSES.nth(tries);
                if now + pause >= launch.deadline {
                    return self.fail(server, &reason).await;
                }
                tracing::warn!(server.id = %server.server.server_id, reason, tries, "a game server was not started yet");
                Ok(Next::Look { after: pause, tries: tries + 1 })
            }
        }
    }

    /// Gives a requested server up, unless it registered meanwhile.
    async fn fail(&self, server: &Server, reason: &str) -> Result<Next, Error> {
        let (reason, now): (String, _) =
            (reason.chars().take(REASON_CHARS_MAX).collect(), self.ambient.now());
        let Some(launch) = &server.launch else { return Ok(Next::Nothing) };
        match self.store.fail_launch(server, &reason, now).await? {
            Ok(failed) => {
                tracing::warn!(server.id = %server.server.server_id, reason, "a game server could not be started");
                self.store.note_failed_start(&server.pool(), &reason, now).await?;
                self.end(&failed, launch, 0).await
            }
            Err(_) => Ok(Next::Look { after: PAUSES.nth(0), tries: 0 }),
        }
    }

    /// Ends the process of a server that is over, then its lobbies, and lets its record expire.
    async fn end(&self, server: &Server, launch: &Launch, tries: u32) -> Result<Next, Error> {
        if server.ended_at.is_none() {
            let ended = match self.order(server, launch).await? {
                Some(order) => self.starter.end(&order).await,
                None => Ok(()),
            };
            match ended {
                Ok(()) => {
                    let now = self.ambient.now();
                    if self.store.note_ended(&server.server, now).await? && server.handle.is_some() {
                        self.ran_secs.fetch_add(now.since(launch.requested_at).as_secs(), Ordering::Relaxed);
                    }
                }
                Err(NotStarted::Refused(reason) | NotStarted::NotNow(reason)) if tries < ENDS_TRIED_MAX => {
                    tracing::warn!(server.id = %server.server.server_id, reason, tries, "a game server was not ended yet");
                    return Ok(Next::Look { after: PAUSES.nth(tries), tries: tries + 1 });
                }
                Err(NotStarted::Refused(reason) | NotStarted::NotNow(reason)) => {
                    tracing::error!(server.id = %server.server.server_id, reason, "a game server was not ended");
                }
            }
        }
        if server.placement_pool.is_none() {
            return self.forget_placement_of(server).await;
        }
        for lobby in lobbies_on(&self.store, &server.server).await? {
            match self.store.end_lobby(&lobby, EndCause::Requested, &self.ambient).await {
                Ok(_) | Err(Error::Contention) => {}
                Err(error) => return Err(error),
            }
        }
        let Some(server) = self.store.server(&server.server).await? else { return Ok(Next::Nothing) };
        if !self.store.let_launched_server_go(&server, self.ambient.now()).await? {
            // The index does not show its last lobbies yet, or another write changed it meanwhile.
            return Ok(Next::Look { after: PAUSES.nth(0), tries: 0 });
        }
        self.forget_placement_of(&server).await
    }

    /// Forgets the placement pool of a server that is gone, if it was the last one there.
    async fn forget_placement_of(&self, gone: &Server) -> Result<Next, Error> {
        if !self.store.has_neighbour(gone).await? {
            self.store.forget_placement(&gone.pool(), self.ambient.now()).await?;
        }
        Ok(Next::Nothing)
    }

    /// What the starter is told of a server; `None` once its version was deleted.
    async fn order(&self, server: &Server, launch: &Launch) -> Result<Option<Order>, Error> {
        let missing = |what: &str| Error::Bug(format!("a requested game server has no {what}"));
        let game_id = server.game_id.clone().ok_or_else(|| missing("game"))?;
        let start_id = server.start_id.clone().ok_or_else(|| missing("start"))?;
        let version = self.store.version(&game_id, &launch.version_id).await?;
        let Some(servers) = version.and_then(|version| version.config.servers) else { return Ok(None) };
        let ServerKey { namespace_id, server_id } = server.server.clone();
        let credential = Credential {
            game_id: game_id.clone(),
            namespace_id: namespace_id.clone(),
            token_id: TokenId::of_launch(&server_id),
            // In whole seconds, as tokens have it: the same at every try.
            issued_at: Timestamp(launch.requested_at.secs() * 1_000),
        };
        let token = self.keys.issue_credential(CredentialKind::Server, &credential);
        let environment = [
            ("MUSTER_API_URL", self.api_url.clone()),
            ("MUSTER_BUILD", servers.build.to_string()),
            ("MUSTER_CAPACITY", servers.capacity.to_string()),
            ("MUSTER_LEASE_SECONDS", LEASE_SECONDS.to_string()),
            ("MUSTER_NAMESPACE_ID", namespace_id.to_string()),
            ("MUSTER_REGION_ID", server.region_id.to_string()),
            ("MUSTER_SERVER_ID", server_id.to_string()),
            ("MUSTER_SERVER_TOKEN", token),
            ("MUSTER_START_ID", start_id.as_str().to_owned()),
        ];
        Ok(Some(Order {
            game_id,
            namespace_id,
            region_id: server.region_id.clone(),
            server_id,
            start_id,
            build: servers.build,
            environment: environment.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            handle: server.handle.clone(),
        }))
    }
}
