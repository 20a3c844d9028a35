//! Taking a seat: one intent, however many attempts.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep_until},
};
use tokio_util::task::TaskTracker;

use crate::{
    api::FindLobbyResponse,
    error::Error,
    http::{Call, DEADLINE, World, attempt, delay, send},
};

/// For how long the seat of an intent that was given up is looked for, to leave it.
const GIVE_BACK: Duration = Duration::from_secs(35);

/// Codes of a 503 after which the intent has no seat.
const WITHOUT_SEAT: [&str; 3] =
    ["MATCHMAKER_NO_SERVER_AVAILABLE", "MATCHMAKER_LOBBY_START_TIMEOUT", "CAPTCHA_UNAVAILABLE"];

type Answer = Result<FindLobbyResponse, Error>;

/// A call about a seat, of whose right its token is the proof.
pub(crate) fn seat_call(url: &str, operation: &str, token: &str) -> Result<Call, Error> {
    let body = json!({ "player_token": token });
    Call::send(Method::POST, format!("{url}/matchmaker/players/{operation}"), &body)
}

/// Takes a seat by a call that has an `Idempotency-Key`: each attempt repeats key and body, so that all of
/// them together take one.
///
/// When the future is dropped or the deadline passes, an attempt may have taken the seat without a response.
/// Then the call goes on in the `background`, for at most 35 seconds, until it knows, and leaves what it has.
///
/// # Errors
/// The refusal; the last attempt's error when the deadline passes.
pub(crate) async fn take(
    world: &World,
    url: &str,
    call: Call,
    deadline: Duration,
    background: &TaskTracker,
) -> Answer {
    let (sender, receiver) = oneshot::channel();
    let intent = Intent {
        asker: Some(sender),
        end: Instant::now() + deadline,
        last: None,
        is_uncertain: false,
        world: world.clone(),
        url: url.to_owned(),
    };
    let mut waiting =
        Waiting { receiver, world: world.clone(), url: url.to_owned(), background: background.clone() };
    background.spawn(intent.run(call));
    let answer = (&mut waiting.receiver).await;
    answer.unwrap_or_else(|_ended| Err(Error::no_response(None)))
}

/// The caller's side. An answer that arrives just as the caller gives up is given back, too.
struct Waiting {
    receiver: oneshot::Receiver<Answer>,
    world: World,
    url: String,
    background: TaskTracker,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.receiver.close();
        if let Ok(Ok(answer)) = self.receiver.try_recv() {
            self.background.spawn(give_back(self.world.clone(), self.url.clone(), answer));
        }
    }
}

/// Leaves the seats of an answer that nobody waits for. One that cannot be left expires.
async fn give_back(world: World, url: String, answer: FindLobbyResponse) {
    for token in answer.tokens() {
        if let Ok(call) = seat_call(&url, "leave", &token) {
            let _left: Result<Value, Error> = send(&world, &call, DEADLINE).await;
        }
    }
}

struct Intent {
    /// The caller; `None` once it gave up.
    asker: Option<oneshot::Sender<Answer>>,
    end: Instant,
    last: Option<Error>,
    /// Whether an attempt may have taken the seat.
    is_uncertain: bool,
    world: World,
    url: String,
}

impl Intent {
    async fn run(mut self, call: Call) {
        let mut failures = 0;
        while self.asker.is_some() || self.is_uncertain {
            let answer = self.attempt(&call).await;
            let error = match answer {
                Ok(answer) => {
                    let unwanted = match self.asker.take() {
                        Some(asker) => asker.send(Ok(answer)).err().and_then(Result::ok),
                        None => Some(answer),
                    };
                    if let Some(answer) = unwanted {
                        give_back(self.world, self.url, answer).await;
                    }
                    return;
                }
                // A refusal says that no attempt took a seat.
                Err(error) if !error.is_transient() => return self.give_up(Some(error)),
                Err(error) => error,
            };
            if WITHOUT_SEAT.iter().any(|code| error.is(code)) {
                self.is_uncertain = false;
            } else if error.status != 429 {
                self.is_uncertain = true;
            }
            let wait = delay(failures, error.retry_after);
            self.last = Some(error);
            let until = Instant::now() + wait;
            if self.asker.is_some() && until >= self.end {
                self.give_up(None);
            }
            if self.asker.is_none() && until >= self.end {
                return;
            }
            self.until(sleep_until(until)).await;
            failures += 1;
        }
    }

    async fn attempt(&mut self, call: &Call) -> Answer {
        let world = self.world.clone();
        self.until(attempt(&world, call, call.attempt)).await
    }

    /// Does `work`. If the caller leaves meanwhile, or the deadline passes, the intent is given up, and the
    /// work goes on.
    async fn until<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        if let Some(asker) = &mut self.asker {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = asker.closed() => {}
                () = sleep_until(self.end) => {}
            }
            self.give_up(None);
        }
        work.await
    }

    /// Ends the call with `error`, or else that of the last attempt. From now on, a seat that it may have is
    /// left.
    fn give_up(&mut self, error: Option<Error>) {
        let Some(asker) = self.asker.take() else { return };
        let late = || Error::no_response(None);
        let _left = asker.send(Err(error.or_else(|| self.last.take()).unwrap_or_else(late)));
        self.end = Instant::now() + GIVE_BACK;
    }
}
