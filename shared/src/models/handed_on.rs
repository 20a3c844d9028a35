//! JSON that Muster passes on from one party to another, so that every parser must be able to read it.
//!
//! Muster passes the text on as it was sent. So it checks the whole text, including values that a later field
//! of the same name replaces.

use std::fmt;

use serde::{
    Deserializer, Serialize,
    de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor},
};
use serde_json::{error::Category, value::RawValue};

use crate::models::errors::{Error, bad_body};

/// How deep arrays and objects may nest in a player's JSON. Parsers of other languages stop at 64 or at 100,
/// and responses add a few levels of their own.
pub const DEPTH_MAX: usize = 16;
/// The same for the state of a lobby, which may describe a whole world.
pub const STATE_DEPTH_MAX: usize = 32;

/// JSON text that every parser reads.
#[derive(Clone, Debug, Serialize)]
pub struct HandedOn(Box<RawValue>);

impl HandedOn {
    /// The JSON `text` at `path` of a body, in which arrays and objects nest at most `depth_max` deep.
    ///
    /// # Errors
    /// [`Error::BadBody`] for deeper text, a number that is not finite as a double, and a lone surrogate.
    pub fn new(text: &RawValue, path: &str, depth_max: usize) -> Result<Self, Error> {
        let depth = Depth { left: depth_max, max: depth_max };
        let checked = depth.deserialize(&mut serde_json::Deserializer::from_str(text.get()));
        checked.map_err(|error| bad_body(path, &problem(&error)))?;
        Ok(Self(text.to_owned()))
    }

    /// The text, exactly as it was sent.
    #[must_use]
    pub fn json(&self) -> &RawValue {
        &self.0
    }

    /// Whether it is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.0.get().starts_with('{')
    }
}

/// Why serde_json refuses text whose grammar is JSON: its depth, a number or a surrogate.
#[must_use]
pub fn problem(error: &serde_json::Error) -> String {
    let problem = error.to_string();
    let what = match error.classify() {
        Category::Data => return problem,
        _ if problem.starts_with("recursion limit") => "nested too deep",
        _ if problem.starts_with("number") => "a number is not finite as a double",
        _ => "a lone surrogate",
    };
    format!("{what}, at line {} column {}", error.line(), error.column())
}

/// Checks a value and everything in it, down to `left` more levels of `max`.
#[derive(Clone, Copy)]
struct Depth {
    left: usize,
    max: usize,
}

impl Depth {
    /// The same for the contents of an array or object.
    fn within<E: de::Error>(self) -> Result<Self, E> {
        let left = self.left.checked_sub(1);
        let left = left.ok_or_else(|| E::custom(format_args!("nested more than {} deep", self.max)))?;
        Ok(Self { left, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Depth {
    type Value = ();

    /// As any kind, because the parser does not check text and numbers that it skips.
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Depth {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let depth = self.within()?;
        while items.next_element_seed(depth)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let depth = self.within()?;
        // A name is text, and none of a value's kinds but text fits it.
        while fields.next_key_seed(depth)?.is_some() {
            fields.next_value_seed(depth)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The problem with the text, as the client gets it.
    fn problem_with(text: &str, depth_max: usize) -> Option<String> {
        let text: &RawValue = serde_json::from_str(text).unwrap();
        HandedOn::new(text, "at", depth_max).err().map(|error| error.to_string())
    }

    #[test]
    fn arrays_and_objects_nest_as_deep_as_they_may() {
        for shallow in ["1", "[]", "{}", "[1, {}]", r#"{ "a": [], "b": {} }"#, r#""[[[[""#] {
            assert_eq!(problem_with(shallow, 2), None, "{shallow}");
        }
        let problem = "the body does not fit at `at`: nested more than 2 deep at line 1 column ";
        for deep in ["[[[]]]", r#"[{ "a": {} }]"#, r#"{ "a": [[]] }"#, r#"{ "a": [[]], "a": 1 }"#] {
            let shown = problem_with(deep, 2).unwrap_or_default();
            assert!(shown.starts_with(problem), "{deep}: {shown}");
        }
        let deepest = "[".repeat(32_000) + &"]".repeat(32_000);
        assert!(problem_with(&deepest, STATE_DEPTH_MAX).unwrap().contains("more than 32 deep"));
    }

    #[test]
    fn numbers_are_finite_as_doubles() {
        for finite in ["1e308", "-1.7976931348623157e308", "1e-999", "-0", "18446744073709551616", "0e999999"]
        {
            assert_eq!(problem_with(finite, 0), None, "{finite}");
        }
        let digits = "9".repeat(400);
        for infinite in ["1e999", "-1e309", "1E+400", &digits, r#"{ "a": [1, 1e999] }"#] {
            let shown = problem_with(infinite, 2).unwrap_or_default();
            assert!(shown.contains("at `at`: a number is not finite as a double, at line 1"), "{shown}");
        }
    }

    #[test]
    fn surrogates_come_in_pairs() {
        for whole in [r#""\ud83c\udfae""#, r#"{ "\uD83C\uDFAE": 1 }"#, r#""\\ud800""#, r#""🎮\u0000""#] {
            assert_eq!(problem_with(whole, 1), None, "{whole}");
        }
        for half in [
            r#""\ud800""#,
            r#""\udfff""#,
            r#""\ud83cx""#,
            r#""\ud83c\n""#,
            r#""\ud83c\u0041""#,
            r#""\udfae\ud83c""#,
            r#"{ "\ud83c": 1 }"#,
            r#"{ "a": "\ud83c", "a": 1 }"#,
        ] {
            let shown = problem_with(half, 1).unwrap_or_default();
            assert!(shown.contains("at `at`: a lone surrogate, at line 1 column "), "{half}: {shown}");
        }
    }

    #[test]
    fn text_is_handed_on_to_the_letter() {
        let text = r#"{ "b":1.10, "a" : 123456789012345678901234567890, "b":"\u00e4" }"#;
        let handed_on = HandedOn::new(serde_json::from_str(text).unwrap(), "at", 1).unwrap();
        assert_eq!(serde_json::to_string(&handed_on).unwrap(), text);
        assert!(handed_on.is_object());
    }
}
