//! One machine for players: the same operations, tables, permissions and limits as deployed, over a database
//! whose writes are on disk before they are answered. No demo, console, faults or routes of its own at the
//! gateway, and nothing secret in what it prints.

use std::{
    fs, io,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use muster::OwnGame;
use serde_json::json;
use shared::{
    auth::keys::TokenKeys, base::ambient::Ambient, outside::endpoints::Outside, store::client::Store,
};
use tokio::{sync::oneshot, task::JoinHandle, time::timeout};

use self::{proxies::Proxies, service::Service, status::Status};
#[cfg(unix)]
use crate::launcher::Launcher;
use crate::{
    addresses::{bind, listen},
    demo::DemoError,
    emulator::{Emulator, Storage, link::patient_client_over, stamp::DATABASE_FILE},
    functions::Functions,
    gateway::Gateway,
    own_game::FollowedFile,
    private,
    stack::{StackError, TEMPLATE, kept_key, named, routes, table_names},
    template::Template,
};

pub mod backup;
pub mod gate;
pub mod meters;
pub mod moved;
pub mod proxies;
pub mod service;
pub mod status;

/// Name of the file by which `muster --data` finds the database of the process that serves a folder.
pub const DOOR_FILE: &str = "door.json";

/// Options of a machine.
#[derive(Clone, Debug)]
pub struct Options {
    /// The gateway's address, besides loopback.
    pub host: IpAddr,
    /// The gateway's port; 0 takes a free one.
    pub port: u16,
    /// Where players and game servers on demand come, if that is not this machine's address.
    pub public_url: Option<String>,
    /// Where health and metrics are; port 0 takes a free one.
    pub status: SocketAddr,
    /// The folder of the data.
    pub data: PathBuf,
    /// A file with a game, applied at the start.
    pub game: Option<PathBuf>,
    /// The proxies that clients come through.
    pub proxies: Proxies,
    /// How long a stop waits for requests under way.
    pub drain: Duration,
    /// The clock and randomness.
    pub ambient: Ambient,
    /// The captcha providers and backends.
    pub outside: Outside,
}

/// A machine that serves players.
#[derive(Debug)]
pub struct Served {
    /// The gateway's URL on this machine.
    pub url: String,
    /// The URL of health and metrics.
    pub status_url: String,
    folder: PathBuf,
    game: Option<FollowedFile>,
    drain: Duration,
    service: Arc<Service>,
    store: Store,
    ambient: Ambient,
    emulator: Emulator,
    stop: oneshot::Sender<()>,
    gateway: JoinHandle<()>,
    status: JoinHandle<()>,
    #[cfg(unix)]
    launcher: Option<Launcher>,
}

impl Served {
    /// Starts, and answers requests once this returns.
    ///
    /// # Errors
    /// [`StackError`]; then nothing is left running.
    pub async fn start(options: Options) -> Result<Self, StackError> {
        let Options { host, port, public_url, status, data: folder, game, proxies, drain, ambient, outside } =
            options;
        let game = game.map(FollowedFile::read).transpose()?;
        let template = Template::parse(TEMPLATE)?;
        if let Some(to) = moved::noted(&folder).map_err(of_file(folder.join(moved::FILE)))? {
            return Err(StackError::Moved { folder, to });
        }
        // The ports first, so that a second process fails before it changes anything.
        let listening = listen(host, port).await?;
        let (status_listener, status_port) = bind(status).await?;
        let (url, status) = (listening.url(), SocketAddr::from((status.ip(), status_port)));
        let place = listening.place(public_url.as_deref());
        let public_url = public_url.unwrap_or_else(|| url.clone());

        let Data { emulator, keys, store, game } = Data::open(&folder, game, &template, &ambient).await?;
        let (keyed, called) = (Arc::clone(&keys), outside.clone());
        let functions =
            Arc::new(Functions::new(store.clone(), template.functions, keyed, ambient.clone(), called));
        let service = Arc::new(Service::behind(proxies));
        let routes = routes(template.routes, &functions)?;
        let gateway = Gateway::new(routes, Vec::new(), template.cors, ambient.clone())
            .with_service(Arc::clone(&service));

        let key = ambient.bytes::<16>().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        let door = Door { url: &url, status, key: &key, emulator: &emulator };
        door.write(&folder).map_err(of_file(folder.join(DOOR_FILE)))?;
        let status_page = Status {
            store: store.clone(),
            functions,
            service: Arc::clone(&service),
            database: folder.join(DATABASE_FILE),
            key,
        };
        // First, so that no find gets a place on a server whose process is gone.
        #[cfg(unix)]
        let launcher = {
            let (notices, at) = (emulator.notices.receive(), (place, public_url));
            let started = Launcher::start(&store, keys, (&ambient, outside), at, notices);
            started.await.map_err(DemoError::Store)?
        };
        let (stop, stopped) = oneshot::channel();
        let gateway = tokio::spawn(gateway.serve(listening, async move {
            let _stopped_or_dropped = stopped.await;
        }));
        Ok(Self {
            url,
            status_url: format!("http://{status}"),
            folder,
            game,
            drain,
            service,
            store,
            ambient,
            emulator,
            stop,
            gateway,
            status: tokio::spawn(status_page.serve(status_listener)),
            #[cfg(unix)]
            launcher,
        })
    }

    /// Starts to delete expired items once a `period`, as DynamoDB does.
    pub fn sweep_every(&self, period: Duration) {
        self.emulator.sweep_every(period);
    }

    /// Reads the game's file again and applies what changed. A file with mistakes changes nothing, and the
    /// log names them.
    pub async fn reload(&self) {
        let Some(file) = &self.game else {
            return tracing::warn!("there is no file to read again: start with --config FILE");
        };
        match file.apply_again(&self.store, &self.ambient).await {
            Ok(changes) => say_changes(&file.name(), &changes),
            Err(problem) => tracing::error!("not applied, all stays as it was: {problem}"),
        }
    }

    /// Stops once the game servers that it had started have ended, within seconds, and the requests under way
    /// have their responses. Those that take longer than
    /// [`Options::drain`], such as finds that wait for a lobby, get 503 and come again.
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
        let mut gateway = self.gateway;
        if timeout(self.drain, &mut gateway).await.is_err() {
            self.service.cut();
            let _gateway_panicked = gateway.await;
        }
        self.status.abort();
        let _others_may_have_it = fs::remove_file(self.folder.join(DOOR_FILE));
        Ok(self.emulator.shutdown().await?)
    }
}

