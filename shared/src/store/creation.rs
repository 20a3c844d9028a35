//! Creating a lobby: one transaction takes a place on a game server and writes the lobby with its first seat,
//! so a crash leaves nothing to clean up (I4).
//!
//! The limit of lobbies is allotted to servers in blocks ([`super::allotment`]). While the server has some of
//! its block left, a creation writes nothing that all creations of the namespace share. Otherwise the same
//! transaction allots the next block (I2).
//!
//! A burst is the lobbies that simultaneous finds with the same criteria create together. Its head, one item
//! for each criteria, names the burst's first lobby. A find replaces the head only if it saw nothing joinable
//! and the last burst is older than [`BURST_WINDOW`] or exhausted. A find that loses this election draws a
//! position: position p belongs to lobby p / capacity, whose identifier every find computes from the head's
//! secret (I9, decision 22). In modes with parties the head also lists how many positions each find drew
//! (decision 73). A creation that comes late for its burst checks in its own transaction that the head still
//! names the burst.
//!
//! When a seat becomes free in a full lobby, or a lobby reopens, the head announces it as if a burst began
//! there, unless one is under way. Finds to which the index does not show the seat yet go there.

use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, CancellationReason};
use serde::Deserialize;
use serde_json::value::to_raw_value;

use crate::{
    base::ambient::Timestamp,
    models::{
        errors::Error,
        ids::{BurstSecret, LobbyId},
        lobby::Lobby,
        lobby_config::LobbyConfig,
        pool::{Pool, Tags},
        server::Server,
        tag_digests::TagDigests,
    },
    store::{
        client::Store,
        conflicts::refused,
        items::{Item, from_item, number, text, to_item},
        keys::{digest_of, pk_item, tag_set},
        lobby_data::{Part as DataPart, data_item},
        writes::Write,
    },
};

/// How long a burst's lobbies may be unknown to the index of candidates. Within it, a find that sees nothing
/// joinable must read the head. After it, the find believes the index.
pub const BURST_WINDOW: Duration = Duration::from_secs(2);
/// A burst younger than this may be unknown to the index, so its newcomers share it by position, and nobody
/// replaces it. An older one whose lobbies the index does not show is most likely full.
pub const YOUNG_BURST_AGE: Duration = Duration::from_millis(300);
/// How long a head is kept after its last burst; long past any use.
const HEAD_LIFE: Duration = Duration::from_secs(3_600);

/// The criteria that lobbies of one burst share, as the key of its head.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeadKey(String);

impl HeadKey {
    /// The key for lobbies of `pool` with exactly `tags` and `max_players` seats.
    #[must_use]
    pub fn new(pool: &Pool, tags: &TagDigests, max_players: u32) -> Self {
        Self(format!("head/{}", digest_of(&serde_json::json!([pool.whole(), tags, max_players]))))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A burst as its head names it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Burst {
    /// The burst's first lobby.
    pub first: LobbyId,
    /// The secret from which the identifiers of its other lobbies follow: a player who knows some must not
    /// learn the others.
    pub secret: BurstSecret,
    /// When it began.
    pub opened_at: Timestamp,
    /// Positions drawn, one for each seat, the creator's included.
    pub positions: u32,
    /// Positions of each find, in the order in which they drew; `None` in modes without parties, whose finds
    /// draw one each. Of an announcement, the first are those of the seats taken.
    #[serde(default)]
    pub draws: Option<Vec<u32>>,
    /// Whether it is an announced lobby with a free seat instead of a burst of creations.
    #[serde(default)]
    pub is_announced: bool,
}

impl Burst {
    /// Its `nth` lobby, counted from 0.
    #[must_use]
    pub fn lobby(&self, nth: u32) -> LobbyId {
        self.first.sibling(&self.secret, nth)
    }
}

/// A burst to begin, unless one is younger than [`BURST_WINDOW`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// The criteria.
    pub key: HeadKey,
    /// The secret of the new burst.
    pub secret: BurstSecret,
    /// The positions of the find that begins it.
    pub positions: u32,
    /// Whether its mode has parties.
    pub has_parties: bool,
    /// A burst seen exhausted, which the new one may replace until more positions are drawn than it has.
    pub exhausted: Option<Burst>,
}

/// A burst that a late creation renews, unless another burst has replaced it: its other finds, and the index,
/// need as long again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The criteria.
    pub key: HeadKey,
    /// The burst's first lobby.
    pub first: LobbyId,
}

/// The result of beginning a burst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BurstOutcome {
    /// It has begun. The caller has its first position and creates its first lobby.
    Begun(Burst),
    /// Another burst is under way.
    Outrun(Burst),
}

