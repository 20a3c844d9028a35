//! What the agent and its processes print: a process's lines under a prefix, each written at once.

use std::io::{self, Write as _};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader},
    task::spawn_blocking,
};

/// A longer line is printed in parts.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// Writes a line. The agent goes on without a reader.
pub(super) type Print = fn(&[u8]);

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

/// Copies lines from `source` until it ends. A slow reader delays the process, and no heartbeat.
pub(super) async fn copy_lines(source: impl AsyncRead + Unpin, prefix: String, print: Print) {
    let mut source = BufReader::new(source);
    loop {
        let mut line = prefix.clone().into_bytes();
        let read = (&mut source).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await;
        if !read.is_ok_and(|bytes| bytes > 0) {
            return;
        }
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        let _printed = spawn_blocking(move || print(&line)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn each_line_gets_the_prefix_and_an_end() {
        static PRINTED: Mutex<Vec<u8>> = Mutex::new(Vec::new());
        let print: Print = |line| PRINTED.lock().unwrap().extend(line);
        copy_lines(&b"one\n\xfftwo\nthree"[..], "[x] ".to_owned(), print).await;
        assert_eq!(*PRINTED.lock().unwrap(), b"[x] one\n[x] \xfftwo\n[x] three\n");
    }
}
