//! The DynamoDB of the local stack: an emulator in this process, behind a guarded loopback port of its own.
//!
//! It runs on its own thread and runtime, and the stack's own calls go there without the port. It answers
//! requests one at a time under a lock and never yields, so it would stall other tasks on its runtime. When
//! it ran in its callers' threads, which then waited for that lock, the stack served a quarter fewer finds.
//! When the runtime is dropped, no connection holds the database, so a stopped emulator has certainly closed
//! its file.

use std::fs::{File, TryLockError};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use dynoxide::Database;
use http::Request;
use hyper::body::Incoming;
use muster_console::listening::{self, HEADER_LIMIT_BYTES};
use tokio::runtime::{self, Handle, Runtime};
use tokio::sync::oneshot;

use self::{
    error::EmulatorError,
    in_process::InProcess,
    link::{Broken, Call, Carried, Link},
    notices::Notices,
    port::Port,
    stamp::{DATABASE_FILE, database_in},
};
use crate::{private, signing_key, template::Table};

pub mod error;
pub mod in_process;
mod limits;
pub mod link;
pub mod notices;
pub(crate) mod port;
mod schema;
pub mod stamp;
#[cfg(test)]
mod tests;
pub mod upgrade;

/// Name of the empty file that a stack locks while it uses the folder.
const LOCK_FILE: &str = "muster.lock";

/// The other files of SQLite, which have the database's rights when it creates them.
const FILES_BESIDE: [&str; 3] = ["muster.db-wal", "muster.db-shm", "muster.db-journal"];

/// The storage of the emulator's items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    /// In memory, lost when the emulator stops.
    Memory,
    /// In this folder, which is created if absent. A power cut may lose the last writes.
    Folder(PathBuf),
    /// The same, where each write is on disk before it is answered, and tables of another release get the
    /// shape of this one's.
    Durable(PathBuf),
}

/// A running DynamoDB emulator; dropping it stops it too, without waiting.
#[derive(Debug)]
pub struct Emulator {
    /// URL for the operator and functions: `http://key@host:port` with the access key that the port demands.
    pub endpoint: String,
    /// The same without the key.
    pub url: String,
    /// The link to it without a socket; broken once the emulator has stopped.
    pub link: Arc<dyn Link>,
    /// What its writes have to do with game servers on demand; nothing when it runs elsewhere.
    pub notices: Notices,
    /// Its thread; `None` when it runs elsewhere.
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    direct: Direct,
    stop: oneshot::Sender<()>,
    stopped: oneshot::Receiver<Result<(), String>>,
}

impl Emulator {
    /// Starts an emulator that holds `tables`, each named by its logical id.
    ///
    /// Tables in the folder stay with their items. Blocks while it opens the folder.
    ///
    /// # Errors
    ///
    /// [`EmulatorError::NotAFolder`], [`EmulatorError::Folder`], [`EmulatorError::FolderInUse`],
    /// [`EmulatorError::Newer`], [`EmulatorError::NotDurable`] and [`EmulatorError::Unreadable`] for a folder
    /// that cannot be used, [`EmulatorError::TableDiffers`] for one of another template,
    /// [`EmulatorError::Database`] and [`EmulatorError::Table`] for errors of the database, and
    /// [`EmulatorError::Start`] when the process has no port or thread left.
    pub fn start(storage: &Storage, tables: &[Table]) -> Result<Self, EmulatorError> {
        Self::start_on(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), None, storage, tables)
    }

    /// The same at an address of this machine, which programs elsewhere may know as `name`; port 0 takes a
    /// free one.
    ///
    /// # Errors
    ///
    /// As [`Emulator::start`]; [`EmulatorError::Start`] also when the port is taken or the address is another
    /// machine's.
    pub fn start_on(
        address: SocketAddr,
        name: Option<&str>,
        storage: &Storage,
        tables: &[Table],
    ) -> Result<Self, EmulatorError> {
        let (database, lock) = match storage {
            Storage::Memory => (with_tables(Database::memory(), tables)?, None),
            Storage::Folder(folder) => {
                let lock = lock(folder)?;
                let database = open(folder, tables, false)?;
                // Its name says what it follows, not what it does: one sync for each checkpoint of the log,
                // in place of one for each write. As safe as a local run needs, and twelve times as fast.
                database.disable_bulk_loading().map_err(EmulatorError::Database)?;
                (database, Some(lock))
            }
            Storage::Durable(folder) => {
                let lock = lock(folder)?;
                let database = match open(folder, tables, true) {
                    Err(EmulatorError::TableDiffers { part, .. }) if part != schema::KEY => {
                        upgrade::rebuild(folder, tables)?;
                        tracing::info!("the tables have the shape of this release now");
                        open(folder, tables, true)?
                    }
                    opened => opened?,
                };
                // Its files' names, too.
                private::sync(folder)
                    .map_err(|source| EmulatorError::Folder { folder: folder.clone(), source })?;
                (database, Some(lock))
            }
        };

        let listener = TcpListener::bind(address).map_err(EmulatorError::Start)?;
        listener.set_nonblocking(true).map_err(EmulatorError::Start)?;
        let address = listener.local_addr().map_err(EmulatorError::Start)?;
        let runtime =
            runtime::Builder::new_current_thread().enable_all().build().map_err(EmulatorError::Start)?;
        let notices = Notices::default();
        let noted = InProcess::from(database).noting(notices.clone());
        let in_process = Arc::new(noted.clone().without_retries());
        let direct = Direct { runtime: runtime.handle().clone(), database: Arc::downgrade(&in_process) };
        let port = Port::new(noted, address, name);
        let endpoint = format!("http://{}@{address}", port.key());
        let (stop, stop_requested) = oneshot::channel();
        let (report, stopped) = oneshot::channel();
        thread::Builder::new()
            .name("dynamodb".to_owned())
            .spawn(move || {
                let served = serve(runtime, listener, port, stop_requested);
                drop(in_process);
                drop(lock);
                // There is no receiver when the emulator was dropped instead of shut down.
                let _ = report.send(served);
            })
            .map_err(EmulatorError::Start)?;
        Ok(Self {
            endpoint,
            url: format!("http://{address}"),
            link: Arc::new(direct.clone()),
            notices,
            running: Some(Running { direct, stop, stopped }),
        })
    }

    /// A database outside of this process, which already runs and has the tables.
    #[must_use]
    pub fn elsewhere(endpoint: String, link: Arc<dyn Link>) -> Self {
        Self { url: endpoint.clone(), endpoint, link, notices: Notices::default(), running: None }
    }

    /// [`Self::endpoint`] for programs that know this machine as `host`.
    #[must_use]
    pub fn endpoint_at(&self, host: &str) -> String {
        let (key, port) = (self.endpoint.split('@').next(), self.endpoint.rsplit(':').next());
        format!("{}@{host}:{}", key.unwrap_or_default(), port.unwrap_or_default())
    }

    /// Starts to delete expired items once a `period`, by the machine's clock, so that memory and folder do
    /// not grow without bound.
    pub fn sweep_every(&self, period: Duration) {
        let Some(Running { direct, .. }) = &self.running else { return };
        let Direct { runtime, database } = direct.clone();
        let sweeps = async move {
            loop {
                tokio::time::sleep(period).await;
                let Some(database) = database.upgrade() else { return };
                match tokio::task::spawn_blocking(move || database.sweep()).await {
                    Ok(Ok(_)) => {}
                    Ok(Err(error)) => {
                        tracing::warn!(error = error.to_string(), "expired items could not be deleted");
                    }
                    Err(_) => return,
                }
            }
        };
        runtime.spawn(sweeps);
    }

    /// Stops the emulator. Afterwards all data is on disk and the folder is free for another stack.
    ///
    /// # Errors
    ///
    /// [`EmulatorError::Stopped`] when the emulator had failed before.
    pub async fn shutdown(self) -> Result<(), EmulatorError> {
        let Some(Running { stop, stopped, .. }) = self.running else { return Ok(()) };
        drop(stop);
        match stopped.await {
            Ok(served) => served.map_err(EmulatorError::Stopped),
            Err(_) => Err(EmulatorError::Stopped("its thread panicked".to_owned())),
        }
    }
}

