//! Lobbies: looking for candidates, reading them, hints about them.
//!
//! The index of candidates is sorted by [`Lobby::joinable_from`], so one query up to now returns the open
//! lobbies, oldest first, and the full ones in which a seat has expired. Seats taken in between change no
//! entry, which keeps a find at one write unit. A wrong entry costs a refused write (decision 9). A lobby of
//! a silent server has [`Timestamp::NEVER`] there.
//!
//! A find with tags searches the 1,000 oldest lobbies in sight. Beyond those, the index `tagged` shows the
//! lobbies that have exactly the queried tags (decision 15).
//!
//! Finds of parties look into the index `roomy` instead, which has the lobbies of modes with parties that
//! have room for two or more ([`Lobby::room`]), those with the least room first (decision 73).

use std::{fmt, str::FromStr};

use futures_util::future::try_join_all;
use serde::Deserialize;

use crate::{
    base::ambient::Timestamp,
    models::{
        errors::Error,
        ids::{InvalidIdentifier, LobbyId, ServerKey},
        lobby::Lobby,
        pool::Pool,
        room::Room,
        tag_digests::TagDigests,
    },
    store::{
        client::Store,
        items::{Item, from_item, number, text, to_value},
        keys::{lobby_item, tag_set},
        queries::{items, page, query},
        seats::unvacated_since,
    },
};

/// The index of lobbies that a find may look at: pool, then `joinable_from`. Eventually consistent: a hint.
pub const CANDIDATES_INDEX: &str = "candidates";
/// The index of the same lobbies, if they have tags, by all their tags: `tag_set`, then `joinable_from`. A
/// hint, too.
pub const TAGGED_INDEX: &str = "tagged";
/// The index of the lobbies with room for a party: pool, then [`Lobby::room`]. A hint, too.
pub const ROOMY_INDEX: &str = "roomy";
/// The index of the lobbies of a game server, oldest first.
pub const BY_SERVER_INDEX: &str = "by_server";

/// A lobby as the index of candidates shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Candidate {
    /// The lobby.
    pub lobby_id: LobbyId,
    /// Its pool, in its shard.
    pub pool: Pool,
    /// From when it may have a free seat; zero in a search for a party.
    #[serde(default)]
    pub joinable_from: Timestamp,
    /// Its room for a party; absent in other searches.
    pub room: Option<Room>,
    /// Digests of its tags; empty in a search for lobbies with certain tags.
    #[serde(default)]
    pub tag_digests: TagDigests,
}

/// A place in the list of a server's lobbies: the last one read.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LobbyCursor {
    /// When it was made.
    pub created_at: Timestamp,
    /// The lobby.
    pub lobby_id: LobbyId,
}

impl fmt::Display for LobbyCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}~{}", self.created_at, self.lobby_id)
    }
}

impl FromStr for LobbyCursor {
    type Err = InvalidIdentifier;

    fn from_str(text: &str) -> Result<Self, InvalidIdentifier> {
        let (created_at, lobby_id) = text.split_once('~').ok_or(InvalidIdentifier)?;
        // The number's parser would also accept a sign.
        let digits = Some(created_at).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let created_at = digits.and_then(|text| text.parse().ok()).ok_or(InvalidIdentifier)?;
        Ok(Self { created_at: Timestamp(created_at), lobby_id: lobby_id.parse()? })
    }
}

/// A page of a server's lobbies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LobbyPage {
    /// The lobbies.
    pub lobby_ids: Vec<LobbyId>,
    /// Where the next page begins, when there is one.
    pub next: Option<LobbyCursor>,
}

impl Store {
    /// Up to `limit` lobbies of the `shards` shards of `pool` that may have a free seat at `now`, oldest
    /// first.
    ///
    /// One query of the index for each shard; 0.5 read units for each started 4 KB of each. The index may
    /// lag: each entry may be wrong.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn candidates(
        &self,
        pool: &Pool,
        shards: u32,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Candidate>, Error> {
        let looks = (0..shards).map(|shard| {
            let pool = pool.in_shard(shard);
            async move { self.candidates_of_shard(&pool, None, now, limit).await }
        });
        let mut candidates = try_join_all(looks).await?.concat();
        candidates.sort_by_key(|candidate| candidate.joinable_from);
        candidates.truncate(limit);
        Ok(candidates)
    }

