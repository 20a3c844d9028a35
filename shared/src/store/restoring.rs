//! Copying a table that was restored from a backup into the deployment's own.

use futures_util::{TryStreamExt as _, stream};

use crate::{
    models::errors::Error,
    store::{
        client::Store,
        failures::failure,
        items::Item,
        listing::{QUERIES_AT_ONCE, all_pages},
    },
};

impl Store {
    /// Copies every item of the table `restored` into the table `own`, over those of the same key, and
    /// returns how many. Reads the whole of `restored`; one write for each item: for the operator, never for
    /// an operation.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when a table is missing, or has another key; items before it are copied.
    pub async fn copy_items(&self, restored: &str, own: &str) -> Result<usize, Error> {
        let items: Vec<Item> = all_pages(|start| async move {
            let scan = self
                .client
                .scan()
                .table_name(restored)
                .consistent_read(true)
                .set_exclusive_start_key(start)
                .return_consumed_capacity(self.meter.mode());
            let answer = scan.send().await.map_err(|error| failure(&error))?;
            self.meter.read(answer.consumed_capacity());
            Ok((answer.items.unwrap_or_default(), answer.last_evaluated_key))
        })
        .await?;
        let count = items.len();
        let puts = stream::iter(items.into_iter().map(Ok));
        puts.try_for_each_concurrent(QUERIES_AT_ONCE, |item| self.put_copy(own, item)).await?;
        Ok(count)
    }

    async fn put_copy(&self, own: &str, item: Item) -> Result<(), Error> {
        let put = self.client.put_item().table_name(own).set_item(Some(item));
        let put = put.return_consumed_capacity(self.meter.mode()).send().await;
        let answer = put.map_err(|error| failure(&error))?;
        self.meter.wrote(answer.consumed_capacity());
        Ok(())
    }
}
