//! Placeholders of DynamoDB expressions.
//!
//! Expressions here write each attribute as `#name`, because DynamoDB reserves many common words.

use std::collections::HashMap;

/// The placeholders of `expression`, `#name` and `:value`, as often as they stand there.
pub(super) fn placeholders(expression: &str) -> impl Iterator<Item = &str> {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
    expression.match_indices(['#', ':']).filter_map(move |(start, _)| {
        let rest = expression.get(start..)?;
        let end = rest.char_indices().skip(1).find(|(_, c)| !is_inner(*c));
        rest.get(..end.map_or(rest.len(), |(end, _)| end))
    })
}

/// The names behind the `#name` placeholders of `expression`: each stands for the attribute of that name.
pub(super) fn names(expression: &str) -> HashMap<String, String> {
    let named = placeholders(expression).filter_map(|name| Some((name, name.strip_prefix('#')?)));
    named.map(|(placeholder, name)| (placeholder.to_owned(), name.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_placeholder_stands_for_its_own_name() {
        let mut names: Vec<_> =
            names("SET #taken = #taken + :one, #reserved.#seat = :until").into_iter().collect();
        names.sort();
        let expected = ["reserved", "seat", "taken"];
        assert_eq!(names, expected.map(|name| (format!("#{name}"), name.to_owned())));
    }
}
