//! A namespace as server-sent events: everything once, then what changes.

use std::{collections::HashMap, convert::Infallible, sync::Arc, time::Duration};

use axum::response::{
    IntoResponse, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures_util::{StreamExt as _, stream};
use serde::Serialize;
use serde_json::{Value, json};
use shared::base::ambient::Ambient;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{
    budget::READ_UNITS_A_MINUTE,
    host::Kind,
    tape::Tape,
    view::{Filter, LobbyRow, ServerRow, Sums, sums},
    watch::{Column, Snapshot, Watch, Watches},
};

/// Shortest time between two batches of events: changes in between are sent together.
const BATCH: Duration = Duration::from_millis(250);
/// Longest time without an event: then one is sent anyway, so that a page notices when the host is gone.
const QUIET_MAX: Duration = Duration::from_secs(15);
/// Requests and changes that a page is sent of before it opened.
const PAST_MAX: usize = 100;

/// What one page knows, and where it learns more.
pub struct Feed {
    watches: Arc<Watches>,
    watch: Arc<Watch>,
    seen: watch::Receiver<Snapshot>,
    tape: Option<(Arc<Tape>, watch::Receiver<u64>)>,
    closing: watch::Receiver<bool>,
    ambient: Ambient,
    kind: Kind,
    run: Arc<str>,
    filter: Filter,
    known: Known,
}

/// Events that are sent together.
type Events = Vec<Event>;

/// The data that the page already has.
#[derive(Default)]
struct Known {
    is_greeted: bool,
    sent_at: Option<Instant>,
    sums: Option<Sums>,
    servers: Option<Vec<ServerRow>>,
    total: Option<usize>,
    order: Vec<String>,
    rows: HashMap<String, LobbyRow>,
    request: u64,
    change: u64,
    column: Option<Column>,
    pace: Option<Value>,
}

/// The sources of a feed.
pub struct Shown {
    /// Everything that is looked at.
    pub watches: Arc<Watches>,
    /// The namespace.
    pub watch: Arc<Watch>,
    /// Its snapshots.
    pub seen: watch::Receiver<Snapshot>,
    /// The requests, where the host answers them.
    pub tape: Option<Arc<Tape>>,
    /// Whether the host is about to end.
    pub closing: watch::Receiver<bool>,
    /// The run of the host: the numbers of requests and changes restart with each.
    pub run: Arc<str>,
}

impl Feed {
    /// A feed of `shown`, with the lobbies of `filter`.
    pub fn new(shown: Shown, ambient: Ambient, kind: Kind, filter: Filter) -> Self {
        let Shown { watches, watch, seen, tape, closing, run } = shown;
        let tape = tape.map(|tape| {
            let last = tape.last();
            (tape, last)
        });
        let known = Known::default();
        Self { watches, watch, seen, tape, closing, ambient, kind, run, filter, known }
    }

    async fn next(&mut self) -> Option<Events> {
        if *self.closing.borrow() {
            return None;
        }
        if !self.known.is_greeted {
            self.known.is_greeted = true;
            let now = self.ambient.now();
            let namespace_id = self.watch.namespace_id();
            let hello = json!({ "now": now, "namespace_id": namespace_id, "run": self.run });
            return Some(vec![event("hello", &hello)]);
        }
        loop {
            let events = self.news();
            if !events.is_empty() {
                self.known.sent_at = Some(Instant::now());
                return Some(events);
            }
            let requests = async {
                match &mut self.tape {
                    Some((_, last)) => last.changed().await.is_ok(),
                    None => std::future::pending().await,
                }
            };
            let something = async {
                tokio::select! {
                    _ = self.seen.changed() => {}
                    _ = requests => {}
                    _ = self.closing.changed() => {}
                }
            };
            something.await;
            if *self.closing.borrow() {
                return None;
            }
            if let Some(sent_at) = self.known.sent_at {
                sleep_until(sent_at + BATCH).await;
            }
        }
    }

    /// Everything that the page does not know yet.
    fn news(&mut self) -> Events {
        let (now, seen) = (self.ambient.now(), self.seen.borrow_and_update().clone());
        let mut events = Events::new();
        if let Some((tape, last)) = &mut self.tape {
            last.borrow_and_update();
            let mut requests = tape.after(self.known.request, self.watch.namespace_id());
            requests.drain(..requests.len().saturating_sub(PAST_MAX));
            if let Some(newest) = requests.last() {
                self.known.request = newest.number;
                events.push(event("requests", &requests));
            }
        }
        if seen.is_empty() {
            return events;
        }
        let mut changes = self.watch.changes_after(self.known.change);
        changes.drain(..changes.len().saturating_sub(PAST_MAX));
        if let Some(newest) = changes.last() {
            self.known.change = newest.number;
            events.push(event("changes", &changes));
        }
        let servers = seen.servers.iter().map(|server| ServerRow::of(server, now)).collect();
        events.extend(event_if_new("servers", &mut self.known.servers, servers));
        events.extend(event_if_new("sums", &mut self.known.sums, sums(&seen, now)));
        events.extend(self.rows(&seen));
        // The last column that is known may have changed, as may the one before it.
        let known = self.known.column.map_or(0, |last| last.column.saturating_sub(2));
        let columns = self.watch.columns_after(known);
        if columns.last() != self.known.column.as_ref() {
            self.known.column = columns.last().copied();
            events.push(event("columns", &columns));
        }
        events.extend(self.pace(&seen));
        events
    }

    /// The lobbies of the page, whose order is sent when it changed, and the rows that changed.
    fn rows(&mut self, seen: &Snapshot) -> Option<Event> {
        let (total, rows) = self.filter.page_of(seen, self.ambient.now());
        let rows: Vec<(String, LobbyRow)> = rows.into_iter().map(|row| (row.id(), row)).collect();
        let order: Vec<String> = rows.iter().map(|(id, _)| id.clone()).collect();
        let changed: Vec<_> = rows
            .iter()
            .filter(|(id, row)| self.known.rows.get(id) != Some(row))
            .map(|(_, row)| row)
            .collect();
        if self.known.total == Some(total) && order == self.known.order && changed.is_empty() {
            return None;
        }
        let event = event("rows", &json!({ "total": total, "order": order, "changed": changed }));
        self.known.total = Some(total);
        self.known.rows = rows.into_iter().collect();
        self.known.order = order;
        Some(event)
    }

    fn pace(&mut self, seen: &Snapshot) -> Option<Event> {
        // Reads of the local stack cost nothing.
        let (units, dollars) = match self.kind {
            Kind::Local => (0.0, 0.0),
            Kind::Aws => (self.watches.units_a_minute(), self.watches.dollars_an_hour()),
        };
        let pace = json!({
            "kind": self.kind,
            "read_units_a_minute": units.round(),
            "read_units_a_minute_max": READ_UNITS_A_MINUTE,
            "dollars_an_hour": dollars,
            // In tenths of a second, so that it does not change with every look.
            "every_ms": (seen.pause + seen.took).as_millis() as u64 / 100 * 100,
            "problem": seen.problem,
            "expected": seen.expected,
        });
        event_if_new("pace", &mut self.known.pace, pace)
    }
}

impl IntoResponse for Feed {
    /// The events, until the host ends or the page goes.
    fn into_response(self) -> Response {
        let batches = stream::unfold(self, |mut feed| async move { Some((feed.next().await?, feed)) });
        let events = batches.flat_map(stream::iter).map(Ok::<_, Infallible>);
        Sse::new(events).keep_alive(KeepAlive::new().interval(QUIET_MAX).text("still here")).into_response()
    }
}

/// The event of a value, unless the page knows it already.
fn event_if_new<T: Serialize + PartialEq>(name: &str, known: &mut Option<T>, value: T) -> Option<Event> {
    if known.as_ref() == Some(&value) {
        return None;
    }
    let event = event(name, &value);
    *known = Some(value);
    Some(event)
}

fn event(name: &str, data: &impl Serialize) -> Event {
    Event::default().event(name).json_data(data).unwrap_or_default()
}
