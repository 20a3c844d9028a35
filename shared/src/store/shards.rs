//! Shards of a pool in the index of candidates, for pools that do more than one partition of an index takes.
//!
//! All entries of a pool have one key, whose partition takes 1,000 write units a second. Creating and filling
//! a lobby is three of them, and an index that is too slow makes DynamoDB refuse the lobbies' own writes
//! (decision 20). A pool in which that happened gets more shards: a suffix of the pool, in lobbies that
//! instances create for themselves or hide because they are full.
//!
//! The sign of a pool's shards is an entry of the first shard that sorts before any lobby, so every look sees
//! it with the query that it makes anyway. It is written before a lobby goes into another shard, and stays
//! until all other shards were seen empty.

use std::time::Duration;

use futures_util::future::try_join_all;
use serde::Deserialize;

use crate::{
    base::ambient::Timestamp,
    models::{errors::Error, pool::Pool},
    store::{
        client::Store,
        items::{Item, number, text},
        writes::Write,
    },
};

/// Shards that a pool has at most.
pub const SHARDS_MAX: u8 = 32;
/// For how long whoever wrote the sign may create lobbies in the shards that it tells.
pub const SIGN_KNOWN_FOR: Duration = Duration::from_secs(15);
/// A sign younger than this stays: lobbies may be on their way into the index. Longer than [`SIGN_KNOWN_FOR`]
/// and any lag.
const SIGN_LIFE_MIN: Duration = Duration::from_secs(30);
/// What the sign's key begins with; no identifier of a lobby does.
const SIGN: &str = "shards/";

/// The sign of a pool's shards; its place in the index is their number, which is before any time.
#[derive(Debug, Deserialize)]
pub(super) struct Sign {
    joinable_from: Option<u8>,
}

/// How many shards an entry of the index tells, when it is a sign.
pub(super) fn signed_shards(entry: &Item) -> Option<u8> {
    entry.get("lobby_id")?.as_s().ok()?.strip_prefix(SIGN)?;
    Some(entry.get("joinable_from")?.as_n().ok()?.parse().unwrap_or(SHARDS_MAX))
}

impl Store {
    /// Has every look at `pool` read `shards` shards from now on, or more; how many. One write unit, and one
    /// or two of the index when there were fewer; another one when there were more.
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
                // Others had it grow further; its number only grows, to the most.
                Err(Some(Sign { joinable_from: Some(more) })) if more > shards => shards = more,
                _ => return Ok(shards),
            }
        }
    }

    /// Takes the sign of `pool` away when none of its `shards` but the first holds a lobby, whether in sight
    /// or not. A query of 0.5 read units for each; one write unit, and one of the index.
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

    fn on_sign(&self, pool: &Pool) -> Write {
        let key = Item::from([("lobby_id".to_owned(), text(format!("{SIGN}{}", pool.whole())))]);
        Write::to(&self.tables.lobbies, key)
    }
}
