//! Shards of the index of candidates: when lobbies go into them, and when they are retired.
//!
//! An instance for whose lobby the index was too slow writes the sign of shards ([`crate::store::shards`]),
//! then puts lobbies of its own into any of them. Each such write that needed a retry grows them fourfold, at
//! most every three seconds. Where the head shows that a pool is busy, the first four are announced at once.
//!
//! Hiding a full lobby of a busy pool moves it into a shard, for which the index charges no more. A find that
//! saw it elsewhere learns the new place from its refused write. Hiding it in a pool that is not busy moves
//! it back into the first shard; so does its server's heartbeat, once no player has left for a minute. A find
//! that saw nothing in the other shards deletes the sign once no lobby is left in them.

use crate::{
    base::ambient::Timestamp,
    matchmaking::{contention::Contention, matchmaker::Matchmaker, memory::shards::Sharding},
    models::{errors::Error, pool::Pool},
    store::lobbies::Candidate,
};

impl Matchmaker {
    /// The shard for a lobby of this instance's own, or one that it hides: the first, unless the index was
    /// too slow while the pool was busy.
    pub(super) async fn choose_shard(&self, pool: &Pool) -> Result<u8, Error> {
        let now = self.ambient.now();
        if self.pools.contention(pool, now) != Contention::Busy {
            return Ok(0);
        }
        let shards = match self.pools.sharding(pool, now) {
            Sharding::Unneeded => return Ok(0),
            Sharding::Known(shards) => shards,
            Sharding::Sign(shards) => match self.store.grow_shards(pool, shards, now).await {
                Ok(shards) => {
                    self.pools.remember_shards(pool, shards, now);
                    shards
                }
                // Without the sign no find looks there.
                Err(Error::Unavailable(_)) => return Ok(0),
                Err(error) => return Err(error),
            },
        };
        Ok(u8::try_from(self.ambient.below(shards.into())).unwrap_or(0))
    }

    /// Checks whether the other shards are needed, after a look at `pool` that found lobbies in the first
    /// only.
    pub(super) async fn retire_shards(
        &self,
        pool: &Pool,
        shards: u8,
        found: &[Candidate],
        now: Timestamp,
    ) -> Result<(), Error> {
        let is_idle = shards > 1 && found.iter().all(|candidate| candidate.pool.shard == 0);
        if is_idle && self.pools.is_sweep_due(pool, now) {
            match self.store.retire_shards(pool, shards, now).await {
                // Empty shards only cost each look more queries.
                Err(Error::Unavailable(cause)) => tracing::warn!(cause, "empty shards of the index stay"),
                swept => return swept,
            }
        }
        Ok(())
    }
}
