//! The catalogue: games with their regions, namespaces, versions and version history, all of one game together.
//!
//! Partition `GAME#<game>` holds the sort keys `GAME`, `NAME#<name_id>`, `NAMESPACE#<id>`, `CDN#<namespace>` and
//! `VERSION#<id>`; partition `HISTORY#<namespace>` one entry for each change of version, by time; partition
//! `DOMAIN#<host>` the namespace of a domain; partition `GAMENAME#<name_id>` the game of a name.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::{
    operation::{transact_write_items::TransactWriteItemsError, update_item::UpdateItemError},
    types::{AttributeValue, Put, TransactWriteItem},
};
use serde::{Deserialize, Serialize};

use super::{
    Item, Store, deployments::Deployment, expressions::names, failure, from_item, number, text, to_item,
};
use crate::{
    auth::NamespaceRight,
    errors::Error,
    ids::{GameId, NamespaceId, VersionId},
    rules::{bcrypt_hash::BcryptHash, origin::OriginHost},
    settings::{CdnAuthType, Game, Namespace, Version},
};

/// The most users of a namespace's CDN.
pub const CDN_USERS_MAX: usize = 32;

#[derive(Serialize)]
struct Keyed<'a, T> {
    pk: String,
    sk: String,
    #[serde(flatten)]
    value: &'a T,
}

/// The users of a namespace's CDN; an item of its own, so that no find ever reads a hash.
#[derive(Serialize, Deserialize)]
struct CdnUsers {
    users: BTreeMap<String, BcryptHash>,
}

/// The namespace that a domain belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainOwner {
    /// The game.
    pub game_id: GameId,
    /// The namespace.
    pub namespace_id: NamespaceId,
}

/// What became of adding a CDN user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CdnUserOutcome {
    /// The user has the hash.
    Set,
    /// The namespace has its [`CDN_USERS_MAX`] users, and this is none of them.
    TooMany,
}

/// Whether a new name was free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameOutcome {
    /// It was, and is taken now.
    Created,
    /// It is another's.
    Taken,
}

pub(super) fn game_key(game_id: &GameId) -> String {
    format!("GAME#{game_id}")
}

pub(super) fn namespace_key(namespace_id: &NamespaceId) -> String {
    format!("NAMESPACE#{namespace_id}")
}

pub(super) fn version_key(version_id: &VersionId) -> String {
    format!("VERSION#{version_id}")
}

fn cdn_key(namespace_id: &NamespaceId) -> String {
    format!("CDN#{namespace_id}")
}

pub(super) fn key(pk: String, sk: String) -> Item {
    HashMap::from([("pk".to_owned(), text(pk)), ("sk".to_owned(), text(sk))])
}

