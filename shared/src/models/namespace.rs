//! Namespaces of a game: their settings, and the version that they run.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    base::{
        ambient::Timestamp,
        record::{known, known_keys},
    },
    models::{
        ids::{GameId, NamespaceId, TokenId, VersionId},
        tag_digests::TagKey,
        token::{CREDENTIAL_LIFE, Credential, Owner, TokenKind},
    },
};

/// Lobbies that a new namespace may hold.
pub const LOBBY_COUNT_MAX_DEFAULT: u32 = 128;
/// Seats that one client address may hold in a new namespace.
pub const MAX_PLAYERS_PER_CLIENT_DEFAULT: u32 = 32;
/// A limit of them above this means none (decision 44).
pub const MAX_PLAYERS_PER_CLIENT_LIMIT: u32 = 1_000;

/// How the CDN authenticates visitors of a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", try_from = "String")]
pub enum CdnAuthType {
    /// No authentication.
    #[default]
    None,
    /// HTTP Basic, with the namespace's users.
    Basic,
}

impl TryFrom<String> for CdnAuthType {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        match text.as_str() {
            "none" => Ok(Self::None),
            "basic" => Ok(Self::Basic),
            _ => Err("must be `none` or `basic`"),
        }
    }
}

/// An unknown type counts as [`CdnAuthType::Basic`], so that it does not open the pages.
fn known_or_basic<'de, D: Deserializer<'de>>(from: D) -> Result<CdnAuthType, D::Error> {
    known(from).map(|auth_type| auth_type.unwrap_or(CdnAuthType::Basic))
}

/// Single tokens that a namespace can have revoked.
pub const REVOKED_TOKENS_MAX: usize = 100;

/// The signed tokens of a namespace that no longer count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocations {
    /// Tokens of a kind issued before this time are revoked. No token is of a kind that this release does not
    /// know.
    #[serde(default, deserialize_with = "known_keys")]
    pub not_before: BTreeMap<TokenKind, Timestamp>,
    /// Single revoked tokens, at most [`REVOKED_TOKENS_MAX`], in the order of their revocation.
    #[serde(default)]
    pub token_ids: Vec<TokenId>,
}

impl Revocations {
    /// Whether `credential` of `kind` was revoked.
    #[must_use]
    pub fn revokes(&self, kind: TokenKind, credential: &Credential) -> bool {
        self.revokes_token(kind, &credential.token_id, credential.issued_at)
    }

    /// Whether the server token of `owner` was revoked.
    #[must_use]
    pub fn revokes_owner(&self, owner: &Owner) -> bool {
        self.revokes_token(TokenKind::Server, &owner.token_id, owner.issued_at)
    }

    /// Whether `owner` still owns its game servers at `now`: its token was not revoked and has not expired.
    #[must_use]
    pub fn respect(&self, owner: &Owner, now: Timestamp) -> bool {
        !self.revokes_owner(owner) && owner.issued_at + CREDENTIAL_LIFE > now
    }

    fn revokes_token(&self, kind: TokenKind, token_id: &TokenId, issued_at: Timestamp) -> bool {
        self.token_ids.contains(token_id)
            || self.not_before.get(&kind).is_some_and(|limit| issued_at < *limit)
    }
}

/// A namespace of a game.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    /// Its game.
    pub game_id: GameId,
    /// Its identifier.
    pub namespace_id: NamespaceId,
    /// Its name in addresses, unique in the game.
    pub name_id: String,
    /// The name that people read.
    pub display_name: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// The version that it runs.
    pub version_id: VersionId,
    /// Since when it runs that version.
    pub deployed_at: Timestamp,
    /// Lobbies that it may hold.
    pub lobby_count_max: u32,
    /// Seats that one client address may hold; above 1,000 means any number.
    pub max_players_per_client: u32,
    /// Whether pages of its domains need no token.
    pub enable_domain_public_auth: bool,
    /// How its CDN authenticates; [`CdnAuthType::Basic`] when this release does not know the type.
    #[serde(default, deserialize_with = "known_or_basic")]
    pub cdn_auth_type: CdnAuthType,
    /// Its revoked tokens.
    #[serde(default)]
    pub revocations: Revocations,
    /// The key of its lobbies' tag digests and codes, which never changes.
    pub tag_key: TagKey,
}

impl Namespace {
    /// Seats that one client address may hold; `None` when any number.
    #[must_use]
    pub fn seats_per_client(&self) -> Option<u32> {
        Some(self.max_players_per_client).filter(|max| *max <= MAX_PLAYERS_PER_CLIENT_LIMIT)
    }
}

/// A namespace's CDN settings, without hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CdnSettings {
    /// The names of its users, in order.
    pub users: Vec<String>,
    /// Its domains, and when each was added.
    pub domains: BTreeMap<String, Timestamp>,
}

/// One change of a namespace's version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deployment {
    /// The namespace.
    pub namespace_id: NamespaceId,
    /// The new version.
    pub version_id: VersionId,
    /// When it was deployed, later than the namespace's previous change.
    pub deployed_at: Timestamp,
}

impl Deployment {
    pub(crate) fn key(&self) -> (String, String) {
        (format!("HISTORY#{}", self.namespace_id), Self::sort_key(self.deployed_at))
    }

    /// Entries sort by time; fourteen digits hold every time up to [`Timestamp::NEVER`].
    pub(crate) fn sort_key(at: Timestamp) -> String {
        format!("{:014}", at.min(Timestamp::NEVER).0)
    }
}
