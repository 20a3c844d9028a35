//! The Lambda function of lobbies.closed.

use std::process::ExitCode;

use set_lobby_closed::SetLobbyClosed;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<SetLobbyClosed>()
}
