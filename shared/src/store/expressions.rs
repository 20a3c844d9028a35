//! Placeholders of DynamoDB expressions.
//!
//! Expressions here write each attribute as `#name`: half of English is a reserved word of DynamoDB's.

use std::collections::HashMap;

/// The names behind the `#name` placeholders of `expressions`: each stands for the attribute of that name.
pub(super) fn names(expressions: &[&str]) -> HashMap<String, String> {
    let mut names = HashMap::new();
    for expression in expressions {
        for part in expression.split('#').skip(1) {
            let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(part.len());
            let name = part.get(..end).unwrap_or(part);
            names.insert(format!("#{name}"), name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_placeholder_stands_for_its_own_name() {
        let names = names(&["SET #taken = #taken + :one, #reserved.#seat = :until", "#taken < #max_players"]);
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort();
        let expected = ["max_players", "reserved", "seat", "taken"];
        assert_eq!(names, expected.map(|name| (format!("#{name}"), name.to_owned())));
    }
}
