//! Reading many items by their keys.

use std::{collections::HashMap, time::Duration};

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
        let batches = batches.into_iter().map(|keys| async {
            let mut found = self.batch_get_of([(table, keys)], is_consistent).await?;
            Ok::<_, Error>(found.remove(table).unwrap_or_default())
        });
        stream::iter(batches).buffered(BATCHES_AT_ONCE).try_concat().await
    }

    /// Reads the items of up to a hundred different keys of some tables in one call, by table.
    pub(super) async fn batch_get_of<const TABLES: usize>(
        &self,
        wanted: [(&str, Vec<Item>); TABLES],
        is_consistent: bool,
    ) -> Result<HashMap<String, Vec<Item>>, Error> {
        let mut left = HashMap::new();
        for (table, keys) in wanted.into_iter().filter(|(_, keys)| !keys.is_empty()) {
            let keys = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(is_consistent);
            left.insert(table.to_owned(), keys.build().map_err(|error| Error::Bug(error.to_string()))?);
        }
        let (mut items, mut pauses) = (HashMap::<String, Vec<Item>>::new(), 0);
        while !left.is_empty() {
            let answer = self
                .client
                .batch_get_item()
                .set_request_items(Some(left))
                .return_consumed_capacity(self.meter.mode())
                .send()
                .await
                .map_err(|error| failure(&error))?;
            self.meter.read(answer.consumed_capacity());
            let mut has_progress = false;
            for (table, found) in answer.responses.unwrap_or_default() {
                has_progress |= !found.is_empty();
                items.entry(table).or_default().extend(found);
            }
            left = answer.unprocessed_keys.unwrap_or_default();
            if left.is_empty() {
                break;
            }
            pauses = if has_progress { 0 } else { pauses };
            if pauses == PAUSES_MAX {
                return Err(Error::Unavailable("DynamoDB: a batch made no progress".to_owned()));
            }
            // Sleeps as the client does between its own retries.
            if let Some(sleeper) = self.client.config().sleep_impl() {
                sleeper.sleep(PAUSES.nth(pauses)).await;
            }
            pauses += 1;
        }
        Ok(items)
    }
}