/// A lobby to be created, with everything that the transaction checks.
#[derive(Clone, Debug)]
pub struct Creation {
    /// The lobby as it will be, its first seat taken.
    pub lobby: Lobby,
    /// The server chosen, as it was last seen.
    pub server: Server,
    /// Lobbies that the namespace may hold.
    pub lobby_count_max: u32,
    /// How many of them to allot to the server with this creation, if any.
    pub block: Option<u32>,
    /// Whether the server is requested with it, and the most servers that its placement pool then may have.
    pub requests: Option<u32>,
    /// The burst that it renews, if it comes late.
    pub renewal: Option<Renewal>,
    /// Its tags, of which the lobby itself has the digests.
    pub tags: Tags,
    /// Its creator's configuration.
    pub config: Option<LobbyConfig>,
}

/// The result of a creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreationOutcome {
    /// The lobby exists, its first seat taken.
    Created,
    /// An earlier attempt created it, perhaps on another server, but its response was lost. The lobby as it
    /// is.
    CreatedBefore(Box<Lobby>),
    /// Another find created this very lobby. The lobby as it is.
    Exists(Box<Lobby>),
    /// Another burst has replaced the one to renew.
    Replaced(Burst),
    /// Less than the block is left of the namespace's `lobby_count_max`.
    AtCap,
    /// The placement pool has as many servers as it may have.
    AtServerMax,
    /// The server has no such place (any more). The server as it is, unless it is gone.
    NoPlace(Option<Box<Server>>),
    /// Other writes were under way on the same items.
    Conflict {
        /// Whether a write to the server's item was one of them.
        is_at_server: bool,
    },
}

impl CreationOutcome {
    /// Whether this creation certainly took no seat.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        !matches!(self, Self::Created | Self::CreatedBefore(_))
    }
}

/// The transaction's parts, in its order. The last two are optional.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Lobby,
    Server,
    Head,
    Allotment,
}

impl Store {
    /// Creates a lobby, or returns why it cannot.
    ///
    /// One transaction: 2 write units for each of lobby (and 1 for each of its two indexes, with tags three),
    /// server, the head when it renews a burst, the ledger when a block is allotted or the server requested,
    /// and for each KB of tags and of a configuration. A retry is harmless, since the lobby's identifier
    /// decides.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`]; the lobby may exist all the same, and its reservation then
    /// lapses.
    pub async fn create_lobby(&self, creation: &Creation, now: Timestamp) -> Result<CreationOutcome, Error> {
        let Creation { lobby, server, lobby_count_max, block, requests, renewal, tags, config } = creation;
        let namespace_id = &lobby.pool.namespace_id;
        let mut kinds = vec![Part::Lobby, Part::Server];
        let place = match requests {
            Some(_) => self.put_requested(server, *block, *lobby_count_max, now)?,
            None => self.take_place(server, *block, *lobby_count_max, now),
        };
        let mut parts = vec![self.put_lobby(lobby)?, place];
        if let Some(renewal) = renewal {
            kinds.push(Part::Head);
            parts.push(self.renew_head(renewal, now));
        }
        if let Some(block) = block {
            kinds.push(Part::Allotment);
            parts.push(match requests {
                Some(most) => self.allot_and_count(&server.pool(), *block, (*lobby_count_max, *most)),
                None => self.allot(namespace_id, *block, *lobby_count_max),
            });
        }
        let tags = Some(tags).filter(|tags| !tags.is_empty()).map(to_raw_value).transpose();
        let tags = tags.map_err(|error| Error::Bug(format!("tags did not serialize: {error}")))?;
        let data =
            [(DataPart::Tags, tags.as_deref()), (DataPart::Config, config.as_ref().map(LobbyConfig::json))];
        for (part, json) in data.into_iter().filter_map(|(part, json)| Some((part, json?))) {
            parts.push(Write::put(&self.tables.lobby_data, data_item(&lobby.lobby_id, part, json)));
        }
        match self.transact(parts).await? {
            Ok(()) => Ok(CreationOutcome::Created),
            Err(reasons) => read_refusal(&reasons, &kinds, creation),
        }
    }

