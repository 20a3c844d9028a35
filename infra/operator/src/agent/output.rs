//! What the agent and its processes print, each line written at once. The agent goes on without a reader.

use std::{
    error::Error as _,
    io::{self, Write as _},
};

use muster_client::Error;

use crate::reach::root_cause;

pub(super) fn to_stdout(line: &[u8]) {
    let mut stdout = io::stdout().lock();
    let _no_reader = stdout.write_all(line).and_then(|()| stdout.flush());
}

pub(super) fn to_stderr(line: &[u8]) {
    let _no_reader = io::stderr().lock().write_all(line);
}

pub(super) fn say(text: &str) {
    to_stderr(format!("{text}\n").as_bytes());
}

/// A refusal in words, without any token.
pub(super) fn text(error: &Error) -> String {
    match (error.status, &error.code) {
        (0, _) => {
            let root = root_cause(error);
            // It names the address.
            let cause = error.source().map(ToString::to_string).filter(|cause| *cause != root);
            format!("no response: {}{root}", cause.map(|cause| cause + ": ").unwrap_or_default())
        }
        (_, Some(code)) => format!("{code}: {}", error.message),
        (status, None) => format!("status {status}"),
    }
}
