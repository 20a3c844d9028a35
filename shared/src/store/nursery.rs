//! The nursery of a placement pool: which game server to request for a lobby that found no place (I15,
//! decision 76).
//!
//! As with bursts of lobbies, the finds of a moment draw positions, whatever the mode, tags and size of their
//! lobbies: position p belongs to server p / capacity, whose identifiers every find computes from the
//! nursery's secret. A draw names its lobby, so that the second one for a lobby, by whoever creates it in the
//! place of a find that is late, leads to the same server. A nursery whose last draw is older by
//! [`BURST_WINDOW`] than the look of a find that saw no place is replaced: the index showed the places that
//! were left. So is one whose last server is full.
//!
//! The item also has what the last starts showed: how long they took, and how many in a row failed.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use serde::Deserialize;

use crate::{
    base::ambient::Timestamp,
    models::{
        errors::Error,
        ids::{BurstSecret, LobbyId, RegionId, ServerId},
        launch::StartFailure,
        server::PlacementPool,
    },
    store::{
        client::Store,
        creation::BURST_WINDOW,
        items::{number, text},
        keys::pk_item,
        writes::Write,
    },
};

/// Positions after which a nursery is replaced, if that is more than one server has: with them its item takes
/// two or three write units.
const DRAWS_MAX: u32 = 256;
/// How long it is known how long starts take.
const NURSERY_LIFE: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Failures in a row that block a placement pool, and for how long the first time; each further one doubles
/// it.
const FAILURES_TOLERATED: u32 = 2;
const BLOCKED_FOR: Duration = Duration::from_secs(60);
/// The longest time that a placement pool is blocked.
const BLOCKED_MAX: Duration = Duration::from_secs(15 * 60);
/// The part of a new start in the mean.
const MEAN_OF: u64 = 4;

/// A nursery as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Nursery {
    /// Its first server; absent while nobody drew.
    #[serde(default)]
    pub first: Option<ServerId>,
    /// The secret from which all else follows.
    #[serde(default)]
    pub secret: Option<BurstSecret>,
    /// The lobbies that drew, in order, each in short.
    #[serde(default)]
    pub drawn: Vec<String>,
    /// The mean time from request to registration, in milliseconds; absent before the first.
    #[serde(default)]
    pub start_ms: Option<u64>,
    /// How many starts failed since the last registration.
    #[serde(default)]
    pub failures: u32,
    /// Until when none is requested.
    #[serde(default)]
    pub blocked_until: Option<Timestamp>,
    /// Why the last one failed.
    #[serde(default)]
    pub failure: Option<String>,
}

impl Nursery {
    /// Why no server of the pool in `region_id` is requested at `now`, if none is: the last starts failed.
    #[must_use]
    pub fn start_failure(&self, region_id: &RegionId, now: Timestamp) -> Option<StartFailure> {
        let until = self.blocked_until.filter(|until| *until > now)?;
        let (region_id, reason) = (region_id.clone(), self.failure.clone().unwrap_or_default());
        Some(StartFailure { region_id, reason, retry_after: until.since(now) })
    }

    /// The draw of a lobby, if it drew.
    fn draw_of(&self, mark: &str) -> Option<Draw> {
        let position = self.drawn.iter().position(|drawn| drawn == mark)?;
        Some(Draw::Drawn {
            first: self.first.clone()?,
            secret: self.secret.clone()?,
            position: u32::try_from(position).ok()?,
            start_ms: self.start_ms,
        })
    }
}

/// A server of a nursery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NurseryServer {
    /// The nursery's first server.
    pub first: ServerId,
    /// The server's number, counted from 0.
    pub nth: u32,
}

/// What is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Drawing<'a> {
    /// The lobby.
    pub lobby_id: &'a LobbyId,
    /// How many of its draws were in vain.
    pub in_vain: u32,
    /// The server of the last of them, if it was full.
    pub full: Option<&'a NurseryServer>,
    /// Lobbies of one server.
    pub capacity: u32,
    /// When the find looked for a place in the index.
    pub looked_at: Timestamp,
}