    /// Begins a burst. The caller that begins it creates its first lobby `first`. Where the head takes no
    /// more writes, it tries again after a random time of up to `patience`, then of up to twice as long, and
    /// so on. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn begin_burst(
        &self,
        beginning: &Beginning,
        first: &LobbyId,
        patience: Duration,
        now: Timestamp,
    ) -> Result<BurstOutcome, Error> {
        let write = self.replace_head(beginning, first, false, now).patiently(patience);
        match self.update::<Burst>(write).await? {
            Ok(burst) => Ok(BurstOutcome::Begun(burst)),
            // An earlier attempt of the same write succeeded, but its response was lost. Others may have
            // drawn positions since.
            Err(Some(burst)) if burst.first == *first => {
                let draws = burst.draws.map(|draws| draws.into_iter().take(1).collect());
                Ok(BurstOutcome::Begun(Burst { positions: beginning.positions, draws, ..burst }))
            }
            Err(Some(burst)) => Ok(BurstOutcome::Outrun(burst)),
            Err(None) => Err(Error::Bug("no head refused to begin a burst".to_owned())),
        }
    }

    /// The burst that the head `key` names now, if any. One consistent read unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn burst(&self, key: &HeadKey) -> Result<Option<Burst>, Error> {
        self.read(&self.tables.ledger, pk_item(key.0.as_str()), true).await
    }

    /// Draws a position in `burst` for each of so many `seats`. Returns the burst, whose `positions` count
    /// these last, or the burst that replaced it, if any. It has as much `patience` as [`Self::begin_burst`].
    ///
    /// One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn draw_positions(
        &self,
        key: &HeadKey,
        burst: &Burst,
        seats: u32,
        patience: Duration,
    ) -> Result<Result<Burst, Option<Burst>>, Error> {
        let change = if burst.draws.is_some() {
            "SET #positions = #positions + :drawn, #draws = list_append(#draws, :draws)"
        } else {
            "SET #positions = #positions + :drawn"
        };
        let call = self
            .on_ledger(&key.0)
            .change(change)
            .when("#first = :first")
            .with(":first", text(burst.first.as_str()))
            .with(":drawn", number(seats))
            .with(":draws", burst.draws.as_ref().map(|_| AttributeValue::L(vec![number(seats)])))
            .patiently(patience);
        self.update(call).await
    }

    /// Announces at the head `key` of the lobby's criteria that `lobby` has a free seat again, which the
    /// index may not show yet, so that finds about to create go there, as to a burst. This is only a hint,
    /// and changes nothing while a burst is under way. Returns when the head's burst began: until that is
    /// [`BURST_WINDOW`] old, the head accepts no other announcement.
    ///
    /// One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn announce_free_seat(
        &self,
        key: HeadKey,
        secret: BurstSecret,
        lobby: &Lobby,
        now: Timestamp,
    ) -> Result<Timestamp, Error> {
        let (positions, has_parties) = (lobby.taken, lobby.party_size_max.is_some());
        let beginning = Beginning { key, secret, positions, has_parties, exhausted: None };
        let write = self.replace_head(&beginning, &lobby.lobby_id, true, now);
        Ok(match self.update::<Burst>(write).await? {
            Ok(burst) | Err(Some(burst)) => burst.opened_at,
            Err(None) => now,
        })
    }

    fn put_lobby(&self, lobby: &Lobby) -> Result<Write, Error> {
        let mut item = to_item(lobby)?;
        if !lobby.tag_digests.is_empty() {
            item.insert("tag_set".to_owned(), text(tag_set(&lobby.pool, &lobby.tag_digests)));
        }
        Ok(Write::put(&self.tables.lobbies, item).when("attribute_not_exists(#lobby_id)"))
    }

    /// Requests a server, whose first lobby it is.
    fn put_requested(
        &self,
        server: &Server,
        block: Option<u32>,
        lobby_count_max: u32,
        now: Timestamp,
    ) -> Result<Write, Error> {
        let server = server.clone().with_another(block, lobby_count_max);
        let is_full = server.used >= server.capacity;
        let free_from = if is_full { server.look_again(now) } else { server.free_from };
        let item = to_item(&Server { free_from, ..server })?;
        Ok(Write::put(&self.tables.servers, item).when("attribute_not_exists(#server)"))
    }

    /// Takes a place. The last one also takes the server out of the index: the server as last seen suggests
    /// which place it is, and the condition makes sure. A record that expires gives no place, since the place
    /// would expire with it.
    fn take_place(&self, server: &Server, block: Option<u32>, lobby_count_max: u32, now: Timestamp) -> Write {
        let last = server.capacity.saturating_sub(1);
        let is_last = server.used >= last;
        let (hide, places) =
            if is_last { (", #free_from = :later", "#used = :last") } else { ("", "#used < :last") };
        let (allot, allotted) = match block {
            Some(0) => (", #cap_checked = :cap", " AND #used < #allotted"),
            // As seen, so that of many finds that saw it exhausted only one brings it a block.
            Some(_) => {
                (", #allotted = #allotted + :block, #cap_checked = :cap", " AND #allotted = :allotted")
            }
            None => ("", " AND #used < #allotted AND #cap_checked = :cap"),
        };
        let condition = format!(
            "{places}{allotted} AND #capacity = :capacity AND #registration = :registration AND #lease_until > :now \
             AND attribute_not_exists(#expires_at)"
        );
        let block = block.filter(|block| *block > 0);
        self.on_server(&server.server)
            .change(format!("SET #used = #used + :one{allot}{hide}"))
            .when(condition)
            .with(":last", number(last))
            .with(":capacity", number(server.capacity))
            .with(":cap", number(lobby_count_max))
            .with(":registration", text(server.registration.as_str()))
            .with(":now", number(now))
            .with(":later", is_last.then(|| number(server.look_again(now))))
            .with(":block", block.map(number))
            .with(":allotted", block.map(|_| number(server.allotted)))
    }

    /// Replaces the head: by a burst that begins with the lobby `first`, or by an announcement of `first`.
    fn replace_head(
        &self,
        beginning: &Beginning,
        first: &LobbyId,
        is_announced: bool,
        now: Timestamp,
    ) -> Write {
        let Beginning { key, secret, positions, has_parties, exhausted } = beginning;
        let stale = "attribute_not_exists(#first) OR #opened_at <= :stale";
        let condition = match exhausted {
            Some(_) => {
                format!("{stale} OR (#first = :seen AND #opened_at = :seen_at AND #positions <= :drawn)")
            }
            None => stale.to_owned(),
        };
        let draws = if *has_parties { ", #draws = :draws" } else { "" };
        let change = format!(
            "SET #first = :new, #secret = :secret, #opened_at = :now, #positions = :drawn_first, \
             #is_announced = :announced, #expires_at = :expiry{draws}"
        );
        let seen = exhausted.as_ref();
        self.on_ledger(&key.0)
            .change(change)
            .when(condition)
            .with(":new", text(first.as_str()))
            .with(":secret", text(secret.reveal()))
            .with(":now", number(now))
            .with(":drawn_first", number(positions))
            .with(":draws", has_parties.then(|| AttributeValue::L(vec![number(positions)])))
            .with(":announced", AttributeValue::Bool(is_announced))
            .with(":expiry", number((now + HEAD_LIFE).secs()))
            .with(":stale", number(now.before(BURST_WINDOW)))
            .with(":seen", seen.map(|burst| text(burst.first.as_str())))
            .with(":seen_at", seen.map(|burst| number(burst.opened_at)))
            .with(":drawn", seen.map(|burst| number(burst.positions)))
    }

    /// Renews a burst, if the head still names it.
    fn renew_head(&self, Renewal { key, first }: &Renewal, now: Timestamp) -> Write {
        self.on_ledger(&key.0)
            .change("SET #opened_at = :renewed_at, #expires_at = :expiry")
            .when("#first = :first")
            .with(":first", text(first.as_str()))
            .with(":renewed_at", number(now))
            .with(":expiry", number((now + HEAD_LIFE).secs()))
    }
}

