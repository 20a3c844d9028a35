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

/// How long a pass is kept: the maximum of `verification_ttl`, and an hour for clocks that differ.
const PASS_LIFE: Duration = Duration::from_secs(13 * 3_600);

fn key(client: &Client) -> String {
    client.key("captcha")
}

/// How long a pass counts.
#[derive(Clone, Copy, Debug)]
pub struct CaptchaTerms {
    /// Its maximum age.
    pub ttl: Duration,
    /// The maximum number of requests after it.
    pub requests: u32,
}

/// The last pass of a client.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CaptchaPass {
    /// When it passed.
    pub passed_at: Timestamp,
    /// The digest of the response that passed.
    pub answer: String,
}

/// Whether a client's last pass still counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PassState {
    /// It counts, and the request was counted.
    Passed,
    /// It no longer counts, or there is none.
    Due(Option<CaptchaPass>),
}

impl Store {
    /// Counts a request of a client, if its last pass allows another one at `now`: exact under concurrency.
    /// One write unit, refused or not.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn count_captcha_request(
        &self,
        client: &Client,
        terms: CaptchaTerms,
        now: Timestamp,
    ) -> Result<PassState, Error> {
        let write = self
            .on_client(key(client))
            .change("SET #requests = #requests + :one")
            .when("#passed_at >= :oldest AND #requests < :most")
            .with(":oldest", number(now.before(terms.ttl)))
            .with(":most", number(terms.requests));
        Ok(match self.update::<CaptchaPass>(write).await? {
            Ok(_counted) => PassState::Passed,
            Err(pass) => PassState::Due(pass),
        })
    }

    /// Counts a retry of the request whose `answer` passed last, no earlier than `oldest`, at most `most`
    /// times. Returns whether it is one. One write unit.
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

    /// Records that a client passed at `now` with `answer`, a digest, and resets its count of requests. One
    /// write unit.
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
