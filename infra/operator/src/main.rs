//! The operator's command.

use std::{
    io::{self, ErrorKind, Write as _},
    process::ExitCode,
};

use clap::Parser;
use muster::Command;

#[tokio::main]
async fn main() -> ExitCode {
    let output = match muster::run(Command::parse()).await {
        Ok(output) => output,
        Err(error) => return failed(&error.to_string()),
    };
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{output}").and_then(|()| stdout.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has closed the pipe, as in `muster … | head`.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => failed(&format!("the output cannot be written: {error}")),
    }
}

fn failed(problem: &str) -> ExitCode {
    let _no_reader = writeln!(io::stderr(), "muster: {problem}");
    ExitCode::FAILURE
}
