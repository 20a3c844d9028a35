//! `cargo run --bin muster-example`, beside a running `cargo run`.

use std::{
    fmt::Display,
    io::{self, Write as _},
    process::ExitCode,
    time::Duration,
};

use clap::Parser;
use muster_example::{Options, run};

/// Plays a whole session against the local stack: a game server, its lobbies, and bots that play in them.
#[derive(Debug, Parser)]
#[command(name = "muster-example", version, about)]
struct Arguments {
    /// Where the stack listens.
    #[arg(long, default_value = "http://127.0.0.1:3000")]
    url: String,
    /// How many bots play.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    bots: u32,
    /// The most seconds that it may take.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { url, bots, seconds } = Arguments::parse();
    let options = Options { bots, limit: Duration::from_secs(seconds), ..Options::at(url) };
    // The session goes on where nobody reads this any more.
    let print = |line: &dyn Display| drop(writeln!(io::stdout(), "{line}"));
    match run(&options, |event| print(event)).await {
        Ok(report) => {
            print(&report);
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _nobody_reads_it = writeln!(io::stderr(), "muster-example: {error}");
            ExitCode::FAILURE
        }
    }
}
