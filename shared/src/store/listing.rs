//! Complete lists: all pages of a query, all game servers of a namespace, all lobbies of a server.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use crate::{
    base::ambient::Timestamp,
    models::{
        errors::Error,
        game::Game,
        ids::{LobbyId, NamespaceId, RegionId, ServerKey},
        lobby::{Lobby, Stage},
        server::{PlacementPool, Server},
    },
    store::{client::Store, lobbies::LobbyCursor},
};

/// Queries under way at the same time.
pub(crate) const QUERIES_AT_ONCE: usize = 16;
/// Lobbies of one batch.
pub(crate) const LOBBIES_AT_ONCE: usize = 100;
/// Lobbies of one query of a server's lobbies.
const KEYS_AT_ONCE: usize = 1_000;

/// The game servers of a namespace, full and silent ones too, by region. Two calls for each hundred,
/// eventually consistent.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Bug`].
pub async fn servers_of(
    store: &Store,
    game: &Game,
    namespace_id: &NamespaceId,
) -> Result<Vec<Server>, Error> {
    let read = |pool| async move { all_pages(|cursor| store.servers(&pool, cursor)).await };
    in_each_pool(store, game, namespace_id, read).await
}

/// The game servers of a namespace that were let go in silence and whose leases expired after `since`, by
/// region. Two calls for each hundred, eventually consistent.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Bug`].
pub async fn servers_let_go_of(
    store: &Store,
    game: &Game,
    namespace_id: &NamespaceId,
    since: Timestamp,
) -> Result<Vec<Server>, Error> {
    let read = |pool| async move { all_pages(|cursor| store.servers_let_go(&pool, since, cursor)).await };
    in_each_pool(store, game, namespace_id, read).await
}

/// The placement pools of a namespace, by region: without build, and of each build that servers were
/// requested for or registered with. One consistent read unit.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Bug`].
pub async fn placements_of(
    store: &Store,
    game: &Game,
    namespace_id: &NamespaceId,
) -> Result<Vec<PlacementPool>, Error> {
    let pool = |region_id: &RegionId| PlacementPool {
        namespace_id: namespace_id.clone(),
        region_id: region_id.clone(),
        build_id: None,
    };
    let mut pools: Vec<_> = game.regions.keys().map(pool).collect();
    pools.extend(store.placements_with_builds(namespace_id).await?);
    pools.sort();
    Ok(pools)
}

/// The game servers that `read` finds in the pools of a namespace, by region.
async fn in_each_pool<F: Future<Output = Result<Vec<Server>, Error>>>(
    store: &Store,
    game: &Game,
    namespace_id: &NamespaceId,
    read: impl Fn(PlacementPool) -> F,
) -> Result<Vec<Server>, Error> {
    let pools = placements_of(store, game, namespace_id).await?;
    stream::iter(pools).map(read).buffered(QUERIES_AT_ONCE).try_concat().await
}

/// The lobbies of a game server that have not ended, oldest first. One call for each thousand and one for
/// each hundred, eventually consistent.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Bug`].
pub async fn lobbies_on(store: &Store, server: &ServerKey) -> Result<Vec<Lobby>, Error> {
    let mut lobbies = Vec::new();
    each_batch_on(store, server, |batch| lobbies.extend(batch)).await?;
    lobbies.sort_by(|one: &Lobby, other| {
        (one.created_at, &one.lobby_id).cmp(&(other.created_at, &other.lobby_id))
    });
    Ok(lobbies)
}

/// The same of several game servers, one after the other.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Bug`].
pub async fn lobbies_on_all(store: &Store, servers: &[Server]) -> Result<Vec<Lobby>, Error> {
    let mut lobbies = Vec::new();
    for server in servers {
        lobbies.extend(lobbies_on(store, &server.server).await?);
    }
    Ok(lobbies)
}

/// The lobbies of one game server, each hundred given to `take` as it comes, in no order.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Bug`].
pub async fn each_batch_on(
    store: &Store,
    server: &ServerKey,
    mut take: impl FnMut(Vec<Lobby>),
) -> Result<(), Error> {
    let mut start: Option<LobbyCursor> = None;
    loop {
        let page = store.lobbies_of_server(server, start.as_ref(), KEYS_AT_ONCE).await?;
        let batches: Vec<_> = page.lobby_ids.chunks(LOBBIES_AT_ONCE).map(<[LobbyId]>::to_vec).collect();
        let batches = stream::iter(batches).map(|ids| async move { store.lobbies(&ids).await });
        let mut batches = batches.buffer_unordered(QUERIES_AT_ONCE);
        while let Some(mut batch) = batches.try_next().await? {
            batch.retain(|lobby| lobby.stage != Stage::Ended);
            take(batch);
        }
        start = page.next;
        if start.is_none() {
            return Ok(());
        }
    }
}

/// The lobbies of a game server, as the index shows them.
pub(crate) async fn ids_on(store: &Store, server: &ServerKey) -> Result<Vec<LobbyId>, Error> {
    all_pages(|cursor: Option<LobbyCursor>| async move {
        let page = store.lobbies_of_server(server, cursor.as_ref(), KEYS_AT_ONCE).await?;
        Ok((page.lobby_ids, page.next))
    })
    .await
}

/// The results of `read` for all pages. It takes the cursor of a page, `None` for the first, and returns the
/// page's results and the next cursor, if there is one.
pub(crate) async fn all_pages<T, C, F>(read: impl Fn(Option<C>) -> F) -> Result<Vec<T>, Error>
where
    F: Future<Output = Result<(Vec<T>, Option<C>), Error>>,
{
    let (mut all, mut start) = (Vec::new(), None);
    loop {
        let (page, next) = read(start).await?;
        all.extend(page);
        start = next;
        if start.is_none() {
            return Ok(all);
        }
    }
}
