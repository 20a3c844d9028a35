//! The Lambda function of servers.heartbeat.

use std::process::ExitCode;

use heartbeat_server::HeartbeatServer;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<HeartbeatServer>()
}
