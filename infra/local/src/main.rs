//! `muster-local`: the whole service on your machine.

use std::{
    env,
    error::Error,
    ffi::OsString,
    fmt::Display,
    io::{self, Write as _},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::{Args, Parser, Subcommand};
use mimalloc::MiMalloc;
#[cfg(unix)]
use muster::process_group::become_command;
use muster_example::{Event, serve_on_demand};
#[cfg(unix)]
use muster_local::processes::CHILD;
use muster_local::{
    addresses::{parse_host, parse_public_url},
    demo::GAME_SERVER,
    emulator::Storage,
    faults::parse_seed,
    requests::REQUESTS,
    serve::{
        self, Served, backup,
        proxies::{Network, Proxies},
        status::parse_status,
    },
    stack::{Options, Stack, StackError},
    store_alone::{self, StoreAlone},
    welcome,
};
use shared::{
    base::{
        ambient::Ambient,
        log::{self, LevelFilter, Targets},
    },
    function::config::Environment,
};

/// Requests and items have many small strings. With the system's allocator, their allocation takes a quarter
/// of a find's time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// How often expired items are deleted. DynamoDB may take days, so nothing may rely on it.
const SWEEP: Duration = Duration::from_secs(60);
/// How often heartbeats are summed up; the line says so.
const SUM: Duration = Duration::from_secs(60);
/// How often the file of a studio's own game is read.
const READ: Duration = Duration::from_secs(1);

/// Runs Muster on this machine: gateway, operations and an embedded DynamoDB with a demo game.
#[derive(Debug, Parser)]
#[command(name = "muster-local", version, about, args_conflicts_with_subcommands = true)]
struct Arguments {
    /// Also listen at this address of the machine, or at all of them by 0.0.0.0, so that phones, colleagues
    /// and containers reach the API. The console stays on 127.0.0.1.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = parse_host)]
    host: IpAddr,
    /// Port of the gateway; 0 takes a free one.
    #[arg(long, default_value_t = 3000)]
    port: u16,
    /// URL at which clients reach the API, such as that of a tunnel or proxy, for what hands out the stack's
    /// own URL.
    #[arg(long, value_name = "URL", value_parser = parse_public_url)]
    public_url: Option<String>,
    /// Folder that keeps the data; without it, all data is gone at the end.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A version file, or one of `muster game export`: start with this game in place of the demo game, and
    /// apply the file again whenever it changes.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Lose, cut, delay, repeat and refuse requests of clients by this seed, to test a client of yours.
    #[arg(long, value_name = "SEED", value_parser = parse_seed)]
    faults: Option<u32>,
    /// Print nothing but errors.
    #[arg(long)]
    quiet: bool,
    /// Log JSON lines as functions do in AWS, in place of a line for each request.
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves a game on this machine: data that outlasts a power cut, no demo, no console, nothing secret
    /// printed.
    Serve(Serve),
    /// Copies the data of a game into a new folder, while it is served or not.
    Backup {
        /// The folder of the data.
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        /// The folder to make.
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
    /// Makes a folder to serve of a backup.
    Restore {
        /// The backup.
        #[arg(long, value_name = "DIR")]
        backup: PathBuf,
        /// The folder to make.
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
    },
    /// Runs the embedded DynamoDB alone, in memory, for functions in `sam local`.
    Store {
        /// Address of this machine to listen on; on Linux, for `sam local`, that of Docker's bridge:
        /// 172.17.0.1 unless configured.
        #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
        address: IpAddr,
        /// Port there; 0 takes a free one.
        #[arg(long, default_value_t = 8000)]
        port: u16,
        /// Name of this machine for functions in containers; by default the address, or
        /// `host.docker.internal` for loopback.
        #[arg(long, value_name = "HOST")]
        container_host: Option<String>,
        /// Folder for the environment that the functions need; it holds the key that tokens are signed with.
        #[arg(long, value_name = "DIR", default_value = "target/store")]
        environment: PathBuf,
    },
    /// Runs the demo game's server, as the stack starts it.
    #[command(name = GAME_SERVER, hide = true)]
    GameServer,
    /// Becomes the command, and ends with the stack that started it.
    #[cfg(unix)]
    #[command(name = CHILD, hide = true)]
    Child {
        /// The stack's process.
        stack: i32,
        /// The command.
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

#[derive(Debug, Args)]
struct Serve {
    /// Folder of the data and of the key that tokens are signed with, both made at the first start.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// A version file, or one of `muster game export`: applied at the start, and again on SIGHUP.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Also listen at this address of the machine, or at all of them by 0.0.0.0.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = parse_host)]
    host: IpAddr,
    /// Port of the API; 0 takes a free one.
    #[arg(long, default_value_t = 3000)]
    port: u16,
    /// The URL at which players come, where game servers on demand register that do not run on this machine;
    /// those that do are reached at its host.
    #[arg(long, value_name = "URL", value_parser = parse_public_url)]
    public_url: Option<String>,
    /// A proxy whose `X-Forwarded-For` tells the address of a client: its address or network; repeat for
    /// more.
    #[arg(long = "proxy", value_name = "ADDRESS")]
    proxies: Vec<Network>,
    /// Where `/health` and `/metrics` are, for programs of your own.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3001", value_parser = parse_status)]
    status: SocketAddr,
    /// How many seconds requests under way have at a stop; who takes longer gets 503 and comes again. At most
    /// 4.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(..=4))]
    drain: u64,
    /// Log JSON lines as functions do in AWS.
    #[arg(long)]
    json: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    #[cfg(unix)]
    if let Some(Command::Child { stack, command }) = &arguments.command {
        let Err(problem) = become_command(*stack, command);
        return problem.map_or(ExitCode::SUCCESS, |problem| failed(&problem));
    }
    begin_log(&arguments);
    if let Some(Command::GameServer) = arguments.command {
        return serve_example().await;
    }
    let quiet = arguments.quiet;
    let says = |text: String| {
        if !quiet {
            // The stack continues to run when its output has no reader.
            let _no_reader = writeln!(io::stdout(), "{text}");
        }
    };
    match run(arguments, says).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

/// Does what the command line asks for, until it is done or asked to end.
async fn run(arguments: Arguments, says: impl Fn(String)) -> Result<(), Box<dyn Error>> {
    // Listens before the output says that the stack runs.
    let end = EndRequest::listen();
    let ambient = Ambient::system();
    match arguments.command {
        Some(Command::Store { address, port, container_host, environment }) => {
            let address = SocketAddr::from((address, port));
            let options = store_alone::Options { address, container_host, environment, ambient };
            let store = StoreAlone::start(options).await?;
            store.sweep_every(SWEEP);
            says(store.text());
            end.received().await;
            return Ok(store.stop().await?);
        }
        Some(Command::Serve(options)) => return Ok(serve(options, ambient, end, says).await?),
        Some(Command::Backup { data, to }) => {
            backup::back_up(&data, &to)?;
            says(format!("{} holds the data and the signing key: keep it secret", to.display()));
            return Ok(());
        }
        Some(Command::Restore { backup, data }) => {
            backup::back_up(&backup, &data)?;
            says(format!("muster-local serve --data {}", data.display()));
            return Ok(());
        }
        Some(Command::GameServer) | None => {}
        #[cfg(unix)]
        Some(Command::Child { .. }) => {}
    }
    let options = Options {
        host: arguments.host,
        port: arguments.port,
        public_url: arguments.public_url,
        storage: arguments.data.map_or(Storage::Memory, Storage::Folder),
        ambient,
        outside: Environment::of_process().outside()?,
        game: arguments.config,
        faults: arguments.faults,
        own_program: if cfg!(unix) { env::current_exe().ok() } else { None },
    };
    let mut stack = Stack::start(options).await?;
    stack.sweep_every(SWEEP);
    stack.sum_up_every(SUM);
    says(welcome::text(&stack));
    stack.follow_game_every(READ);
    end.received().await;
    Ok(stack.stop().await?)
}

fn failed(error: &impl Display) -> ExitCode {
    let _no_reader = writeln!(io::stderr(), "muster-local: {error}");
    ExitCode::FAILURE
}

/// Runs the demo game's server by its environment, until its stack wants it no more.
async fn serve_example() -> ExitCode {
    let end = EndRequest::listen();
    let print = |event: &Event| {
        let _no_reader = writeln!(io::stdout(), "{event}");
    };
    match serve_on_demand(end.received(), print).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

/// Serves players until the process is asked to end.
async fn serve(
    options: Serve,
    ambient: Ambient,
    end: EndRequest,
    says: impl Fn(String),
) -> Result<(), StackError> {
    let Serve { data, config, host, port, public_url, proxies, status, drain, .. } = options;
    let served = Served::start(serve::Options {
        host,
        port,
        public_url,
        status,
        data,
        game: config,
        proxies: Proxies::new(proxies),
        drain: Duration::from_secs(drain),
        ambient,
        outside: Environment::of_process().outside()?,
    });
    let served = served.await?;
    served.sweep_every(SWEEP);
    says(format!("Muster listens on {}", served.url));
    says(format!("Health and metrics are at {}/health and /metrics", served.status_url));
    let reloads = async {
        let mut asked = ReloadRequest::listen();
        loop {
            asked.received().await;
            served.reload().await;
        }
    };
    tokio::select! {
        () = end.received() => {}
        () = reloads => {}
    }
    tracing::info!("stopping: requests under way get their responses");
    served.stop().await
}

/// Logs a line for each request and the functions' warnings; with `--json` all lines of functions as JSON;
/// with `--quiet` only errors. [`log::LOG_FILTER_VARIABLE`] overrides this.
fn begin_log(arguments: &Arguments) {
    // The emulator warns about every failed condition, which is normal here.
    let level = |level| Targets::new().with_default(level).with_target("dynoxide", LevelFilter::OFF);
    let is_json = match &arguments.command {
        Some(Command::Serve(options)) => options.json,
        _ => arguments.json,
    };
    match (is_json, arguments.quiet) {
        (true, true) => log::log_json_for_programs(level(LevelFilter::ERROR)),
        (true, false) => {
            log::log_json_for_programs(level(LevelFilter::INFO).with_target(REQUESTS, LevelFilter::OFF));
        }
        (false, true) => log::log_text(level(LevelFilter::ERROR)),
        (false, false) => {
            log::log_text(level(LevelFilter::WARN).with_target("muster_local", LevelFilter::INFO))
        }
    }
}

/// Ctrl-C, or a supervisor's request to end.
#[cfg(unix)]
struct EndRequest(Option<[tokio::signal::unix::Signal; 2]>);

#[cfg(unix)]
impl EndRequest {
    fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let both = signal(SignalKind::interrupt())
            .and_then(|interrupt| Ok([interrupt, signal(SignalKind::terminate())?]));
        Self(both.ok())
    }

    async fn received(self) {
        let Some([mut interrupt, mut terminate]) = self.0 else { return std::future::pending().await };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}

/// A supervisor's request to read the game's file again.
#[cfg(unix)]
struct ReloadRequest(Option<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl ReloadRequest {
    fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        Self(signal(SignalKind::hangup()).ok())
    }

    async fn received(&mut self) {
        match &mut self.0 {
            Some(signal) => drop(signal.recv().await),
            None => std::future::pending().await,
        }
    }
}

/// No other system has one.
#[cfg(not(unix))]
struct ReloadRequest;

#[cfg(not(unix))]
impl ReloadRequest {
    fn listen() -> Self {
        Self
    }

    async fn received(&mut self) {
        std::future::pending().await
    }
}

/// Ctrl-C.
#[cfg(not(unix))]
struct EndRequest;

#[cfg(not(unix))]
impl EndRequest {
    fn listen() -> Self {
        Self
    }

    async fn received(self) {
        let _cannot_listen = tokio::signal::ctrl_c().await;
    }
}
