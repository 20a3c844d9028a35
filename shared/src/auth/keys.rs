//! Signing and verifying tokens.
//!
//! Matchmaker tokens are JWTs (HS256) behind a prefix that names their kind, so that verifying one reads no
//! table. Cloud tokens are random and stored by digest only (see [`crate::store::tokens`]). Clients treat
//! both as opaque.

use std::{fmt, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use ring::hmac;
use serde::{Deserialize, Serialize};

use crate::{
    auth::ring_provider::RING_PROVIDER,
    base::ambient::Timestamp,
    models::{
        client::ClientId,
        ids::{GameId, LobbyId, NamespaceId, SeatId, TokenId},
        player_data::PlayerData,
        seats::Membership,
        token::{
            CREDENTIAL_LIFE, Claims, Credential, CredentialKind, DevelopmentHost, InvalidToken, LobbyClaims,
            MockPlayer, PlayerSeat, TokenKind,
        },
    },
};

/// The life of a player token. Whether its seat is still held depends only on the lobby.
pub const PLAYER_TOKEN_LIFE: Duration = Duration::from_secs(9 * 3_600);
/// Shortest signing key accepted, in bytes: HS256 with less is weaker than its hash.
pub const SIGNING_KEY_BYTES_MIN: usize = 32;

/// The claims as signed. Names are short because players send them with each request.
#[derive(Serialize, Deserialize)]
struct SignedClaims {
    kind: TokenKind,
    iat: u64,
    exp: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    jti: Option<TokenId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    game: Option<GameId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ns: Option<NamespaceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lobby: Option<LobbyId>,
    /// The identifier and time of issue of the server token that obtained a lobby token.
    #[serde(skip_serializing_if = "Option::is_none")]
    srv: Option<TokenId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    srv_iat: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seat: Option<SeatId>,
    /// The generation of a player token; absent in the first of its seat.
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<ClientId>,
    /// The first seat of a player's party, and its size.
    #[serde(skip_serializing_if = "Option::is_none")]
    party: Option<SeatId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    party_size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<PlayerData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<DevelopmentHost>,
}

impl SignedClaims {
    const fn new(kind: TokenKind, now: Timestamp, life: Duration) -> Self {
        Self {
            kind,
            iat: now.secs(),
            exp: now.secs() + life.as_secs(),
            jti: None,
            game: None,
            ns: None,
            lobby: None,
            srv: None,
            srv_iat: None,
            seat: None,
            generation: None,
            client: None,
            party: None,
            party_size: None,
            data: None,
            host: None,
        }
    }

    fn of_credential(kind: TokenKind, credential: &Credential) -> Self {
        Self {
            jti: Some(credential.token_id.clone()),
            game: Some(credential.game_id.clone()),
            ns: Some(credential.namespace_id.clone()),
            ..Self::new(kind, credential.issued_at, CREDENTIAL_LIFE)
        }
    }

    fn credential(&self) -> Option<Credential> {
        Some(Credential {
            game_id: self.game.clone()?,
            namespace_id: self.ns.clone()?,
            token_id: self.jti.clone()?,
            issued_at: Timestamp(self.iat.checked_mul(1_000)?),
        })
    }

    fn server(&self) -> Option<Credential> {
        Some(Credential {
            game_id: self.game.clone()?,
            namespace_id: self.ns.clone()?,
            token_id: self.srv.clone()?,
            issued_at: Timestamp(self.srv_iat?.checked_mul(1_000)?),
        })
    }

    fn into_claims(self) -> Option<Claims> {
        Some(match self.kind {
            TokenKind::Cloud => return None,
            TokenKind::Public => Claims::Public(self.credential()?),
            TokenKind::Server => Claims::Server(self.credential()?),
            TokenKind::Development => Claims::Development(self.credential()?, self.host?),
            TokenKind::Lobby => Claims::Lobby(LobbyClaims { server: self.server()?, lobby_id: self.lobby? }),
            TokenKind::Player => Claims::Player(PlayerSeat {
                namespace_id: self.ns?,
                lobby_id: self.lobby?,
                seat_id: self.seat?,
                generation: self.generation.unwrap_or_default(),
                client: self.client,
                membership: self
                    .party
                    .zip(self.party_size)
                    .map(|(party_id, party_size)| Membership { party_id, party_size }),
                data: self.data,
            }),
            TokenKind::DevelopmentPlayer => Claims::DevelopmentPlayer(MockPlayer {
                token_id: self.jti?,
                generation: self.generation.unwrap_or_default(),
                data: self.data,
                host: self.host?,
            }),
        })
    }
}

/// A signing key that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a signing key must have at least {SIGNING_KEY_BYTES_MIN} bytes")]
pub struct SigningKeyTooShort;

struct SigningKey {
    id: String,
    encoding: EncodingKey,
    decoding: DecodingKey,
}

impl SigningKey {
    fn new(secret: &[u8]) -> Result<Self, SigningKeyTooShort> {
        if secret.len() < SIGNING_KEY_BYTES_MIN {
            return Err(SigningKeyTooShort);
        }
        // A keyed digest names the key without revealing it.
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let name = hmac::sign(&key, b"muster signing key id");
        let id = URL_SAFE_NO_PAD.encode(name.as_ref().iter().take(6).copied().collect::<Vec<_>>());
        Ok(Self {
            id,
            encoding: EncodingKey::from_secret(secret),
            decoding: DecodingKey::from_secret(secret),
        })
    }
}

/// A key only for `purpose`, which does not reveal the secret.
fn derived_key(secret: &[u8], purpose: &[u8]) -> hmac::Key {
    let derived = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), purpose);
    hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref())
}

