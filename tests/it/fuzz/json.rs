//! JSON text that is generated: any, and such that differs a little from what is valid.

use std::fmt;

use proptest::{
    collection::{SizeRange, vec},
    prelude::{any, prop_oneof},
    sample::{Index, select},
    strategy::{Just, Strategy},
};
use serde_json::Value;

/// JSON as text has it: numbers of any length, keys any number of times, and what only looks like JSON.
#[derive(Clone, PartialEq)]
pub enum Json {
    /// As it stands: a number, a word, or something that is no JSON.
    Raw(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub fn null() -> Self {
        Self::Raw("null".to_owned())
    }

    fn nested(depth: u16) -> Self {
        let depth = usize::from(depth);
        Self::Raw(format!("{}{}", "[".repeat(depth), "]".repeat(depth)))
    }

    /// The value itself and all within it.
    fn count(&self) -> usize {
        match self {
            Self::Raw(_) | Self::Text(_) => 1,
            Self::List(items) => 1 + items.iter().map(Self::count).sum::<usize>(),
            Self::Object(fields) => 1 + fields.iter().map(|(_, field)| field.count()).sum::<usize>(),
        }
    }

    /// The `n`-th of them, the value itself being the first.
    fn nth(&mut self, mut n: usize) -> &mut Self {
        if n == 0 {
            return self;
        }
        n -= 1;
        let parts: Vec<&mut Self> = match self {
            Self::List(items) => items.iter_mut().collect(),
            Self::Object(fields) => fields.iter_mut().map(|(_, field)| field).collect(),
            Self::Raw(_) | Self::Text(_) => Vec::new(),
        };
        for part in parts {
            let count = part.count();
            if n < count {
                return part.nth(n);
            }
            n -= count;
        }
        panic!("there are fewer values");
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(fields) => {
                Self::Object(fields.iter().map(|(name, field)| (name.clone(), field.into())).collect())
            }
            other => Self::Raw(other.to_string()),
        }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separate = |f: &mut fmt::Formatter<'_>, n| if n > 0 { f.write_str(",") } else { Ok(()) };
        match self {
            Self::Raw(text) => f.write_str(text),
            Self::Text(text) => write!(f, "{}", Value::from(text.as_str())),
            Self::List(items) => {
                f.write_str("[")?;
                for (n, item) in items.iter().enumerate() {
                    separate(f, n)?;
                    item.fmt(f)?;
                }
                f.write_str("]")
            }
            Self::Object(fields) => {
                f.write_str("{")?;
                for (n, (name, field)) in fields.iter().enumerate() {
                    separate(f, n)?;
                    write!(f, "{}:{field}", Value::from(name.as_str()))?;
                }
                f.write_str("}")
            }
        }
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Texts that mean something to some operation, and the placeholders of example events.
const KNOWN_TEXTS: &str = "arena duel solo fra nyc public private none basic http https tcp tcp_tls udp find null 0 nil \
    LOBBY_ID SERVER_ID VERSION_ID FRESH_NAME PLAYER_TOKEN LOBBY_TOKEN $2b$04$ [::1] 1~LOBBY_ID \
    00000000-0000-0000-0000-000000000000";

/// Names that fields have.
const KNOWN_NAMES: &str = "game_modes regions tags max_players prevent_auto_create_lobby captcha hcaptcha turnstile \
    client_response verification_data player_data details lobby_id game_mode region publicity lobby_config is_closed player_token server_id \
    region_id capacity ports hostname port port_range min max protocol lease_seconds auto_ready cursor display_name \
    config actions enabled";

/// Numbers and words at the edges of types, and what is no JSON at all.
const EDGES: &str = r#"null true false 0 1 2 8 -1 -0 0.0 1.0 0.5 -0.5 1e0 1E2 1e-7 1e308 1e309 -1e400 255 256 257 32767
    32768 65535 65536 2147483648 4294967295 4294967296 9007199254740993 18446744073709551615 18446744073709551616
    -9223372036854775809 123456789012345678901234567890 01 +1 .5 1. NaN Infinity 'a' "\ud800" "\ud83c\udfae" "\x41""#;

/// One of the words of a text.
fn word(words: &'static str) -> impl Strategy<Value = String> + Clone {
    select(words.split_whitespace().collect::<Vec<_>>()).prop_map(str::to_owned)
}

/// Lengths at which some text becomes too long.
const LENGTHS: [usize; 16] = [1, 2, 16, 17, 60, 61, 63, 64, 65, 128, 129, 253, 254, 512, 513, 700];

/// Any text: known, none, plain, odd, long.
pub fn text() -> impl Strategy<Value = String> + Clone {
    let part = select(&["x", "\u{e4}", "\u{1f3ae}", " ", "\u{0}", "-", "a."][..]);
    prop_oneof![
        6 => word(KNOWN_TEXTS),
        1 => Just(String::new()),
        4 => "[a-zA-Z0-9_-]{1,70}",
        2 => any::<String>(),
        2 => "\\PC{1,12}",
        2 => (part, select(&LENGTHS[..])).prop_map(|(part, count)| part.repeat(count)),
    ]
}

/// Any number that a field may have, most often near a bound.
fn number() -> impl Strategy<Value = u32> {
    const BOUNDS: [u32; 10] = [0, 5, 10, 256, 600, 32_767, 65_535, 86_400, 1_000_000, u32::MAX];
    prop_oneof![
        3 => (select(&BOUNDS[..]), -1..2_i64).prop_map(|(bound, by)| (i64::from(bound) + by).try_into().unwrap_or(bound)),
        1 => 0..400_u32,
        1 => any::<u32>(),
    ]
}

/// Any name of a field.
pub fn name() -> impl Strategy<Value = String> {
    prop_oneof![3 => word(KNOWN_NAMES), 1 => text()]
}

/// Any JSON and what only looks like it.
pub fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        6 => word(EDGES).prop_map(Json::Raw),
        4 => text().prop_map(Json::Text),
        1 => any::<f64>().prop_map(|number| Json::Raw(number.to_string())),
        1 => any::<i64>().prop_map(|number| Json::Raw(number.to_string())),
        1 => (0..400_u16).prop_map(Json::nested),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Json::List),
            vec((name(), inner), 0..6).prop_map(Json::Object),
        ]
    })
}

