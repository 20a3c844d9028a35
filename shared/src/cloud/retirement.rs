//! Deleting versions, for the operator: a version is retired first, and gone once nothing can need it any
//! more.
//!
//! A retired version is set by no namespace: the transactions that set one check it. Instances may still take
//! it for a namespace's, and create lobbies of it, until [`UNUSED_FOR`] after a namespace ran it last; and a
//! lobby needs its version as long as it lives, for those who join it.

use std::time::Duration;

use crate::{
    base::ambient::Timestamp,
    models::{errors::Error, game::Game, ids::VersionId, namespace::Namespace, version::ListedVersion},
    store::{
        client::Store,
        listing::{lobbies_on, servers_of},
    },
};

/// How long no namespace may have run a version before it goes: the 30 s that instances remember settings and
/// the 30 s that one of their requests may take, doubled for clocks and for reads that lag behind.
pub const UNUSED_FOR: Duration = Duration::from_secs(120);

/// What became of a version that was to be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// It is gone, with its secrets.
    Deleted,
    /// These namespaces run it, by name.
    Run(Vec<String>),
    /// It is retired, and instances may take it for a namespace's until then.
    Remembered(Timestamp),
    /// It is retired, and these namespaces have so many lobbies of it, by name.
    Played(Vec<(String, usize)>),
    /// Its retirement was taken back meanwhile.
    Kept,
}

/// Retires a version that no namespace runs, and deletes it if nothing can need it any more. Again: goes on.
///
/// # Errors
/// [`Error::VersionNotFound`]; [`Error::Unavailable`], [`Error::Bug`].
pub async fn delete_version(
    store: &Store,
    game: &Game,
    version_id: &VersionId,
    now: Timestamp,
) -> Result<Deletion, Error> {
    let game_id = &game.game_id;
    let running = running(&store.namespaces(game_id).await?, version_id);
    if !running.is_empty() {
        return Ok(Deletion::Run(running));
    }
    let retired = store.retire_version(game_id, version_id, now).await?.ok_or(Error::VersionNotFound)?;
    let ListedVersion { retired_at: Some(retired_at), .. } = retired else {
        return Err(Error::Bug("a retired version is not".to_owned()));
    };
    // Read after the retirement: no namespace can follow.
    let namespaces = store.namespaces(game_id).await?;
    let running = self::running(&namespaces, version_id);
    if !running.is_empty() {
        return Ok(Deletion::Run(running));
    }
    // Which version a namespace ran before is not asked: each change counts.
    let changed_at = namespaces.iter().map(|namespace| namespace.deployed_at).max();
    let remembered_until = changed_at.unwrap_or(retired_at).max(retired_at) + UNUSED_FOR;
    if now < remembered_until {
        return Ok(Deletion::Remembered(remembered_until));
    }
    let played = played(store, game, &namespaces, version_id).await?;
    if !played.is_empty() {
        return Ok(Deletion::Played(played));
    }
    if store.delete_version(game_id, version_id, retired_at).await? {
        return Ok(Deletion::Deleted);
    }
    let is_there = store.listed_version(game_id, version_id).await?.is_some();
    Ok(if is_there { Deletion::Kept } else { Deletion::Deleted })
}

fn running(namespaces: &[Namespace], version_id: &VersionId) -> Vec<String> {
    let running = namespaces.iter().filter(|namespace| namespace.version_id == *version_id);
    running.map(|namespace| namespace.name_id.clone()).collect()
}

/// How many lobbies of a version each namespace has, if it has some.
async fn played(
    store: &Store,
    game: &Game,
    namespaces: &[Namespace],
    version_id: &VersionId,
) -> Result<Vec<(String, usize)>, Error> {
    let mut played = Vec::new();
    for Namespace { namespace_id, name_id, .. } in namespaces {
        let mut count = 0;
        for server in servers_of(store, game, namespace_id).await?.iter().filter(|server| server.used > 0) {
            let lobbies = lobbies_on(store, &server.server).await?;
            count += lobbies.iter().filter(|lobby| lobby.pool.version_id == *version_id).count();
        }
        if count > 0 {
            played.push((name_id.clone(), count));
        }
    }
    Ok(played)
}
