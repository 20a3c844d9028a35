//! Copying a table that was restored from a backup into the deployment's own.

use aws_sdk_dynamodb::error::ProvideErrorMetadata as _;
use futures_util::{TryStreamExt as _, stream};

use crate::{
    models::errors::Error,
    store::{client::Store, failures::failure, items::Item, listing::QUERIES_AT_ONCE},
};

/// The result of a copy of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyOutcome {
    /// So many items are copied.
    Copied(usize),
    /// There is no table of that name.
    NoTable,
    /// Its items have another key: it is a copy of another table.
    OtherKey,
}

/// Why a copy ended early.
enum Ended {
    With(CopyOutcome),
    Failed(Error),
}

impl Store {
    /// Copies every item of the table `restored` into the table `own`, over those of the same key. Reads the
    /// whole of `restored`; one write for each item: for the operator, never for an operation.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`]; items before the failure are copied.
    pub async fn copy_items(&self, restored: &str, own: &str) -> Result<CopyOutcome, Error> {
        match self.try_copy(restored, own).await {
            Ok(count) => Ok(CopyOutcome::Copied(count)),
            Err(Ended::With(outcome)) => Ok(outcome),
            Err(Ended::Failed(error)) => Err(error),
        }
    }

    async fn try_copy(&self, restored: &str, own: &str) -> Result<usize, Ended> {
        let (mut items, mut start): (Vec<Item>, _) = (Vec::new(), None);
        loop {
            let scan = self
                .client
                .scan()
                .table_name(restored)
                .consistent_read(true)
                .set_exclusive_start_key(start)
                .return_consumed_capacity(self.meter.mode());
            let answer = scan.send().await.map_err(|error| match error.code() {
                Some("ResourceNotFoundException") => Ended::With(CopyOutcome::NoTable),
                _ => Ended::Failed(failure(&error)),
            })?;
            self.meter.read(answer.consumed_capacity());
            items.extend(answer.items.unwrap_or_default());
            start = answer.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        let count = items.len();
        let puts = stream::iter(items.into_iter().map(Ok));
        puts.try_for_each_concurrent(QUERIES_AT_ONCE, |item| self.put_copy(own, item)).await?;
        Ok(count)
    }

    async fn put_copy(&self, own: &str, item: Item) -> Result<(), Ended> {
        let put = self.client.put_item().table_name(own).set_item(Some(item));
        let put = put.return_consumed_capacity(self.meter.mode()).send().await;
        let answer = put.map_err(|error| match error.code() {
            Some("ValidationException") => Ended::With(CopyOutcome::OtherKey),
            _ => Ended::Failed(failure(&error)),
        })?;
        self.meter.wrote(answer.consumed_capacity());
        Ok(())
    }
}
