//! A database of another release's tables, made anew with this one's.

use std::{fs, path::Path};

use dynoxide::Database;
use serde_json::{Value, json};

use super::{
    error::EmulatorError,
    in_process::InProcess,
    schema,
    stamp::{self, DATABASE_FILE, database_in},
};
use crate::{private, template::Table};

/// Name of the database being made, and of the one before, which is kept for a way back.
const NEW_FILE: &str = "muster.db.new";
/// The one before.
pub const BEFORE_FILE: &str = "muster.db.before-upgrade";

/// The most items that are written by one call.
const ITEMS_AT_ONCE: usize = 25;

/// Copies the items of every table of the database in `folder` into one with the shape of `tables`, and puts
/// that in its place. Tables that are not among them are left behind.
///
/// # Errors
/// [`EmulatorError`]; then the database is as it was.
pub(super) fn rebuild(folder: &Path, tables: &[Table]) -> Result<(), EmulatorError> {
    let unusable = |source| EmulatorError::Folder { folder: folder.to_owned(), source };
    let (path, new, before) = (folder.join(DATABASE_FILE), folder.join(NEW_FILE), folder.join(BEFORE_FILE));
    // Of an upgrade that was killed.
    for suffix in ["", "-wal", "-shm"] {
        match fs::remove_file(folder.join(format!("{NEW_FILE}{suffix}"))) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(unusable(error)),
            _ => {}
        }
    }
    private::open(&new).map_err(unusable)?;
    stamp::check(&new, false)?;
    let of = |path: &Path| database_in(folder, path)?.map_err(EmulatorError::Database);
    let (old, made) = (of(&path)?, of(&new)?);
    for table in tables {
        schema::ensure(&made, table)?;
    }
    // Synced as a whole below.
    made.enable_bulk_loading().map_err(EmulatorError::Database)?;
    let known = old.list_tables(Default::default()).map_err(EmulatorError::Database)?.table_names;
    for table in tables.iter().filter(|table| known.contains(&table.logical_id)) {
        let problem = |problem| EmulatorError::Unreadable { path: path.clone(), problem };
        copy(&old, &made, &table.logical_id).map_err(problem)?;
    }
    // The last connection to close moves the log into the file.
    drop((old, made));
    fs::File::open(&new).and_then(|file| file.sync_all()).map_err(unusable)?;
    let _none_before = fs::remove_file(&before);
    fs::hard_link(&path, &before).map_err(unusable)?;
    fs::rename(&new, &path).map_err(unusable)?;
    private::sync(folder).map_err(unusable)
}

fn copy(old: &Database, made: &Database, table: &str) -> Result<(), String> {
    let (old, made) = (InProcess::from(old.clone()), InProcess::from(made.clone()));
    let ask = |database: &InProcess, operation: &str, request: Value| {
        let answer = database.answer(operation, request.to_string().as_bytes());
        match answer.status {
            200 => serde_json::from_str::<Value>(&answer.body).map_err(|error| error.to_string()),
            _ => Err(format!("{operation} on {table}: {}", answer.body)),
        }
    };
    let mut start = Value::Null;
    loop {
        // The first one is `null`, which is none.
        let scan = json!({ "TableName": table, "ExclusiveStartKey": start });
        let mut page = ask(&old, "Scan", scan)?;
        let items = page.get("Items").and_then(Value::as_array).cloned().unwrap_or_default();
        for items in items.chunks(ITEMS_AT_ONCE) {
            let puts: Vec<_> = items.iter().map(|item| json!({ "PutRequest": { "Item": item } })).collect();
            ask(&made, "BatchWriteItem", json!({ "RequestItems": { table: puts } }))?;
        }
        start = page.get_mut("LastEvaluatedKey").map(Value::take).unwrap_or_default();
        if start.is_null() {
            return Ok(());
        }
    }
}