    /// The candidates of one shard, after `after` if it is given.
    ///
    /// One query; 0.5 read units for each started 4 KB.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn candidates_of_shard(
        &self,
        pool: &Pool,
        after: Option<&Candidate>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<Candidate>, Error> {
        let mut start = after.map(|candidate| {
            Item::from([
                ("lobby_id".to_owned(), text(candidate.lobby_id.as_str())),
                ("pool".to_owned(), text(candidate.pool.to_string())),
                ("joinable_from".to_owned(), number(candidate.joinable_from)),
            ])
        });
        let mut candidates = Vec::new();
        loop {
            let query = query(self, &self.tables.lobbies, "#pool = :pool AND #joinable_from <= :now")
                .index_name(CANDIDATES_INDEX)
                .expression_attribute_values(":pool", text(pool.to_string()))
                .expression_attribute_values(":now", number(until))
                .limit(items(limit - candidates.len()))
                .set_exclusive_start_key(start);
            let (page, next) = page::<Candidate>(self, query).await?;
            candidates.extend(page);
            start = next;
            if start.is_none() || candidates.len() >= limit {
                return Ok(candidates);
            }
        }
    }

    /// Up to `limit` lobbies of `pool` with exactly `tags`, in all its shards, that may have a free seat at
    /// `now`, oldest first, however many other lobbies there are.
    ///
    /// One query of the index; 0.5 read units for each started 4 KB. It may lag: each entry may be wrong.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn tagged_candidates(
        &self,
        pool: &Pool,
        tags: &TagDigests,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Candidate>, Error> {
        let query = query(self, &self.tables.lobbies, "#tag_set = :tag_set AND #joinable_from <= :now")
            .index_name(TAGGED_INDEX)
            .expression_attribute_values(":tag_set", text(tag_set(pool, tags)))
            .expression_attribute_values(":now", number(now))
            .limit(items(limit));
        Ok(page(self, query).await?.0)
    }

