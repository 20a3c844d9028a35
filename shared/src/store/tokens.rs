//! Tokens: cloud tokens by the digest of their text, and the identifier and dates of every issued token.
//!
//! The table of tokens is keyed by digest. The catalogue's partition `TOKENS#<game>` has one item for each
//! token of the game, by its identifier; that of a cloud token also holds the digest, which only its
//! revocation reads.

use aws_sdk_dynamodb::types::AttributeValue;
use serde::{Deserialize, Serialize};

use crate::{
    base::{ambient::Timestamp, record::known},
    models::{
        errors::Error,
        ids::{GameId, NamespaceId, TokenId},
        namespace::REVOKED_TOKENS_MAX,
        rights::{GameRight, NamespaceRight},
        token::{CloudToken, Credential, TokenKind},
    },
    store::{
        client::Store,
        items::{Item, number, text, to_item},
        keys::{game_key, key, namespace_item, namespace_key},
        writes::Write,
    },
};

/// The record that authorizes a cloud token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloudTokenRecord {
    /// The game on which it allows every cloud operation.
    pub game_id: GameId,
    /// Its identifier, for listing and revoking.
    pub token_id: TokenId,
    /// When it was issued.
    pub created_at: Timestamp,
    /// When it was revoked, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

/// An issued token, without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedToken {
    /// Its game.
    pub game_id: GameId,
    /// Its identifier.
    pub token_id: TokenId,
    /// Its kind; `None` when only a later release knows it.
    #[serde(deserialize_with = "known")]
    pub kind: Option<TokenKind>,
    /// Its namespace; a cloud token has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<NamespaceId>,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// When it expires; a cloud token never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was revoked by its identifier, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

impl IssuedToken {
    /// The token of a credential.
    #[must_use]
    pub fn of_credential(kind: TokenKind, credential: &Credential) -> Self {
        Self {
            game_id: credential.game_id.clone(),
            token_id: credential.token_id.clone(),
            kind: Some(kind),
            namespace_id: Some(credential.namespace_id.clone()),
            issued_at: credential.issued_at,
            expires_at: Some(credential.expires_at()),
            revoked_at: None,
        }
    }

    /// A cloud token.
    #[must_use]
    pub const fn cloud(game_id: GameId, token_id: TokenId, issued_at: Timestamp) -> Self {
        Self {
            game_id,
            token_id,
            kind: Some(TokenKind::Cloud),
            namespace_id: None,
            issued_at,
            expires_at: None,
            revoked_at: None,
        }
    }
}

/// The result of a revocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevokeOutcome {
    /// The token is invalid from now on, in deployed functions after the 30 s that settings may be cached.
    Revoked,
    /// It was revoked before.
    RevokedBefore,
    /// The game never issued it.
    Unknown,
    /// Its namespace has [`REVOKED_TOKENS_MAX`] single revoked tokens.
    TooMany,
}

#[derive(Serialize)]
struct StoredToken<'a> {
    digest: String,
    #[serde(flatten)]
    record: &'a CloudTokenRecord,
}

#[derive(Serialize)]
struct ListedCloudToken<'a> {
    digest: String,
    #[serde(flatten)]
    issued: &'a IssuedToken,
}

/// The part of an issued token that a revocation reads.
#[derive(Debug, Deserialize)]
pub(super) struct ListedToken {
    namespace_id: Option<NamespaceId>,
    digest: Option<String>,
}

/// Tries of one revocation of many tokens while others change the revocations.
const REVOKE_TRIES: usize = 16;

fn tokens_key(game_id: &GameId) -> String {
    format!("TOKENS#{game_id}")
}

