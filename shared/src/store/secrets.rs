//! The table of versions' secrets, one item for each version that has some ([`crate::screening::secrets`]).

use serde::{Deserialize, Serialize};

use crate::{
    models::{errors::Error, ids::VersionId, version_secrets::VersionSecrets},
    store::{
        client::Store,
        items::{Item, text, to_item},
        writes::Write,
    },
};

/// The item: partition key `version_id`, the secrets as a map of texts.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SecretsItem {
    version_id: VersionId,
    secrets: VersionSecrets,
}

pub(super) fn secrets_key(version_id: &VersionId) -> Item {
    Item::from([("version_id".to_owned(), text(version_id.as_str()))])
}

impl Store {
    /// The write of a new version's secrets, for the version's own transaction.
    pub(super) fn put_secrets(
        &self,
        version_id: &VersionId,
        secrets: VersionSecrets,
    ) -> Result<Write, Error> {
        let item = to_item(&SecretsItem { version_id: version_id.clone(), secrets })?;
        Ok(Write::put(&self.tables.secrets, item).when("attribute_not_exists(#version_id)"))
    }

    /// The secrets of a version; `None` when there are none. One consistent read unit for each started 4 KB.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn version_secrets(&self, version_id: &VersionId) -> Result<Option<VersionSecrets>, Error> {
        let item: Option<SecretsItem> =
            self.read(&self.tables.secrets, secrets_key(version_id), true).await?;
        Ok(item.map(|item| item.secrets))
    }
}
