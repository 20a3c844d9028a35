//! Identifiers, each with its own type.
//!
//! An identifier is 1 to 64 characters of `A-Z a-z 0-9 _ -` (decision 3); Muster's own are UUIDs. The form
//! excludes every separator of table keys.

use std::{borrow::Borrow, fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest::{Context, SHA256, digest};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::base::ambient::Ambient;

/// The longest identifier, in characters.
pub const IDENTIFIER_CHARS_MAX: usize = 64;

/// Text that is not an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 64 characters of A-Z, a-z, 0-9, _ and -")]
pub struct InvalidIdentifier;

fn is_identifier(text: &str) -> bool {
    (1..=IDENTIFIER_CHARS_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The identifier as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidIdentifier;

            fn from_str(text: &str) -> Result<Self, InvalidIdentifier> {
                if is_identifier(text) { Ok(Self(text.to_owned())) } else { Err(InvalidIdentifier) }
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidIdentifier;

            fn try_from(text: String) -> Result<Self, InvalidIdentifier> {
                if is_identifier(&text) { Ok(Self(text)) } else { Err(InvalidIdentifier) }
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid.to_string())
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

identifier!(
    /// A game of the deployment.
    GameId
);
identifier!(
    /// A namespace of a game: one running environment of it, such as `prod`.
    NamespaceId
);
identifier!(
    /// A version of a game: an immutable matchmaking configuration.
    VersionId
);
identifier!(
    /// The name of a game mode within a version.
    GameMode
);
identifier!(
    /// A region of a game: a short human-readable name, not a UUID.
    RegionId
);
identifier!(
    /// A game server, unique within its namespace.
    ServerId
);
identifier!(
    /// A lobby, unique over the deployment.
    LobbyId
);
identifier!(
    /// A seat within its lobby: 64 random bits.
    SeatId
);
identifier!(
    /// One write, so that a copy of it is recognised: 64 random bits.
    WriteId
);
identifier!(
    /// The short form of a game server's start, as lobbies and later starts store it: 72 bits of its digest.
    StartMark
);
identifier!(
    /// A build of a game's servers: 96 bits of its digest.
    BuildId
);
identifier!(
    /// An issued token, for revocation; not the token itself.
    TokenId
);

/// A start of a game server: a name that its process chose when it began. 1 to 64 visible ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StartId(String);

/// Text that names no start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 64 visible ASCII characters")]
pub struct InvalidStart;

impl StartId {
    /// A start without a name from its process.
    #[must_use]
    pub fn random(ambient: &Ambient) -> Self {
        Self(URL_SAFE_NO_PAD.encode(ambient.bytes::<8>()))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The start in short.
    #[must_use]
    pub fn mark(&self) -> StartMark {
        let digest = digest(&SHA256, self.0.as_bytes());
        StartMark(URL_SAFE_NO_PAD.encode(digest.as_ref().get(..9).unwrap_or_default()))
    }
}

impl TryFrom<String> for StartId {
    type Error = InvalidStart;

    fn try_from(text: String) -> Result<Self, InvalidStart> {
        let is_visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        let has_length = (1..=IDENTIFIER_CHARS_MAX).contains(&text.len());
        if is_visible && has_length { Ok(Self(text)) } else { Err(InvalidStart) }
    }
}

impl From<StartId> for String {
    fn from(start: StartId) -> Self {
        start.0
    }
}

impl LobbyId {
    /// The identifier that a player typed, in any case and with blanks around.
    ///
    /// # Errors
    /// [`InvalidIdentifier`].
    pub fn typed(text: &str) -> Result<Self, InvalidIdentifier> {
        text.trim().to_ascii_lowercase().parse()
    }

    /// The lobby in responses to development tokens.
    #[must_use]
    pub fn nil() -> Self {
        Uuid::nil().into()
    }

    /// The `index`-th lobby of the burst that this lobby began: the same for every instance, and unguessable
    /// without `secret`, which players do not know.
    #[must_use]
    pub fn sibling(&self, secret: &BurstSecret, index: u32) -> Self {
        if index == 0 {
            return self.clone();
        }
        let mut context = Context::new(&SHA256);
        context.update(secret.0.as_bytes());
        context.update(self.as_str().as_bytes());
        context.update(&index.to_be_bytes());
        uuid_of(context).into()
    }
}

impl ServerId {
    /// The game server in responses to development tokens.
    #[must_use]
    pub fn nil() -> Self {
        Uuid::nil().into()
    }

    /// The server that registers without a name of its own, with a range of ports: the same for a retry of
    /// that registration, by `start_id`, `region_id` and the data that distinguish processes, and unguessable
    /// without `start_id`.
    #[must_use]
    pub fn of_start(
        namespace_id: &NamespaceId,
        start_id: &StartId,
        region_id: &RegionId,
        process: &str,
    ) -> Self {
        digest_of([namespace_id.as_str(), start_id.as_str(), region_id.as_str(), process])
    }

    /// The server that registers without a name of its own, with single ports: the same for every process
    /// that listens at `address` after another and registers by the same token.
    #[must_use]
    pub fn at_address(
        namespace_id: &NamespaceId,
        token_id: &TokenId,
        region_id: &RegionId,
        address: &str,
    ) -> Self {
        digest_of([namespace_id.as_str(), token_id.as_str(), region_id.as_str(), "address", address])
    }
}

impl ServerId {
    /// The `index`-th server of the nursery that this server began: the same for every instance, and
    /// unguessable without `secret`.
    #[must_use]
    pub fn nth_of(&self, secret: &BurstSecret, index: u32) -> Self {
        if index == 0 {
            return self.clone();
        }
        digest_of([&secret.0, "server", self.as_str(), &index.to_string()])
    }

    /// The start that a server is requested with, and the name of the request: both follow from its nursery's
    /// `secret`.
    #[must_use]
    pub fn start_of(&self, secret: &BurstSecret) -> (StartId, WriteId) {
        let name = |what: &str| digest_of([&secret.0, what, self.as_str()]);
        (StartId(name("start").into()), WriteId(name("request").into()))
    }
}

fn digest_of<const N: usize>(texts: [&str; N]) -> ServerId {
    let mut context = Context::new(&SHA256);
    for text in texts {
        context.update(&text.len().to_be_bytes());
        context.update(text.as_bytes());
    }
    uuid_of(context).into()
}

/// The UUID of a digest.
fn uuid_of(context: Context) -> Uuid {
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(context.finish().as_ref()) {
        *to = *from;
    }
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// The beginning of the identifiers of tokens that are good for one server; those of others are UUIDs.
const OF_LAUNCH: &str = "launch_";

impl TokenId {
    /// The token of a server that Muster has started.
    #[must_use]
    pub fn of_launch(server_id: &ServerId) -> Self {
        Self(format!("{OF_LAUNCH}{server_id}"))
    }

    /// The only server that the token is good for, if it is the token of one.
    #[must_use]
    pub fn server_of_launch(&self) -> Option<ServerId> {
        self.0.strip_prefix(OF_LAUNCH)?.parse().ok()
    }
}

impl BuildId {
    /// The build with this digest.
    #[must_use]
    pub fn of_digest(digest: &[u8]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(digest.get(..12).unwrap_or_default()))
    }
}

impl SeatId {
    /// A fresh seat.
    #[must_use]
    pub fn random(ambient: &Ambient) -> Self {
        Self::of_bytes(ambient.bytes())
    }

    /// The seat that these bytes name.
    #[must_use]
    pub fn of_bytes(bytes: [u8; 8]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(bytes))
    }
}

/// With a burst's first lobby, the source of its other lobbies' identifiers: 128 random bits.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct BurstSecret(String);

impl BurstSecret {
    /// A fresh secret.
    #[must_use]
    pub fn random(ambient: &Ambient) -> Self {
        Self(URL_SAFE_NO_PAD.encode(ambient.bytes::<16>()))
    }

    /// The secret as stored.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for BurstSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BurstSecret(..)")
    }
}

impl WriteId {
    /// A fresh write.
    #[must_use]
    pub fn random(ambient: &Ambient) -> Self {
        Self(URL_SAFE_NO_PAD.encode(ambient.bytes::<8>()))
    }
}

/// A game server over the whole deployment: its namespace and its identifier there, joined by `/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerKey {
    /// The namespace.
    pub namespace_id: NamespaceId,
    /// The server in it.
    pub server_id: ServerId,
}

impl fmt::Display for ServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace_id, self.server_id)
    }
}

