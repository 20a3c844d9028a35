//! A game server in Muster: its registration, its lease and the processes of its lobbies.

use std::{future::pending, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    sync::Mutex,
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    agent::{
        child::{Environment, Launcher},
        door::{self, Scope},
        lobby::{Listed, Lobbies, Lobby},
        options::{Settings, Slot},
        output::say,
        rules::{Call, Then, after},
        service::{Message, Refusal, Service, read},
        stage::{Stage, Stages},
    },
    error::CommandError,
    reach::TargetError,
};

/// The least time between two heartbeats, however many players arrive in new lobbies.
const GAP: Duration = Duration::from_millis(250);
const DEREGISTER: &str = "/matchmaker/servers/deregister";
/// How long the last call may take when the agent ends at once.
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
    service: Arc<Service>,
    runs: Runs,
    pub lobbies: Arc<Lobbies>,
    /// Held by the process that uses them.
    ports: Mutex<()>,
}

#[derive(Deserialize)]
struct Heartbeat {
    #[serde(default)]
    draining: bool,
    /// Muster had it started, and wants it no more.
    #[serde(default)]
    stop: bool,
    cursor: Option<String>,
    lobbies: Vec<Listed>,
}

/// How far a registration is.
#[derive(Default)]
struct Progress {
    was_registered: bool,
    is_registered: bool,
    is_leaving: bool,
    /// Calls in a row that were not accepted.
    failures: u32,
}

impl Progress {
    const fn next(&self, is_draining: bool) -> Call {
        if is_draining && !self.is_leaving {
            Call::Deregister
        } else if self.is_registered || self.is_leaving {
            Call::Heartbeat
        } else {
            Call::Register { is_first: !self.was_registered }
        }
    }
}

impl Registration {
    pub fn new(settings: Arc<Settings>, slot: Slot, service: Arc<Service>, runs: Runs) -> Arc<Self> {
        let (lobbies, ports) = (Arc::default(), Mutex::default());
        Arc::new(Self { settings, slot, service, runs, lobbies, ports })
    }

    /// What any process of it gets.
    pub fn environment(&self) -> Environment {
        let mut environment: Environment = self.slot.ports.iter().map(|port| port.variable()).collect();
        environment.insert("MUSTER_SERVER_ID".to_owned(), self.slot.server_id.clone());
        environment.insert("MUSTER_REGION_ID".to_owned(), self.settings.region_id.to_string());
        environment
    }

    /// Registers, and renews the lease until the server is gone. Its processes have ended then.
    ///
    /// # Errors
    /// [`CommandError`], where Muster refuses it for good, or for three leases accepts nothing.
    pub async fn keep(self: Arc<Self>, stages: Stages) -> Result<(), CommandError> {
        let mut processes = JoinSet::new();
        let kept = self.keep_lease(&stages, &mut processes).await;
        self.lobbies.end_all();
        while processes.join_next().await.is_some() {}
        kept
    }

    async fn keep_lease(
        self: &Arc<Self>,
        stages: &Stages,
        processes: &mut JoinSet<()>,
    ) -> Result<(), CommandError> {
        let lease = self.settings.lease;
        let mut progress = Progress::default();
        let mut accepted = Instant::now();
        loop {
            if stages.now() >= Stage::Ending {
                self.leave().await;
                return Ok(());
            }
            let call = progress.next(stages.now() >= Stage::Draining);
            let began = Instant::now();
            let result = tokio::select! {
                result = self.send(call) => result,
                () = stages.reached(Stage::Ending) => continue,
            };
            match result {
                Ok(heartbeat) => {
                    accepted = Instant::now();
                    progress.failures = 0;
                    if heartbeat.as_ref().is_some_and(|heartbeat| heartbeat.stop) {
                        say(&format!("{} has been without lobbies, and ends", self.slot.server_id));
                        return Ok(());
                    }
                    if self.accept(call, heartbeat, began, &mut progress, (stages, processes)) {
                        self.rest(stages, progress.is_leaving).await;
                    }
                }
                Err(refusal) => {
                    let pause = self.service.pause(progress.failures, &refusal);
                    progress.failures += 1;
                    let is_final = progress.is_leaving || self.settings.is_on_demand;
                    match after(call, is_final, refusal.status, &refusal.code) {
                        Then::Gone => return Ok(()),
                        Then::Exit => return Err(refused(&refusal)),
                        Then::Register => progress.is_registered = false,
                        Then::Retry if accepted.elapsed() >= lease.given_up_after() => {
                            return Err(CommandError::Away {
                                seconds: lease.given_up_after().as_secs(),
                                last: refusal.text(),
                            });
                        }
                        Then::Retry => {}
                    }
                    // One lost request matters to nobody.
                    if progress.failures == 2 {
                        say(&format!("{}: {}", self.slot.server_id, refusal.text()));
                    }
                    tokio::select! {
                        () = sleep(pause.min(lease.interval(false))) => {}
                        () = stages.reached(Stage::Ending) => {}
                    }
                }
            }
        }
    }

    /// Notes an accepted call. Returns whether the next one has time.
    fn accept(
        self: &Arc<Self>,
        call: Call,
        heartbeat: Option<Heartbeat>,
        began: Instant,
        progress: &mut Progress,
        (stages, processes): (&Stages, &mut JoinSet<()>),
    ) -> bool {
        match call {
            Call::Register { is_first } => {
                (progress.is_registered, progress.was_registered) = (true, true);
                let word = if is_first { "registered" } else { "registered again" };
                say(&format!("{} is {word} in {}", self.slot.server_id, self.settings.region_id));
            }
            Call::Deregister => progress.is_leaving = true,
            Call::Heartbeat => {}
        }
        let Some(Heartbeat { draining, lobbies, .. }) = heartbeat else { return false };
        // The operator may have deregistered it, too.
        progress.is_leaving |= draining;
        if progress.is_leaving {
            self.lobbies.drain();
        }
        for lobby in self.lobbies.update(lobbies, began) {
            if let Runs::EachLobby(launcher) = &self.runs {
                let run = Arc::clone(self).run(Arc::clone(launcher), lobby, stages.clone());
                processes.spawn_local(run);
            }
        }
        true
    }