    /// Up to `limit` lobbies of the `shards` shards of `pool` that should have room for a party of `seats`,
    /// those with the least room first, of equals the oldest.
    ///
    /// One query of the index for each shard; 0.5 read units for each started 4 KB of each. It may lag: each
    /// entry may be wrong.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn roomy(
        &self,
        pool: &Pool,
        shards: u32,
        seats: u32,
        limit: usize,
    ) -> Result<Vec<Candidate>, Error> {
        let in_shards = (0..shards).map(|shard| self.roomy_in_shard(pool.in_shard(shard), seats, limit));
        let mut candidates = try_join_all(in_shards).await?.concat();
        candidates.sort_by_key(|candidate| candidate.room);
        candidates.truncate(limit);
        Ok(candidates)
    }

    /// The same of one shard, which `pool` names.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn roomy_in_shard(
        &self,
        pool: Pool,
        seats: u32,
        limit: usize,
    ) -> Result<Vec<Candidate>, Error> {
        let query = query(self, &self.tables.lobbies, "#pool = :pool AND #room >= :room")
            .index_name(ROOMY_INDEX)
            .expression_attribute_values(":pool", text(pool.to_string()))
            .expression_attribute_values(":room", number(Room::of(seats)))
            .limit(items(limit));
        Ok(page(self, query).await?.0)
    }

    /// The lobbies of `ids` that exist, in no order, eventually consistent. One call for each 100, 0.5 read
    /// units each.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn lobbies(&self, ids: &[LobbyId]) -> Result<Vec<Lobby>, Error> {
        self.read_lobbies(ids, false).await
    }

    /// The lobbies of `ids` that exist, in no order, as they now are. One call for each 100, one read unit
    /// each.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn lobbies_as_they_are(&self, ids: &[LobbyId]) -> Result<Vec<Lobby>, Error> {
        self.read_lobbies(ids, true).await
    }

    async fn read_lobbies(&self, ids: &[LobbyId], is_consistent: bool) -> Result<Vec<Lobby>, Error> {
        let keys = ids.iter().map(lobby_item).collect();
        let items = self.batch_get(&self.tables.lobbies, keys, is_consistent);
        items.await?.into_iter().map(from_item).collect()
    }

    /// The lobby `id` as it now is; consistent, one read unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn lobby(&self, id: &LobbyId) -> Result<Option<Lobby>, Error> {
        self.read(&self.tables.lobbies, lobby_item(id), true).await
    }

    /// A page of the live lobbies of `server`, oldest first, at most `limit`, after `cursor`: their ids. One
    /// query of the index, 0.5 read units for each started 4 KB; eventually consistent.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn lobbies_of_server(
        &self,
        server: &ServerKey,
        cursor: Option<&LobbyCursor>,
        limit: usize,
    ) -> Result<LobbyPage, Error> {
        let start = cursor.map(|cursor| {
            Item::from([
                ("server".to_owned(), text(server.to_string())),
                ("created_at".to_owned(), number(cursor.created_at)),
                ("lobby_id".to_owned(), text(cursor.lobby_id.as_str())),
            ])
        });
        let query = query(self, &self.tables.lobbies, "#server = :server")
            .index_name(BY_SERVER_INDEX)
            .expression_attribute_values(":server", text(server.to_string()))
            .set_exclusive_start_key(start)
            .limit(items(limit));
        let (keys, next) = page::<LobbyCursor>(self, query).await?;
        Ok(LobbyPage {
            lobby_ids: keys.into_iter().map(|key| key.lobby_id).collect(),
            next: next.map(from_item).transpose()?,
        })
    }

    /// Hides a full lobby from the index until its first seat lapses. This is only a hint.
    ///
    /// Does nothing when the lobby is no longer full. One write unit, and two of the index.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn hide_full_lobby(&self, lobby: &Lobby) -> Result<(), Error> {
        // Later seats lapse later, so a concurrent hint is at least as late as this one, unless a player left
        // a seat meanwhile, whose next holder may lapse before all others.
        let wrong =
            if lobby.is_hidden_too_long() { "#joinable_from > :lapse" } else { "#joinable_from < :lapse" };
        let condition = format!("#taken >= #max_players AND {wrong} AND {}", unvacated_since(lobby));
        let write = self
            .on_lobby(&lobby.lobby_id)
            .change(if lobby.room.is_some() && lobby.room_with(lobby.taken).is_none() {
                "SET #joinable_from = :lapse REMOVE #room"
            } else {
                "SET #joinable_from = :lapse"
            })
            .when(condition)
            .with(":lapse", number(lobby.first_lapse()))
            .with(":vacated_at", lobby.vacated_at.map(number));
        self.update::<Lobby>(write).await.map(|_| ())
    }

    /// Hides a lobby whose server's lease lapsed from the index until a heartbeat extends the lease. This is
    /// only a hint. One write unit, and two of the index.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn hide_dead_lobby(&self, lobby_id: &LobbyId, now: Timestamp) -> Result<(), Error> {
        let write = self
            .on_lobby(lobby_id)
            .change("SET #joinable_from = :never REMOVE #room")
            .when("#lease_until <= :now AND attribute_exists(#joinable_from)")
            .with(":now", number(now));
        self.update::<Lobby>(write).await.map(|_| ())
    }

    /// Notes at which place the index of lobbies with room for parties shows `lobby` at `now`. This is only a
    /// hint.
    ///
    /// Does nothing when another number of seats is taken since it was read, nor hides a lobby that became
    /// ready since. One write unit, and one or two of the index.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn note_room(&self, lobby: &Lobby, now: Timestamp) -> Result<(), Error> {
        let room = lobby.room_at(now);
        let change = if room.is_some() { "SET #room = :room" } else { "REMOVE #room" };
        let unless = if room.is_some() { "attribute_exists(#joinable_from)" } else { "#stage = :stage" };
        let write = self
            .on_lobby(&lobby.lobby_id)
            .change(change)
            .when(format!("#taken = :taken AND {unless}"))
            .with(":taken", number(lobby.taken))
            .with(":stage", if room.is_none() { Some(to_value(lobby.stage)?) } else { None })
            .with(":room", room.map(number));
        self.update::<Lobby>(write).await.map(|_| ())
    }
}
