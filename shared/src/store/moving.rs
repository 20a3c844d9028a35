//! Copying every item of one deployment's tables into those of another, which takes over.

use std::collections::HashMap;

use futures_util::{TryStreamExt as _, stream};

use crate::{
    models::errors::Error,
    store::{
        client::{Store, TableNames},
        failures::failure,
        items::Item,
        listing::QUERIES_AT_ONCE,
    },
};

/// A copy that follows its source: each pass copies what changed since the one before.
#[derive(Debug)]
pub struct Transfer {
    from: Store,
    to: Store,
    /// What the target has, by table and key.
    copied: HashMap<(&'static str, Vec<String>), Item>,
}

/// What a pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Items that the source has.
    pub items: usize,
    /// Items that were new, changed or gone.
    pub written: usize,
}

/// The tables of both, each with the names of its key.
fn tables<'a>(
    from: &'a TableNames,
    to: &'a TableNames,
) -> [(&'static str, &'a str, &'a str, &'static [&'static str]); 8] {
    let TableNames { catalog, tokens, lobbies, lobby_data, servers, ledger, secrets, clients } = from;
    [
        ("catalog", catalog, &to.catalog, &["pk", "sk"]),
        ("tokens", tokens, &to.tokens, &["digest"]),
        ("secrets", secrets, &to.secrets, &["version_id"]),
        ("servers", servers, &to.servers, &["server"]),
        ("lobbies", lobbies, &to.lobbies, &["lobby_id"]),
        ("lobby data", lobby_data, &to.lobby_data, &["lobby_id", "part"]),
        ("ledger", ledger, &to.ledger, &["pk"]),
        ("clients", clients, &to.clients, &["pk"]),
    ]
}

impl Transfer {
    /// A copy of all that `from` has into `to`. Reads what `to` has, which an earlier copy may have left
    /// there.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn begin(from: Store, to: Store) -> Result<Self, Error> {
        let mut copied = HashMap::new();
        for (table, _, target, names) in tables(from.tables(), to.tables()) {
            let items = all(&to, target).await?;
            copied.extend(items.into_iter().map(|item| ((table, key_of(&item, names)), item)));
        }
        Ok(Self { from, to, copied })
    }

    /// Copies what the source has and the target lacks or has otherwise, and removes what the source lacks.
    /// Reads every table of the source, and holds it in memory: for the operator, never for an operation.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`]; a later pass completes what is missing.
    pub async fn pass(&mut self) -> Result<Pass, Error> {
        let mut pass = Pass::default();
        let (from, to) = (self.from.clone(), self.to.clone());
        for (table, source, target, names) in tables(from.tables(), to.tables()) {
            let mut gone: HashMap<_, _> = self.copied.extract_if(|(of, _), _| *of == table).collect();
            let mut puts = Vec::new();
            for item in all(&from, source).await? {
                let key = (table, key_of(&item, names));
                pass.items += 1;
                if gone.remove(&key).as_ref() == Some(&item) {
                    self.copied.insert(key, item);
                } else {
                    puts.push((key, item));
                }
            }
            pass.written += puts.len() + gone.len();
            let deletes = gone.into_values().map(|mut item| {
                item.retain(|name, _| names.contains(&name.as_str()));
                Ok(item)
            });
            stream::iter(deletes)
                .try_for_each_concurrent(QUERIES_AT_ONCE, |key| remove(&to, target, key))
                .await?;
            let items = puts.iter().map(|(_, item)| Ok(item.clone()));
            stream::iter(items)
                .try_for_each_concurrent(QUERIES_AT_ONCE, |item| put(&to, target, item))
                .await?;
            self.copied.extend(puts);
        }
        Ok(pass)
    }

    /// The tables of the target that lack an item of the last pass or have it otherwise. Items that have
    /// expired may be gone: the database deletes them.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn differences(&self, now_secs: u64) -> Result<Vec<&'static str>, Error> {
        let mut different = Vec::new();
        for (table, _, target, names) in tables(self.from.tables(), self.to.tables()) {
            let mut wanted: HashMap<_, _> = self.copied.iter().filter(|((of, _), _)| *of == table).collect();
            for item in all(&self.to, target).await? {
                let key = (table, key_of(&item, names));
                if wanted.get(&key).is_some_and(|wanted| **wanted == item) {
                    wanted.remove(&key);
                }
            }
            let is_expired = |item: &Item| {
                let expiry = item.get("expires_at").and_then(|value| value.as_n().ok()?.parse::<u64>().ok());
                expiry.is_some_and(|expiry| expiry <= now_secs)
            };
            if !wanted.into_values().all(is_expired) {
                different.push(table);
            }
        }
        Ok(different)
    }
}

/// The key of an item; all parts of all keys are texts.
fn key_of(item: &Item, names: &[&str]) -> Vec<String> {
    names.iter().filter_map(|name| item.get(*name)?.as_s().ok().cloned()).collect()
}

/// Every item of a table.
async fn all(store: &Store, table: &str) -> Result<Vec<Item>, Error> {
    let (mut items, mut start): (Vec<Item>, _) = (Vec::new(), None);
    loop {
        let scan = store.client().scan().table_name(table).consistent_read(true);
        let answer = scan.set_exclusive_start_key(start).send().await.map_err(|error| failure(&error))?;
        items.extend(answer.items.unwrap_or_default());
        start = answer.last_evaluated_key;
        if start.is_none() {
            return Ok(items);
        }
    }
}

async fn put(store: &Store, table: &str, item: Item) -> Result<(), Error> {
    let put = store.client().put_item().table_name(table).set_item(Some(item));
    put.send().await.map(drop).map_err(|error| failure(&error))
}

async fn remove(store: &Store, table: &str, key: Item) -> Result<(), Error> {
    let delete = store.client().delete_item().table_name(table).set_key(Some(key));
    delete.send().await.map(drop).map_err(|error| failure(&error))
}