    /// Waits until another heartbeat is due.
    async fn rest(&self, stages: &Stages, is_leaving: bool) {
        let may_get_lobbies = self.lobbies.all().len() < self.slot.capacity && !is_leaving;
        let interval = self.settings.lease.interval(may_get_lobbies);
        sleep(GAP.min(interval)).await;
        tokio::select! {
            () = sleep(interval.saturating_sub(GAP)) => {}
            () = self.lobbies.wanted() => {}
            () = stages.reached(if is_leaving { Stage::Ending } else { Stage::Draining }) => {}
        }
    }

    /// Sends a call once. The list of a heartbeat is complete.
    async fn send(&self, call: Call) -> Result<Option<Heartbeat>, Refusal> {
        let limit = self.settings.lease.attempt();
        match call {
            Call::Register { .. } => {
                let message = self.service.as_server("/matchmaker/servers/register", &self.slot.body);
                self.service.attempt(&message, limit).await?;
                Ok(None)
            }
            Call::Deregister => {
                self.service.attempt(&self.message(DEREGISTER, json!({})), limit).await?;
                Ok(None)
            }
            Call::Heartbeat => {
                let mut whole = Heartbeat { draining: false, stop: false, cursor: None, lobbies: Vec::new() };
                loop {
                    let message =
                        self.message("/matchmaker/servers/heartbeat", json!({ "cursor": whole.cursor }));
                    let page: Heartbeat = read(&self.service.attempt(&message, limit).await?)?;
                    whole.draining |= page.draining;
                    whole.stop |= page.stop;
                    whole.lobbies.extend(page.lobbies);
                    whole.cursor = page.cursor;
                    if whole.cursor.is_none() {
                        return Ok(Some(whole));
                    }
                }
            }
        }
    }

    /// A request that names this start.
    fn message(&self, path: &'static str, mut body: Value) -> Message {
        if let Some(fields) = body.as_object_mut() {
            fields.insert("server_id".to_owned(), json!(self.slot.server_id));
            fields.insert("start_id".to_owned(), json!(self.slot.start_id));
        }
        self.service.as_server(path, &body)
    }

    /// Deregisters with all lobbies, whose processes end meanwhile. If that fails, the lease expires.
    async fn leave(&self) {
        self.lobbies.end_all();
        let message = self.message(DEREGISTER, json!({ "end_lobbies": true }));
        if let Err(refusal) = self.service.call(&message, LEAVE_MAX).await {
            say(&format!("{} is not deregistered: {}", self.slot.server_id, refusal.text()));
        }
    }

    /// Runs the process of a lobby, and ends one with the other.
    async fn run(self: Arc<Self>, launcher: Arc<Launcher>, lobby: Arc<Lobby>, stages: Stages) {
        // The process before may not have ended yet.
        let ports = self.ports.lock().await;
        if lobby.is_over() {
            return;
        }
        let scope = Scope::lobby_of(Arc::clone(&self.lobbies), Arc::clone(&lobby));
        let name: String = lobby.lobby_id.chars().take(8).collect();
        let mut environment = self.environment();
        environment.extend(of_lobby(&lobby.listed()));
        match launcher.launch(scope, &name, environment) {
            Ok(mut child) => {
                let ready = async {
                    if self.settings.auto_ready {
                        let ready = door::ready(&self.service, &lobby).await;
                        ready.err().into_iter().for_each(|refusal| {
                            say(&format!("lobby {} is not ready: {}", lobby.lobby_id, refusal.text()));
                        });
                    }
                    pending().await
                };
                let status = tokio::select! {
                    status = child.wait() => status,
                    () = lobby.over() => {
                        child.stop(&stages).await;
                        return;
                    }
                    status = ready => status,
                };
                say(&format!("lobby {} ends, because its process did: {status}", lobby.lobby_id));
                child.stop(&stages).await;
            }
            Err(error) => say(&format!("lobby {} ends: {error}", lobby.lobby_id)),
        }
        drop(ports);
        let ended = door::end(&self.service, &self.lobbies, &lobby, self.settings.lease.given_up_after());
        if let Err(refusal) = ended.await {
            say(&format!("lobby {} could not be ended: {}", lobby.lobby_id, refusal.text()));
        }
    }
}

/// What the process of a lobby gets.
fn of_lobby(lobby: &Listed) -> impl Iterator<Item = (String, String)> {
    let Listed { lobby_id, lobby_token, game_mode, tags, max_players, lobby_config, .. } = lobby.clone();
    let config = lobby_config.map(|config| ("MUSTER_LOBBY_CONFIG", config.get().to_owned()));
    let always = [
        ("MUSTER_LOBBY_ID", lobby_id),
        ("MUSTER_LOBBY_TOKEN", lobby_token),
        ("MUSTER_GAME_MODE", game_mode),
        ("MUSTER_MAX_PLAYERS", max_players.to_string()),
        ("MUSTER_TAGS", json!(tags).to_string()),
    ];
    always.into_iter().chain(config).map(|(name, value)| (name.to_owned(), value))
}

fn refused(refusal: &Refusal) -> CommandError {
    match refusal.status {
        401 | 403 => CommandError::Target(TargetError::Denied(refusal.text())),
        _ => CommandError::Refused(refusal.text()),
    }
}