/// One difference from a valid value.
#[derive(Clone, Debug)]
pub struct Mutation {
    /// Which of the values within it, and itself.
    at: Index,
    change: Change,
}

#[derive(Clone, Debug)]
enum Change {
    Put(Json),
    /// Another of the same kind.
    Other(String, u32),
    Wrap,
    Unwrap(Index),
    /// Of those that are in it.
    Remove(Index),
    Rename(Index, String),
    Repeat(Index, Json),
    Add(String, Json),
    /// One of its fields again, under another name.
    Copy(Index, String),
    /// Text goes on with this; a number with a digit.
    Extend(String),
    /// Text loses its last character; a number gets a sign.
    Cut,
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let change = prop_oneof![
        3 => any_json().prop_map(Change::Put),
        14 => (text(), number()).prop_map(|(text, number)| Change::Other(text, number)),
        1 => Just(Change::Wrap),
        1 => any::<Index>().prop_map(Change::Unwrap),
        3 => any::<Index>().prop_map(Change::Remove),
        1 => (any::<Index>(), name()).prop_map(|(at, name)| Change::Rename(at, name)),
        2 => (any::<Index>(), any_json()).prop_map(|(at, json)| Change::Repeat(at, json)),
        4 => (name(), any_json()).prop_map(|(name, json)| Change::Add(name, json)),
        3 => (any::<Index>(), text()).prop_map(|(at, name)| Change::Copy(at, name)),
        2 => text().prop_map(Change::Extend),
        1 => Just(Change::Cut),
    ];
    (any::<Index>(), change).prop_map(|(at, change)| Mutation { at, change })
}

/// Some differences from a valid value.
pub fn mutations(count: impl Into<SizeRange>) -> impl Strategy<Value = Vec<Mutation>> {
    vec(mutation(), count)
}

/// The value with all of its differences.
pub fn mutated(valid: &Value, mutations: &[Mutation]) -> Json {
    let mut json = Json::from(valid);
    for Mutation { at, change } in mutations {
        let count = json.count();
        change.apply(json.nth(at.index(count)));
    }
    json
}

