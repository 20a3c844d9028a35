//! Shards of a pool in the index of candidates, for pools with more writes than one partition of an index
//! takes.
//!
//! All entries of a pool have one key, whose partition takes 1,000 write units a second. Creating and filling
//! a lobby is three of them, and an index that is too slow makes DynamoDB refuse the lobbies' own writes
//! (decision 20). Such a pool gets more shards: a suffix of the pool in lobbies that instances create for
//! themselves or hide because they are full.
//!
//! The sign of a pool's shards is an entry of the first shard that sorts before any lobby, so every look sees
//! it with the query that it makes anyway. An instance writes it before it puts a lobby into another shard,
//! and it stays until a find sees all other shards empty.

use std::time::Duration;

use futures_util::future::try_join_all;
use serde::Deserialize;

use crate::{
    base::ambient::Timestamp,
    models::{errors::Error, lobby::Lobby, pool::Pool},
    store::{
        client::Store,
        items::{Item, number, text},
        writes::Write,
    },
};

/// Shards that a pool has at most.
pub const SHARDS_MAX: u8 = 32;
/// How long an instance that wrote the sign may create lobbies in its shards.
pub const SIGN_KNOWN_FOR: Duration = Duration::from_secs(15);
/// A sign younger than this stays: lobbies may be on their way into the index. Longer than [`SIGN_KNOWN_FOR`]
/// and any lag.
const SIGN_LIFE_MIN: Duration = Duration::from_secs(30);
/// The prefix of the sign's key, which no identifier of a lobby has.
const SIGN: &str = "shards/";

/// The sign of a pool's shards. It sorts by their number, which is before any time.
#[derive(Debug, Deserialize)]
pub(super) struct Sign {
    joinable_from: Option<u8>,
}

/// The number of shards of an entry of the index, if it is a sign.
pub(super) fn signed_shards(entry: &Item) -> Option<u8> {
    entry.get("lobby_id")?.as_s().ok()?.strip_prefix(SIGN)?;
    Some(entry.get("joinable_from")?.as_n().ok()?.parse().unwrap_or(SHARDS_MAX))
}

impl Store {
    /// Makes every look at `pool` read at least `shards` shards from now on, and returns how many. One write
    /// unit, and one or two of the index when there were fewer. Another one when there were more.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn grow_shards(&self, pool: &Pool, shards: u8, now: Timestamp) -> Result<u8, Error> {
        let mut shards = shards.min(SHARDS_MAX);
        loop {
            let write = self
                .on_sign(pool)
                .change("SET #pool = :pool, #joinable_from = :shards, #renewed_at = :now")
                .when("attribute_not_exists(#joinable_from) OR #joinable_from <= :shards")
                .with(":pool", text(pool.whole().to_string()))
                .with(":shards", number(shards))
                .with(":now", number(now));
            match self.update::<Sign>(write).await? {
                // Another instance added more. The number only grows, up to the maximum.
                Err(Some(Sign { joinable_from: Some(more) })) if more > shards => shards = more,
                _ => return Ok(shards),
            }
        }
    }

    /// Deletes the sign of `pool` if only the first of its `shards` has lobbies, in sight or not. A query of
    /// 0.5 read units for each; one write unit, and one of the index.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn retire_shards(&self, pool: &Pool, shards: u8, now: Timestamp) -> Result<(), Error> {
        let looks = (1..shards).map(|shard| {
            let pool = pool.in_shard(shard);
            async move { self.candidates_of_shard(&pool, None, Timestamp::NEVER, 1).await }
        });
        if try_join_all(looks).await?.iter().any(|(candidates, _)| !candidates.is_empty()) {
            return Ok(());
        }
        let write = self
            .on_sign(pool)
            .change("REMOVE #joinable_from")
            .when("#joinable_from = :shards AND #renewed_at <= :stale")
            .with(":shards", number(shards))
            .with(":stale", number(now.before(SIGN_LIFE_MIN)));
        self.update::<Sign>(write).await.map(|_| ())
    }

    /// Moves a lobby back into the first shard of its pool. This is only a hint. One write unit, and two of
    /// the index.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn leave_shard(&self, lobby: &Lobby) -> Result<(), Error> {
        let write = self
            .on_lobby(&lobby.lobby_id)
            .change("SET #pool = :first")
            .when("#pool = :pool")
            .with(":first", text(lobby.pool.whole().to_string()))
            .with(":pool", text(lobby.pool.to_string()));
        self.update::<Lobby>(write).await.map(|_| ())
    }

    fn on_sign(&self, pool: &Pool) -> Write {
        let key = Item::from([("lobby_id".to_owned(), text(format!("{SIGN}{}", pool.whole())))]);
        Write::to(&self.tables.lobbies, key)
    }
}
