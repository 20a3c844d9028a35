//! Game servers on demand: what becomes of a requested one (decision 76). Its request is a part of a creation
//! ([`super::creation`]).
//!
//! `stage` says where it stands. Each change of it but a registration is what the starter acts on, so that
//! nothing else has to be kept in step with the record. One that is over keeps its record for a day, and
//! counts no more among those that may run.

use crate::{
    base::ambient::Timestamp,
    models::{
        errors::Error,
        ids::ServerKey,
        launch::{Launch, LaunchStage},
        lobby::Lobby,
        server::Server,
    },
    store::{
        client::Store,
        items::{number, text, to_value},
        writes::Write,
    },
};

impl Store {
    /// Notes what the starter calls a server that it started, which is to be ended again if it had been ended
    /// before. Returns the server as it then is. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn note_handle(&self, key: &ServerKey, handle: &str) -> Result<Option<Server>, Error> {
        let write = self
            .on_server(key)
            .change("SET #handle = :handle REMOVE #ended_at")
            .when("attribute_exists(#launch) AND attribute_not_exists(#handle)")
            .with(":handle", text(handle));
        Ok(self.update(write).await?.map_or_else(|seen| seen, Some))
    }

    /// Notes that the starter ended the process of a server that is over, and returns whether nothing had.
    /// One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn note_ended(&self, key: &ServerKey, now: Timestamp) -> Result<bool, Error> {
        let write = self
            .on_server(key)
            .change("SET #ended_at = :now")
            .when("attribute_exists(#launch) AND attribute_not_exists(#ended_at)")
            .with(":now", number(now));
        self.update::<Server>(write).await.map(|noted| noted.is_ok())
    }

    /// Gives a requested server up for `reason`: it gets no more lobbies, and cannot register. Returns the
    /// server after it, or as it is if it registered or was given up before. One write unit, and two of the
    /// index.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn fail_launch(
        &self,
        server: &Server,
        reason: &str,
        now: Timestamp,
    ) -> Result<Result<Server, Option<Server>>, Error> {
        let write = out_of_sight(self.on_server(&server.server), server, LaunchStage::Failed, now)?
            .when("#stage = :requested")
            .also_set("#failure = :failure")
            .with(":failure", text(reason))
            .with(":requested", to_value(LaunchStage::Requested)?);
        self.update(write).await
    }

    /// Takes a silent server out of service that Muster had started. Returns it after it, or as it is if it
    /// was heard since. One write unit, and two of the index.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn retire_launched(
        &self,
        server: &Server,
        now: Timestamp,
    ) -> Result<Result<Server, Option<Server>>, Error> {
        let write = out_of_sight(self.on_server(&server.server), server, LaunchStage::Gone, now)?
            .when("#stage = :running AND #lease_until <= :now")
            .with(":running", to_value(LaunchStage::Running)?)
            .with(":now", number(now));
        self.update(write).await
    }

    /// Has a server end that was without lobbies at its heartbeats for its idle time, unless it has got one.
    /// One write unit, and two of the index.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn stop_idle(
        &self,
        server: &Server,
        now: Timestamp,
    ) -> Result<Result<Server, Option<Server>>, Error> {
        let write = out_of_sight(self.on_server(&server.server), server, LaunchStage::Stopping, now)?
            .when("#stage = :running AND #used = :zero AND #idle_since = :since")
            .with(":running", to_value(LaunchStage::Running)?)
            .with(":since", server.idle_since.map(number));
        self.update(write).await
    }

    /// Notes since when a server that Muster had started has been without lobbies, or that it has some. One
    /// write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn note_idle(&self, key: &ServerKey, since: Option<Timestamp>) -> Result<(), Error> {
        let write = self.on_server(key).when("attribute_exists(#launch)");
        let write = match since {
            Some(since) => write.change("SET #idle_since = :since").with(":since", number(since)),
            None => write.change("REMOVE #idle_since"),
        };
        self.update::<Server>(write).await.map(|_noted| ())
    }

    /// Gives a lobby the ports and the lease of its server, which has just registered. Returns the lobby as
    /// it then is, unless it ended. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn put_on_registered(&self, lobby: &Lobby, server: &Server) -> Result<Option<Lobby>, Error> {
        let write = self
            .on_lobby(&lobby.lobby_id)
            .change("SET #ports = :ports, #lease_until = :until REMOVE #launch")
            .when("#stage <> :ended AND #server = :server AND attribute_exists(#launch)")
            .with(":ports", to_value(&server.ports)?)
            .with(":until", number(server.lease_until))
            .with(":server", text(server.server.to_string()));
        Ok(match self.update::<Lobby>(write).await? {
            Ok(lobby) => Some(lobby),
            Err(seen) => seen.filter(|lobby| lobby.launch.is_none() && server.runs(lobby)),
        })
    }
}

/// A write that ends a server's places: it stays out of sight until its record goes.
fn out_of_sight(write: Write, server: &Server, stage: LaunchStage, now: Timestamp) -> Result<Write, Error> {
    let name = stage.name();
    Ok(write
        .change(format!("SET #stage = :{name}, #capacity = :zero, #free_from = :later, #ranked_at = :later"))
        .with(format!(":{name}"), to_value(stage)?)
        .with(":later", number(server.look_again(now))))
}

impl Launch {
    /// Whether a server that was last without lobbies `since` may end at `now`.
    #[must_use]
    pub fn is_idle(&self, since: Timestamp, now: Timestamp) -> bool {
        now.since(since).as_secs() >= self.idle_secs.into()
    }
}