fn of_file(path: PathBuf) -> impl FnOnce(io::Error) -> StackError {
    move |source| StackError::DataFile { path, source }
}

fn say_changes(file: &str, changes: &[String]) {
    for change in changes {
        tracing::info!("{file}: {change}");
    }
    if changes.is_empty() {
        tracing::info!("{file}: nothing to change");
    }
}

/// What a machine keeps in its folder, with the game of its file.
struct Data {
    emulator: Emulator,
    keys: Arc<TokenKeys>,
    store: Store,
    game: Option<FollowedFile>,
}

impl Data {
    async fn open(
        folder: &Path,
        game: Option<(FollowedFile, OwnGame)>,
        template: &Template,
        ambient: &Ambient,
    ) -> Result<Self, StackError> {
        let emulator = Emulator::start(&Storage::Durable(folder.to_owned()), &template.tables)?;
        let keys = Arc::new(TokenKeys::new(&kept_key(folder, ambient)?, None)?);
        let store = Store::new(patient_client_over(Arc::clone(&emulator.link)), table_names());
        let mut followed = None;
        if let Some((file, game)) = game {
            say_changes(&file.name(), &game.apply(&store, ambient).await?.changes);
            followed = Some(file);
        }
        Ok(Self { emulator, keys, store, game: followed })
    }
}

/// What `muster --data` needs beside the signing key, in a file that only the owner of the folder may read.
struct Door<'a> {
    url: &'a str,
    status: SocketAddr,
    key: &'a str,
    emulator: &'a Emulator,
}

impl Door<'_> {
    fn write(&self, folder: &Path) -> io::Result<()> {
        let door = json!({
            "url": self.url,
            "endpoint": self.emulator.endpoint,
            "tables": named(&table_names()),
            "status": format!("http://{}", self.status),
            "key": self.key,
        });
        private::write(&folder.join(DOOR_FILE), format!("{door}\n").as_bytes())
    }
}
