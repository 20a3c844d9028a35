//! A game server in Muster, and the processes of its lobbies.

use std::{convert::Infallible, future::pending, pin::pin, sync::Arc, time::Duration};

use muster_client::{Error, Event, GameServer, Lobby, api::ServerLobby};
use serde_json::json;
use tokio::{
    sync::{Mutex, SetOnce, mpsc::UnboundedReceiver},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::{
    agent::{
        child::{Environment, Launcher},
        door::Scope,
        options::{Settings, Slot},
        output::{say, text},
        stage::{Stage, Stages},
    },
    error::CommandError,
    reach::TargetError,
};

/// Leases without an accepted heartbeat after which the agent ends: its lobbies are gone by then.
const LEASES_WITHOUT_HEARTBEAT: u32 = 3;
/// How long the last calls may take when the agent ends at once.
const LEAVE_MAX: Duration = Duration::from_secs(3);

/// What runs the lobbies of a game server.
pub(super) enum Runs {
    /// A process that learns of them by itself.
    Shared,
    /// A process each.
    EachLobby(Arc<Launcher>),
}

pub(super) struct Registration {
    settings: Arc<Settings>,
    slot: Slot,
    runs: Runs,
    /// The game server, once it is registered.
    pub server: Arc<SetOnce<GameServer>>,
    /// Held by the process that uses them.
    ports: Mutex<()>,
}

impl Registration {
    pub fn new(settings: Arc<Settings>, slot: Slot, runs: Runs) -> Arc<Self> {
        Arc::new(Self { settings, slot, runs, server: Arc::default(), ports: Mutex::default() })
    }

    /// What any process of it gets.
    pub fn environment(&self) -> Environment {
        let mut environment: Environment = self.slot.ports.iter().map(|port| port.variable()).collect();
        environment.insert("MUSTER_SERVER_ID".to_owned(), self.slot.server_id.clone());
        environment.insert("MUSTER_REGION_ID".to_owned(), self.slot.server.region.clone());
        environment
    }

    /// Registers, and runs lobbies until the server is gone. Its processes have ended then.
    ///
    /// # Errors
    /// [`CommandError`], where Muster refuses it for good, or for three leases accepts nothing.
    pub async fn keep(self: Arc<Self>, stages: Stages) -> Result<(), CommandError> {
        let Some((server, events)) = self.register(&stages).await? else { return Ok(()) };
        let mut processes = JoinSet::new();
        let kept = self.follow(&server, events, &stages, &mut processes).await;
        server.close();
        while processes.join_next().await.is_some() {}
        kept
    }

    /// Registers the server; `None` when it need not run any more.
    async fn register(
        &self,
        stages: &Stages,
    ) -> Result<Option<(GameServer, UnboundedReceiver<Event>)>, CommandError> {
        let Slot { server_id, server: options, .. } = &self.slot;
        let (began, mut is_said) = (Instant::now(), false);
        loop {
            let mut starting = pin!(GameServer::start(options.clone()));
            let started = tokio::select! {
                started = &mut starting => started,
                () = stages.reached(Stage::Ending) => {
                    // The request may have arrived.
                    if let Ok(Ok((server, _))) = timeout(LEAVE_MAX, starting).await {
                        self.leave(&server).await;
                    }
                    return Ok(None);
                }
            };
            match started {
                Ok((server, events)) => {
                    say(&format!("{server_id} is registered in {}", options.region));
                    let _first = self.server.set(server.clone());
                    return Ok(Some((server, events)));
                }
                // Muster had it started, and gave it up.
                Err(error) if options.is_on_demand && error.is("MATCHMAKER_SERVER_NOT_FOUND") => {
                    return Ok(None);
                }
                Err(error) if !error.is_transient() => return Err(refused(&error)),
                Err(error) if began.elapsed() >= self.given_up_after() => return Err(self.away(&error)),
                Err(error) if !is_said => say(&format!("{server_id}: {}", text(&error))),
                Err(_) => {}
            }
            is_said = true;
        }
    }

    /// Runs lobbies until the server is gone, or has to leave.
    async fn follow(
        self: &Arc<Self>,
        server: &GameServer,
        mut events: UnboundedReceiver<Event>,
        stages: &Stages,
        processes: &mut JoinSet<()>,
    ) -> Result<(), CommandError> {
        let Slot { server_id, server: options, .. } = &self.slot;
        let mut drain = pin!(async {
            stages.reached(Stage::Draining).await;
            // Where it is refused, heartbeats are, too, and that is said.
            while server.drain().await.is_err() {
                sleep(options.heartbeat).await;
            }
            pending::<Infallible>().await
        });
        let mut said = None;
        loop {
            let event = tokio::select! {
                event = events.recv() => event,
                never = &mut drain => match never {},
                () = stages.reached(Stage::Ending) => {
                    self.leave(server).await;
                    return Ok(());
                }
            };
            match event {
                Some(Event::Lobby(lobby)) => {
                    if let Runs::EachLobby(launcher) = &self.runs {
                        processes.spawn_local(Arc::clone(self).run(
                            Arc::clone(launcher),
                            lobby,
                            stages.clone(),
                        ));
                    }
                }
                Some(Event::Ended(_)) => {}
                Some(Event::Registered) => {
                    say(&format!("{server_id} is registered again in {}", options.region));
                }
                Some(Event::Failed(error)) => {
                    let accepted_at = server.accepted_at();
                    if accepted_at.elapsed() >= self.given_up_after() {
                        return Err(self.away(&error));
                    }
                    // Once, until one is accepted.
                    if said.replace(accepted_at) != Some(accepted_at) {
                        say(&format!("{server_id}: {}", text(&error)));
                    }
                }
                Some(Event::Replaced(error)) => return Err(refused(&error)),
                Some(Event::Stopped) | None => {
                    if options.is_on_demand && !server.is_draining() {
                        say(&format!("{server_id} has been without lobbies, and ends"));
                    }
                    return Ok(());
                }
            }
        }
    }

    fn given_up_after(&self) -> Duration {
        self.slot.server.lease_or_default() * LEASES_WITHOUT_HEARTBEAT
    }

    fn away(&self, last: &Error) -> CommandError {
        CommandError::Away { seconds: self.given_up_after().as_secs(), last: text(last) }
    }

    /// Deregisters with all lobbies, whose processes end meanwhile. If that fails, the lease expires.
    async fn leave(&self, server: &GameServer) {
        server.close();
        let problem = match timeout(LEAVE_MAX, server.stop()).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => text(&error),
            Err(late) => format!("no response: {late}"),
        };
        say(&format!("{} is not deregistered: {problem}", self.slot.server_id));
    }

    /// Runs the process of a lobby, and ends one with the other.
    async fn run(self: Arc<Self>, launcher: Arc<Launcher>, lobby: Lobby, stages: Stages) {
        // The process before may not have ended yet.
        let ports = self.ports.lock().await;
        if lobby.is_ended() {
            return;
        }
        let scope = Scope::lobby_of(Arc::clone(&self.server), lobby.clone());
        let name: String = lobby.id().chars().take(8).collect();
        let mut environment = self.environment();
        environment.extend(of_lobby(lobby.assigned()));
        match launcher.launch(scope, &name, environment) {
            Ok(mut child) => {
                let ready = async {
                    if self.settings.auto_ready
                        && let Err(error) = lobby.ready().await
                    {
                        say(&format!("lobby {} is not ready: {}", lobby.id(), text(&error)));
                    }
                    pending().await
                };
                let status = tokio::select! {
                    status = child.wait() => status,
                    () = lobby.ended() => {
                        child.stop(&stages).await;
                        return;
                    }
                    status = ready => status,
                };
                say(&format!("lobby {} ends, because its process did: {status}", lobby.id()));
                child.stop(&stages).await;
            }
            Err(error) => say(&format!("lobby {} ends: {error}", lobby.id())),
        }
        drop(ports);
        tokio::select! {
            result = lobby.end() => {
                if let Err(error) = result {
                    say(&format!("lobby {} could not be ended: {}", lobby.id(), text(&error)));
                }
            }
            // By the end of the agent, too.
            () = lobby.ended() => {}
        }
    }
}

/// What the process of a lobby gets.
fn of_lobby(lobby: ServerLobby) -> impl Iterator<Item = (String, String)> {
    let config = lobby.lobby_config.map(|config| ("MUSTER_LOBBY_CONFIG", config.to_string()));
    let always = [
        ("MUSTER_LOBBY_ID", lobby.lobby_id),
        ("MUSTER_LOBBY_TOKEN", lobby.lobby_token),
        ("MUSTER_GAME_MODE", lobby.game_mode),
        ("MUSTER_MAX_PLAYERS", lobby.max_players.to_string()),
        ("MUSTER_TAGS", json!(lobby.tags).to_string()),
    ];
    always.into_iter().chain(config).map(|(name, value)| (name.to_owned(), value))
}

fn refused(error: &Error) -> CommandError {
    match error.status {
        401 | 403 => CommandError::Target(TargetError::Denied(text(error))),
        _ => CommandError::Refused(text(error)),
    }
}
