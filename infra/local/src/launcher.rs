//! Has game servers started and ended as the writes of their records ask for, like the function that a stream
//! calls in AWS.
//!
//! A server is looked at whenever a write concerns it, when its process ends, and when it said that something
//! will be due: never twice at the same time, and never without reason.

use std::{collections::HashMap, sync::Arc, time::Duration};

use shared::{
    auth::keys::TokenKeys,
    base::ambient::Ambient,
    hosting::launching::{Launching, Next, NotStarted, Order, Starter},
    models::{
        errors::Error,
        game::StarterKind,
        ids::{ServerKey, StartId},
        server::Server,
    },
    outside::{endpoints::Outside, web_client::Reach, webhook::Webhooks},
    store::{client::Store, listing::servers_of},
};
use start_server::starter::RegionStarter;
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{JoinHandle, JoinSet},
};

use crate::{
    addresses::Place,
    processes::{Ended, Processes},
};

/// The variable with the address at which a game server registers.
const API_URL: &str = "MUSTER_API_URL";
/// The variable with the address at which players reach the game server.
const HOSTNAME: &str = "MUSTER_HOSTNAME";
/// The pause after a failure of the store.
const PAUSE: Duration = Duration::from_secs(1);

/// The processes of a stack, for regions whose game servers are such.
#[derive(Debug)]
pub struct OwnProcesses {
    processes: Arc<Processes>,
    place: Place,
}

impl start_server::starter::Processes for OwnProcesses {
    async fn start(&self, command: &[String], order: &Order) -> Result<String, NotStarted> {
        let mut order = order.clone();
        order.environment.insert(API_URL.to_owned(), self.place.url.clone());
        order.environment.extend(self.place.host.clone().map(|host| (HOSTNAME.to_owned(), host)));
        self.processes.start(order, command).await
    }

    async fn end(&self, order: &Order) -> Result<(), NotStarted> {
        self.processes.end(&order.start_id);
        Ok(())
    }
}

/// The game servers on demand of a stack.
#[derive(Debug)]
pub struct Launcher {
    processes: Arc<Processes>,
    running: JoinHandle<()>,
}

/// Why a server is looked at: its process ended by itself, or something else.
type Reason = Option<(StartId, String)>;

impl Launcher {
    /// Looks after the game servers in `store` from now on, as `notices` ask for; `None` without them. They
    /// register at `public_url`, and processes at their `place`. Once this returns, the processes of an
    /// earlier process of the stack are over in the store, too.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn start(
        store: &Store,
        keys: Arc<TokenKeys>,
        (ambient, outside): (&Ambient, Outside),
        (place, public_url): (Place, String),
        notices: Option<UnboundedReceiver<ServerKey>>,
    ) -> Result<Option<Self>, Error> {
        let Some(notices) = notices else { return Ok(None) };
        let (ended, endings) = unbounded_channel();
        let processes = Arc::new(Processes::new(ambient.clone(), ended));
        let own = OwnProcesses { processes: Arc::clone(&processes), place };
        // A receiver on this machine may be called, too.
        let webhooks = Webhooks::new(Outside { reach: Reach::Anywhere, ..outside }, ambient.clone());
        let starter = RegionStarter::new(store.clone(), webhooks, None, own);
        let launching = Launching::new(store.clone(), keys, ambient.clone(), public_url, starter);
        let launching = Arc::new(launching);
        let mut watch = Watch {
            launching: Arc::clone(&launching),
            ambient: ambient.clone(),
            looks: HashMap::new(),
            tasks: JoinSet::new(),
        };
        for (server, is_process) in started_before(store).await? {
            if let (true, Some(start_id)) = (is_process && server.handle.is_some(), &server.start_id) {
                let how = "its process ended with Muster's, which had started it";
                let is_it = |seen: &Server| seen.start_id.as_ref() == Some(start_id);
                let _is_due = launching.process_ended(&server.server, is_it, how).await?;
            }
            watch.look(server.server, None);
        }
        Ok(Some(Self { processes, running: tokio::spawn(watch.run(notices, endings)) }))
    }

    /// Ends all processes, and looks after nothing any more.
    pub async fn stop(self) {
        self.processes.stop().await;
        self.running.abort();
    }
}

