//! Deleting versions: a version is first retired, so that no namespace can be set to it, then deleted with
//! its secrets.

use crate::{
    base::ambient::Timestamp,
    models::{
        errors::Error,
        ids::{GameId, VersionId},
        version::ListedVersion,
    },
    store::{
        client::Store,
        items::number,
        keys::{game_key, key, listed_key, version_key},
        secrets::secrets_key,
        writes::Write,
    },
};

impl Store {
    /// Retires a version, so that no namespace can be set to it. Returns the version with the time of its
    /// first retirement, or `None` when the game has no such version. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn retire_version(
        &self,
        game_id: &GameId,
        id: &VersionId,
        now: Timestamp,
    ) -> Result<Option<ListedVersion>, Error> {
        let write = self
            .on_catalog(key(game_key(game_id), listed_key(id)))
            .change("SET #retired_at = if_not_exists(#retired_at, :now)")
            .when("attribute_exists(#sk)")
            .with(":now", number(now));
        Ok(self.update(write).await?.ok())
    }

    /// Cancels a version's retirement, and returns whether the game has the version. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn keep_version(&self, game_id: &GameId, id: &VersionId) -> Result<bool, Error> {
        let key = key(game_key(game_id), listed_key(id));
        let keep = self.on_catalog(key).change("REMOVE #retired_at");
        self.applies(keep.when("attribute_exists(#sk)")).await
    }

    /// Deletes a version with its secrets and its entry in lists, in one transaction, if it has been retired
    /// since `retired_at` without a break. Returns whether it has. Two write units, and two for each KB of
    /// its configuration.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn delete_version(
        &self,
        game_id: &GameId,
        id: &VersionId,
        retired_at: Timestamp,
    ) -> Result<bool, Error> {
        let entry = self
            .on_catalog(key(game_key(game_id), listed_key(id)))
            .when("#retired_at = :retired_at")
            .with(":retired_at", number(retired_at));
        let version = self.on_catalog(key(game_key(game_id), version_key(id)));
        let secrets = Write::to(&self.tables.secrets, secrets_key(id));
        let parts = [entry, version, secrets].map(Write::delete).to_vec();
        Ok(self.together(parts).await?.is_empty())
    }

    /// Checks that the game has the version and has not retired it, in the transaction that sets a namespace
    /// to it.
    pub(super) fn check_in_use(&self, game_id: &GameId, id: &VersionId) -> Write {
        self.on_catalog(key(game_key(game_id), listed_key(id)))
            .when("attribute_exists(#sk) AND attribute_not_exists(#retired_at)")
    }
}