impl Drawing<'_> {
    /// Whether the last server of the nursery `seen` is the full one, or one before it.
    fn is_beyond(&self, seen: &Nursery) -> bool {
        let is_full = |full: &&NurseryServer| {
            let up_to = (u64::from(full.nth) + 1) * u64::from(self.capacity);
            seen.first.as_ref() == Some(&full.first) && seen.drawn.len() as u64 <= up_to
        };
        self.full.filter(is_full).is_some()
    }
}

/// The result of a draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Draw {
    /// A position.
    Drawn {
        /// The nursery's first server.
        first: ServerId,
        /// The secret from which the others follow.
        secret: BurstSecret,
        /// The position, counted from 0.
        position: u32,
        /// The mean time of earlier starts, in milliseconds.
        start_ms: Option<u64>,
    },
    /// Starts failed, so that none is requested.
    Blocked(Box<Nursery>),
    /// Others were quicker each time.
    Lost,
}

/// Tries of one draw.
const DRAWS_TRIED_MAX: u32 = 4;

impl Store {
    /// Draws a position in the nursery of `pool`, or a further one after draws in vain. One write unit in a
    /// quiet pool, two to three elsewhere.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn draw_in_nursery(
        &self,
        pool: &PlacementPool,
        drawing: &Drawing<'_>,
        fresh: (&ServerId, &BurstSecret),
        now: Timestamp,
    ) -> Result<Draw, Error> {
        let &Drawing { lobby_id, in_vain, capacity, looked_at, .. } = drawing;
        let (key, mark) = (nursery_key(pool), mark_of(lobby_id, in_vain));
        let most = capacity * (DRAWS_MAX / capacity.max(1)).max(1);
        let mut exhausted = None;
        for _ in 0..DRAWS_TRIED_MAX {
            let begin = self.begin_nursery((&key, &mark), fresh, exhausted.take(), (looked_at, now));
            let seen = match self.update::<Nursery>(begin).await? {
                Ok(begun) => return Ok(begun.draw_of(&mark).unwrap_or(Draw::Lost)),
                Err(Some(seen)) => seen,
                Err(None) => return Err(Error::Bug("no nursery refused to begin one".to_owned())),
            };
            if seen.blocked_until.is_some_and(|until| until > now) {
                return Ok(Draw::Blocked(Box::new(seen)));
            }
            if let Some(draw) = seen.draw_of(&mark) {
                return Ok(draw);
            }
            if drawing.is_beyond(&seen) {
                exhausted = Some(seen);
                continue;
            }
            match self.update::<Nursery>(self.draw((&key, &mark), &seen, most, now)).await? {
                Ok(drawn) => return Ok(drawn.draw_of(&mark).unwrap_or(Draw::Lost)),
                Err(Some(other)) if other.first == seen.first => match other.draw_of(&mark) {
                    Some(draw) => return Ok(draw),
                    None => exhausted = Some(other),
                },
                Err(_) => {}
            }
        }
        Ok(Draw::Lost)
    }

    fn begin_nursery(
        &self,
        (key, mark): (&str, &str),
        (first, secret): (&ServerId, &BurstSecret),
        exhausted: Option<Nursery>,
        (looked_at, now): (Timestamp, Timestamp),
    ) -> Write {
        let full = if exhausted.is_some() { " OR (#first = :seen AND size(#drawn) = :count)" } else { "" };
        let count = exhausted.as_ref().map(|seen| number(seen.drawn.len() as u64));
        self.on_ledger(key)
            .change(
                "SET #first = :new, #secret = :secret, #drawn_at = :now, #drawn = :drawn, #expires_at = :expiry",
            )
            .when(format!(
                "(attribute_not_exists(#first) OR #drawn_at <= :stale{full}) \
                 AND (attribute_not_exists(#blocked_until) OR #blocked_until <= :now)"
            ))
            .with(":new", text(first.as_str()))
            .with(":secret", text(secret.reveal()))
            .with(":now", number(now))
            .with(":drawn", AttributeValue::L(vec![text(mark)]))
            .with(":expiry", number((now + NURSERY_LIFE).secs()))
            .with(":stale", number(looked_at.before(BURST_WINDOW)))
            .with(":seen", exhausted.and_then(|seen| Some(text(seen.first?.as_str()))))
            .with(":count", count)
    }

    fn draw(&self, (key, mark): (&str, &str), seen: &Nursery, most: u32, now: Timestamp) -> Write {
        self.on_ledger(key)
            .change("SET #drawn = list_append(#drawn, :drawn), #drawn_at = :now")
            .when("#first = :first AND NOT contains(#drawn, :mark) AND size(#drawn) < :most")
            .with(":first", seen.first.as_ref().map(|first| text(first.as_str())))
            .with(":drawn", AttributeValue::L(vec![text(mark)]))
            .with(":mark", text(mark))
            .with(":most", number(most))
            .with(":now", number(now))
    }

    /// Notes that a server of `pool` registered so long after its request. Two calls; a lost update only
    /// makes the mean less good.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn note_start(
        &self,
        pool: &PlacementPool,
        took: Duration,
        now: Timestamp,
    ) -> Result<(), Error> {
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let known = self.nursery(pool).await?.start_ms;
        let mean = known.map_or(took, |mean| (mean * (MEAN_OF - 1) + took) / MEAN_OF);
        let write = self
            .on_ledger(nursery_key(pool))
            .change("SET #start_ms = :mean, #expires_at = :expiry REMOVE #failures, #blocked_until, #failure")
            .with(":mean", number(mean))
            .with(":expiry", number((now + NURSERY_LIFE).secs()));
        self.update::<Nursery>(write).await.map(|_noted| ())
    }

    /// Notes that a start in `pool` failed for `reason`. After three in a row the pool is blocked for a
    /// minute, then twice as long each time, at most a quarter of an hour. Two write units.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn note_failed_start(
        &self,
        pool: &PlacementPool,
        reason: &str,
        now: Timestamp,
    ) -> Result<(), Error> {
        let write = self
            .on_ledger(nursery_key(pool))
            .change(
                "SET #failures = if_not_exists(#failures, :zero) + :one, #failure = :reason, \
                 #expires_at = :expiry",
            )
            .with(":reason", text(reason))
            .with(":expiry", number((now + NURSERY_LIFE).secs()));
        let Ok(Nursery { failures, .. }) = self.update(write).await? else { return Ok(()) };
        let Some(doublings) = failures.checked_sub(FAILURES_TOLERATED + 1) else { return Ok(()) };
        let until = now + (BLOCKED_FOR * 2_u32.saturating_pow(doublings.min(8))).min(BLOCKED_MAX);
        let write = self
            .on_ledger(nursery_key(pool))
            .change("SET #blocked_until = :until")
            // A registration since has forgotten the failures.
            .when("#failures = :failures")
            .with(":until", number(until))
            .with(":failures", number(failures));
        self.update::<Nursery>(write).await.map(|_noted| ())
    }

    /// The nursery of `pool`, with what the last starts there showed. One consistent read unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn nursery(&self, pool: &PlacementPool) -> Result<Nursery, Error> {
        let nursery = self.read(&self.tables.ledger, pk_item(nursery_key(pool)), true).await?;
        Ok(nursery.unwrap_or_default())
    }
}

fn nursery_key(pool: &PlacementPool) -> String {
    format!("nursery/{pool}")
}

/// A draw of a lobby in short.
fn mark_of(lobby_id: &LobbyId, in_vain: u32) -> String {
    let digest = digest(&SHA256, format!("{lobby_id}/{in_vain}").as_bytes());
    URL_SAFE_NO_PAD.encode(digest.as_ref().get(..6).unwrap_or_default())
}
