//! Keys of items that several files of the store address.

use std::collections::HashMap;

use ring::digest::{SHA256, digest};

use crate::{
    models::{
        ids::{GameId, LobbyId, NamespaceId, ServerKey, VersionId},
        pool::Pool,
        rights::NamespaceRight,
        tag_digests::TagDigests,
    },
    store::items::{Item, text},
};

/// A digest of `criteria` for a key: 32 hexadecimal digits.
pub(super) fn digest_of(criteria: &serde_json::Value) -> String {
    let digest = digest(&SHA256, criteria.to_string().as_bytes());
    digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The key of the index `tagged` for lobbies of a pool with exactly these tags.
pub(super) fn tag_set(pool: &Pool, tags: &TagDigests) -> String {
    digest_of(&serde_json::json!([pool.whole(), tags]))
}

pub(super) fn game_key(game_id: &GameId) -> String {
    format!("GAME#{game_id}")
}

pub(super) fn namespace_key(namespace_id: &NamespaceId) -> String {
    format!("NAMESPACE#{namespace_id}")
}

pub(super) fn name_key(name_id: &str) -> String {
    format!("NAME#{name_id}")
}

pub(super) fn version_key(version_id: &VersionId) -> String {
    format!("VERSION#{version_id}")
}

pub(super) fn listed_key(version_id: &VersionId) -> String {
    format!("LISTED#{version_id}")
}

pub(super) fn cdn_key(namespace_id: &NamespaceId) -> String {
    format!("CDN#{namespace_id}")
}

/// The key of a namespace's own item.
pub(super) fn namespace_item(right: &NamespaceRight) -> Item {
    key(game_key(right.game_id()), namespace_key(right.namespace_id()))
}

/// The key of a lobby's item.
pub(super) fn lobby_item(id: &LobbyId) -> Item {
    HashMap::from([("lobby_id".to_owned(), text(id.as_str()))])
}

/// The key of a game server's item.
pub(super) fn server_item(key: &ServerKey) -> Item {
    HashMap::from([("server".to_owned(), text(key.to_string()))])
}

/// The key of an item of Clients or Ledger.
pub(super) fn pk_item(pk: impl Into<String>) -> Item {
    HashMap::from([("pk".to_owned(), text(pk))])
}

pub(super) fn key(pk: String, sk: String) -> Item {
    HashMap::from([("pk".to_owned(), text(pk)), ("sk".to_owned(), text(sk))])
}