/// Signs and verifies tokens with the deployment's key, and verifies with the previous one during a rotation.
pub struct TokenKeys {
    current: SigningKey,
    previous: Option<SigningKey>,
    address_key: hmac::Key,
}

impl TokenKeys {
    /// Keys from their secrets.
    ///
    /// # Errors
    /// [`SigningKeyTooShort`] for either.
    pub fn new(current: &[u8], previous: Option<&[u8]>) -> Result<Self, SigningKeyTooShort> {
        // The first key of the process installs the provider; later ones find it in place.
        let _already_installed = RING_PROVIDER.install_default();
        Ok(Self {
            current: SigningKey::new(current)?,
            previous: previous.map(SigningKey::new).transpose()?,
            address_key: derived_key(current, b"muster client address key"),
        })
    }

    /// The key that clients' addresses are hashed under ([`crate::models::client`]): it does not help to
    /// forge a token.
    #[must_use]
    pub const fn address_key(&self) -> &hmac::Key {
        &self.address_key
    }

    /// Issues the public or server token of a credential.
    #[must_use]
    pub fn issue_credential(&self, kind: CredentialKind, credential: &Credential) -> String {
        self.sign(&SignedClaims::of_credential(kind.into(), credential))
    }

    /// The same, of a token that expires after `life`.
    #[must_use]
    pub fn issue_credential_for(
        &self,
        life: Duration,
        kind: CredentialKind,
        credential: &Credential,
    ) -> String {
        let claims = SignedClaims::of_credential(kind.into(), credential);
        let exp = claims.iat + life.as_secs();
        self.sign(&SignedClaims { exp, ..claims })
    }

    /// Issues the development token of a credential.
    #[must_use]
    pub fn issue_development(&self, credential: &Credential, host: DevelopmentHost) -> String {
        let claims = SignedClaims::of_credential(TokenKind::Development, credential);
        self.sign(&SignedClaims { host: Some(host), ..claims })
    }

    /// Issues the lobby token of a lobby. It is valid until the lobby ends or its server's credential is
    /// revoked.
    #[must_use]
    pub fn issue_lobby(&self, lobby: &LobbyClaims, now: Timestamp) -> String {
        self.sign(&SignedClaims {
            game: Some(lobby.server.game_id.clone()),
            ns: Some(lobby.server.namespace_id.clone()),
            lobby: Some(lobby.lobby_id.clone()),
            srv: Some(lobby.server.token_id.clone()),
            srv_iat: Some(lobby.server.issued_at.secs()),
            ..SignedClaims::new(TokenKind::Lobby, now, CREDENTIAL_LIFE)
        })
    }

    /// Issues the player token of a seat whose first token was issued at `now`; the same seat at the same
    /// second gives the same token, byte for byte.
    #[must_use]
    pub fn issue_player(&self, seat: &PlayerSeat, now: Timestamp) -> String {
        Self::sign_with(&self.current, &player_claims(seat, now))
    }

    /// Issues the player token of a seat again, signed with the key `key_id` if that is still known: the same
    /// token, byte for byte, even after a rotation.
    #[must_use]
    pub fn issue_player_again(&self, seat: &PlayerSeat, at: Timestamp, key_id: &str) -> String {
        let previous = self.previous.as_ref().filter(|key| key.id == key_id);
        Self::sign_with(previous.unwrap_or(&self.current), &player_claims(seat, at))
    }

    /// The name of the key that tokens are signed with.
    #[must_use]
    pub fn key_id(&self) -> &str {
        &self.current.id
    }

    /// Issues the token of a mock response's player.
    #[must_use]
    pub fn issue_development_player(&self, player: &MockPlayer, now: Timestamp) -> String {
        self.sign(&SignedClaims {
            jti: Some(player.token_id.clone()),
            generation: later(player.generation),
            data: player.data.clone(),
            host: Some(player.host.clone()),
            ..SignedClaims::new(TokenKind::DevelopmentPlayer, now, PLAYER_TOKEN_LIFE)
        })
    }

