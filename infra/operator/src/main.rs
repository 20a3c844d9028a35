//! The operator's command.

use std::process::ExitCode;

use clap::Parser;
use muster::Command;

#[tokio::main]
async fn main() -> ExitCode {
    match muster::run(Command::parse()).await {
        Ok(output) => {
            #[expect(clippy::print_stdout, reason = "the command's answer")]
            {
                println!("{output}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "the command's refusal")]
            {
                eprintln!("muster: {error}");
            }
            ExitCode::FAILURE
        }
    }
}
