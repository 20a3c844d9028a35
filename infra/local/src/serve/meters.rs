//! What happened since the start, in the text format of Prometheus.

use std::{
    collections::BTreeMap,
    fmt::{Display, Write as _},
    fs,
    path::Path,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use shared::{base::usage::Usage, function::metrics::Metric};

/// Upper bounds of the histogram of durations, in seconds.
const BOUNDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];
/// Jiffies in a second, on every Linux of today.
const TICKS: f64 = 100.0;

/// Counts of requests.
#[derive(Debug, Default)]
pub struct Meters(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// By operation and status.
    requests: BTreeMap<(String, u16), u64>,
    /// By operation.
    durations: BTreeMap<String, Durations>,
    usage: Usage,
}

#[derive(Debug, Default)]
struct Durations {
    within: [u64; BOUNDS.len()],
    count: u64,
    seconds: f64,
}

impl Meters {
    /// Counts a request of an operation, or of none where it has no route.
    pub fn note(&self, operation: Option<&str>, status: u16, took: Duration, usage: Usage) {
        let operation = operation.unwrap_or("none");
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.requests.entry((operation.to_owned(), status)).or_default() += 1;
        let durations = counts.durations.entry(operation.to_owned()).or_default();
        durations.count += 1;
        durations.seconds += took.as_secs_f64();
        let within = durations.within.iter_mut().zip(BOUNDS);
        within.filter(|(_, bound)| took.as_secs_f64() <= *bound).for_each(|(count, _)| *count += 1);
        counts.usage = counts.usage + usage;
    }

    /// The page: these counts, the functions' own, requests under way, the data's size, the process.
    #[must_use]
    pub fn page(
        &self,
        counted: &BTreeMap<(&'static str, Metric), u64>,
        under_way: usize,
        database: &Path,
    ) -> String {
        let mut page = Page::default();
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        page.head("muster_build_info", "gauge", "The release.");
        page.line("muster_build_info", &[("version", &env!("CARGO_PKG_VERSION"))], 1);
        page.head("muster_requests_total", "counter", "Requests by operation and status.");
        for ((operation, status), count) in &counts.requests {
            page.line("muster_requests_total", &[("operation", operation), ("status", status)], count);
        }
        page.head("muster_request_seconds", "histogram", "Durations of requests by operation.");
        for (operation, durations) in &counts.durations {
            for (bound, count) in BOUNDS.iter().zip(durations.within) {
                page.line("muster_request_seconds_bucket", &[("operation", operation), ("le", bound)], count);
            }
            let Durations { count, seconds, .. } = durations;
            page.line("muster_request_seconds_bucket", &[("operation", operation), ("le", &"+Inf")], count);
            page.line("muster_request_seconds_sum", &[("operation", operation)], seconds);
            page.line("muster_request_seconds_count", &[("operation", operation)], count);
        }
        for metric in Metric::ALL.iter().filter(|metric| **metric != Metric::ColdStart) {
            let name = format!("muster_{}_total", snake(metric.name()));
            page.head(&name, "counter", "As the function's metric of this name in CloudWatch.");
            for ((operation, _), count) in counted.iter().filter(|((_, counted), _)| counted == metric) {
                page.line(&name, &[("operation", operation)], count);
            }
        }
        let Usage { calls, read_units, write_units } = counts.usage;
        page.counter("muster_store_calls_total", "Calls of the database.", calls);
        page.counter("muster_store_read_units_total", "Read units, as DynamoDB counts them.", read_units);
        page.counter("muster_store_write_units_total", "Write units, as DynamoDB counts them.", write_units);
        page.gauge("muster_requests_under_way", "Requests under way.", under_way);
        let bytes = |name: &str| fs::metadata(database.with_file_name(name)).map_or(0, |file| file.len());
        let name = database.file_name().unwrap_or_default().to_string_lossy();
        page.gauge("muster_database_bytes", "The database's file.", bytes(&name));
        page.gauge("muster_database_log_bytes", "Its write-ahead log.", bytes(&format!("{name}-wal")));
        page.process();
        page.0
    }
}

/// A page in the making.
#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _never = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &dyn Display)], value: impl Display) {
        // No label here has a quote, a backslash or a line break: operations and numbers.
        let labels: Vec<_> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _never = writeln!(self.0, "{name}{labels} {value}");
    }

    fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "counter", help);
        self.line(name, &[], value);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "gauge", help);
        self.line(name, &[], value);
    }

    /// What Linux says about this process; nothing on other systems.
    fn process(&mut self) {
        let Ok(stat) = fs::read_to_string("/proc/self/stat") else { return };
        // Behind the name, which may have spaces, from the process's state on.
        let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let field =
            |number: usize| fields.get(number - 3).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kilobytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.split_whitespace().next().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0)
        };
        let seconds = (field(14) + field(15)) / TICKS;
        self.counter("process_cpu_seconds_total", "Time of processors.", seconds);
        self.gauge("process_resident_memory_bytes", "Resident memory.", kilobytes("VmRSS:") * 1_024);
        self.gauge("process_threads", "Threads.", field(20));
        let files = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        self.gauge("process_open_fds", "Open file descriptors.", files);
    }
}

/// `LobbyFound` as `lobby_found`.
fn snake(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_every_count_once_and_nothing_unknown() {
        let meters = Meters::default();
        let usage = Usage { calls: 2, read_units: 0.5, write_units: 1.0 };
        for millis in [4, 40] {
            meters.note(Some("find-lobby"), 200, Duration::from_millis(millis), usage);
        }
        meters.note(None, 404, Duration::ZERO, Usage::default());
        let counted = BTreeMap::from([(("find-lobby", Metric::LobbyFound), 2)]);
        let page = meters.page(&counted, 3, Path::new("/nowhere/muster.db"));
        for line in [
            "muster_requests_total{operation=\"find-lobby\",status=\"200\"} 2",
            "muster_requests_total{operation=\"none\",status=\"404\"} 1",
            "muster_request_seconds_bucket{operation=\"find-lobby\",le=\"0.005\"} 1",
            "muster_request_seconds_bucket{operation=\"find-lobby\",le=\"0.05\"} 2",
            "muster_request_seconds_bucket{operation=\"find-lobby\",le=\"+Inf\"} 2",
            "muster_request_seconds_count{operation=\"find-lobby\"} 2",
            "muster_lobby_found_total{operation=\"find-lobby\"} 2",
            "muster_store_calls_total 4",
            "muster_store_read_units_total 1",
            "muster_requests_under_way 3",
            "muster_database_bytes 0",
        ] {
            assert_eq!(page.lines().filter(|found| *found == line).count(), 1, "{line}\n{page}");
        }
        for name in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
            let name = name.split_whitespace().next().unwrap();
            let types = page.lines().filter(|line| line.starts_with(&format!("# TYPE {name} "))).count();
            assert_eq!(types, 1, "{name}");
        }
    }
}
