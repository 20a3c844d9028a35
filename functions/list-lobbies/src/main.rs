//! The Lambda function of lobbies.list.

use std::process::ExitCode;

use list_lobbies::ListLobbies;
use shared::function::operation::run;

fn main() -> ExitCode {
    run::<ListLobbies>()
}
