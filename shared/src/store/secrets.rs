//! Secrets of versions in the local stack, in a table that no deployment has: there they are parameters of Systems Manager
//! ([`crate::secrets`]).

use serde::Deserialize;

use super::{Item, Store, failure, text};
use crate::errors::Error;

#[derive(Deserialize)]
struct Kept {
    value: String,
}

impl Store {
    /// Keeps a secret. One write unit for each KB.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub(crate) async fn put_secret(&self, name: &str, value: String) -> Result<(), Error> {
        let put = self
            .client
            .put_item()
            .table_name(&self.tables.secrets)
            .item("name", text(name))
            .item("value", text(value))
            .return_consumed_capacity(self.meter.mode());
        let answer = put.send().await.map_err(|error| failure(&error))?;
        self.meter.wrote(answer.consumed_capacity());
        Ok(())
    }

    /// A secret that was kept. One consistent read unit for each started 4 KB.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub(crate) async fn secret(&self, name: &str) -> Result<Option<String>, Error> {
        let key = Item::from([("name".to_owned(), text(name))]);
        let kept: Option<Kept> = self.read(&self.tables.secrets, key).await?;
        Ok(kept.map(|kept| kept.value))
    }
}