    /// The claims of a signed token at `now`.
    ///
    /// # Errors
    /// [`InvalidToken`]; also for cloud tokens, which no key signs.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, InvalidToken> {
        let (claims, expires_at) = self.verify_with_expiry(token)?;
        if expires_at <= now { Err(InvalidToken::Expired) } else { Ok(claims) }
    }

    /// The claims of a signed token of any age, to undo things after its expiry.
    ///
    /// # Errors
    /// [`InvalidToken::Malformed`].
    pub fn verify_at_any_age(&self, token: &str) -> Result<Claims, InvalidToken> {
        self.verify_with_expiry(token).map(|(claims, _)| claims)
    }

    /// The same, and when the token expires.
    ///
    /// # Errors
    /// [`InvalidToken::Malformed`].
    pub fn verify_with_expiry(&self, token: &str) -> Result<(Claims, Timestamp), InvalidToken> {
        let (kind, jwt) = TokenKind::split(token).ok_or(InvalidToken::Malformed)?;
        let header = jsonwebtoken::decode_header(jwt).map_err(|_| InvalidToken::Malformed)?;
        let key = [Some(&self.current), self.previous.as_ref()]
            .into_iter()
            .flatten()
            .find(|key| header.kid.as_deref() == Some(key.id.as_str()))
            .ok_or(InvalidToken::SignedElsewhere)?;
        // The caller, which has the time, checks the expiry.
        let mut validation = Validation::new(Algorithm::HS256);
        validation.validate_exp = false;
        let claims = jsonwebtoken::decode::<SignedClaims>(jwt, &key.decoding, &validation)
            .map_err(|_| InvalidToken::Malformed)?
            .claims;
        if claims.kind != kind {
            return Err(InvalidToken::Malformed);
        }
        let expires_at = claims.exp.checked_mul(1_000).map(Timestamp);
        claims.into_claims().zip(expires_at).ok_or(InvalidToken::Malformed)
    }

    fn sign(&self, claims: &SignedClaims) -> String {
        Self::sign_with(&self.current, claims)
    }

    fn sign_with(key: &SigningKey, claims: &SignedClaims) -> String {
        let header = Header { kid: Some(key.id.clone()), ..Header::new(Algorithm::HS256) };
        let jwt = jsonwebtoken::encode(&header, claims, &key.encoding);
        // The claims are plain strings and numbers and the algorithm is the provider's own.
        #[expect(clippy::expect_used, reason = "signing plain claims with HS256 cannot fail")]
        let jwt = jwt.expect("claims serialize");
        format!("{}{jwt}", claims.kind.prefix())
    }
}

/// A generation as signed: the first one is left out.
const fn later(generation: u32) -> Option<u32> {
    if generation > 0 { Some(generation) } else { None }
}

fn player_claims(seat: &PlayerSeat, now: Timestamp) -> SignedClaims {
    SignedClaims {
        ns: Some(seat.namespace_id.clone()),
        lobby: Some(seat.lobby_id.clone()),
        seat: Some(seat.seat_id.clone()),
        generation: later(seat.generation),
        client: seat.client.clone(),
        party: seat.membership.as_ref().map(|membership| membership.party_id.clone()),
        party_size: seat.membership.as_ref().map(|membership| membership.party_size),
        data: seat.data.clone(),
        ..SignedClaims::new(TokenKind::Player, now, PLAYER_TOKEN_LIFE)
    }
}

