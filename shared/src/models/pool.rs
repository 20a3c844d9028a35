//! Pools: the sets of lobbies that a find can enter.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::models::ids::{GameMode, InvalidIdentifier, LobbyId, NamespaceId, RegionId, VersionId};

/// The lobbies that a find can enter have these in common: namespace, version, game mode and region.
///
/// All lobbies of a pool are interchangeable but for their tags. As text: the four identifiers joined by `/`,
/// which no identifier contains, and for any shard but the first `~` and its number (decision 20).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pool {
    /// The namespace.
    pub namespace_id: NamespaceId,
    /// The version.
    pub version_id: VersionId,
    /// The game mode of that version.
    pub game_mode: GameMode,
    /// The region.
    pub region_id: RegionId,
    /// Its part of the index of candidates, counted from 0: a mode may have several, since one takes 1,000
    /// write units a second.
    pub shard: u32,
}

impl Pool {
    /// This pool, its first shard.
    #[must_use]
    pub fn whole(&self) -> Self {
        self.in_shard(0)
    }

    /// This pool in another shard.
    #[must_use]
    pub fn in_shard(&self, shard: u32) -> Self {
        Self { shard, ..self.clone() }
    }

    /// This pool in the shard of a lobby, one of `shards`, which follows from its identifier.
    #[must_use]
    pub fn in_shard_of(&self, lobby_id: &LobbyId, shards: u32) -> Self {
        let hash = |hash: u32, byte: u8| hash.wrapping_mul(31).wrapping_add(byte.into());
        let hash = lobby_id.as_str().bytes().fold(0, hash);
        self.in_shard(hash.checked_rem(shards).unwrap_or(0))
    }

    /// Whether `other` is the same pool, in any shard.
    #[must_use]
    pub fn is_shard_of(&self, other: &Self) -> bool {
        let Self { namespace_id, version_id, game_mode, region_id, shard: _ } = self;
        *namespace_id == other.namespace_id
            && *version_id == other.version_id
            && *game_mode == other.game_mode
            && *region_id == other.region_id
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace_id, version_id, game_mode, region_id, shard } = self;
        write!(f, "{namespace_id}/{version_id}/{game_mode}/{region_id}")?;
        if *shard > 0 { write!(f, "~{shard}") } else { Ok(()) }
    }
}

impl FromStr for Pool {
    type Err = InvalidIdentifier;

    fn from_str(text: &str) -> Result<Self, InvalidIdentifier> {
        let (identifiers, shard) = match text.split_once('~') {
            Some((identifiers, shard)) => (identifiers, Some(shard)),
            None => (text, None),
        };
        let mut parts = identifiers.split('/');
        let mut next = || parts.next().ok_or(InvalidIdentifier);
        let pool = Self {
            namespace_id: next()?.parse()?,
            version_id: next()?.parse()?,
            game_mode: next()?.parse()?,
            region_id: next()?.parse()?,
            shard: shard.map_or(Ok(0), str::parse).map_err(|_| InvalidIdentifier)?,
        };
        // Each pool has one text, which is a key.
        if pool.to_string() == text { Ok(pool) } else { Err(InvalidIdentifier) }
    }
}

impl TryFrom<String> for Pool {
    type Error = InvalidIdentifier;

    fn try_from(text: String) -> Result<Self, InvalidIdentifier> {
        text.parse()
    }
}

impl From<Pool> for String {
    fn from(pool: Pool) -> Self {
        pool.to_string()
    }
}

/// The tags of a lobby or a query.
pub type Tags = BTreeMap<String, String>;
