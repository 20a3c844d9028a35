//! Versions that are to be deleted: retired first, so that no namespace can be set to them, then gone with
//! their secrets.

use aws_sdk_dynamodb::types::{
    ConditionCheck, Delete, ReturnValue, TransactWriteItem, builders::DeleteBuilder,
};

use crate::{
    base::ambient::Timestamp,
    models::{
        errors::Error,
        ids::{GameId, VersionId},
        version::ListedVersion,
    },
    store::{
        catalog::is_conditional,
        client::Store,
        expressions::names,
        failures::failure,
        items::{from_item, number},
        keys::{game_key, key, listed_key, version_key},
        secrets::secrets_key,
    },
};

impl Store {
    /// Retires a version: no namespace can be set to it from now on. As it then is, with when it was first
    /// retired; `None` when the game has no such version. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn retire_version(
        &self,
        game_id: &GameId,
        id: &VersionId,
        now: Timestamp,
    ) -> Result<Option<ListedVersion>, Error> {
        let change = "SET #retired_at = if_not_exists(#retired_at, :now)";
        let write = self
            .catalog_update(key(game_key(game_id), listed_key(id)), change, "attribute_exists(#sk)")
            .expression_attribute_values(":now", number(now))
            .return_values(ReturnValue::AllNew)
            .return_consumed_capacity(self.meter.mode());
        match write.send().await {
            Ok(answer) => {
                self.meter.wrote(answer.consumed_capacity());
                answer.attributes.map(from_item).transpose()
            }
            Err(error) if is_conditional(error.as_service_error()) => {
                self.meter.refused(1.0);
                Ok(None)
            }
            Err(error) => Err(failure(&error)),
        }
    }

    /// Takes a version's retirement back; whether the game has the version. One write unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn keep_version(&self, game_id: &GameId, id: &VersionId) -> Result<bool, Error> {
        let key = key(game_key(game_id), listed_key(id));
        self.applies(self.catalog_update(key, "REMOVE #retired_at", "attribute_exists(#sk)")).await
    }

    /// Deletes a version with its secrets and its entry in lists, in one transaction; nothing of it unless it
    /// has been retired since `retired_at` without a break. Whether it has. Two write units, and two for each
    /// KB of its configuration.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn delete_version(
        &self,
        game_id: &GameId,
        id: &VersionId,
        retired_at: Timestamp,
    ) -> Result<bool, Error> {
        let catalog = || Delete::builder().table_name(&self.tables.catalog);
        let entry = catalog()
            .set_key(Some(key(game_key(game_id), listed_key(id))))
            .condition_expression("#retired_at = :retired_at")
            .expression_attribute_names("#retired_at", "retired_at")
            .expression_attribute_values(":retired_at", number(retired_at));
        let version = catalog().set_key(Some(key(game_key(game_id), version_key(id))));
        let secrets = Delete::builder().table_name(&self.tables.secrets).set_key(Some(secrets_key(id)));
        let parts = vec![delete(entry)?, delete(version)?, delete(secrets)?];
        Ok(self.together(parts).await?.is_empty())
    }

    /// That the game has a version which is not retired, as a part of the transaction that sets a namespace
    /// to it.
    pub(super) fn check_in_use(&self, game_id: &GameId, id: &VersionId) -> Result<TransactWriteItem, Error> {
        let condition = "attribute_exists(#sk) AND attribute_not_exists(#retired_at)";
        let check = ConditionCheck::builder()
            .table_name(&self.tables.catalog)
            .set_key(Some(key(game_key(game_id), listed_key(id))))
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names(&[condition])))
            .build()
            .map_err(|error| Error::Bug(error.to_string()))?;
        Ok(TransactWriteItem::builder().condition_check(check).build())
    }
}

fn delete(part: DeleteBuilder) -> Result<TransactWriteItem, Error> {
    let delete = part.build().map_err(|error| Error::Bug(error.to_string()))?;
    Ok(TransactWriteItem::builder().delete(delete).build())
}
