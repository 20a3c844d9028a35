//! Reading many items by their keys.

use std::time::Duration;

use aws_sdk_dynamodb::{config::AsyncSleep as _, types::KeysAndAttributes};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use crate::{
    base::pauses::Pauses,
    models::errors::Error,
    store::{client::Store, failures::failure, items::Item},
};

/// Items that DynamoDB reads in one batch.
const BATCH_MAX: usize = 100;
/// Batches under way at the same time.
const BATCHES_AT_ONCE: usize = 16;
/// Pauses before a batch retries keys that DynamoDB left unprocessed: such a table is throttled at that
/// moment.
const PAUSES: Pauses = Pauses::doubling(Duration::from_millis(25));
/// Such pauses before a batch gives up, unless DynamoDB reads some keys each time.
const PAUSES_MAX: u32 = 3;

impl Store {
    /// Reads the items of `wanted` keys, a hundred in a call. A key that is given twice is read once: an
    /// index may show an item at its old and its new place, and DynamoDB refuses a batch with duplicate keys.
    pub(super) async fn batch_get(
        &self,
        table: &str,
        wanted: Vec<Item>,
        is_consistent: bool,
    ) -> Result<Vec<Item>, Error> {
        let mut batches: Vec<Vec<Item>> = Vec::new();
        for keys in wanted.chunks(BATCH_MAX) {
            let mut batch: Vec<Item> = Vec::with_capacity(keys.len());
            for key in keys {
                if !batch.contains(key) {
                    batch.push(key.clone());
                }
            }
            batches.push(batch);
        }
        let batches = batches.into_iter().map(|keys| self.get_one_batch(table, keys, is_consistent));
        stream::iter(batches).buffered(BATCHES_AT_ONCE).try_concat().await
    }

    async fn get_one_batch(
        &self,
        table: &str,
        mut keys: Vec<Item>,
        is_consistent: bool,
    ) -> Result<Vec<Item>, Error> {
        let (mut items, mut pauses) = (Vec::new(), 0);
        loop {
            let request = KeysAndAttributes::builder()
                .set_keys(Some(std::mem::take(&mut keys)))
                .consistent_read(is_consistent)
                .build()
                .map_err(|error| Error::Bug(error.to_string()))?;
            let answer = self
                .client
                .batch_get_item()
                .request_items(table, request)
                .return_consumed_capacity(self.meter.mode())
                .send()
                .await
                .map_err(|error| failure(&error))?;
            self.meter.read(answer.consumed_capacity());
            let found: Vec<Item> = answer.responses.unwrap_or_default().into_values().flatten().collect();
            if !found.is_empty() {
                pauses = 0;
            }
            items.extend(found);
            let Some(rest) = answer.unprocessed_keys.and_then(|mut rest| rest.remove(table)) else {
                return Ok(items);
            };
            if pauses == PAUSES_MAX {
                return Err(Error::Unavailable("DynamoDB: a batch made no progress".to_owned()));
            }
            // Sleeps as the client does between its own retries.
            if let Some(sleeper) = self.client.config().sleep_impl() {
                sleeper.sleep(PAUSES.nth(pauses)).await;
            }
            pauses += 1;
            keys = rest.keys;
        }
    }
}
