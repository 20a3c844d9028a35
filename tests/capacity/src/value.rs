//! Attribute values as DynamoDB sends and measures them.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An item, or a map within one.
pub type Item = BTreeMap<String, Value>;

/// An attribute's value, in DynamoDB's JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// Text.
    S(String),
    /// A number.
    N(Number),
    /// Bytes, in base64.
    B(String),
    /// True or false.
    #[serde(rename = "BOOL")]
    Bool(bool),
    /// Null.
    #[serde(rename = "NULL")]
    Null(bool),
    /// A map.
    M(Item),
    /// A list.
    L(Vec<Self>),
    /// A set of texts.
    #[serde(rename = "SS")]
    Texts(BTreeSet<String>),
    /// A set of bytes, in base64.
    #[serde(rename = "BS")]
    Bytes(BTreeSet<String>),
}

/// A number: whole ones as such, others as they were written.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// A whole number.
    Whole(i64),
    /// Any other.
    Other(String),
}

impl Number {
    fn as_f64(&self) -> f64 {
        match self {
            Self::Whole(number) => *number as f64,
            Self::Other(text) => text.parse().unwrap_or(f64::NAN),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => number.fmt(f),
            Self::Other(text) => text.fmt(f),
        }
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(text.parse().map_or(Self::Other(text), Self::Whole))
    }
}

impl Value {
    /// A whole number.
    #[must_use]
    pub const fn whole(number: i64) -> Self {
        Self::N(Number::Whole(number))
    }

    /// As an expression compares; nothing for values of different kinds.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::N(Number::Whole(a)), Self::N(Number::Whole(b))) => Some(a.cmp(b)),
            (Self::N(a), Self::N(b)) => a.as_f64().partial_cmp(&b.as_f64()),
            (Self::S(a), Self::S(b)) => Some(a.cmp(b)),
            _ => (self == other).then_some(Ordering::Equal),
        }
    }

    /// The whole number that it is.
    ///
    /// # Panics
    /// When it is none.
    #[must_use]
    pub fn to_whole(&self) -> i64 {
        match self {
            Self::N(Number::Whole(number)) => *number,
            other => panic!("{other:?} is no whole number"),
        }
    }

    /// As part of a key.
    ///
    /// # Panics
    /// When it can be none.
    #[must_use]
    pub fn to_key(&self) -> String {
        match self {
            Self::S(text) => text.clone(),
            Self::N(number) => number.to_string(),
            other => panic!("{other:?} is no key"),
        }
    }

    /// Bytes, as the guide counts them under "Item sizes and formats".
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::S(text) => text.len(),
            Self::N(number) => number.to_string().trim_end_matches('0').len().div_ceil(2) + 1,
            Self::B(text) => text.len() * 3 / 4,
            Self::Bool(_) | Self::Null(_) => 1,
            Self::M(map) => 3 + map.len() + size(map),
            Self::L(list) => 3 + list.len() + list.iter().map(Self::size).sum::<usize>(),
            Self::Texts(set) => set.iter().map(String::len).sum(),
            Self::Bytes(set) => set.iter().map(|bytes| bytes.len() * 3 / 4).sum(),
        }
    }
}

/// Bytes of an item.
#[must_use]
pub fn size(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + value.size()).sum()
}

/// Units of `bytes`; even nothing costs one.
#[must_use]
pub fn units(bytes: usize, unit_bytes: usize) -> f64 {
    bytes.div_ceil(unit_bytes).max(1) as f64
}
