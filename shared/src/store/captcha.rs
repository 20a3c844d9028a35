//! Passed captchas: one item for each namespace and client.

use std::time::Duration;

use serde::{Deserialize, de::IgnoredAny};

use crate::{
    base::ambient::Timestamp,
    models::{client::Client, errors::Error},
    store::{
        client::Store,
        items::{number, text},
    },
};

/// After this long no pass counts under any version (the most that `verification_ttl` may be, and an hour for
/// clocks that differ).
const PASS_LIFE: Duration = Duration::from_secs(13 * 3_600);

fn key(client: &Client) -> String {
    client.key("captcha")
}

/// How long a pass counts.
#[derive(Clone, Copy, Debug)]
pub struct CaptchaTerms {
    /// Its age at most.
    pub ttl: Duration,
    /// Requests after it at most.
    pub requests: u32,
}

/// The last pass of a client.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CaptchaPass {
    /// When.
    pub passed_at: Timestamp,
    /// The digest of the answer that passed.
    pub answer: String,
}

/// Whether a client's last pass still counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It does, and the request was counted.
    Passed,
    /// It does not, or there is none.
    Due(Option<CaptchaPass>),
}

impl Store {
    /// Counts a request of a client, if its last pass allows another one at `now`: exactly, however many come
    /// at once. One write unit, refused or not.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn count_captcha_request(
        &self,
        client: &Client,
        terms: CaptchaTerms,
        now: Timestamp,
    ) -> Result<Standing, Error> {
        let write = self
            .on_client(key(client))
            .change("SET #requests = #requests + :one")
            .when("#passed_at >= :oldest AND #requests < :most")
            .with(":oldest", number(now.before(terms.ttl)))
            .with(":most", number(terms.requests));
        Ok(match self.update::<CaptchaPass>(write).await? {
            Ok(_counted) => Standing::Passed,
            Err(pass) => Standing::Due(pass),
        })
    }

    /// Counts a repetition of the request whose `answer` was the last to pass, no earlier than `oldest` and
    /// at most `most` times; whether it is one. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn repeat_captcha_answer(
        &self,
        client: &Client,
        answer: &str,
        oldest: Timestamp,
        most: u32,
    ) -> Result<bool, Error> {
        let write = self
            .on_client(key(client))
            .change("SET #repeats = #repeats + :one")
            .when("#answer = :answer AND #passed_at >= :oldest AND #repeats < :most")
            .with(":answer", text(answer))
            .with(":oldest", number(oldest))
            .with(":most", number(most));
        Ok(self.update::<IgnoredAny>(write).await?.is_ok())
    }

    /// Notes that a client passed at `now` by `answer`, a digest; its requests are counted anew. One write
    /// unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn pass_captcha(&self, client: &Client, answer: &str, now: Timestamp) -> Result<(), Error> {
        let change = "SET #passed_at = :now, #answer = :answer, #requests = :zero, #repeats = :zero, #expires_at = :expiry";
        let write = self
            .on_client(key(client))
            .change(change)
            .with(":now", number(now))
            .with(":answer", text(answer))
            .with(":expiry", number((now + PASS_LIFE).secs()));
        match self.update::<IgnoredAny>(write).await? {
            Ok(_noted) => Ok(()),
            Err(_) => Err(Error::Bug("a write without a condition was refused".to_owned())),
        }
    }
}