/// The refusal that counts most: an existing lobby has a seat to offer, a later burst leads to one, and the
/// cap counts before servers (decision 29).
fn read_refusal(
    reasons: &[CancellationReason],
    kinds: &[Part],
    creation: &Creation,
) -> Result<CreationOutcome, Error> {
    let position = |part: Part| kinds.iter().position(|kind| *kind == part);
    let reason = |part: Part| reasons.get(position(part)?);
    let refused = |part: Part| refused(reasons, position(part)?);
    let item =
        |reason: &CancellationReason| -> Option<Item> { reason.item.clone().filter(|item| !item.is_empty()) };
    if let Some(reason) = refused(Part::Lobby) {
        let item = item(reason).ok_or_else(|| Error::Bug("a refused put returned no item".to_owned()))?;
        let lobby: Box<Lobby> = Box::new(from_item(item)?);
        let is_own = creation.lobby.reserved.keys().any(|seat| lobby.reserved.contains_key(seat));
        return Ok(if is_own {
            CreationOutcome::CreatedBefore(lobby)
        } else {
            CreationOutcome::Exists(lobby)
        });
    }
    if let Some(reason) = refused(Part::Head)
        && let Some(item) = item(reason)
    {
        return Ok(CreationOutcome::Replaced(from_item(item)?));
    }
    let no_place = |reason| -> Result<_, Error> {
        Ok(CreationOutcome::NoPlace(item(reason).map(from_item).transpose()?.map(Box::new)))
    };
    // One that was to be requested and is there may have a place, whatever else may be requested.
    if let Some(reason) = refused(Part::Server).filter(|_| creation.requests.is_some()) {
        return no_place(reason);
    }
    if let Some(reason) = refused(Part::Allotment) {
        let counted = item(reason).map(|item| Store::counted_servers(&creation.server.pool(), &item));
        let is_at_max = creation.requests.is_some_and(|most| counted.is_some_and(|counted| counted >= most));
        return Ok(if is_at_max { CreationOutcome::AtServerMax } else { CreationOutcome::AtCap });
    }
    if let Some(reason) = refused(Part::Server) {
        return no_place(reason);
    }
    // The other codes are transient: TransactionConflict, ThrottlingError, ProvisionedThroughputExceeded.
    let is_at_server = reason(Part::Server).is_some_and(|reason| reason.code() != Some("None"));
    Ok(CreationOutcome::Conflict { is_at_server })
}
