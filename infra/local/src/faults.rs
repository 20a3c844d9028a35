//! Faults between clients and the gateway, by a seed: what a client sees of a network that loses, delays and
//! repeats, and of a service under load.
//!
//! The n-th request of a route has the same fault in each run with a seed, whichever client sends it.

use std::{
    collections::BTreeMap,
    io,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use http::{Response, StatusCode, header::RETRY_AFTER};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::base::ambient::Ambient;

/// How long a request is delayed at most.
const DELAY_MAX_MILLIS: u64 = 40;

/// How long a response that is cut waits after its first half, so that this half is sent.
const FLUSH: Duration = Duration::from_millis(2);

/// Of 1,000 requests, how many have each fault; half have none. 350 get no response or a refusal and have to
/// be sent again, so that ten attempts are in vain 3 times in 100,000.
const PER_MILLE: [(Kind, u64); 7] = [
    (Kind::RequestLost, 80),
    (Kind::ResponseLost, 100),
    (Kind::ResponseCut, 70),
    (Kind::Repeated, 70),
    (Kind::Delayed, 80),
    (Kind::TooManyRequests, 50),
    (Kind::Unavailable, 50),
];

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The connection closes before the request is executed.
    RequestLost,
    /// The request is executed; the connection closes without a response.
    ResponseLost,
    /// The connection closes in the middle of the response's body.
    ResponseCut,
    /// The request is executed twice, one after the other; the response is that of either.
    Repeated,
    /// Some milliseconds pass before and after the request is executed.
    Delayed,
    /// 429 with `retry-after`; the request is not executed.
    TooManyRequests,
    /// 503 with `retry-after`; the request is not executed.
    Unavailable,
}

/// A fault of one request: its kind, and a random number that decides the details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What happens.
    pub kind: Kind,
    random: u64,
}

impl Fault {
    /// Milliseconds before, and again after, a delayed request is executed.
    #[must_use]
    pub const fn half_delay(self) -> Duration {
        Duration::from_millis(1 + self.random % (DELAY_MAX_MILLIS / 2))
    }

    /// Whether a repeated request gets the response of its first execution, not of its second.
    #[must_use]
    pub const fn answers_first(self) -> bool {
        self.random.is_multiple_of(2)
    }

    /// The gateway's refusal in place of an execution, where the fault is one: `retry-after` is 0 or 1 s.
    #[must_use]
    pub fn refusal(self) -> Option<Response<lambda_http::Body>> {
        let status = match self.kind {
            Kind::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Kind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            _ => return None,
        };
        let message = json!({ "message": status.canonical_reason() }).to_string();
        let mut response = Response::new(lambda_http::Body::Text(message));
        *response.status_mut() = status;
        response.headers_mut().insert(RETRY_AFTER, (self.random % 2).into());
        response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
        Some(response)
    }

    /// What arrives of a response; `None` closes the connection.
    pub async fn deliver(self, response: Response<Body>, ambient: &Ambient) -> Option<Response<Body>> {
        match self.kind {
            Kind::RequestLost | Kind::ResponseLost => None,
            Kind::ResponseCut => {
                let (parts, body) = response.into_parts();
                let whole = body.collect().await.ok()?.to_bytes();
                let half = whole.slice(..whole.len() / 2);
                let (size, ambient) = (whole.len() as u64, ambient.clone());
                let flushed = Box::pin(async move { ambient.sleep(FLUSH).await });
                (!half.is_empty())
                    .then(|| Response::from_parts(parts, Body::new(Cut { half: Some(half), size, flushed })))
            }
            _ => Some(response),
        }
    }

    /// The fault, for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self.kind {
            Kind::RequestLost => "fault: the request is lost",
            Kind::ResponseLost => "fault: the response is lost",
            Kind::ResponseCut => "fault: the response is cut",
            Kind::Repeated => "fault: executed twice",
            Kind::Delayed => "fault: delayed",
            Kind::TooManyRequests | Kind::Unavailable => "fault: not executed",
        }
    }
}

/// A body of `size` bytes that breaks off after its first half.
struct Cut {
    half: Option<Bytes>,
    size: u64,
    flushed: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl hyper::body::Body for Cut {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(half) = self.half.take() {
            return Poll::Ready(Some(Ok(Frame::data(half))));
        }
        ready!(self.flushed.as_mut().poll(context));
        Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.size)
    }
}

/// The faults of a stack; none without a seed.
#[derive(Debug, Default)]
pub struct Faults(Mutex<Option<Run>>);

/// What happened since a seed was set.
#[derive(Debug)]
struct Run {
    seed: u32,
    /// By route.
    requests: BTreeMap<String, u64>,
    made: BTreeMap<Kind, u64>,
}

/// The body of a request that sets the seed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// `None` ends the faults.
    seed: Option<u32>,
}

impl Faults {
    /// Faults by `seed` from the first request on, or none.
    #[must_use]
    pub fn new(seed: Option<u32>) -> Self {
        let faults = Self::default();
        faults.set(seed);
        faults
    }

    fn set(&self, seed: Option<u32>) {
        *self.run() = seed.map(|seed| Run { seed, requests: BTreeMap::new(), made: BTreeMap::new() });
    }

