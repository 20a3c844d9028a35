//! The Lambda function of servers.register.

use std::process::ExitCode;

use register_server::RegisterServer;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<RegisterServer>()
}
