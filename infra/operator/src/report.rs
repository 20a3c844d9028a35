//! The command's output: text for people, JSON for programs.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use shared::cloud::provision::CreatedGame;

use crate::error::CommandError;

/// The result of a command.
pub(crate) type Reported = Result<Report, CommandError>;

/// Output in both forms.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub text: String,
    pub json: Value,
}

impl Report {
    /// The output of a command without a result.
    pub fn done() -> Self {
        Self { text: "done".to_owned(), json: json!({}) }
    }

    /// A table, and the same as JSON.
    pub fn table<const N: usize>(head: [&str; N], rows: Vec<[String; N]>, json: Value) -> Self {
        Self { text: table(head, rows), json }
    }

    /// A table with a row for each of `items`, and the same as JSON: an array called `name`.
    pub fn of_each<T, const N: usize>(
        name: &str,
        head: [&str; N],
        items: impl IntoIterator<Item = T>,
        both: impl Fn(T) -> ([String; N], Value),
    ) -> Self {
        let (rows, json): (_, Vec<_>) = items.into_iter().map(both).unzip();
        Self::table(head, rows, json!({ name: json }))
    }

    /// Named values, one per line.
    pub fn list(lines: Vec<(&str, String)>, json: Value) -> Self {
        let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let lines: Vec<_> =
            lines.into_iter().map(|(name, value)| format!("{name:width$}  {value}")).collect();
        Self { text: lines.join("\n"), json }
    }

    /// A new game, with its token, which is shown only now.
    pub fn of_created(created: &CreatedGame) -> Self {
        let namespaces: BTreeMap<_, _> = created
            .namespaces
            .iter()
            .map(|namespace| (&namespace.name_id, &namespace.namespace_id))
            .collect();
        let json = json!({
            "game_id": created.game.game_id,
            "version_id": created.version.version_id,
            "namespaces": namespaces,
            "cloud_token": created.cloud_token.reveal(),
        });
        let mut lines = vec![
            ("game", format!("{}  {}", created.game.game_id, created.game.name_id)),
            ("version", format!("{}  {}", created.version.version_id, created.version.display_name)),
        ];
        let namespaces = created.namespaces.iter();
        lines.extend(namespaces.map(|new| ("namespace", format!("{}  {}", new.namespace_id, new.name_id))));
        lines.push(("token", created.cloud_token.reveal().to_owned()));
        let mut report = Self::list(lines, json);
        report.text.push_str("\nKeep the token now: only its digest is stored, so it cannot be shown again.");
        report
    }

    /// The text to print.
    #[cfg(feature = "aws")]
    pub fn show(self, as_json: bool) -> String {
        if as_json { self.json.to_string() } else { self.text }
    }
}

/// A number of things in words, such as `1 lobby` or `3 domains`.
pub(crate) fn counted(count: usize, one: &str) -> String {
    match (count, one.strip_suffix('y')) {
        (1, _) => format!("1 {one}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {one}s"),
    }
}

/// Rows in columns under a head, which also shows when there are none.
fn table<const N: usize>(head: [&str; N], rows: Vec<[String; N]>) -> String {
    let head = head.map(str::to_uppercase);
    let all: Vec<[String; N]> = std::iter::once(head).chain(rows).collect();
    let mut widths = [0; N];
    for row in &all {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &[String; N]| {
        let cells: Vec<_> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    all.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_things_is_said_in_words() {
        let said = [counted(0, "lobby"), counted(1, "lobby"), counted(37, "player")];
        assert_eq!(said, ["0 lobbies", "1 lobby", "37 players"]);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = vec![["a".to_owned(), "1".to_owned()], ["größer".to_owned(), String::new()]];
        assert_eq!(table(["name", "n"], rows), "NAME    N\na       1\ngrößer");
        assert_eq!(table(["name", "n"], Vec::new()), "NAME  N");
    }
}
