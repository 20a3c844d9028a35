//! Logging, set up once for each process.

use std::io::{IsTerminal as _, Write as _};

use tracing_subscriber::{
    filter::{FilterFn, Targets, filter_fn},
    fmt,
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

pub use tracing_subscriber::filter::LevelFilter;

/// The environment variable that chooses what is logged: a level, and levels by module, as in
/// `info,shared=debug`.
pub const LOG_FILTER_VARIABLE: &str = "MUSTER_LOG";

/// Logs as JSON lines with timestamp, level and flattened fields, which Lambda files by level.
pub fn log_json() {
    let lines = fmt::layer().json().flatten_event(true).with_current_span(true).with_span_list(false);
    // A second call in one process keeps the first subscriber.
    let _already_set = tracing_subscriber::registry()
        .with(filter(LevelFilter::INFO))
        .with(discretion())
        .with(lines)
        .try_init();
}

/// Prints a line that is not a log entry to standard output, where Lambda reads the log.
pub fn print(line: &str) {
    // The reader is gone, so there is nowhere to report it.
    let _unwritten = writeln!(std::io::stdout(), "{line}");
}

/// Logs as text lines to standard error, for people at a terminal.
pub fn log_text(default: LevelFilter) {
    let lines = fmt::layer()
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let _already_set =
        tracing_subscriber::registry().with(filter(default)).with(discretion()).with(lines).try_init();
}

/// Libraries never log more than this: below it they print whole events and requests, tokens and digests
/// among them.
fn discretion() -> FilterFn {
    filter_fn(|metadata| {
        *metadata.level() <= LevelFilter::INFO
            || OWN_TARGETS.iter().any(|own| metadata.target().starts_with(own))
    })
}

/// Where Muster's own log lines come from.
const OWN_TARGETS: [&str; 3] = ["shared", "muster", "muster_local"];

// Not the filter by spans and fields: its regular expressions alone would make up a fifth of a function's
// size.
fn filter(default: LevelFilter) -> Targets {
    let chosen = std::env::var(LOG_FILTER_VARIABLE).ok().and_then(|text| text.parse().ok());
    // The emulator warns about every failed condition, which is normal here.
    chosen.unwrap_or_else(|| Targets::new().with_default(default).with_target("dynoxide", LevelFilter::OFF))
}
