//! The catalogue: games with their regions, namespaces, versions and version history.
//!
//! Partition `GAME#<game>` holds the sort keys `GAME`, `NAME#<name_id>`, `NAMESPACE#<id>`,
//! `CDN#<namespace>`, `VERSION#<id>`, `NUMBER#<number>` for each number that named a version, and, of the
//! same version, `LISTED#<id>`: DynamoDB charges a read for whole items, so a list of versions reads small
//! items, written in the same transaction. Partition `HISTORY#<namespace>` has an entry for each change of
//! version, by time. Partition `DOMAIN#<host>` has the namespace of a domain, `GAMENAME#<name_id>` the game
//! of a name, `TOKENS#<game>` the issued tokens, `ACTIONS#<game>` what operators did.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::{Deserialize, Serialize, de::IgnoredAny};

use crate::{
    models::{
        errors::Error,
        game::{Game, Region},
        ids::{GameId, NamespaceId, RegionId, VersionId},
        namespace::{CdnAuthType, Deployment, Namespace},
        rights::{GameRight, NamespaceRight},
        version::{ListedVersion, Version},
        version_secrets::VersionSecrets,
    },
    rules::origin::OriginHost,
    store::{
        cdn::Cdn,
        client::Store,
        failures::failure,
        items::{Record, from_item, from_items, number, text, to_item, to_value},
        keys::{cdn_key, game_key, key, listed_key, name_key, namespace_item, namespace_key, version_key},
        listing::all_pages,
        queries::{page, query},
        writes::Write,
    },
};

#[derive(Serialize)]
pub(super) struct Keyed<'a, T> {
    pub pk: String,
    pub sk: String,
    #[serde(flatten)]
    pub value: &'a T,
}

/// The namespace of a domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainOwner {
    /// The game.
    pub game_id: GameId,
    /// The namespace.
    pub namespace_id: NamespaceId,
}

/// The game with a name.
#[derive(Debug, Deserialize)]
pub(super) struct NameOwner {
    game_id: GameId,
}

/// Whether a new name was free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameOutcome {
    /// It was free, and now has its owner.
    Created,
    /// Another game or namespace has it.
    Taken,
}

impl GameRight {
    /// The right to a namespace of the game, which exists.
    ///
    /// # Errors
    /// [`Error::NamespaceNotFound`]; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn on_namespace(self, id: &NamespaceId, store: &Store) -> Result<NamespaceRight, Error> {
        let namespace = store.namespace(self.game_id(), id).await?.ok_or(Error::NamespaceNotFound)?;
        Ok(NamespaceRight::of(namespace))
    }
}

