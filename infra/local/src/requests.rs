//! A line on the terminal for each request; heartbeats are summed up.
//!
//! No line has a token, a hash or a body: it names only modes, regions, a lobby, a game server, the reason of
//! a refusal without the texts that it quotes, and the names that warnings are about.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use muster_console::tape::{Answered, Named};
use serde_json::Value;
use shared::{
    base::ambient::Timestamp,
    models::{ids::NamespaceId, token::TokenKind},
};

/// The target of these lines, below [`shared::base::log::LINES`].
pub const REQUESTS: &str = "muster_local::lines::requests";
/// Longest value that a line shows, in characters.
const VALUE_CHARS_MAX: usize = 60;
/// Longest path, message or hint that a line shows, in characters.
const TEXT_CHARS_MAX: usize = 250;
/// Values of a list that a line shows.
const VALUES_SHOWN: usize = 5;
/// A shorter word is no token, even if it begins like one.
const TOKEN_BYTES_MIN: usize = 24;

/// The log of requests.
#[derive(Debug, Default)]
pub struct RequestLog(Mutex<Heartbeats>);

impl RequestLog {
    /// Logs a request, unless it is a heartbeat of a game server that is known.
    pub fn note(&self, answered: &Answered) {
        if !tracing::enabled!(target: REQUESTS, tracing::Level::INFO) {
            return;
        }
        if !is_accepted_heartbeat(answered) || self.heartbeats().count(answered) {
            print(&line(answered));
        }
    }

    /// Logs how many heartbeats came since the last time, a minute ago.
    pub fn sum_up(&self, now: Timestamp) {
        let sum = self.heartbeats().sum_up();
        sum.iter().for_each(|sum| print(&format!("{} {sum}", clock(now))));
    }

    fn heartbeats(&self) -> MutexGuard<'_, Heartbeats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn print(line: &str) {
    tracing::info!(target: REQUESTS, "{line}");
}

fn is_accepted_heartbeat(answered: &Answered) -> bool {
    answered.operation.as_deref() == Some("heartbeat-server") && answered.status == 200
}

/// The game servers that were heard.
#[derive(Debug, Default)]
struct Heartbeats {
    count: u64,
    /// Since the last sum.
    heard: HashSet<(Option<NamespaceId>, Option<String>)>,
    /// Before it, for as long as one between two sums.
    known: HashSet<(Option<NamespaceId>, Option<String>)>,
}

impl Heartbeats {
    /// Counts a heartbeat. Returns whether it is the first of its game server, or the first after a silence.
    fn count(&mut self, answered: &Answered) -> bool {
        self.count += 1;
        let server = (answered.namespace_id.clone(), answered.named.server_id.clone());
        let is_known = self.known.contains(&server);
        self.heard.insert(server) && !is_known
    }

    fn sum_up(&mut self) -> Option<String> {
        let count = std::mem::take(&mut self.count);
        self.known = std::mem::take(&mut self.heard);
        let of = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let servers = of(self.known.len() as u64, "game server");
        (count > 0).then(|| format!("{servers}, {} in the last minute", of(count, "heartbeat")))
    }
}

/// A request in one line: time in UTC, method, path, status, code, values, what helps, milliseconds.
fn line(answered: &Answered) -> String {
    let Answered { at, took, method, path, status, code, hint, .. } = answered;
    let mut words = vec![clock(*at), method.clone(), shown(path, TEXT_CHARS_MAX), status.to_string()];
    words.extend(code.clone());
    let values = values(&answered.named, &answered.got);
    let (details, message) = details(answered);
    // A refused mode is among the values already.
    let details = details.into_iter().filter(|detail| !values.contains(detail)).collect::<Vec<_>>();
    words.extend(values.into_iter().chain(details));
    words.extend(outcome(answered).map(ToOwned::to_owned));
    if is_accepted_heartbeat(answered) {
        words.push("(its first heartbeat; others are summed up)".to_owned());
    }
    let notes: Vec<_> = message.into_iter().chain(hint.clone()).collect();
    if !notes.is_empty() {
        words.push(format!("({})", shown(&notes.join("; "), TEXT_CHARS_MAX)));
    }
    words.extend(answered.warnings.iter().map(|line| format!("(warning: {})", shown(line, TEXT_CHARS_MAX))));
    words.push(format!("{} ms", took.as_millis()));
    words.join(" ")
}

