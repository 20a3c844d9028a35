//! Logging, set up once for each process.

use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _};

/// The environment variable that chooses what is logged, in the syntax of `tracing_subscriber`'s filter.
pub const LOG_FILTER_VARIABLE: &str = "MUSTER_LOG";

/// Logs as JSON lines with timestamp, level and flattened fields, which Lambda files by level.
pub fn log_json() {
    let lines = fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(true)
        .with_span_list(false);
    // A second call in one process keeps the first subscriber.
    let _already_set = tracing_subscriber::registry()
        .with(filter("info"))
        .with(lines)
        .try_init();
}

/// Logs as text lines to standard error, for people at a terminal.
pub fn log_text(default_filter: &str) {
    let lines = fmt::layer().with_target(false).with_writer(std::io::stderr);
    let _already_set = tracing_subscriber::registry()
        .with(filter(default_filter))
        .with(lines)
        .try_init();
}

fn filter(default: &str) -> EnvFilter {
    EnvFilter::try_from_env(LOG_FILTER_VARIABLE).unwrap_or_else(|_| EnvFilter::new(default))
}
