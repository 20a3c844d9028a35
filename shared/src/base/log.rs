//! Logging, set up once for each process.

use std::io::{self, IsTerminal as _, Write as _};

use tracing::{Event, Subscriber};
use tracing_subscriber::{
    Layer,
    filter::{FilterFn, filter_fn},
    fmt::{
        self, FmtContext, FormatEvent, FormatFields, MakeWriter,
        format::{Format, Writer},
    },
    layer::{Layered, SubscriberExt as _},
    registry::{LookupSpan, Registry},
    util::SubscriberInitExt as _,
};

pub use tracing_subscriber::filter::{LevelFilter, Targets};

/// The environment variable that chooses what is logged: a level, and levels by module, as in
/// `info,shared=debug`.
pub const LOG_FILTER_VARIABLE: &str = "MUSTER_LOG";

/// The target, or its beginning, of events that are whole lines for people. A text log prints their message
/// alone.
pub const LINES: &str = "muster_local::lines";

/// Logs as JSON lines with timestamp, level and flattened fields, which Lambda files by level.
pub fn log_json() {
    log(Targets::new().with_default(LevelFilter::INFO), json_to(io::stdout));
}

/// What writes the lines of [`log_json`] to `writer`.
pub fn json_lines(
    writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
) -> impl Subscriber + Send + Sync {
    let default = Targets::new().with_default(LevelFilter::INFO);
    tracing_subscriber::registry().with(filter(default)).with(discretion()).with(json_to(writer))
}

/// Logs the same lines to standard error, by default those of `default`.
pub fn log_json_for_programs(default: Targets) {
    log(default, json_to(io::stderr));
}

fn json_to<W: for<'a> MakeWriter<'a> + Send + Sync + 'static>(
    writer: W,
) -> impl Layer<Filtered> + Send + Sync {
    fmt::layer().json().flatten_event(true).with_current_span(true).with_span_list(false).with_writer(writer)
}

/// Prints a line that is not a log entry to standard output, where Lambda reads the log.
pub fn print(line: &str) {
    // The reader is gone, so there is nowhere to report it.
    let _unwritten = writeln!(io::stdout(), "{line}");
}

/// Logs as text lines to standard error, for people at a terminal, by default those of `default`.
pub fn log_text(default: Targets) {
    let lines = fmt::layer()
        .event_format(Text(Format::default().with_target(false)))
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr);
    log(default, lines);
}

type Filtered = Layered<FilterFn, Layered<Targets, Registry>>;

fn log(default: Targets, lines: impl Layer<Filtered> + Send + Sync) {
    // A second call in one process keeps the first subscriber.
    let _already_set =
        tracing_subscriber::registry().with(filter(default)).with(discretion()).with(lines).try_init();
}

/// The usual text, but for [`LINES`].
struct Text(Format);

impl<S, N> FormatEvent<S, N> for Text
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        if !event.metadata().target().starts_with(LINES) {
            return self.0.format_event(context, writer, event);
        }
        context.field_format().format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
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
fn filter(default: Targets) -> Targets {
    let chosen = std::env::var(LOG_FILTER_VARIABLE).ok().and_then(|text| text.parse().ok());
    chosen.unwrap_or(default)
}