/// The time of day, in UTC.
#[must_use]
pub fn clock(at: Timestamp) -> String {
    let secs = at.secs() % 86_400;
    format!("{:02}:{:02}:{:02}", secs / 3_600, secs / 60 % 60, secs % 60)
}

/// The modes, the region, the lobby and the game server: as the response has them, else as the request.
fn values(named: &Named, got: &Named) -> Vec<String> {
    let list = |got: &[String], named: &[String]| {
        let all = if got.is_empty() { named } else { got };
        let shown = all.iter().take(VALUES_SHOWN).map(|value| shown(value, VALUE_CHARS_MAX));
        let more = (all.len() > VALUES_SHOWN).then(|| "…".to_owned());
        Some(shown.chain(more).collect::<Vec<_>>().join(",")).filter(|list| !list.is_empty())
    };
    let one = |what: &str, got: &Option<String>, named: &Option<String>| {
        let id = got.as_ref().or(named.as_ref())?;
        // The beginning of a UUID is enough to recognize it.
        let id = if id.len() == 36 { id.get(..8).unwrap_or(id) } else { id };
        Some(format!("{what} {}", shown(id, VALUE_CHARS_MAX)))
    };
    [
        list(&got.game_modes, &named.game_modes),
        list(&got.regions, &named.regions),
        one("lobby", &got.lobby_id, &named.lobby_id),
        one("server", &got.server_id, &named.server_id),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The values of a refusal's metadata and what would have been right, or else its message.
fn details(answered: &Answered) -> (Vec<String>, Option<String>) {
    let (mut details, mut right) = (Vec::new(), None);
    for (name, value) in answered.metadata.iter().filter_map(Value::as_object).flatten() {
        match (name.as_str(), value) {
            ("game_mode" | "region", Value::String(text)) => details.push(shown(text, VALUE_CHARS_MAX)),
            ("game_modes", Value::Array(modes)) => right = Some(format!("modes: {}", texts(modes))),
            ("regions", Value::Array(regions)) => right = Some(format!("regions: {}", texts(regions))),
            (_, Value::Number(number)) => details.push(format!("{name} {number}")),
            _ => {}
        }
    }
    let message = answered.message.as_deref().map(unquoted).filter(|_| details.is_empty());
    (details, right.or(message))
}

fn texts(values: &[Value]) -> String {
    values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

/// How a request for a seat got it.
fn outcome(answered: &Answered) -> Option<&'static str> {
    let is_seated = answered.status == 200 && answered.got.lobby_id.is_some();
    match answered.operation.as_deref().filter(|_| is_seated)? {
        "join-lobby" => Some("joined"),
        "create-lobby" => Some("created"),
        "find-lobby" => {
            answered.explanation.as_ref().map(|found| if found.created { "created" } else { "joined" })
        }
        _ => None,
    }
}

/// A message without what it quotes: values of a body.
fn unquoted(message: &str) -> String {
    let Some(start) = message.find('"') else { return message.to_owned() };
    let end = message.rfind('"').filter(|end| *end > start).map_or(message.len(), |end| end + 1);
    [message.get(..start), Some("…"), message.get(end..)].into_iter().flatten().collect()
}

/// A text on one line, without tokens, truncated to `max` characters.
fn shown(text: &str, max: usize) -> String {
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    let mut shown = String::new();
    for part in text.split_inclusive(|letter| !is_of_word(letter)) {
        let word = part.trim_end_matches(|letter| !is_of_word(letter));
        let is_token = word.len() >= TOKEN_BYTES_MIN && TokenKind::split(word).is_some();
        match word.split_once('_').filter(|_| is_token) {
            Some((kind, _)) => shown.extend([kind, "_…"]),
            None => shown.push_str(word),
        }
        shown.push_str(part.get(word.len()..).unwrap_or_default());
    }
    let mut letters = shown.chars();
    let mut cut: String = letters.by_ref().take(max).collect();
    if letters.next().is_some() {
        cut.push('…');
    }
    cut.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use shared::wire::explanation::Explanation;

    use super::*;

    /// 20:14:03 of some day.
    const AT: Timestamp = Timestamp(86_400_000 * 20_000 + (20 * 3_600 + 14 * 60 + 3) * 1_000);
    const LOBBY: &str = "67cebb35-5a0f-4d0b-9c5e-0d2f7a1b3c4d";

    fn owned(values: &[&str]) -> Vec<String> {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    fn post(path: &str, operation: &str, status: u16) -> Answered {
        Answered {
            at: AT,
            took: Duration::from_millis(4),
            method: "POST".to_owned(),
            path: path.to_owned(),
            operation: Some(operation.to_owned()),
            status,
            ..Answered::default()
        }
    }

    fn find(status: u16) -> Answered {
        let named = Named { game_modes: owned(&["duel"]), ..Named::default() };
        Answered { named, ..post("/matchmaker/lobbies/find", "find-lobby", status) }
    }

    fn refused(code: &str, message: &str, metadata: Value) -> Answered {
        let (code, message) = (Some(code.to_owned()), Some(message.to_owned()));
        Answered { code, message, metadata: Some(metadata), ..find(400) }
    }

    fn heartbeat(server: &str, status: u16) -> Answered {
        let named = Named { server_id: Some(server.to_owned()), ..Named::default() };
        Answered { named, ..post("/matchmaker/servers/heartbeat", "heartbeat-server", status) }
    }

    #[test]
    fn a_seat_is_one_line_with_mode_region_and_lobby() {
        let got = Named { regions: owned(&["fra"]), lobby_id: Some(LOBBY.to_owned()), ..Named::default() };
        let seated = |created| {
            let explanation = Explanation { created, ..Explanation::default() };
            line(&Answered { got: got.clone(), explanation: Some(explanation), ..find(200) })
        };
        let expected = "20:14:03 POST /matchmaker/lobbies/find 200 duel fra lobby 67cebb35 joined 4 ms";
        assert_eq!(seated(false), expected);
        assert_eq!(seated(true), expected.replace("joined", "created"));
    }

    #[test]
    fn a_refusal_has_its_code_and_the_values_that_matter() {
        let metadata =
            json!({ "game_mode": "dule", "game_modes": ["duel", "arena"], "explain": { "calls": 1 } });
        let unknown = refused("MATCHMAKER_GAME_MODE_NOT_FOUND", "no game mode `dule`", metadata);
        let named = Named { game_modes: owned(&["dule"]), ..Named::default() };
        let unknown = Answered { named, ..unknown };
        let found = "20:14:03 POST /matchmaker/lobbies/find 400";
        assert_eq!(
            line(&unknown),
            format!("{found} MATCHMAKER_GAME_MODE_NOT_FOUND dule (modes: duel, arena) 4 ms")
        );
        let full = refused("MATCHMAKER_TOO_MANY_LOBBIES", "too many", Value::Null);
        let full = Answered { hint: Some("the limit is 3".to_owned()), ..full };
        assert_eq!(
            line(&full),
            format!("{found} MATCHMAKER_TOO_MANY_LOBBIES duel (too many; the limit is 3) 4 ms")
        );
        let errors = json!({ "errors": [{ "path": ["region_id", "not-found"] }] });
        let message = "not valid: region_id/not-found (`fr` is not one of `fra`, `nyc`)";
        let invalid = line(&refused("VALIDATION_ERROR", message, errors));
        assert_eq!(invalid, format!("{found} VALIDATION_ERROR duel ({message}) 4 ms"));
        let max = line(&refused("MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID", "", json!({ "max": 8 })));
        assert!(max.contains("INVALID duel max 8 4 ms"), "{max}");
    }

    #[test]
    fn a_request_that_succeeds_shows_its_warnings() {
        let warnings = r#"unknown field "region" (did you mean "regions"?)"#;
        let warned = line(&Answered { warnings: Some(warnings.to_owned()), ..find(200) });
        assert_eq!(
            warned,
            format!("20:14:03 POST /matchmaker/lobbies/find 200 duel (warning: {warnings}) 4 ms")
        );
        let token = format!("unknown field \"pub_{}\"", "eyJhbGciOi.J9-_".repeat(4));
        let warned = line(&Answered { warnings: Some(token), ..find(200) });
        assert!(warned.contains("(warning: unknown field \"pub_…\")"), "{warned}");
    }

    #[test]
    fn no_line_has_a_token_a_quoted_value_or_a_break() {
        let token = format!("pub_{}", "eyJhbGciOi.J9-_".repeat(4));
        let bad = "the body does not fit at `x`: invalid type: string \"mine \\\" too\", expected u32";
        let mut answered = refused("API_BAD_BODY", bad, Value::Null);
        answered.path = format!("/matchmaker/lobbies/{token}/state");
        answered.named.game_modes = vec![token.clone(), "two\nlines\u{1b}[31m".to_owned(), "x".repeat(99)];
        answered.named.lobby_id = Some(token.clone());
        let shown = line(&answered);
        assert!(!shown.contains(&token[4..20]) && !shown.contains("mine"), "{shown}");
        assert!(shown.contains("/matchmaker/lobbies/pub_…/state 400"), "{shown}");
        assert!(shown.contains("invalid type: string …, expected u32)"), "{shown}");
        assert!(shown.contains("two\u{fffd}lines\u{fffd}[31m"), "{shown}");
        assert!(!shown.contains(&"x".repeat(VALUE_CHARS_MAX + 1)), "{shown}");
        assert_eq!(unquoted("cut: string \"secr"), "cut: string …");
        assert_eq!(shown_word("server_id"), "server_id");
    }

    fn shown_word(word: &str) -> String {
        shown(word, VALUE_CHARS_MAX)
    }

    #[test]
    fn the_first_heartbeat_of_a_server_has_a_line_and_others_a_sum() {
        let mut heartbeats = Heartbeats::default();
        let first: Vec<_> = ["one", "two", "one", "one"]
            .into_iter()
            .map(|server| heartbeats.count(&heartbeat(server, 200)))
            .collect();
        assert_eq!(first, [true, true, false, false]);
        assert_eq!(heartbeats.sum_up().unwrap(), "2 game servers, 4 heartbeats in the last minute");
        assert!(!heartbeats.count(&heartbeat("one", 200)), "it was heard a minute ago");
        let elsewhere = Answered { namespace_id: Some("ns".parse().unwrap()), ..heartbeat("one", 200) };
        assert!(heartbeats.count(&elsewhere), "a server of another namespace");
        assert_eq!(heartbeats.sum_up().unwrap(), "2 game servers, 2 heartbeats in the last minute");
        assert_eq!(heartbeats.sum_up(), None, "silence has no line");
        assert!(heartbeats.count(&heartbeat("one", 200)), "it was silent for a minute");
        assert_eq!(heartbeats.sum_up().unwrap(), "1 game server, 1 heartbeat in the last minute");
    }

    #[test]
    fn a_refused_heartbeat_is_never_summed_up() {
        let refused = Answered { code: Some("TOKEN_EXPIRED".to_owned()), ..heartbeat("one", 401) };
        assert!(!is_accepted_heartbeat(&refused) && is_accepted_heartbeat(&heartbeat("one", 200)));
        assert!(line(&refused).contains("401 TOKEN_EXPIRED server one 4 ms"), "{}", line(&refused));
        assert!(line(&heartbeat("one", 200)).contains("server one (its first heartbeat"));
    }
}
