//! Creating a lobby: one transaction takes its place in the namespace's count, a place on a game server and the head of
//! its burst, and puts the lobby with its first seat. All or nothing, so a crash leaves nothing to clean up (I2, I4).
//!
//! A burst is the lobbies that simultaneous finds with the same criteria create together. Its head is elected: one item
//! per criteria names the burst's first lobby, and is replaced only by whoever saw that nothing is joinable, when it is
//! older than [`BURST_WINDOW`] or exhausted. Finds that lose the election draw positions from the head: position p
//! belongs to lobby p / capacity of the burst, whose identifier everybody computes alike. So a hundred finds at one
//! instant make ten lobbies of ten, not a hundred (I9).

use std::time::Duration;

use aws_sdk_dynamodb::{
    operation::{transact_write_items::TransactWriteItemsError, update_item::UpdateItemError},
    types::{
        AttributeValue, CancellationReason, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
        Update,
    },
};
use ring::digest::{SHA256, digest};
use serde::Deserialize;

use super::{
    Item, Store,
    expressions::names,
    failure, from_item,
    lobby_data::{Part as DataPart, data_item},
    number,
    servers::Server,
    text, to_item,
};
use crate::{
    ambient::Timestamp,
    errors::Error,
    ids::{LobbyId, NamespaceId},
    lobby::Lobby,
    models::{Pool, Tags},
    rules::lobby_config::LobbyConfig,
};

/// How long a burst's lobbies may be unknown to the index of candidates. Within it, who finds nothing joinable must
/// ask the head; after it, the index is believed.
pub const BURST_WINDOW: Duration = Duration::from_secs(2);
/// How long a head is kept after its last burst; long past any use.
const HEAD_LIFE: Duration = Duration::from_secs(3_600);

/// The criteria that lobbies of one burst share, as the key of its head.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeadKey(String);

impl HeadKey {
    /// The key for lobbies of `pool` with exactly `tags` and `max_players` seats.
    #[must_use]
    pub fn new(pool: &Pool, tags: &Tags, max_players: u32) -> Self {
        let criteria = serde_json::json!([pool, tags, max_players]).to_string();
        let digest = digest(&SHA256, criteria.as_bytes());
        let hex: String = digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Self(format!("head/{hex}"))
    }
}

/// A burst as its head names it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Burst {
    /// The burst's first lobby.
    pub first: LobbyId,
    /// When it began.
    pub opened_at: Timestamp,
    /// Positions drawn, the creator's included.
    pub positions: u32,
    /// Whether it is no burst of creations, but a lobby in which a seat became free.
    #[serde(default)]
    pub is_announced: bool,
}

/// How a creation stands to its burst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Election {
    /// It begins a new burst, unless one is younger than [`BURST_WINDOW`].
    Begin(HeadKey),
    /// As above, and also when the head still is exactly this burst, which was seen exhausted.
    Replace(HeadKey, Burst),
    /// It creates a later lobby of the burst that it drew a position of.
    Drawn,
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
    /// The election.
    pub election: Election,
    /// What its creator configured.
    pub config: Option<LobbyConfig>,
}

/// What became of a creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreationOutcome {
    /// The lobby exists, its first seat taken.
    Created,
    /// Somebody created this very lobby; as it is.
    Exists(Box<Lobby>),
    /// Another burst is going on.
    Outrun(Burst),
    /// The namespace holds its `lobby_count_max` lobbies.
    AtCap,
    /// The server has no such place (any more); as it is, unless it is gone.
    NoPlace(Option<Box<Server>>),
    /// Another transaction was under way on the same items.
    Conflict,
}

/// The transaction's parts, in its order.
#[derive(Clone, Copy)]
enum Part {
    Lobby,
    Count,
    Server,
    Head,
}

fn count_key(namespace_id: &NamespaceId) -> String {
    format!("live/{namespace_id}")
}

impl Store {
    /// Creates a lobby, or says what stands against it.
    ///
    /// One transaction: 2 write units for each of lobby (and 1 for each of its two indexes), count, server and, unless
    /// drawn, head, and for each KB of a configuration. Repeating it is harmless: the lobby's identifier decides.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`]; the lobby may exist all the same, its reservation then lapses.
    pub async fn create_lobby(&self, creation: &Creation, now: Timestamp) -> Result<CreationOutcome, Error> {
        let Creation { lobby, server, lobby_count_max, election, config } = creation;
        let mut parts = vec![
            TransactWriteItem::builder().put(self.put_lobby(lobby)?).build(),
            update(self.count_lobby(&lobby.pool.namespace_id, *lobby_count_max))?,
            update(self.take_place(server, now))?,
        ];
        match election {
            Election::Begin(key) => parts.push(update(self.begin_burst(key, None, lobby, now))?),
            Election::Replace(key, burst) => {
                parts.push(update(self.begin_burst(key, Some(burst), lobby, now))?)
            }
            Election::Drawn => {}
        }
        if let Some(config) = config {
            let put = Put::builder()
                .table_name(&self.tables.lobby_data)
                .set_item(Some(data_item(&lobby.lobby_id, DataPart::Config, config.json())))
                .build()
                .map_err(|error| Error::Bug(error.to_string()))?;
            parts.push(TransactWriteItem::builder().put(put).build());
        }
        let part_count = parts.len();
        let call = self
            .client
            .transact_write_items()
            .set_transact_items(Some(parts))
            .return_consumed_capacity(self.meter.mode());
        match call.send().await {
            Ok(answer) => {
                self.meter.wrote(answer.consumed_capacity());
                Ok(CreationOutcome::Created)
            }
            Err(error) => match error.as_service_error() {
                Some(TransactWriteItemsError::TransactionCanceledException(canceled)) => {
                    self.meter.refused(2.0 * part_count as f64);
                    read_refusal(canceled.cancellation_reasons(), lobby)
                }
                _ => Err(failure(&error)),
            },
        }
    }