/// The link to an emulator on its own thread, while that runs. It loses no responses, so callers do not
/// retry.
#[derive(Clone, Debug)]
struct Direct {
    runtime: Handle,
    database: Weak<InProcess>,
}

impl Link for Direct {
    fn carry(&self, call: Call) -> Carried {
        let database = Weak::clone(&self.database);
        let answered =
            self.runtime.spawn(async move { Some(database.upgrade()?.answer(&call.operation, &call.body)) });
        Box::pin(async move { answered.await.ok().flatten().ok_or(Broken) })
    }
}

/// Serves until `stop` resolves. When it returns, it holds no handle to the database.
fn serve(
    runtime: Runtime,
    listener: TcpListener,
    port: Port,
    stop: oneshot::Receiver<()>,
) -> Result<(), String> {
    let served = runtime.block_on(async move {
        let listener = tokio::net::TcpListener::from_std(listener).map_err(|error| error.to_string())?;
        let answer = move |request: Request<Incoming>, _| {
            let port = port.clone();
            async move { port.answer(request).await }
        };
        let shutdown = async {
            let _ = stop.await;
        };
        listening::serve(listener, Some(HEADER_LIMIT_BYTES), answer, shutdown).await;
        Ok(())
    });
    drop(runtime);
    served
}

/// Takes the folder for this process, until the returned file is closed, and its files away from others.
fn lock(folder: &Path) -> Result<File, EmulatorError> {
    let unusable = |source| EmulatorError::Folder { folder: folder.to_owned(), source };
    if folder.exists() && !folder.is_dir() {
        return Err(EmulatorError::NotAFolder(folder.to_owned()));
    }
    private::create_folder(folder).map_err(unusable)?;
    let file = private::open(&folder.join(LOCK_FILE)).map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(EmulatorError::FolderInUse(folder.to_owned())),
        Err(TryLockError::Error(source)) => return Err(unusable(source)),
    }
    if let Some(mode) = private::rights_of_others(folder).map_err(unusable)? {
        let folder = folder.display();
        tracing::warn!(
            "other users have rights on the data folder {folder} (mode {mode:o}): chmod 700 {folder}"
        );
    }
    for name in FILES_BESIDE.into_iter().chain([signing_key::FILE]) {
        private::close(&folder.join(name)).map_err(unusable)?;
    }
    // Opened before SQLite does, which would create it for everybody to read.
    private::open(&folder.join(DATABASE_FILE)).map_err(unusable)?;
    Ok(file)
}

/// The database of a folder, with `tables`.
fn open(folder: &Path, tables: &[Table], is_durable: bool) -> Result<Database, EmulatorError> {
    let path = folder.join(DATABASE_FILE);
    let opened =
        stamp::check(&path, is_durable).and_then(|()| with_tables(database_in(folder, &path)?, tables));
    opened.map_err(|error| error.in_file(path))
}

fn with_tables(database: dynoxide::Result<Database>, tables: &[Table]) -> Result<Database, EmulatorError> {
    let database = database.map_err(EmulatorError::Database)?;
    for table in tables {
        schema::ensure(&database, table)?;
    }
    Ok(database)
}