impl Change {
    fn apply(&self, json: &mut Json) {
        match (self, &mut *json) {
            (Self::Put(new), _) => *json = new.clone(),
            (Self::Other(other, _), Json::Text(text)) => text.clone_from(other),
            (Self::Other(_, number), Json::Raw(raw)) => {
                *raw = if raw == "true" { "false".to_owned() } else { number.to_string() };
            }
            (Self::Other(other, _), Json::Object(fields)) if fields.len() == 1 => {
                fields[0].0.clone_from(other)
            }
            (Self::Other(..), Json::Object(fields)) => fields.reverse(),
            (Self::Other(..), Json::List(items)) => items.extend(items.clone()),
            (Self::Wrap, _) => *json = Json::List(vec![json.clone()]),
            (Self::Unwrap(at), Json::List(items)) if !items.is_empty() => {
                *json = items.swap_remove(at.index(items.len()));
            }
            (Self::Unwrap(at), Json::Object(fields)) if !fields.is_empty() => {
                *json = fields.swap_remove(at.index(fields.len())).1;
            }
            (Self::Remove(at), Json::List(items)) if !items.is_empty() => {
                items.remove(at.index(items.len()));
            }
            (Self::Remove(at), Json::Object(fields)) if !fields.is_empty() => {
                fields.remove(at.index(fields.len()));
            }
            (Self::Rename(at, name), Json::Object(fields)) if !fields.is_empty() => {
                let at = at.index(fields.len());
                fields[at].0.clone_from(name);
            }
            (Self::Repeat(at, new), Json::Object(fields)) if !fields.is_empty() => {
                let name = fields[at.index(fields.len())].0.clone();
                fields.push((name, new.clone()));
            }
            (Self::Copy(at, name), Json::Object(fields)) if !fields.is_empty() => {
                let field = fields[at.index(fields.len())].1.clone();
                fields.push((name.clone(), field));
            }
            (Self::Copy(at, _), Json::List(items)) if !items.is_empty() => {
                items.push(items[at.index(items.len())].clone());
            }
            (Self::Add(name, new), Json::Object(fields)) => fields.push((name.clone(), new.clone())),
            (Self::Repeat(_, new) | Self::Add(_, new), Json::List(items)) => items.push(new.clone()),
            (Self::Extend(more), Json::Text(text)) => text.push_str(more),
            (Self::Extend(_), Json::Raw(number)) => number.push('1'),
            (Self::Cut, Json::Text(text)) => drop(text.pop()),
            (Self::Cut, Json::Raw(number)) => number.insert(0, '-'),
            _ => *json = Json::null(),
        }
    }
}

/// One difference from a valid text.
#[derive(Clone, Debug)]
pub enum Edit {
    Delete(Index),
    Insert(Index, u8),
    Replace(Index, u8),
    CutFrom(Index),
}

/// Some differences from a valid text.
pub fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let byte = || prop_oneof![3 => select(&b"{}[]\":,\\ \n0-eE.tfn"[..]), 1 => any::<u8>()];
    let edit = prop_oneof![
        3 => any::<Index>().prop_map(Edit::Delete),
        3 => (any::<Index>(), byte()).prop_map(|(at, byte)| Edit::Insert(at, byte)),
        3 => (any::<Index>(), byte()).prop_map(|(at, byte)| Edit::Replace(at, byte)),
        1 => any::<Index>().prop_map(Edit::CutFrom),
    ];
    vec(edit, 1..4)
}

/// The text with all of its differences.
pub fn edited(valid: &str, edits: &[Edit]) -> Vec<u8> {
    let mut bytes = valid.as_bytes().to_vec();
    for edit in edits {
        let end = bytes.len();
        match edit {
            Edit::Insert(at, byte) => bytes.insert(at.index(end + 1), *byte),
            _ if end == 0 => {}
            Edit::Delete(at) => drop(bytes.remove(at.index(end))),
            Edit::Replace(at, byte) => bytes[at.index(end)] = *byte,
            Edit::CutFrom(at) => bytes.truncate(at.index(end)),
        }
    }
    bytes
}
