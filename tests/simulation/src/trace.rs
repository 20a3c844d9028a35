//! What happened, line by line, and a digest of all of it by which two runs are compared.

use std::{
    collections::VecDeque,
    fmt::Write as _,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use serde_json::Value;

/// Lines that are kept for the report of a failure.
const KEPT: usize = 44;

/// A run's record.
#[derive(Debug)]
pub(crate) struct Trace {
    lines: VecDeque<String>,
    is_whole: bool,
    digest: Option<DefaultHasher>,
}

impl Trace {
    /// A record of the last lines or of all of them, with or without a digest.
    pub(crate) fn new(is_whole: bool, has_digest: bool) -> Self {
        Self { lines: VecDeque::new(), is_whole, digest: has_digest.then(DefaultHasher::new) }
    }

    /// Adds a line that happened at `at` milliseconds.
    pub(crate) fn note(&mut self, at: u64, line: &str) {
        if let Some(digest) = &mut self.digest {
            (at, line).hash(digest);
        }
        if !self.is_whole && self.lines.len() == KEPT {
            self.lines.pop_front();
        }
        let mut text = format!("{:>9.3}  ", at as f64 / 1_000.0);
        let _infallible = text.write_str(line);
        self.lines.push_back(text);
    }

    /// Adds `value` to the digest, with its keys sorted: the SDK's maps have no order.
    pub(crate) fn digest(&mut self, value: &Value) {
        if let Some(digest) = &mut self.digest {
            hash(value, digest);
        }
    }

    pub(crate) fn into_parts(self) -> (Vec<String>, u64) {
        (self.lines.into(), self.digest.map_or(0, |digest| digest.finish()))
    }
}

fn hash(value: &Value, into: &mut DefaultHasher) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            for (name, field) in fields {
                name.hash(into);
                hash(field, into);
            }
            '}'.hash(into);
        }
        Value::Array(items) => {
            items.iter().for_each(|item| hash(item, into));
            ']'.hash(into);
        }
        other => other.to_string().hash(into),
    }
}
