//! `muster-example`, beside a running `muster-local`.

use std::{
    env,
    fmt::Display,
    io::{self, Write as _},
    process::ExitCode,
    time::Duration,
};

use clap::{Parser, Subcommand};
use muster_example::{ExampleError, Options, ServerOptions, run, serve, serve_on_demand};

/// Plays a whole session against the local stack: a game server, its lobbies, and bots that play in them.
#[derive(Parser)]
#[command(name = "muster-example", version, about, args_conflicts_with_subcommands = true)]
struct Arguments {
    /// Where the stack listens.
    #[arg(long, global = true, default_value = "http://127.0.0.1:3000")]
    url: String,
    /// How many bots play.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    bots: u32,
    /// The most seconds that the bots may play, and that the lobbies may then take to end.
    #[arg(long, global = true, default_value_t = 60)]
    seconds: u64,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Runs only the game server, in a namespace of your own, or as Muster has it started.
    ///
    /// Ctrl-C or SIGTERM drains it: it gets no more lobbies, and ends with its last lobby.
    Serve {
        /// A server token of the namespace.
        #[arg(long, env = "MUSTER_SERVER_TOKEN", hide_env_values = true)]
        token: String,
        /// The server's identifier in the namespace, the same at every start.
        #[arg(long, default_value = "example")]
        server_id: String,
        /// The players' port on 127.0.0.1; 0 takes a free one.
        #[arg(long, default_value_t = 0)]
        port: u16,
        /// Seconds between heartbeats, 1 to 3600. The lease is three times as long.
        #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3_600))]
        heartbeat: u64,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { url, bots, seconds, command } = Arguments::parse();
    let limit = Duration::from_secs(seconds);
    // The session continues when its output has no reader.
    let print = |line: &dyn Display| drop(writeln!(io::stdout(), "{line}"));
    let ended = async {
        // Listens before the output says that the session runs.
        let end = end_request().map_err(ExampleError::Signals)?;
        if command.is_some() && env::var_os("MUSTER_START_ID").is_some() {
            return serve_on_demand(end, |event| print(event)).await;
        }
        if let Some(Command::Serve { token, server_id, port, heartbeat }) = command {
            let heartbeat = Duration::from_secs(heartbeat);
            let options = ServerOptions { url, token, server_id, port, heartbeat, limit };
            return serve(&options, end, |event| print(event)).await;
        }
        let options = Options { bots, limit, ..Options::at(url) };
        print(&run(&options, end, |event| print(event)).await?);
        Ok(())
    };
    match ended.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _no_reader = writeln!(io::stderr(), "muster-example: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Resolves on Ctrl-C, or on SIGTERM, which a supervisor sends some time before it kills.
#[cfg(unix)]
fn end_request() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Resolves on Ctrl-C.
#[cfg(not(unix))]
fn end_request() -> io::Result<impl Future<Output = ()>> {
    Ok(async { drop(tokio::signal::ctrl_c().await) })
}
