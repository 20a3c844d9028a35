//! Access to a namespace's pages: the users of its CDN, and its domains.
//!
//! One item of the namespace holds both, apart from its settings, so that no find reads a hash. A domain also
//! has a partition of its own, so that only one namespace of the deployment has it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer, de::IgnoredAny};

use crate::{
    base::ambient::Timestamp,
    models::{errors::Error, namespace::CdnSettings, rights::NamespaceRight},
    rules::{bcrypt_hash::BcryptHash, cdn_user::CdnUserName, origin::OriginHost},
    store::{
        client::Store,
        items::{number, text},
        keys::{cdn_key, game_key, key},
    },
};

/// The most users of a namespace's CDN.
pub const CDN_USERS_MAX: usize = 32;
/// The most domains of a namespace.
pub const DOMAINS_MAX: usize = 10;

/// The stored item of a namespace's CDN. The users' hashes are never read.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Cdn {
    #[serde(serialize_with = "no_users")]
    users: BTreeMap<String, IgnoredAny>,
    domains: BTreeMap<String, Timestamp>,
}

/// Only a new namespace, which has no users, puts a whole item.
fn no_users<S: Serializer>(_none: &BTreeMap<String, IgnoredAny>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map::<&str, (), _>([])
}

/// The result of adding a CDN user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CdnUserOutcome {
    /// The user has the hash.
    Set,
    /// The namespace has its [`CDN_USERS_MAX`] users, and this is another one.
    TooMany,
}

/// The result of adding a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainOutcome {
    /// The namespace has it, now or already before.
    Added,
    /// Another namespace has it.
    Taken,
    /// The namespace has its [`DOMAINS_MAX`] domains, and this is another one.
    TooMany,
}

fn domain_key(host: &OriginHost) -> (String, String) {
    (format!("DOMAIN#{host}"), "DOMAIN".to_owned())
}

impl Store {
    /// Gives a CDN user its hash in one conditional write: a new user only below [`CDN_USERS_MAX`], a known
    /// one always.
    ///
    /// One write unit for each started KB of users and domains.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn set_cdn_user(
        &self,
        right: &NamespaceRight,
        user: &CdnUserName,
        hash: &BcryptHash,
    ) -> Result<CdnUserOutcome, Error> {
        let key = key(game_key(right.game_id()), cdn_key(right.namespace_id()));
        let write = self
            .on_catalog(key)
            .change("SET #users.#user = :hash")
            .when("attribute_exists(#users.#user) OR size(#users) < :max")
            .name("#user", user.as_str())
            .with(":hash", text(hash.reveal()))
            .with(":max", number(CDN_USERS_MAX));
        Ok(if self.applies(write).await? { CdnUserOutcome::Set } else { CdnUserOutcome::TooMany })
    }

    /// Removes a CDN user, if there is one of that name. One write unit for each started KB of users and
    /// domains.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn remove_cdn_user(&self, right: &NamespaceRight, user: &CdnUserName) -> Result<(), Error> {
        let key = key(game_key(right.game_id()), cdn_key(right.namespace_id()));
        let write = self
            .on_catalog(key)
            .change("REMOVE #users.#user")
            .when("attribute_exists(#users.#user)")
            .name("#user", user.as_str());
        self.applies(write).await.map(|_was_there| ())
    }

    /// A namespace's CDN settings without hashes. One consistent read unit for each started 4 KB.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn cdn_settings(&self, right: &NamespaceRight) -> Result<CdnSettings, Error> {
        let key = key(game_key(right.game_id()), cdn_key(right.namespace_id()));
        let cdn = self.read(&self.tables.catalog, key, true).await?;
        let Cdn { users, domains } = cdn.unwrap_or_default();
        Ok(CdnSettings { users: users.into_keys().collect(), domains })
    }

    /// Registers `host` for a namespace, in one transaction of four write units.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn add_domain(
        &self,
        right: &NamespaceRight,
        host: &OriginHost,
        now: Timestamp,
    ) -> Result<DomainOutcome, Error> {
        let (pk, sk) = domain_key(host);
        let claim = self
            .on_catalog(key(pk, sk))
            .change("SET #game_id = :game_id, #namespace_id = :namespace_id")
            .when("attribute_not_exists(#pk) OR #namespace_id = :namespace_id")
            .with(":game_id", text(right.game_id().as_str()))
            .with(":namespace_id", text(right.namespace_id().as_str()));
        let key = key(game_key(right.game_id()), cdn_key(right.namespace_id()));
        let list = self
            .on_catalog(key)
            .change("SET #domains.#host = if_not_exists(#domains.#host, :now)")
            .when("attribute_exists(#domains.#host) OR size(#domains) < :max")
            .name("#host", host.as_str())
            .with(":now", number(now))
            .with(":max", number(DOMAINS_MAX));
        Ok(match self.together(vec![claim, list]).await?.first() {
            None => DomainOutcome::Added,
            Some(0) => DomainOutcome::Taken,
            Some(_) => DomainOutcome::TooMany,
        })
    }

    /// Removes a domain of a namespace; a domain of another namespace stays. One transaction of four write
    /// units.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn remove_domain(&self, right: &NamespaceRight, host: &OriginHost) -> Result<(), Error> {
        let (pk, sk) = domain_key(host);
        let claim = self
            .on_catalog(key(pk, sk))
            .delete()
            .when("#namespace_id = :namespace_id")
            .with(":namespace_id", text(right.namespace_id().as_str()));
        let key = key(game_key(right.game_id()), cdn_key(right.namespace_id()));
        let list = self
            .on_catalog(key)
            .change("REMOVE #domains.#host")
            .when("attribute_exists(#domains.#host)")
            .name("#host", host.as_str());
        self.together(vec![claim, list]).await.map(|_refused| ())
    }
}