impl TryFrom<String> for ServerKey {
    type Error = InvalidIdentifier;

    fn try_from(text: String) -> Result<Self, InvalidIdentifier> {
        let (namespace, server) = text.split_once('/').ok_or(InvalidIdentifier)?;
        Ok(Self { namespace_id: namespace.parse()?, server_id: server.parse()? })
    }
}

impl From<ServerKey> for String {
    fn from(key: ServerKey) -> Self {
        key.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_has_1_to_64_plain_characters() {
        for text in ["a", "A-b_9", &"x".repeat(64)] {
            assert_eq!(text.parse::<GameId>().map(String::from).as_deref(), Ok(text));
        }
        for text in ["", "a b", "ä", "a/b", "a.b", "%61", &"x".repeat(65)] {
            assert_eq!(text.parse::<GameId>(), Err(InvalidIdentifier), "{text}");
        }
    }

    #[test]
    fn siblings_are_distinct_and_the_same_for_every_instance() {
        let ambient = Ambient::system();
        let (first, secret) = (LobbyId::from(ambient.uuid()), BurstSecret::random(&ambient));
        assert_eq!(first.sibling(&secret, 0), first);
        assert_eq!(first.sibling(&secret, 7), first.sibling(&secret, 7));
        assert_ne!(first.sibling(&secret, 1), first.sibling(&secret, 2));
        assert_ne!(first.sibling(&secret, 1), LobbyId::nil().sibling(&secret, 1));
        assert_ne!(first.sibling(&secret, 1), first.sibling(&BurstSecret::random(&ambient), 1));
        assert!(!format!("{secret:?}").contains(secret.reveal()));
    }
}
