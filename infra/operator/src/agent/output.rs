//! What the agent and its processes print, each line written at once. The agent goes on without a reader.

use std::io::{self, Write as _};

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
