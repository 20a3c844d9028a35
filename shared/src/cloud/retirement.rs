//! Deleting versions, for the operator: a version is retired first, and deleted once nothing can need it.
//!
//! No namespace can be set to a retired version, since the transactions that set one check it. Instances may
//! still have it cached for a namespace, and create lobbies of it, until [`UNUSED_FOR`] after a namespace
//! last ran it. A live lobby needs its version for joins.

use std::time::Duration;

use crate::{
    base::ambient::Timestamp,
    models::{errors::Error, game::Game, ids::VersionId, namespace::Namespace, version::ListedVersion},
    store::{
        client::Store,
        listing::{lobbies_on, servers_of},
    },
};

/// How long a version must be unused before its deletion: the 30 s that instances cache settings and the 30 s
/// that a request may take, doubled for clock differences and lagging reads.
pub const UNUSED_FOR: Duration = Duration::from_secs(120);

/// The result of deleting a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// It is deleted, with its secrets.
    Deleted,
    /// These namespaces run it, by name.
    Run(Vec<String>),
    /// It is retired, and instances may have it cached until then.
    Remembered(Timestamp),
    /// It is retired, and these namespaces, by name, have so many lobbies of it.
    Played(Vec<(String, usize)>),
    /// It is retired, and these namespaces, by name, have so many game servers that Muster had started for it
    /// and that have not ended.
    Served(Vec<(String, usize)>),
    /// Its retirement was canceled meanwhile.
    Kept,
}

/// Retires a version that no namespace runs, and deletes it if nothing can need it. A retry continues.
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
    // Read after the retirement, so that no other namespace can be set to it.
    let namespaces = store.namespaces(game_id).await?;
    let running = self::running(&namespaces, version_id);
    if !running.is_empty() {
        return Ok(Deletion::Run(running));
    }
    // Each change counts, whichever version the namespace ran before.
    let changed_at = namespaces.iter().map(|namespace| namespace.deployed_at).max();
    let remembered_until = changed_at.unwrap_or(retired_at).max(retired_at) + UNUSED_FOR;
    if now < remembered_until {
        return Ok(Deletion::Remembered(remembered_until));
    }
    let Uses { played, served } = uses(store, game, &namespaces, version_id).await?;
    if !played.is_empty() {
        return Ok(Deletion::Played(played));
    }
    if !served.is_empty() {
        return Ok(Deletion::Served(served));
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

/// The namespaces, by name, that have lobbies of a version, and game servers that were started for it, with
/// their numbers.
#[derive(Default)]
struct Uses {
    played: Vec<(String, usize)>,
    served: Vec<(String, usize)>,
}

async fn uses(
    store: &Store,
    game: &Game,
    namespaces: &[Namespace],
    version_id: &VersionId,
) -> Result<Uses, Error> {
    let mut uses = Uses::default();
    for Namespace { namespace_id, name_id, .. } in namespaces {
        let (mut lobbies, mut launched) = (0, 0);
        for server in servers_of(store, game, namespace_id).await? {
            // Its starter needs the version to start it and to end it.
            launched += usize::from(server.is_launched_for(version_id));
            if server.used > 0 {
                let on_server = lobbies_on(store, &server.server).await?;
                lobbies += on_server.iter().filter(|lobby| lobby.pool.version_id == *version_id).count();
            }
        }
        let counted = |count| (count > 0).then(|| (name_id.clone(), count));
        uses.played.extend(counted(lobbies));
        uses.served.extend(counted(launched));
    }
    Ok(uses)
}
