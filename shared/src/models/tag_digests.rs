//! A lobby's tags as finds match them: a keyed digest of 16 bytes for each, so no lobby's item grows with its
//! tags. The tags themselves, up to 5 KB, are with the lobby's data, for responses that show them (decision
//! 15).
//!
//! Because the digests are keyed, a reader learns no tag from them, not even by guessing. The key is the
//! namespace's own and lasts as long as the namespace: under the signing key, a rotation would hide every
//! tagged lobby.

use std::{collections::BTreeSet, fmt};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::hmac;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{base::ambient::Ambient, models::pool::Tags};

/// Bytes of a digest that are kept: with half of SHA-256, no two tags share one.
const DIGEST_BYTES: usize = 16;

/// The key of a namespace's tag digests, and of its lobbies' codes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TagKey(String);

impl TagKey {
    /// A fresh key.
    #[must_use]
    pub fn random(ambient: &Ambient) -> Self {
        Self(URL_SAFE_NO_PAD.encode(ambient.bytes::<16>()))
    }

    /// A digest of `text` for a purpose other than tags, which must be longer than 8 characters: a tag's
    /// digest begins with a length of 8 bytes, which no text is.
    #[must_use]
    pub fn digest(&self, purpose: &str, text: &str) -> [u8; DIGEST_BYTES] {
        let mut digest = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, self.0.as_bytes()));
        digest.update(purpose.as_bytes());
        digest.update(text.as_bytes());
        let mut bytes = [0; DIGEST_BYTES];
        bytes.iter_mut().zip(digest.sign().as_ref()).for_each(|(to, from)| *to = *from);
        bytes
    }
}

impl fmt::Debug for TagKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TagKey")
    }
}

/// The digest of one tag: of its name and its value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TagDigest(Vec<u8>);

impl TagDigest {
    fn of(name: &str, value: &str, key: &hmac::Key) -> Self {
        let mut digest = hmac::Context::with_key(key);
        // The length separates the name from the value.
        digest.update(&(name.len() as u64).to_be_bytes());
        digest.update(name.as_bytes());
        digest.update(value.as_bytes());
        Self(digest.sign().as_ref().iter().take(DIGEST_BYTES).copied().collect())
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Serialize for TagDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for TagDigest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl de::Visitor<'_> for Bytes {
            type Value = TagDigest;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<TagDigest, E> {
                Ok(TagDigest(bytes.to_vec()))
            }

            fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<TagDigest, E> {
                Ok(TagDigest(bytes))
            }

            // For formats with only text.
            fn visit_str<E: de::Error>(self, text: &str) -> Result<TagDigest, E> {
                self.visit_bytes(text.as_bytes())
            }
        }

        from.deserialize_any(Bytes)
    }
}

/// The digests of a lobby's or a query's tags; as an attribute a binary set, which is absent without tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TagDigests(#[serde(with = "serde_dynamo::binary_set")] BTreeSet<TagDigest>);

impl TagDigests {
    /// The digests of `tags` under a namespace's `key`.
    #[must_use]
    pub fn of(tags: &Tags, key: &TagKey) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key.0.as_bytes());
        Self(tags.iter().map(|(name, value)| TagDigest::of(name, value, &key)).collect())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All digests, in no particular order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &TagDigest> {
        self.0.iter()
    }

    /// Whether each of `queried` is among them.
    #[must_use]
    pub fn contain(&self, queried: &Self) -> bool {
        queried.0.is_subset(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tags: &[(&str, &str)], key: &str) -> TagDigests {
        let tags = tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        TagDigests::of(&tags, &TagKey(key.to_owned()))
    }

    #[test]
    fn a_digest_separates_name_and_value_and_depends_on_the_key() {
        let digests = of(&[("map", "dust")], "a");
        assert_eq!(digests, of(&[("map", "dust")], "a"));
        assert_eq!(digests.iter().map(|digest| digest.bytes().len()).collect::<Vec<_>>(), [16]);
        for (other, key) in [(("map", "dust"), "b"), (("mapd", "ust"), "a"), (("dust", "map"), "a")] {
            assert_ne!(digests, of(&[other], key), "{other:?} under {key}");
        }
    }

    #[test]
    fn a_lobby_fits_whose_tags_contain_every_queried_one() {
        let lobby = of(&[("map", "dust"), ("rank", "gold")], "a");
        assert!(lobby.contain(&of(&[("rank", "gold")], "a")) && lobby.contain(&TagDigests::default()));
        assert!(!lobby.contain(&of(&[("map", "dust"), ("rank", "tin")], "a")));
    }

    #[test]
    fn nothing_shows_a_key() {
        assert!(!format!("{:?}", TagKey("secret".to_owned())).contains("secret"));
    }
}
