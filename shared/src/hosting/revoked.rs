//! The game servers of revoked tokens, which are removed with their lobbies.

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use crate::{
    hosting::game_server::GameServers,
    models::{
        errors::Error,
        game::Game,
        ids::{NamespaceId, ServerId, ServerKey},
        token::Owner,
    },
    store::listing::{lobbies_on, servers_of},
};

/// Servers of revoked tokens that are removed at the same time.
const SERVERS_AT_ONCE: usize = 8;
/// How much longer than settings are believed a sweep waits for what was written by them.
const SWEEP_MARGIN: Duration = Duration::from_secs(1);

/// A game server that was removed because its token was revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The server.
    pub server_id: ServerId,
    /// Lobbies that ended with it.
    pub lobbies: usize,
    /// Seats held in them.
    pub players: usize,
}

/// The removal of the servers of revoked tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Servers that were removed.
    pub removed: Vec<Removed>,
    /// Servers with lobbies that could not all end yet.
    pub left: Vec<ServerId>,
}

impl Sweep {
    /// A server that registered again between the sweeps goes twice.
    fn add(&mut self, removed: Removed) {
        match self.removed.iter_mut().find(|before| before.server_id == removed.server_id) {
            Some(before) => {
                before.lobbies += removed.lobbies;
                before.players += removed.players;
            }
            None => self.removed.push(removed),
        }
    }
}

impl GameServers {
    /// Takes the servers of a namespace's revoked tokens out of service, and ends their lobbies. Does so
    /// again once no function takes settings for current that lack the revocation, which may be
    /// `settings_age` old: until then they accept registrations and heartbeats by the token. Another call
    /// finds what a crash or a conflict left.
    ///
    /// # Errors
    /// [`Error::NamespaceNotFound`], [`Error::Unavailable`], [`Error::Bug`].
    pub async fn remove_revoked(
        &self,
        game: &Game,
        namespace_id: &NamespaceId,
        settings_age: Duration,
    ) -> Result<Sweep, Error> {
        let mut sweep = Sweep::default();
        self.sweep(game, namespace_id, &mut sweep).await?;
        self.ambient.sleep(settings_age + SWEEP_MARGIN).await;
        self.sweep(game, namespace_id, &mut sweep).await?;
        Ok(sweep)
    }

    async fn sweep(&self, game: &Game, namespace_id: &NamespaceId, sweep: &mut Sweep) -> Result<(), Error> {
        let namespace = self.store.namespace(&game.game_id, namespace_id).await?;
        let revocations = namespace.ok_or(Error::NamespaceNotFound)?.revocations;
        let servers = servers_of(&self.store, game, namespace_id).await?.into_iter();
        let revoked = servers.filter_map(|server| {
            let owner = server.owner.filter(|owner| revocations.revokes_owner(owner))?;
            Some((server.server, owner))
        });
        let revoked: Vec<(ServerKey, Owner)> = revoked.collect();
        let removals = stream::iter(revoked).map(async |(key, owner): (ServerKey, Owner)| {
            let (lobbies, now) = (lobbies_on(&self.store, &key).await?, self.ambient.now());
            let outcome = self.take_out_of_service(&key, None, Some(&owner), true).await;
            let players = lobbies.iter().map(|lobby| lobby.held_seats(now)).sum();
            Ok::<_, Error>((Removed { server_id: key.server_id, lobbies: lobbies.len(), players }, outcome))
        });
        let removals: Vec<_> = removals.buffer_unordered(SERVERS_AT_ONCE).try_collect().await?;
        sweep.left.clear();
        for (removed, outcome) in removals {
            match outcome {
                Ok(()) => sweep.add(removed),
                // It is another token's by now, or gone.
                Err(Error::ServerNotFound) => {}
                Err(Error::Contention) => sweep.left.push(removed.server_id),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