impl Store {
    /// The game and the namespace together; `None` when either is missing. One call, 0.5 read units each.
    /// When one is missing, another call reads both consistently, at twice the units: the first may not show
    /// what was created a moment ago.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn game_and_namespace(
        &self,
        game_id: &GameId,
        namespace_id: &NamespaceId,
    ) -> Result<Option<(Game, Namespace)>, Error> {
        for is_consistent in [false, true] {
            let keys = vec![
                key(game_key(game_id), "GAME".to_owned()),
                key(game_key(game_id), namespace_key(namespace_id)),
            ];
            let (mut game, mut namespace) = (None, None);
            for item in self.batch_get(&self.tables.catalog, keys, is_consistent).await? {
                if item.get("sk") == Some(&text("GAME")) {
                    game = Some(from_item(item)?);
                } else {
                    namespace = Some(from_item(item)?);
                }
            }
            if let Some(found) = game.zip(namespace) {
                return Ok(Some(found));
            }
        }
        Ok(None)
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
        let owner: Option<NameOwner> =
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

    /// The games of the deployment, by name. A scan of the catalogue: for the operator, never for an
    /// operation.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn games(&self) -> Result<Vec<Game>, Error> {
        let mut games: Vec<Game> = all_pages(|start| async move {
            let scan = self
                .client
                .scan()
                .table_name(&self.tables.catalog)
                .consistent_read(true)
                .filter_expression("#sk = :game")
                .expression_attribute_names("#sk", "sk")
                .expression_attribute_values(":game", text("GAME"))
                .set_exclusive_start_key(start)
                .return_consumed_capacity(self.meter.mode());
            let answer = scan.send().await.map_err(|error| failure(&error))?;
            self.meter.read(answer.consumed_capacity());
            Ok((from_items(answer.items)?, answer.last_evaluated_key))
        })
        .await?;
        games.sort_by(|one, other| one.name_id.cmp(&other.name_id));
        Ok(games)
    }

    /// Whether a game has a namespace named `name_id`. One consistent read unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn has_namespace(&self, game_id: &GameId, name_id: &str) -> Result<bool, Error> {
        let named: Option<IgnoredAny> = self.catalog_item(game_key(game_id), name_key(name_id)).await?;
        Ok(named.is_some())
    }

    /// The namespaces of a game. One query; all of the game's namespaces are read.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn namespaces(&self, game_id: &GameId) -> Result<Vec<Namespace>, Error> {
        self.beginning_with(game_key(game_id), "NAMESPACE#").await
    }

    /// The versions of a game without their configurations. One query; one consistent read unit for about
    /// twenty.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn listed_versions(&self, game_id: &GameId) -> Result<Vec<ListedVersion>, Error> {
        self.beginning_with(game_key(game_id), "LISTED#").await
    }

    /// A version of a game without its configuration. One consistent read unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn listed_version(
        &self,
        game_id: &GameId,
        id: &VersionId,
    ) -> Result<Option<ListedVersion>, Error> {
        self.catalog_item(game_key(game_id), listed_key(id)).await
    }

    /// The versions of a game with their configurations as stored, including fields that only a later release
    /// knows. One query for each MB.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn versions_as_stored(
        &self,
        game_id: &GameId,
    ) -> Result<Vec<Version<serde_json::Value>>, Error> {
        self.beginning_with(game_key(game_id), "VERSION#").await
    }

    /// Sets how many lobbies a namespace and how many seats each of its clients may hold. One write unit.
    ///
    /// # Errors
    /// [`Error::NamespaceNotFound`] when the namespace has gone meanwhile; [`Error::Unavailable`],
    /// [`Error::Bug`].
    pub async fn set_matchmaker_config(
        &self,
        right: &NamespaceRight,
        lobby_count_max: u32,
        max_players_per_client: u32,
    ) -> Result<(), Error> {
        let set = self
            .on_catalog(namespace_item(right))
            .change("SET #lobby_count_max = :lobbies, #max_players_per_client = :players")
            .with(":lobbies", number(lobby_count_max))
            .with(":players", number(max_players_per_client));
        self.update_namespace(set).await
    }

    /// Sets how the CDN of a namespace authenticates. One write unit.
    ///
    /// # Errors
    /// [`Error::NamespaceNotFound`] when the namespace has gone meanwhile; [`Error::Unavailable`],
    /// [`Error::Bug`].
    pub async fn set_cdn_auth_type(
        &self,
        right: &NamespaceRight,
        auth_type: CdnAuthType,
    ) -> Result<(), Error> {
        let set = self.on_catalog(namespace_item(right)).change("SET #cdn_auth_type = :auth_type");
        self.update_namespace(set.with(":auth_type", to_value(auth_type)?)).await
    }

    /// Sets whether pages of a namespace's domains need no token. One write unit.
    ///
    /// # Errors
    /// [`Error::NamespaceNotFound`] when the namespace has gone meanwhile; [`Error::Unavailable`],
    /// [`Error::Bug`].
    pub async fn set_domain_public_auth(&self, right: &NamespaceRight, enabled: bool) -> Result<(), Error> {
        let change = "SET #enable_domain_public_auth = :enabled";
        let set = self.on_catalog(namespace_item(right)).change(change);
        self.update_namespace(set.with(":enabled", AttributeValue::Bool(enabled))).await
    }

    async fn update_namespace(&self, write: Write) -> Result<(), Error> {
        let is_there = self.applies(write.when("attribute_exists(#sk)")).await?;
        if is_there { Ok(()) } else { Err(Error::NamespaceNotFound) }
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

    /// Adds a region to a game, unless it has one of that identifier. One write unit.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the game has gone meanwhile; [`Error::Unavailable`], [`Error::Bug`].
    pub async fn add_region(
        &self,
        game_id: &GameId,
        region_id: &RegionId,
        region: &Region,
    ) -> Result<NameOutcome, Error> {
        let key = key(game_key(game_id), "GAME".to_owned());
        let write = self
            .on_catalog(key)
            .change("SET #regions.#id = :region")
            .when("attribute_exists(#sk) AND attribute_not_exists(#regions.#id)")
            .name("#id", region_id.as_str())
            .with(":region", to_value(region)?);
        if self.applies(write).await? {
            return Ok(NameOutcome::Created);
        }
        match self.game(game_id).await? {
            Some(_) => Ok(NameOutcome::Taken),
            None => Err(Error::NotFound),
        }
    }

    /// Sets the URL that clients probe in a region, or removes it, and returns whether the game has the
    /// region. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn set_probe(
        &self,
        game_id: &GameId,
        region_id: &RegionId,
        probe: Option<&str>,
    ) -> Result<bool, Error> {
        let write = self.on_catalog(key(game_key(game_id), "GAME".to_owned()));
        let write = match probe {
            Some(probe) => write.change("SET #regions.#id.#probe = :probe").with(":probe", text(probe)),
            None => write.change("REMOVE #regions.#id.#probe"),
        };
        let write = write.when("attribute_exists(#regions.#id)").name("#id", region_id.as_str());
        self.applies(write).await
    }

    /// Adds a version with its secrets and its entry in lists, in one transaction; its identifier is fresh.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn add_version(&self, version: &Version, secrets: VersionSecrets) -> Result<(), Error> {
        match self.add(self.parts_of_version(version, secrets)?).await? {
            NameOutcome::Created => Ok(()),
            NameOutcome::Taken => Err(Error::Bug("a fresh version identifier was taken".to_owned())),
        }
    }

    /// Adds a version in the same way, whose name is a `number` that never named a version of the game
    /// before.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn add_numbered_version(
        &self,
        version: &Version,
        secrets: VersionSecrets,
        number: u64,
    ) -> Result<NameOutcome, Error> {
        let key = (game_key(&version.game_id), format!("NUMBER#{number}"));
        let claim = self.put_new(key, &HashMap::from([("version_id", &version.version_id)]))?;
        let mut parts = self.parts_of_version(version, secrets)?;
        parts.push(claim);
        self.add(parts).await
    }

    fn parts_of_version(&self, version: &Version, secrets: VersionSecrets) -> Result<Vec<Write>, Error> {
        let (game, id) = (game_key(&version.game_id), &version.version_id);
        let mut parts = vec![
            self.put_new((game.clone(), version_key(id)), version)?,
            self.put_new((game, listed_key(id)), &ListedVersion::of(version))?,
        ];
        if !secrets.is_empty() {
            parts.push(self.put_secrets(&version.version_id, secrets)?);
        }
        Ok(parts)
    }

    /// Adds a namespace under a name that no other of its game has, with the first entry of its version
    /// history.
    ///
    /// # Errors
    /// [`Error::VersionNotFound`] when its version is retired or has gone; [`Error::Unavailable`],
    /// [`Error::Bug`].
    pub async fn add_namespace(&self, namespace: &Namespace) -> Result<NameOutcome, Error> {
        let partition = game_key(&namespace.game_id);
        let deployment = Deployment {
            namespace_id: namespace.namespace_id.clone(),
            version_id: namespace.version_id.clone(),
            deployed_at: namespace.created_at,
        };
        let name = (partition.clone(), name_key(&namespace.name_id));
        let items = vec![
            self.check_in_use(&namespace.game_id, &namespace.version_id),
            self.put_new(name, &HashMap::from([("namespace_id", &namespace.namespace_id)]))?,
            self.put_new((partition.clone(), namespace_key(&namespace.namespace_id)), namespace)?,
            self.put_new((partition, cdn_key(&namespace.namespace_id)), &Cdn::default())?,
            self.put_new(deployment.key(), &deployment)?,
        ];
        match self.together(items).await?.first() {
            None => Ok(NameOutcome::Created),
            Some(0) => Err(Error::VersionNotFound),
            Some(_) => Ok(NameOutcome::Taken),
        }
    }

    pub(super) fn put_new(&self, (pk, sk): (String, String), value: &impl Serialize) -> Result<Write, Error> {
        let item = to_item(&Keyed { pk, sk, value })?;
        Ok(Write::put(&self.tables.catalog, item).when("attribute_not_exists(#pk)"))
    }

    async fn add(&self, items: Vec<Write>) -> Result<NameOutcome, Error> {
        let refused = self.together(items).await?;
        Ok(if refused.is_empty() { NameOutcome::Created } else { NameOutcome::Taken })
    }

    pub(super) async fn catalog_item<T: Record>(&self, pk: String, sk: String) -> Result<Option<T>, Error> {
        self.read(&self.tables.catalog, key(pk, sk), true).await
    }

    /// The items of a partition, in the order of their sort keys. One query for each MB.
    pub(super) async fn partition<T: Record>(&self, pk: String) -> Result<Vec<T>, Error> {
        self.query_partition(pk, None).await
    }

    /// The items of a partition whose sort keys begin with `prefix`. One query for each MB.
    async fn beginning_with<T: Record>(&self, pk: String, prefix: &str) -> Result<Vec<T>, Error> {
        self.query_partition(pk, Some(prefix)).await
    }

    async fn query_partition<T: Record>(&self, pk: String, prefix: Option<&str>) -> Result<Vec<T>, Error> {
        let condition = match prefix {
            Some(_) => "#pk = :pk AND begins_with(#sk, :prefix)",
            None => "#pk = :pk",
        };
        let pk = &pk;
        all_pages(|start| async move {
            let mut query = query(self, &self.tables.catalog, condition)
                .consistent_read(true)
                .expression_attribute_values(":pk", text(pk.clone()))
                .set_exclusive_start_key(start);
            if let Some(prefix) = prefix {
                query = query.expression_attribute_values(":prefix", text(prefix));
            }
            page(self, query).await
        })
        .await
    }
}
