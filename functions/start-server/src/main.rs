//! The Lambda function that has game servers started.

use std::process::ExitCode;

fn main() -> ExitCode {
    shared::function::triggered::run::<start_server::StartServer>()
}