    /// Draws a position in `burst`: the burst whose `positions` count this one last. `None` when another replaced it.
    ///
    /// One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn draw_position(&self, key: &HeadKey, burst: &Burst) -> Result<Option<Burst>, Error> {
        let change = "SET #positions = #positions + :one";
        let condition = "#first = :first";
        let call = self
            .client
            .update_item()
            .table_name(&self.tables.ledger)
            .key("pk", text(&key.0))
            .update_expression(change)
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names(&[change, condition])))
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":first", text(burst.first.as_str()));
        Ok(self.update(call).await?.ok())
    }

    /// Tells the head of the lobby's criteria that `lobby` has a free seat again, which the index may not know yet: finds
    /// that are about to create are sent there, as to a burst. Left alone while a burst is going on; a hint, no more.
    ///
    /// One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn announce_free_seat(&self, lobby: &Lobby, now: Timestamp) -> Result<(), Error> {
        let key = HeadKey::new(&lobby.pool, &lobby.tags, lobby.max_players);
        let head = self
            .begin_burst(&key, None, lobby, now)
            .expression_attribute_values(":announced", AttributeValue::Bool(true))
            .expression_attribute_values(":drawn_first", number(lobby.taken));
        let head = head.build().map_err(|error| Error::Bug(error.to_string()))?;
        let call = self
            .client
            .update_item()
            .table_name(head.table_name())
            .set_key(Some(head.key().clone()))
            .update_expression(head.update_expression())
            .set_condition_expression(head.condition_expression().map(ToOwned::to_owned))
            .set_expression_attribute_names(head.expression_attribute_names().cloned())
            .set_expression_attribute_values(head.expression_attribute_values().cloned())
            .return_consumed_capacity(self.meter.mode());
        match call.send().await {
            Ok(answer) => {
                self.meter.wrote(answer.consumed_capacity());
                Ok(())
            }
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(_)) => {
                    self.meter.refused(1.0);
                    Ok(())
                }
                _ => Err(failure(&error)),
            },
        }
    }

    /// Lobbies of the namespace that have not ended. One consistent read unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn live_lobby_count(&self, namespace_id: &NamespaceId) -> Result<u32, Error> {
        #[derive(Deserialize)]
        struct Count {
            live: u32,
        }
        let key = Item::from([("pk".to_owned(), text(count_key(namespace_id)))]);
        let count: Option<Count> = self.read(&self.tables.ledger, key).await?;
        Ok(count.map_or(0, |count| count.live))
    }

    /// The change that gives a namespace's count of live lobbies one back.
    pub(super) fn uncount_lobby(
        &self,
        namespace_id: &NamespaceId,
    ) -> aws_sdk_dynamodb::types::builders::UpdateBuilder {
        let change = "SET #live = #live - :one";
        let condition = "#live > :zero";
        Update::builder()
            .table_name(&self.tables.ledger)
            .key("pk", text(count_key(namespace_id)))
            .update_expression(change)
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names(&[change, condition])))
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":zero", number(0))
    }

    fn put_lobby(&self, lobby: &Lobby) -> Result<Put, Error> {
        Put::builder()
            .table_name(&self.tables.lobbies)
            .set_item(Some(to_item(lobby)?))
            .condition_expression("attribute_not_exists(#lobby_id)")
            .expression_attribute_names("#lobby_id", "lobby_id")
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .map_err(|error| Error::Bug(error.to_string()))
    }

    fn count_lobby(
        &self,
        namespace_id: &NamespaceId,
        lobby_count_max: u32,
    ) -> aws_sdk_dynamodb::types::builders::UpdateBuilder {
        let change = "SET #live = if_not_exists(#live, :zero) + :one";
        let condition = "attribute_not_exists(#live) OR #live < :max";
        Update::builder()
            .table_name(&self.tables.ledger)
            .key("pk", text(count_key(namespace_id)))
            .update_expression(change)
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names(&[change, condition])))
            .expression_attribute_values(":zero", number(0))
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":max", number(lobby_count_max))
    }

    /// Takes a place. The last one also takes the server out of the index: which of both it is, the server as last seen
    /// suggests and the condition makes sure.
    fn take_place(
        &self,
        server: &Server,
        now: Timestamp,
    ) -> aws_sdk_dynamodb::types::builders::UpdateBuilder {
        let last = server.capacity.saturating_sub(1);
        let is_last = server.used >= last;
        let (change, places) = if is_last {
            ("SET #used = #used + :one, #free_from = :never", "#used = :last")
        } else {
            ("SET #used = #used + :one", "#used < :last")
        };
        let condition = format!(
            "{places} AND #capacity = :capacity AND #registration = :registration AND #lease_until > :now"
        );
        let update = Update::builder()
            .table_name(&self.tables.servers)
            .key("server", text(server.server.to_string()))
            .update_expression(change)
            .set_expression_attribute_names(Some(names(&[change, &condition])))
            .condition_expression(condition)
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":last", number(last))
            .expression_attribute_values(":capacity", number(server.capacity))
            .expression_attribute_values(":registration", text(server.registration.as_str()))
            .expression_attribute_values(":now", number(now))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        if is_last { update.expression_attribute_values(":never", number(Timestamp::NEVER)) } else { update }
    }

    fn begin_burst(
        &self,
        key: &HeadKey,
        exhausted: Option<&Burst>,
        lobby: &Lobby,
        now: Timestamp,
    ) -> aws_sdk_dynamodb::types::builders::UpdateBuilder {
        let change = "SET #first = :new, #opened_at = :now, #positions = :drawn_first, #is_announced = :announced, #expires_at = :expiry";
        let stale = "attribute_not_exists(#first) OR #opened_at <= :stale";
        let condition = match exhausted {
            Some(_) => {
                format!("{stale} OR (#first = :seen AND #opened_at = :seen_at AND #positions = :drawn)")
            }
            None => stale.to_owned(),
        };
        let mut update = Update::builder()
            .table_name(&self.tables.ledger)
            .key("pk", text(&key.0))
            .update_expression(change)
            .set_expression_attribute_names(Some(names(&[change, &condition])))
            .condition_expression(condition)
            .expression_attribute_values(":new", text(lobby.lobby_id.as_str()))
            .expression_attribute_values(":now", number(now))
            .expression_attribute_values(":drawn_first", number(1))
            .expression_attribute_values(":announced", AttributeValue::Bool(false))
            .expression_attribute_values(":expiry", number((now + HEAD_LIFE).secs()))
            .expression_attribute_values(":stale", number(now.before(BURST_WINDOW)))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        if let Some(burst) = exhausted {
            update = update
                .expression_attribute_values(":seen", text(burst.first.as_str()))
                .expression_attribute_values(":seen_at", number(burst.opened_at))
                .expression_attribute_values(":drawn", number(burst.positions));
        }
        update
    }
}