/// The servers that Muster had started, or was about to, before this process, and whether as processes.
async fn started_before(store: &Store) -> Result<Vec<(Server, bool)>, Error> {
    let mut started = Vec::new();
    for game in store.games().await? {
        for namespace in store.namespaces(&game.game_id).await? {
            let servers = servers_of(store, &game, &namespace.namespace_id).await?;
            let launched = servers.into_iter().filter(|server| server.launch.is_some());
            started.extend(launched.map(|server| {
                let starter = game.regions.get(&server.region_id).and_then(|region| region.starter);
                (server, starter == Some(StarterKind::Process))
            }));
        }
    }
    Ok(started)
}

/// The servers that something is or will be due for.
struct Watch<S> {
    launching: Arc<Launching<S>>,
    ambient: Ambient,
    looks: HashMap<ServerKey, UnboundedSender<Reason>>,
    tasks: JoinSet<(ServerKey, UnboundedReceiver<Reason>)>,
}

impl<S: Starter + Send + Sync + 'static> Watch<S> {
    async fn run(mut self, mut notices: UnboundedReceiver<ServerKey>, mut endings: UnboundedReceiver<Ended>) {
        loop {
            tokio::select! {
                Some(key) = notices.recv() => self.look(key, None),
                Some(Ended { key, start_id, how }) = endings.recv() => {
                    self.look(key, Some((start_id, format!("its process ended: {how}"))));
                }
                Some(done) = self.tasks.join_next() => {
                    let Ok((key, mut reasons)) = done else { continue };
                    self.looks.remove(&key);
                    // It was asked for while the last look ended.
                    if let Ok(reason) = reasons.try_recv() {
                        self.look(key, reason);
                    }
                }
                else => return,
            }
        }
    }

    fn look(&mut self, key: ServerKey, reason: Reason) {
        let reason = match self.looks.get(&key) {
            Some(looks) => match looks.send(reason) {
                Ok(()) => return,
                Err(unsent) => unsent.0,
            },
            None => reason,
        };
        let (sender, reasons) = unbounded_channel();
        let _received = sender.send(reason);
        self.looks.insert(key.clone(), sender);
        self.tasks.spawn(follow(Arc::clone(&self.launching), self.ambient.clone(), key, reasons));
    }
}

/// Looks at a server until nothing is due any more unless its record changes.
async fn follow<S: Starter + Sync>(
    launching: Arc<Launching<S>>,
    ambient: Ambient,
    key: ServerKey,
    mut reasons: UnboundedReceiver<Reason>,
) -> (ServerKey, UnboundedReceiver<Reason>) {
    let (mut tries, mut ended) = (0, None);
    loop {
        while let Ok(reason) = reasons.try_recv() {
            ended = reason.or(ended);
        }
        let looked = match &ended {
            Some((start_id, how)) => {
                let is_it = |seen: &Server| seen.start_id.as_ref() == Some(start_id);
                launching.process_ended(&key, is_it, how).await
            }
            None => launching.look(&key, tries).await,
        };
        let pause = match looked {
            Ok(Next::Nothing) => return (key, reasons),
            Ok(Next::Look { after, tries: made }) => {
                tries = made;
                after
            }
            Err(error) => {
                let cause = error.cause().unwrap_or("refused").to_owned();
                tracing::warn!(server.id = %key.server_id, cause, "a game server is looked at again");
                PAUSE
            }
        };
        tokio::select! {
            reason = reasons.recv() => ended = reason.flatten().or(ended),
            () = ambient.sleep(pause) => {}
        }
    }
}
