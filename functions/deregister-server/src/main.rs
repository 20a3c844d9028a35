//! The Lambda function of servers.deregister.

use std::process::ExitCode;

use deregister_server::DeregisterServer;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<DeregisterServer>()
}
