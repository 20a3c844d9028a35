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
        ids::{ServerKey, StartId},
        server::Server,
        starter::StarterSettings,
    },
    store::{client::Store, listing::servers_of},
};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{JoinHandle, JoinSet},
};

use crate::processes::{Ended, Processes};

/// The pause after a failure of the store.
const PAUSE: Duration = Duration::from_secs(1);

/// What starts the game servers of a local stack: each region's own starter.
#[derive(Debug)]
pub struct LocalStarter {
    store: Store,
    processes: Arc<Processes>,
}

impl Starter for LocalStarter {
    async fn start(&self, order: &Order) -> Result<String, NotStarted> {
        match self.store.starter(&order.game_id, &order.region_id).await {
            Ok(Some(StarterSettings::Process { command })) => self.processes.start(order, &command).await,
            Ok(Some(other)) => {
                let kind = other.kind().name();
                Err(NotStarted::Refused(format!("the local stack starts processes, and nothing by {kind}")))
            }
            Ok(None) => Err(NotStarted::Refused("its region has no starter".to_owned())),
            Err(_) => Err(NotStarted::NotNow("the store failed".to_owned())),
        }
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
    /// Looks after the game servers in `store` from now on, which register at `api_url`. Those that an
    /// earlier process of the stack had started are over, since their processes are.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn start(
        store: &Store,
        keys: Arc<TokenKeys>,
        ambient: &Ambient,
        api_url: String,
        notices: UnboundedReceiver<ServerKey>,
    ) -> Result<Self, Error> {
        let (ended, endings) = unbounded_channel();
        let processes = Arc::new(Processes::new(ambient.clone(), ended));
        let starter = LocalStarter { store: store.clone(), processes: Arc::clone(&processes) };
        let launching = Launching::new(store.clone(), keys, ambient.clone(), api_url, starter);
        let mut watch = Watch {
            launching: Arc::new(launching),
            ambient: ambient.clone(),
            looks: HashMap::new(),
            tasks: JoinSet::new(),
        };
        for server in started_before(store).await? {
            let start = server.start_id.filter(|_| server.handle.is_some());
            let over = start.map(|start_id| (start_id, "it ended with the local stack before".to_owned()));
            watch.look(server.server, over);
        }
        Ok(Self { processes, running: tokio::spawn(watch.run(notices, endings)) })
    }

    /// Ends all processes, and looks after nothing any more.
    pub async fn stop(self) {
        self.processes.stop().await;
        self.running.abort();
    }
}

/// The servers that Muster had started, or was about to, before this process.
async fn started_before(store: &Store) -> Result<Vec<Server>, Error> {
    let mut started = Vec::new();
    for game in store.games().await? {
        for namespace in store.namespaces(&game.game_id).await? {
            let servers = servers_of(store, &game, &namespace.namespace_id).await?;
            started.extend(servers.into_iter().filter(|server| server.launch.is_some()));
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
            Some((start_id, how)) => launching.process_ended(&key, start_id, how).await,
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
