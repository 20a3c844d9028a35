//! The whole service in one process: emulator, operations, gateway.

use std::{
    io,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use http::{Method, StatusCode};
use muster::{CommandError, OwnGame};
use muster_console::errors;
use serde_json::{Value, json};
use shared::{
    auth::keys::{SigningKeyTooShort, TokenKeys},
    base::ambient::Ambient,
    function::config::InvalidConfig,
    outside::endpoints::Outside,
    store::client::{Store, TableNames},
};
use tokio::{sync::oneshot, task::JoinHandle};

#[cfg(unix)]
use crate::launcher::Launcher;
use crate::{
    addresses::{ListenError, Listening, listen},
    console::Shown,
    demo::{CurrentDemo, Demo, DemoError},
    emulator::{
        Emulator, Storage,
        error::EmulatorError,
        link::{Link, patient_client_over},
    },
    faults::Faults,
    functions::{Functions, StartError},
    gateway::{Gateway, Handler},
    local::LocalHandler,
    own_game::{self, FollowedFile},
    requests::RequestLog,
    route::Route,
    signing_key,
    template::{Template, error::TemplateError},
};

/// The template that users deploy, from which the local stack reads routes and tables.
pub const TEMPLATE: &str = include_str!("../../../template.yaml");

/// Options of a stack.
#[derive(Clone, Debug)]
pub struct Options {
    /// The gateway's address, besides loopback.
    pub host: IpAddr,
    /// The gateway's port; 0 takes a free one.
    pub port: u16,
    /// The URL at which clients reach the gateway, where it hands out its own; by default that on loopback.
    pub public_url: Option<String>,
    /// The storage of the data.
    pub storage: Storage,
    /// The clock and randomness.
    pub ambient: Ambient,
    /// The captcha providers and backends.
    pub outside: Outside,
    /// The file with a studio's own game; without it, the stack has the demo game.
    pub game: Option<PathBuf>,
    /// The seed of faults between clients and the gateway, if there are to be any.
    pub faults: Option<u32>,
    /// This program, where it becomes a game server or a command by its first argument: the stack then starts
    /// game servers on demand. Without it, those of the demo game are records.
    pub own_program: Option<PathBuf>,
}

/// A running stack.
#[derive(Debug)]
pub struct Stack {
    /// Its demo, or the same of a studio's own game, as it was at the start.
    pub demo: Demo,
    /// The gateway's URL on this machine.
    pub url: String,
    /// Its URLs at other addresses.
    pub other_urls: Vec<String>,
    current: Arc<CurrentDemo>,
    game: Option<FollowedFile>,
    store: Store,
    keys: Arc<TokenKeys>,
    functions: Arc<Functions>,
    emulator: Emulator,
    ambient: Ambient,
    log: Arc<RequestLog>,
    faults: Arc<Faults>,
    stop: oneshot::Sender<()>,
    gateway: JoinHandle<()>,
    #[cfg(unix)]
    launcher: Option<Launcher>,
}

/// The database of a stack and the key that its tokens are signed with.
struct Data {
    emulator: Emulator,
    key: Vec<u8>,
    keys: Arc<TokenKeys>,
    store: Store,
}

impl Data {
    fn open(
        database: Option<Emulator>,
        storage: &Storage,
        template: &Template,
        ambient: &Ambient,
    ) -> Result<Self, StackError> {
        let emulator = match database {
            Some(database) => database,
            None => Emulator::start(storage, &template.tables)?,
        };
        let key = match storage {
            Storage::Memory => signing_key::fresh(ambient),
            Storage::Folder(folder) | Storage::Durable(folder) => kept_key(folder, ambient)?,
        };
        let keys = Arc::new(TokenKeys::new(&key, None)?);
        let store = Store::new(patient_client_over(Arc::clone(&emulator.link)), table_names());
        Ok(Self { emulator, key, keys, store })
    }

    /// Has the studio's own game, or else the demo game, in the store.
    async fn prepare(
        &self,
        game: Option<OwnGame>,
        own_program: Option<&Path>,
        ambient: &Ambient,
        base_url: String,
    ) -> Result<Demo, StackError> {
        let Self { store, keys, .. } = self;
        let Some(game) = game else {
            return Ok(Demo::prepare(store, keys, ambient, base_url, own_program).await?);
        };
        let applied = game.apply(store, ambient).await?;
        let namespaces = own_game::shown(&applied);
        let namespaces = namespaces.ok_or_else(|| DemoError::Incomplete("it has no namespace".to_owned()))?;
        Ok(Demo::of(store, keys, ambient, base_url, (applied.game.clone(), namespaces)).await?)
    }
}

/// Why a stack does not run.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// The template cannot be run.
    #[error("template.yaml: {0}")]
    Template(#[from] TemplateError),
    /// A function of the template does not start.
    #[error("template.yaml: the function {0} {1}")]
    Function(String, StartError),
    /// The gateway cannot listen.
    #[error("{0}")]
    Listen(#[from] ListenError),
    /// The database does not run.
    #[error("{0}")]
    Emulator(#[from] EmulatorError),
    /// The environment of functions cannot be written.
    #[error("{path}: {source}")]
    EnvironmentFile {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A file of the data folder cannot be read or written.
    #[error("{path}: {source}")]
    DataFile {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The game of a data folder is in another deployment.
    #[error(
        "the game in {folder} was moved to {to}, where its players are now; to serve it here again, and lose what \
         happened there, delete {}", folder.join(crate::serve::moved::FILE).display()
    )]
    Moved {
        /// The folder.
        folder: PathBuf,
        /// The other deployment.
        to: String,
    },
    /// The signing key cannot be kept.
    #[error("the signing key {path} cannot be used: {source}")]
    SigningKey {
        /// Its file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The signing key is too short.
    #[error("{0}")]
    KeyTooShort(#[from] SigningKeyTooShort),
    /// A variable of the environment is not valid.
    #[error("{0}")]
    Config(#[from] InvalidConfig),
    /// The demo cannot be prepared.
    #[error("{0}")]
    Demo(#[from] DemoError),
    /// The studio's own game cannot be used.
    #[error("{0}")]
    Game(#[from] CommandError),
}

/// The tables' local names: their logical identifiers in the template.
#[must_use]
pub fn table_names() -> TableNames {
    TableNames {
        catalog: "CatalogTable".to_owned(),
        tokens: "TokensTable".to_owned(),
        lobbies: "LobbiesTable".to_owned(),
        lobby_data: "LobbyDataTable".to_owned(),
        servers: "ServersTable".to_owned(),
        ledger: "LedgerTable".to_owned(),
        secrets: "SecretsTable".to_owned(),
        clients: "ClientsTable".to_owned(),
    }
}

/// The names of tables, as the operator's command reads them.
pub(crate) fn named(tables: &TableNames) -> Value {
    json!({
        "catalog": tables.catalog,
        "tokens": tables.tokens,
        "lobbies": tables.lobbies,
        "lobby_data": tables.lobby_data,
        "servers": tables.servers,
        "ledger": tables.ledger,
        "secrets": tables.secrets,
        "clients": tables.clients,
    })
}

impl Stack {
    /// Starts a stack, which answers requests once this returns.
    ///
    /// # Errors
    /// [`StackError`]; then nothing is left running.
    pub async fn start(options: Options) -> Result<Self, StackError> {
        Self::start_with(None, options).await
    }

    /// Starts a stack on `database`, which has the template's tables, instead of one in `options.storage`.
    ///
    /// # Errors
    /// [`StackError`]; then nothing is left running.
    pub async fn start_on(database: Emulator, options: Options) -> Result<Self, StackError> {
        Self::start_with(Some(database), options).await
    }

    async fn start_with(database: Option<Emulator>, options: Options) -> Result<Self, StackError> {
        let Options { host, port, public_url, storage, ambient, outside, game, faults, own_program } =
            options;
        let game = game.map(FollowedFile::read).transpose()?;
        let template = Template::parse(TEMPLATE)?;
        // The port first, so that a second stack fails before it changes anything.
        let listening = listen(host, port).await?;
        let (url, other_urls, place) = (listening.url(), listening.other_urls(), listening.place(None));
        let base_url = public_url.unwrap_or_else(|| url.clone());

        let data = Data::open(database, &storage, &template, &ambient)?;
        let (game, own) = game.unzip();
        let demo = data.prepare(own, own_program.as_deref(), &ambient, base_url).await?;
        let Data { emulator, key, keys, store } = data;
        let current = Arc::new(CurrentDemo::new(demo.clone()));
        let (keyed, called) = (Arc::clone(&keys), outside.clone());
        let functions = Functions::new(store.clone(), template.functions, keyed, ambient.clone(), called)
            .with_documentation(&format!("{}{}", demo.base_url, errors::PATH));
        let functions = Arc::new(functions);

        let routes = routes(template.routes, &functions)?;
        let faults = Arc::new(Faults::new(faults));
        let local = local_routes(&current, &emulator, &key, &functions, &faults);
        let log = Arc::new(RequestLog::default());
        let (keyed, logged) = (Arc::clone(&keys), Arc::clone(&log));
        let console = Shown::new(store.clone(), keyed, ambient.clone(), url.clone(), logged);
        let gateway = Gateway::new(routes, local, template.cors, ambient.clone())
            .with_console(console)
            .with_faults(Arc::clone(&faults));
        let gateway = match storage {
            // As players of one machine have it, for the tests that hold for both.
            Storage::Durable(_) => gateway.with_service(Arc::default()),
            Storage::Memory | Storage::Folder(_) => gateway,
        };
        // First, so that no find gets a place on a server whose process is gone.
        #[cfg(unix)]
        let launcher = {
            let notices = emulator.notices.receive().filter(|_| own_program.is_some());
            let (keys, at) = (Arc::clone(&keys), (place, demo.base_url.clone()));
            let started = Launcher::start(&store, keys, (&ambient, outside), at, notices);
            started.await.map_err(DemoError::Store)?
        };
        let (stop, gateway) = spawned(gateway, listening);
        Ok(Self {
            demo,
            url,
            other_urls,
            current,
            game,
            store,
            keys,
            functions,
            emulator,
            ambient,
            log,
            faults,
            stop,
            gateway,
            #[cfg(unix)]
            launcher,
        })
    }

    /// Starts to delete expired items once a `period`, by the machine's clock.
    pub fn sweep_every(&self, period: Duration) {
        self.emulator.sweep_every(period);
    }

    /// Starts to log once a `period` how many heartbeats came in it.
    pub fn sum_up_every(&self, period: Duration) {
        let (log, ambient) = (Arc::clone(&self.log), self.ambient.clone());
        tokio::spawn(async move {
            loop {
                ambient.sleep(period).await;
                log.sum_up(ambient.now());
            }
        });
    }

    /// The file with the studio's own game, for people.
    #[must_use]
    pub fn game_file(&self) -> Option<String> {
        self.game.as_ref().map(FollowedFile::name)
    }

    /// Starts to look once a `period` whether the file of the studio's own game has changed, and to apply it.
    pub fn follow_game_every(&mut self, period: Duration) {
        if let Some(game) = self.game.take() {
            let (store, ambient, current) =
                (self.store.clone(), self.ambient.clone(), Arc::clone(&self.current));
            tokio::spawn(game.follow(period, store, ambient, current));
        }
    }

    /// The seed of the stack's faults, while it makes some.
    #[must_use]
    pub fn fault_seed(&self) -> Option<u32> {
        self.faults.seed()
    }

    /// The stack's store.
    #[must_use]
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// The URL of the stack's database, with the key that it demands.
    #[must_use]
    pub fn store_endpoint(&self) -> &str {
        &self.emulator.endpoint
    }

    /// The link to the stack's database without a socket.
    #[must_use]
    pub fn store_link(&self) -> &Arc<dyn Link> {
        &self.emulator.link
    }

    /// The keys that the stack signs tokens with.
    #[must_use]
    pub const fn keys(&self) -> &Arc<TokenKeys> {
        &self.keys
    }

    /// The operations.
    #[must_use]
    pub const fn functions(&self) -> &Arc<Functions> {
        &self.functions
    }

    /// Stops the stack after it has ended the game servers that it had started, answered the requests under
    /// way and written the data to disk.
    ///
    /// # Errors
    /// [`StackError::Emulator`] when the database had stopped before.
    pub async fn stop(self) -> Result<(), StackError> {
        // Game servers deregister while they can.
        #[cfg(unix)]
        if let Some(launcher) = self.launcher {
            launcher.stop().await;
        }
        let _gateway_gone = self.stop.send(());
        let _gateway_panicked = self.gateway.await;
        Ok(self.emulator.shutdown().await?)
    }
}

/// The signing key of a data folder.
pub(crate) fn kept_key(folder: &Path, ambient: &Ambient) -> Result<Vec<u8>, StackError> {
    signing_key::kept(folder, ambient)
        .map_err(|source| StackError::SigningKey { path: folder.join(signing_key::FILE), source })
}

/// A gateway at work, and what stops it, also by being dropped.
fn spawned(gateway: Gateway, listening: Listening) -> (oneshot::Sender<()>, JoinHandle<()>) {
    let (stop, stopped) = oneshot::channel();
    let serve = gateway.serve(listening, async move {
        let _stopped_or_dropped = stopped.await;
    });
    (stop, tokio::spawn(serve))
}

/// The template's routes, each with its function.
pub(crate) fn routes(
    routes: Vec<Route>,
    functions: &Arc<Functions>,
) -> Result<Vec<(Route, Handler)>, StackError> {
    let handled = |route: Route| match functions.handler(&route.code_uri) {
        Ok(handler) => Ok((route, handler)),
        Err(error) => Err(StackError::Function(route.function, error)),
    };
    routes.into_iter().map(handled).collect()
}

/// The routes of only the local stack: the demo, the store's address and signing key for the operator's
/// command, counts, and faults.
fn local_routes(
    current: &Arc<CurrentDemo>,
    emulator: &Emulator,
    signing_key: &[u8],
    functions: &Arc<Functions>,
    faults: &Arc<Faults>,
) -> Vec<(Method, String, LocalHandler)> {
    let current = Arc::clone(current);
    let store = json!({
        "endpoint": emulator.endpoint,
        "signing_key": BASE64.encode(signing_key),
        "tables": named(&table_names()),
    });
    let functions = Arc::clone(functions);
    let (shown, wanted) = (Arc::clone(faults), Arc::clone(faults));
    let set: LocalHandler = Arc::new(move |request| {
        let outcome = wanted.set_as_wanted(request.body());
        Box::pin(async move { outcome })
    });
    vec![
        (Method::GET, "/_local/demo".to_owned(), answering(move || json!(current.demo()))),
        (Method::GET, "/_local/store".to_owned(), answering(move || store.clone())),
        (Method::GET, "/_local/counts".to_owned(), answering(move || functions.counted().shown())),
        (Method::GET, "/_local/faults".to_owned(), answering(move || shown.shown())),
        (Method::PUT, "/_local/faults".to_owned(), set),
    ]
}

fn answering(value: impl Fn() -> Value + Send + Sync + 'static) -> LocalHandler {
    Arc::new(move |_request| {
        let value = value();
        Box::pin(async move { (StatusCode::OK, value) })
    })
}
