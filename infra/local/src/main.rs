//! `cargo run`: the whole service on this machine.

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;
use muster_local::{
    emulator::Storage,
    stack::{Options, Stack},
    welcome,
};
use shared::{ambient::Ambient, telemetry};

/// Runs Muster on this machine: gateway, operations and an embedded DynamoDB with a demo game.
#[derive(Debug, Parser)]
#[command(name = "muster-local", version, about)]
struct Arguments {
    /// Port of the gateway on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 3000)]
    port: u16,
    /// Folder that keeps the data; without it everything is gone at the end.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Print nothing but errors.
    #[arg(long)]
    quiet: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    telemetry::log_text(if arguments.quiet { "error" } else { "info" });
    let options = Options {
        port: arguments.port,
        storage: arguments.data.map_or(Storage::Memory, Storage::Folder),
        ambient: Ambient::system(),
    };
    let result = async {
        let stack = Stack::start(options).await?;
        if !arguments.quiet {
            #[expect(clippy::print_stdout, reason = "what the user came for")]
            {
                println!("{}", welcome::text(&stack.demo));
            }
        }
        wait_for_end().await;
        stack.stop().await
    };
    match result.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "there is no stack to tell it otherwise")]
            {
                eprintln!("muster-local: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Waits for Ctrl-C, or for a supervisor's request to end.
async fn wait_for_end() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _cannot_listen = tokio::signal::ctrl_c().await;
}