    /// Sets or ends the faults as a body wants, `{"seed": 7}` or `{"seed": null}`, and begins to count anew.
    /// Returns what is now.
    pub fn set_as_wanted(&self, body: &[u8]) -> (StatusCode, Value) {
        match serde_json::from_slice::<Wanted>(body) {
            Ok(Wanted { seed }) => {
                self.set(seed);
                (StatusCode::OK, self.shown())
            }
            Err(error) => {
                let message = format!("{{\"seed\": 7}} or {{\"seed\": null}} is wanted: {error}");
                (StatusCode::BAD_REQUEST, json!({ "message": message }))
            }
        }
    }

    /// The seed, requests by route and faults by kind since it was set.
    #[must_use]
    pub fn shown(&self) -> Value {
        match &*self.run() {
            Some(Run { seed, requests, made }) => json!({ "seed": seed, "requests": requests, "made": made }),
            None => json!({ "seed": null, "requests": {}, "made": {} }),
        }
    }

    /// The seed, while there are faults.
    #[must_use]
    pub fn seed(&self) -> Option<u32> {
        self.run().as_ref().map(|run| run.seed)
    }

    /// The fault of the next request of a route, if it has one.
    pub fn next(&self, route_key: &str) -> Option<Fault> {
        let mut run = self.run();
        let run = run.as_mut()?;
        let count = run.requests.entry(route_key.to_owned()).or_default();
        *count += 1;
        let of_route =
            route_key.bytes().fold(u64::from(run.seed), |hash, byte| mixed(hash ^ u64::from(byte)));
        let random = mixed(of_route ^ *count);
        let mut place = random % 1_000;
        let kind = PER_MILLE.into_iter().find_map(|(kind, share)| {
            let is_it = place < share;
            place = place.saturating_sub(share);
            is_it.then_some(kind)
        })?;
        *run.made.entry(kind).or_default() += 1;
        Some(Fault { kind, random: random / 1_000 })
    }

    fn run(&self) -> MutexGuard<'_, Option<Run>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number in which each bit depends on each of `number`: the output function of SplitMix64.
const fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Reads the seed of an option.
///
/// # Errors
/// What a seed is.
pub fn parse_seed(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("a seed is an integer from 0 to {}", u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_of(faults: &Faults, route: &str) -> Vec<Option<Fault>> {
        (0..2_000).map(|_| faults.next(route)).collect()
    }

    #[test]
    fn each_kind_comes_as_often_as_it_should() {
        let all = first_of(&Faults::new(Some(1)), "POST /x");
        for (kind, share) in PER_MILLE {
            let count = all.iter().flatten().filter(|fault| fault.kind == kind).count() as u64;
            assert!((share..3 * share).contains(&count), "{kind:?}: {count} of 2,000");
        }
    }

    #[test]
    fn a_seed_makes_the_same_faults_again_whatever_else_comes() {
        let (faults, busy) = (Faults::new(Some(7)), Faults::new(Some(7)));
        let alone = first_of(&faults, "POST /x");
        let beside: Vec<_> = (0..2_000)
            .map(|_| {
                busy.next("POST /y");
                busy.next("POST /x")
            })
            .collect();
        assert_eq!(alone, beside);
        faults.set(Some(7));
        assert_eq!(first_of(&faults, "POST /x"), alone, "it begins anew");
        for (seed, route) in [(8, "POST /x"), (7, "POST /y")] {
            assert_ne!(first_of(&Faults::new(Some(seed)), route), alone, "{seed} {route}");
        }
    }

    #[test]
    fn without_a_seed_there_is_none() {
        assert!(first_of(&Faults::default(), "POST /x").iter().all(Option::is_none));
    }

    #[test]
    fn a_seed_is_set_and_ended_by_a_body_and_counts_show_what_was_made() {
        let faults = Faults::default();
        assert_eq!(faults.shown(), json!({ "seed": null, "requests": {}, "made": {} }));
        assert_eq!(faults.set_as_wanted(br#"{"seed": 7}"#).0, StatusCode::OK);
        first_of(&faults, "POST /x");
        let shown = faults.shown();
        assert_eq!((&shown["seed"], &shown["requests"]), (&json!(7), &json!({ "POST /x": 2_000 })));
        assert!(shown["made"]["response_lost"].as_u64().unwrap() > 100, "{shown}");
        for wrong in ["", "{}x", r#"{"seed": -1}"#, r#"{"seed": 4294967296}"#, r#"{"sed": 1}"#] {
            assert_eq!(faults.set_as_wanted(wrong.as_bytes()).0, StatusCode::BAD_REQUEST, "{wrong}");
        }
        assert_eq!(faults.seed(), Some(7), "a wrong body changes nothing");
        assert_eq!(faults.set_as_wanted(br#"{"seed": null}"#).1["seed"], Value::Null);
        assert_eq!(faults.next("POST /x"), None);
    }

    #[test]
    fn a_seed_that_is_none_is_named() {
        assert_eq!(parse_seed("4294967295"), Ok(u32::MAX));
        for wrong in ["", "-1", "4294967296", "x"] {
            assert!(parse_seed(wrong).unwrap_err().contains("from 0 to 4294967295"), "{wrong}");
        }
    }
}