pub(super) fn update(
    builder: aws_sdk_dynamodb::types::builders::UpdateBuilder,
) -> Result<TransactWriteItem, Error> {
    let update = builder.build().map_err(|error| Error::Bug(error.to_string()))?;
    Ok(TransactWriteItem::builder().update(update).build())
}

/// The refusal that counts most: an existing lobby has a seat to offer, an outrun election leads to one, and the cap
/// counts before servers (decisions on creation).
fn read_refusal(reasons: &[CancellationReason], wanted: &Lobby) -> Result<CreationOutcome, Error> {
    let refused = |part: Part| {
        reasons.get(part as usize).filter(|reason| reason.code() == Some("ConditionalCheckFailed"))
    };
    let item =
        |reason: &CancellationReason| -> Option<Item> { reason.item.clone().filter(|item| !item.is_empty()) };
    if let Some(reason) = refused(Part::Lobby) {
        let item = item(reason).ok_or_else(|| Error::Bug("a refused put returned no item".to_owned()))?;
        let lobby: Lobby = from_item(item)?;
        // An earlier attempt of the same transaction succeeded unheard.
        let is_own = wanted.reserved.keys().any(|seat| lobby.reserved.contains_key(seat));
        return Ok(if is_own { CreationOutcome::Created } else { CreationOutcome::Exists(Box::new(lobby)) });
    }
    if let Some(reason) = refused(Part::Head)
        && let Some(item) = item(reason)
    {
        return Ok(CreationOutcome::Outrun(from_item(item)?));
    }
    if refused(Part::Count).is_some() {
        return Ok(CreationOutcome::AtCap);
    }
    if let Some(reason) = refused(Part::Server) {
        return Ok(CreationOutcome::NoPlace(item(reason).map(from_item).transpose()?.map(Box::new)));
    }
    // What is left passes by itself: TransactionConflict, ThrottlingError, ProvisionedThroughputExceeded.
    Ok(CreationOutcome::Conflict)
}
