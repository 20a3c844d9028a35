//! Copying tables that were restored from a backup into the deployment's own.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value};
use shared::store::{client::TableNames, restoring::CopyOutcome};

use crate::{
    consent::Consent,
    deployment::Deployment,
    error::CommandError,
    report::{Report, Reported},
};

/// What is copied.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// A table of the deployment, `catalog`, `tokens` or `secrets`, and the name of the restored one.
    #[arg(value_name = "TABLE=RESTORED", required = true)]
    tables: Vec<RestoredTable>,
    #[command(flatten)]
    consent: Consent,
}

impl Restore {
    /// What is copied, in words.
    pub fn target(&self) -> String {
        let tables = self.tables.iter().map(|table| format!("{}={}", table.own, table.restored));
        tables.collect::<Vec<_>>().join(" ")
    }
}

/// A table of the deployment beside the one that was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RestoredTable {
    own: Table,
    restored: String,
}

/// The tables that do not refill by themselves. Restored lobbies and game servers would no longer exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, strum::Display)]
#[strum(serialize_all = "lowercase")]
enum Table {
    Catalog,
    Tokens,
    Secrets,
}

impl Table {
    fn of(self, tables: &TableNames) -> &str {
        match self {
            Self::Catalog => &tables.catalog,
            Self::Tokens => &tables.tokens,
            Self::Secrets => &tables.secrets,
        }
    }
}

impl FromStr for RestoredTable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (own, restored) = text.split_once('=').unwrap_or((text, ""));
        let own = Table::from_str(own, false)
            .map_err(|_| format!("`{own}` is none of catalog, tokens and secrets"))?;
        if restored.is_empty() {
            return Err(format!("name the restored table, such as {own}=restored"));
        }
        if !is_table_name(restored) {
            return Err("a table's name has 3 to 255 characters of A-Z a-z 0-9 _ . -".to_owned());
        }
        Ok(Self { own, restored: restored.to_owned() })
    }
}

fn is_table_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (3..=255).contains(&text.len()) && text.bytes().all(is_plain)
}

/// Copies each restored table into the deployment's own.
pub(crate) async fn run(restore: Restore, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let (mut rows, mut json) = (Vec::new(), Map::new());
    let copies = restore.tables.iter().map(|table| format!("{} over {}", table.restored, table.own));
    let copies = copies.collect::<Vec<_>>().join(", ");
    restore.consent.to(&format!("copies {copies}, and overwrites items of the same key"), deployment)?;
    for RestoredTable { own, restored } in restore.tables {
        let items = match store.copy_items(&restored, own.of(store.tables())).await? {
            CopyOutcome::Copied(items) => items,
            CopyOutcome::NoTable => {
                let hint =
                    "restore it under this name first: `aws dynamodb list-tables` lists those there are";
                return Err(CommandError::Unknown { what: "table", name: restored, hint: hint.to_owned() });
            }
            CopyOutcome::OtherKey => {
                return Err(CommandError::Refused(format!(
                    "{restored} is no copy of {own}: it has another key"
                )));
            }
        };
        rows.push([own.to_string(), restored, items.to_string()]);
        json.insert(own.to_string(), items.into());
    }
    Ok(Report::table(["table", "copied from", "items"], rows, Value::Object(json)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restored_table_is_named_beside_one_that_does_not_fill_again_by_itself() {
        let parsed: RestoredTable = "tokens=restored-1".parse().unwrap();
        assert_eq!(parsed, RestoredTable { own: Table::Tokens, restored: "restored-1".to_owned() });
        for text in ["lobbies=restored", "tokens", "tokens=", "=restored", "", "tokens=a b", "tokens=ab"] {
            assert!(text.parse::<RestoredTable>().is_err(), "{text}");
        }
    }
}
