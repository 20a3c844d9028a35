//! The operator's command.

use std::{
    env,
    io::{self, ErrorKind, Write as _},
    process::ExitCode,
};

use clap::Parser;
use muster::{Command, Status};
use serde_json::json;

#[tokio::main]
async fn main() -> ExitCode {
    let command = match Command::try_parse() {
        Ok(command) => command,
        // What programs read is JSON. Help is no error.
        Err(error) if error.use_stderr() && env::args_os().any(|word| word == "--json") => {
            return failed(Status::Usage, "USAGE", error.to_string().trim_end(), true);
        }
        Err(error) => error.exit(),
    };
    let as_json = command.prints_json();
    let output = match muster::run(command).await {
        Ok(output) => output,
        Err(error) => {
            let (status, code) = error.status_and_code();
            return failed(status, code, &error.to_string(), as_json);
        }
    };
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{output}").and_then(|()| stdout.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has closed the pipe, as in `muster … | head`.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let problem = format!("the output cannot be written: {error}");
            failed(Status::Failed, "OUTPUT_FAILED", &problem, as_json)
        }
    }
}

/// Writes the problem to standard error, as text or as a JSON object.
fn failed(status: Status, code: &str, problem: &str, as_json: bool) -> ExitCode {
    let text = match as_json {
        true => json!({ "code": code, "message": problem }).to_string(),
        false => format!("muster: {problem}"),
    };
    let _no_reader = writeln!(io::stderr(), "{text}");
    ExitCode::from(status as u8)
}