impl Store {
    /// The game and the namespace together; nothing when either is missing. One call, 0.5 read units each.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn game_and_namespace(
        &self,
        game_id: &GameId,
        namespace_id: &NamespaceId,
    ) -> Result<Option<(Game, Namespace)>, Error> {
        let keys = vec![
            key(game_key(game_id), "GAME".to_owned()),
            key(game_key(game_id), namespace_key(namespace_id)),
        ];
        let (mut game, mut namespace) = (None, None);
        for item in self.batch_get(&self.tables.catalog, keys).await? {
            if item.get("sk") == Some(&text("GAME")) {
                game = Some(from_item(item)?);
            } else {
                namespace = Some(from_item(item)?);
            }
        }
        Ok(game.zip(namespace))
    }

    /// A namespace of a game as it now is. One consistent read unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn namespace(&self, game_id: &GameId, id: &NamespaceId) -> Result<Option<Namespace>, Error> {
        self.catalog_item(game_key(game_id), namespace_key(id)).await
    }

    /// A game as it now is. One consistent read unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn game(&self, game_id: &GameId) -> Result<Option<Game>, Error> {
        self.catalog_item(game_key(game_id), "GAME".to_owned()).await
    }

    /// The game with the name `name_id`. Two consistent read units.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn game_by_name(&self, name_id: &str) -> Result<Option<Game>, Error> {
        #[derive(Deserialize)]
        struct Owner {
            game_id: GameId,
        }
        let owner: Option<Owner> =
            self.catalog_item(format!("GAMENAME#{name_id}"), "GAMENAME".to_owned()).await?;
        match owner {
            Some(owner) => self.game(&owner.game_id).await,
            None => Ok(None),
        }
    }

    /// A version of a game; immutable. One consistent read unit for each started 4 KB.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn version(&self, game_id: &GameId, id: &VersionId) -> Result<Option<Version>, Error> {
        self.catalog_item(game_key(game_id), version_key(id)).await
    }

    /// The namespace that the domain `host` is registered for. One consistent read unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn domain_owner(&self, host: &OriginHost) -> Result<Option<DomainOwner>, Error> {
        self.catalog_item(format!("DOMAIN#{host}"), "DOMAIN".to_owned()).await
    }

    /// The namespaces of a game. One query; all of the game's namespaces are read.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn namespaces(&self, game_id: &GameId) -> Result<Vec<Namespace>, Error> {
        self.of_game(game_id, "NAMESPACE#").await
    }

    /// The versions of a game. One query; all of the game's versions are read.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn versions(&self, game_id: &GameId) -> Result<Vec<Version>, Error> {
        self.of_game(game_id, "VERSION#").await
    }

    /// Sets how many lobbies a namespace may hold, and how many seats one of its clients. One write unit.
    ///
    /// # Errors
    /// [`Error::NamespaceNotFound`] when the namespace has gone meanwhile; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn set_matchmaker_config(
        &self,
        right: &NamespaceRight,
        lobby_count_max: u32,
        max_players_per_client: u32,
    ) -> Result<(), Error> {
        let change = "SET #lobby_count_max = :lobbies, #max_players_per_client = :players";
        let values = [(":lobbies", number(lobby_count_max)), (":players", number(max_players_per_client))];
        self.update_namespace(right, change, values).await
    }

    /// Sets how the CDN of a namespace authenticates. One write unit.
    ///
    /// # Errors
    /// [`Error::NamespaceNotFound`] when the namespace has gone meanwhile; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn set_cdn_auth_type(
        &self,
        right: &NamespaceRight,
        auth_type: CdnAuthType,
    ) -> Result<(), Error> {
        let auth_type =
            serde_dynamo::to_attribute_value(auth_type).map_err(|error| Error::Bug(error.to_string()))?;
        self.update_namespace(right, "SET #cdn_auth_type = :auth_type", [(":auth_type", auth_type)]).await
    }

    async fn update_namespace(
        &self,
        right: &NamespaceRight,
        change: &str,
        values: impl IntoIterator<Item = (&'static str, AttributeValue)>,
    ) -> Result<(), Error> {
        let condition = "attribute_exists(#sk)";
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value));
        let call = self
            .client
            .update_item()
            .table_name(&self.tables.catalog)
            .set_key(Some(key(game_key(right.game_id()), namespace_key(right.namespace_id()))))
            .update_expression(change)
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names(&[change, condition])))
            .set_expression_attribute_values(Some(values.collect()))
            .return_consumed_capacity(self.meter.mode());
        match call.send().await {
            Ok(answer) => {
                self.meter.wrote(answer.consumed_capacity());
                Ok(())
            }
            Err(error) if is_conditional(error.as_service_error()) => {
                self.meter.refused(1.0);
                Err(Error::NamespaceNotFound)
            }
            Err(error) => Err(failure(&error)),
        }
    }

    /// Gives a CDN user its hash in one conditional write: a new user only below [`CDN_USERS_MAX`], a known one always.
    ///
    /// One write unit for each started KB of users.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn set_cdn_user(
        &self,
        right: &NamespaceRight,
        user: &str,
        hash: &BcryptHash,
    ) -> Result<CdnUserOutcome, Error> {
        let change = "SET #users.#user = :hash";
        let condition = "attribute_exists(#users.#user) OR size(#users) < :max";
        let call = self
            .client
            .update_item()
            .table_name(&self.tables.catalog)
            .set_key(Some(key(game_key(right.game_id()), cdn_key(right.namespace_id()))))
            .update_expression(change)
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names(&[change, condition])))
            .expression_attribute_names("#user", user)
            .expression_attribute_values(":hash", text(hash.reveal()))
            .expression_attribute_values(":max", number(CDN_USERS_MAX))
            .return_consumed_capacity(self.meter.mode());
        match call.send().await {
            Ok(answer) => {
                self.meter.wrote(answer.consumed_capacity());
                Ok(CdnUserOutcome::Set)
            }
            Err(error) if is_conditional(error.as_service_error()) => {
                self.meter.refused(1.0);
                Ok(CdnUserOutcome::TooMany)
            }
            Err(error) => Err(failure(&error)),
        }
    }

    /// The names of a namespace's CDN users, in order; never a hash.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn cdn_users(&self, right: &NamespaceRight) -> Result<Vec<String>, Error> {
        let users: Option<CdnUsers> =
            self.catalog_item(game_key(right.game_id()), cdn_key(right.namespace_id())).await?;
        Ok(users.map(|users| users.users.into_keys().collect()).unwrap_or_default())
    }

    /// Adds a game under a name that no other game has.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn add_game(&self, game: &Game) -> Result<NameOutcome, Error> {
        let name = (format!("GAMENAME#{}", game.name_id), "GAMENAME".to_owned());
        let items = vec![
            self.put_new(name, &HashMap::from([("game_id", &game.game_id)]))?,
            self.put_new((game_key(&game.game_id), "GAME".to_owned()), game)?,
        ];
        self.add(items).await
    }

    /// Adds a version; its identifier is fresh.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn add_version(&self, version: &Version) -> Result<(), Error> {
        let key = (game_key(&version.game_id), version_key(&version.version_id));
        match self.add(vec![self.put_new(key, version)?]).await? {
            NameOutcome::Created => Ok(()),
            NameOutcome::Taken => Err(Error::Bug("a fresh version identifier was taken".to_owned())),
        }
    }

    /// Adds a namespace under a name that no other of its game has, with the first entry of its version history.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn add_namespace(&self, namespace: &Namespace) -> Result<NameOutcome, Error> {
        let partition = game_key(&namespace.game_id);
        let deployment = Deployment {
            namespace_id: namespace.namespace_id.clone(),
            version_id: namespace.version_id.clone(),
            deployed_at: namespace.created_at,
        };
        let name = (partition.clone(), format!("NAME#{}", namespace.name_id));
        let items = vec![
            self.put_new(name, &HashMap::from([("namespace_id", &namespace.namespace_id)]))?,
            self.put_new((partition.clone(), namespace_key(&namespace.namespace_id)), namespace)?,
            self.put_new(
                (partition, cdn_key(&namespace.namespace_id)),
                &CdnUsers { users: BTreeMap::new() },
            )?,
            self.put_new(deployment.key(), &deployment)?,
        ];
        self.add(items).await
    }

    /// Registers `host` for a namespace, unless it is another's.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn add_domain(&self, host: &OriginHost, owner: &DomainOwner) -> Result<NameOutcome, Error> {
        let key = (format!("DOMAIN#{host}"), "DOMAIN".to_owned());
        self.add(vec![self.put_new(key, owner)?]).await
    }

    pub(super) fn put_new(
        &self,
        (pk, sk): (String, String),
        value: &impl Serialize,
    ) -> Result<TransactWriteItem, Error> {
        let put = Put::builder()
            .table_name(&self.tables.catalog)
            .set_item(Some(to_item(&Keyed { pk, sk, value })?))
            .condition_expression("attribute_not_exists(#pk)")
            .expression_attribute_names("#pk", "pk")
            .build()
            .map_err(|error| Error::Bug(error.to_string()))?;
        Ok(TransactWriteItem::builder().put(put).build())
    }

    async fn add(&self, items: Vec<TransactWriteItem>) -> Result<NameOutcome, Error> {
        let count = items.len();
        let call = self
            .client
            .transact_write_items()
            .set_transact_items(Some(items))
            .return_consumed_capacity(self.meter.mode());
        match call.send().await {
            Ok(answer) => {
                self.meter.wrote(answer.consumed_capacity());
                Ok(NameOutcome::Created)
            }
            Err(error) => match error.as_service_error() {
                Some(TransactWriteItemsError::TransactionCanceledException(canceled)) => {
                    self.meter.refused(2.0 * count as f64);
                    let refused = |code| {
                        canceled.cancellation_reasons().iter().any(|reason| reason.code() == Some(code))
                    };
                    if refused("ConditionalCheckFailed") {
                        Ok(NameOutcome::Taken)
                    } else {
                        Err(failure(&error))
                    }
                }
                _ => Err(failure(&error)),
            },
        }
    }

    async fn catalog_item<T: serde::de::DeserializeOwned>(
        &self,
        pk: String,
        sk: String,
    ) -> Result<Option<T>, Error> {
        self.read(&self.tables.catalog, key(pk, sk)).await
    }

    async fn of_game<T: serde::de::DeserializeOwned>(
        &self,
        game_id: &GameId,
        prefix: &str,
    ) -> Result<Vec<T>, Error> {
        let mut found = Vec::new();
        let mut start: Option<HashMap<String, AttributeValue>> = None;
        loop {
            let query = self
                .client
                .query()
                .table_name(&self.tables.catalog)
                .key_condition_expression("#pk = :pk AND begins_with(#sk, :prefix)")
                .expression_attribute_names("#pk", "pk")
                .expression_attribute_names("#sk", "sk")
                .expression_attribute_values(":pk", text(game_key(game_id)))
                .expression_attribute_values(":prefix", text(prefix))
                .set_exclusive_start_key(start)
                .return_consumed_capacity(self.meter.mode());
            let answer = query.send().await.map_err(|error| failure(&error))?;
            self.meter.read(answer.consumed_capacity());
            for item in answer.items.unwrap_or_default() {
                found.push(from_item(item)?);
            }
            start = answer.last_evaluated_key;
            if start.is_none() {
                return Ok(found);
            }
        }
    }
}

fn is_conditional(error: Option<&UpdateItemError>) -> bool {
    error.is_some_and(UpdateItemError::is_conditional_check_failed_exception)
}