impl fmt::Debug for TokenKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenKeys").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{base::ambient::Ambient, models::token::CloudToken};

    fn keys(secret: u8) -> TokenKeys {
        TokenKeys::new(&[secret; 32], None).unwrap()
    }

    fn seat() -> PlayerSeat {
        PlayerSeat {
            namespace_id: "ns".parse().unwrap(),
            lobby_id: LobbyId::nil(),
            seat_id: SeatId::random(&Ambient::system()),
            generation: 0,
            client: None,
            membership: None,
            data: None,
        }
    }

    #[test]
    fn a_player_token_verifies_until_its_expiry() {
        let (keys, seat) = (keys(1), seat());
        let issued_at = Timestamp(1_000_000_000_000);
        let token = keys.issue_player(&seat, issued_at);
        assert!(token.starts_with("player_"));
        let expiry = issued_at + PLAYER_TOKEN_LIFE;
        let just_before = expiry.before(Duration::from_millis(1));
        assert_eq!(keys.verify(&token, just_before), Ok(Claims::Player(seat)));
        assert_eq!(keys.verify(&token, expiry), Err(InvalidToken::Expired));
    }

    #[test]
    fn the_same_seat_at_the_same_second_has_the_same_token() {
        let (keys, seat) = (keys(1), seat());
        assert_eq!(keys.issue_player(&seat, Timestamp(5_000)), keys.issue_player(&seat, Timestamp(5_999)));
    }

    #[test]
    fn a_credential_of_a_short_life_expires_after_it() {
        let now = Timestamp(1_000_000_000_000);
        let ambient = Ambient::system().with_clock(move || now);
        let credential = Credential::fresh(&"game".parse().unwrap(), &"ns".parse().unwrap(), &ambient);
        let life = Duration::from_secs(90);
        let token = keys(1).issue_credential_for(life, CredentialKind::Public, &credential);
        let just_before = (now + life).before(Duration::from_millis(1));
        assert_eq!(keys(1).verify(&token, just_before), Ok(Claims::Public(credential)));
        assert_eq!(keys(1).verify(&token, now + life), Err(InvalidToken::Expired));
    }

    #[test]
    fn a_claim_of_a_later_release_is_ignored() {
        let (keys, seat) = (keys(1), seat());
        let claims = serde_json::to_value(player_claims(&seat, Timestamp(0))).unwrap();
        assert_eq!(claims.get("data"), None, "a token without data is what it was before there was any");
        let mut later = claims;
        later["later"] = serde_json::json!({ "kind": ["public"], "exp": 1e300 });
        let header = Header { kid: Some(keys.current.id.clone()), ..Header::new(Algorithm::HS256) };
        let jwt = jsonwebtoken::encode(&header, &later, &keys.current.encoding).unwrap();
        assert_eq!(keys.verify(&format!("player_{jwt}"), Timestamp(0)), Ok(Claims::Player(seat)));
    }

    #[test]
    fn a_player_token_has_the_data_as_it_was_sent() {
        let text = r#"{ "b": 1.10, "a": [1E2, 123456789012345678901234567890], "b": "\u00e4" }"#;
        let data = serde_json::from_str(text).unwrap();
        let seat = PlayerSeat { data: Some(data), ..seat() };
        let token = keys(1).issue_player(&seat, Timestamp(0));
        let Ok(Claims::Player(read)) = keys(1).verify(&token, Timestamp(0)) else { panic!("{token}") };
        assert_eq!(serde_json::to_string(&read.data).unwrap(), text);
        let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
        assert!(String::from_utf8(payload).unwrap().contains(&format!(r#""data":{text}}}"#)));
    }

    #[test]
    fn a_token_of_another_key_or_under_another_prefix_is_broken() {
        let token = keys(1).issue_player(&seat(), Timestamp(0));
        let broken = Err(InvalidToken::Malformed);
        assert_eq!(keys(2).verify(&token, Timestamp(0)), Err(InvalidToken::SignedElsewhere));
        assert_eq!(keys(1).verify(&token.replacen("player_", "pub_", 1), Timestamp(0)), broken);
        assert_eq!(keys(1).verify(&token.replacen("player_", "dev_player_", 1), Timestamp(0)), broken);
        assert_eq!(keys(1).verify(&token.replacen("player_", "", 1), Timestamp(0)), broken);
        assert_eq!(keys(1).verify(&token[..token.len() - 1], Timestamp(0)), broken);
    }

    #[test]
    fn an_unsigned_token_is_broken() {
        let token = keys(1).issue_player(&seat(), Timestamp(0));
        let (_, payload) = token.split_once('.').unwrap();
        let kid = &keys(1).current.id;
        for algorithm in ["none", "HS384", "RS256"] {
            let header = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"{algorithm}","kid":"{kid}"}}"#));
            let forged = format!("player_{header}.{payload}");
            assert_eq!(keys(1).verify(&forged, Timestamp(0)), Err(InvalidToken::Malformed), "{algorithm}");
        }
    }

    #[test]
    fn the_previous_key_is_accepted_while_rotating() {
        let token = keys(1).issue_player(&seat(), Timestamp(0));
        let rotated = TokenKeys::new(&[2; 32], Some(&[1; 32])).unwrap();
        assert!(matches!(rotated.verify(&token, Timestamp(0)), Ok(Claims::Player(_))));
        assert!(rotated.issue_player(&seat(), Timestamp(0)) != token);
    }

    #[test]
    fn a_short_signing_key_is_refused() {
        assert_eq!(TokenKeys::new(&[1; 31], None).err(), Some(SigningKeyTooShort));
    }

    #[test]
    fn a_cloud_token_shows_its_text_only_when_revealed() {
        let token = CloudToken::random(&Ambient::system());
        assert_eq!(CloudToken::parse(token.reveal()), Some(token.clone()));
        assert_eq!(format!("{token:?}"), "CloudToken(..)");
        assert_eq!(token.digest().len(), 64);
        for text in ["", "cloud_", "cloud_AAAA", &token.reveal()[..token.reveal().len() - 1]] {
            assert_eq!(CloudToken::parse(text), None, "{text}");
        }
    }
}