impl Store {
    /// The record of a cloud token; `None` when it was never issued. One consistent read unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn cloud_token(&self, token: &CloudToken) -> Result<Option<CloudTokenRecord>, Error> {
        self.read(&self.tables.tokens, Item::from([("digest".to_owned(), text(token.digest()))]), true).await
    }

    /// Stores the digest of a fresh cloud token, and lists the token among those of its game. One transaction
    /// of four write units.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn add_cloud_token(&self, token: &CloudToken, issued: &IssuedToken) -> Result<(), Error> {
        let record = CloudTokenRecord {
            game_id: issued.game_id.clone(),
            token_id: issued.token_id.clone(),
            created_at: issued.issued_at,
            revoked_at: None,
        };
        let stored = to_item(&StoredToken { digest: token.digest(), record: &record })?;
        let noted = ListedCloudToken { digest: token.digest(), issued };
        let parts = vec![
            Write::put(&self.tables.tokens, stored),
            self.put_new((tokens_key(&issued.game_id), issued.token_id.to_string()), &noted)?,
        ];
        self.fresh(parts).await
    }

    /// Lists a token of a namespace among those of its game. One transaction of two write units.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn add_issued_token(&self, issued: &IssuedToken) -> Result<(), Error> {
        let key = (tokens_key(&issued.game_id), issued.token_id.to_string());
        self.fresh(vec![self.put_new(key, issued)?]).await
    }

    async fn fresh(&self, parts: Vec<Write>) -> Result<(), Error> {
        if self.together(parts).await?.is_empty() {
            Ok(())
        } else {
            Err(Error::Bug("a fresh token identifier was taken".to_owned()))
        }
    }

    /// The tokens that a game ever issued, oldest first. One query; all of them are read.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn issued_tokens(&self, game_id: &GameId) -> Result<Vec<IssuedToken>, Error> {
        let mut tokens: Vec<IssuedToken> = self.partition(tokens_key(game_id)).await?;
        tokens.sort_by(|one, other| (one.issued_at, &one.token_id).cmp(&(other.issued_at, &other.token_id)));
        Ok(tokens)
    }

    /// Revokes one token of a game, by its identifier, in one transaction of four write units.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn revoke_token(
        &self,
        right: &GameRight,
        token_id: &TokenId,
        now: Timestamp,
    ) -> Result<RevokeOutcome, Error> {
        let noted_key = key(tokens_key(right.game_id()), token_id.to_string());
        let noted = self.read::<ListedToken>(&self.tables.catalog, noted_key.clone(), true).await?;
        let effect = match noted {
            Some(ListedToken { digest: Some(digest), .. }) => {
                let key = Item::from([("digest".to_owned(), text(digest))]);
                Write::to(&self.tables.tokens, key)
                    .change("SET #revoked_at = :now")
                    .when("attribute_exists(#digest)")
                    .with(":now", number(now))
            }
            Some(ListedToken { namespace_id: Some(namespace_id), .. }) => {
                let key = key(game_key(right.game_id()), namespace_key(&namespace_id));
                let change = "SET #revocations.#token_ids = list_append(#revocations.#token_ids, :ids)";
                let ids = AttributeValue::L(vec![text(token_id.as_str())]);
                self.on_catalog(key)
                    .change(change)
                    .when("size(#revocations.#token_ids) < :max")
                    .with(":ids", ids)
                    .with(":max", number(REVOKED_TOKENS_MAX))
            }
            Some(_) | None => return Ok(RevokeOutcome::Unknown),
        };
        let note = self
            .on_catalog(noted_key)
            .change("SET #revoked_at = :now")
            .when("attribute_not_exists(#revoked_at)")
            .with(":now", number(now));
        Ok(match self.together(vec![note, effect]).await?.first() {
            None => RevokeOutcome::Revoked,
            Some(0) => RevokeOutcome::RevokedBefore,
            Some(_) => RevokeOutcome::TooMany,
        })
    }

    /// Revokes all tokens of `kind` that a namespace issued before `limit`. Single revocations among them are
    /// forgotten.
    ///
    /// # Errors
    /// [`Error::NamespaceNotFound`] when the namespace has gone meanwhile; [`Error::Contention`] while others
    /// revoke, [`Error::Unavailable`], [`Error::Bug`].
    pub async fn revoke_tokens_before(
        &self,
        right: &NamespaceRight,
        kind: TokenKind,
        limit: Timestamp,
    ) -> Result<(), Error> {
        let tokens = self.issued_tokens(right.game_id()).await?;
        let goes = |id: &TokenId| {
            tokens
                .iter()
                .any(|token| token.token_id == *id && token.kind == Some(kind) && token.issued_at < limit)
        };
        for _ in 0..REVOKE_TRIES {
            let namespace = self.namespace(right.game_id(), right.namespace_id()).await?;
            let seen = namespace.ok_or(Error::NamespaceNotFound)?.revocations;
            let ids = |ids: &mut dyn Iterator<Item = &TokenId>| {
                AttributeValue::L(ids.map(|id| text(id.as_str())).collect())
            };
            let seen_limit = seen.not_before.get(&kind).copied();
            let as_seen = match seen_limit {
                Some(_) => "#revocations.#not_before.#kind = :seen_limit",
                None => "attribute_not_exists(#revocations.#not_before.#kind)",
            };
            let write = self
                .on_catalog(namespace_item(right))
                .change("SET #revocations.#not_before.#kind = :limit, #revocations.#token_ids = :left")
                .when(format!("#revocations.#token_ids = :seen AND {as_seen}"))
                .name("#kind", kind.name())
                .with(":limit", number(seen_limit.unwrap_or_default().max(limit)))
                .with(":left", ids(&mut seen.token_ids.iter().filter(|id| !goes(id))))
                .with(":seen", ids(&mut seen.token_ids.iter()))
                .with(":seen_limit", seen_limit.map(number));
            if self.applies(write).await? {
                return Ok(());
            }
        }
        Err(Error::Contention)
    }
}
