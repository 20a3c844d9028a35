//! Tokens in the header and in bodies: those that Muster issued count for what they say, and nothing else
//! counts.

use std::{collections::BTreeMap, fmt, str::FromStr, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use harness::{instance, lobby_claims, mock_player};
use proptest::{
    collection::vec,
    option::of,
    prelude::{any, prop_oneof},
    prop_assert, prop_assert_eq,
    sample::{Index, select},
    strategy::{Just, Strategy},
};
use regex_lite::Regex;
use ring::hmac;
use serde_json::{Value, json};
use shared::{
    auth::keys::{PLAYER_TOKEN_LIFE, TokenKeys},
    base::ambient::{Ambient, Timestamp},
    models::{
        handed_on::{DEPTH_MAX, HandedOn},
        ids::{GameId, LobbyId, NamespaceId, SeatId},
        player_data::PlayerData,
        ports::{PortNumbers, Protocol, ServerPort},
        token::{
            CREDENTIAL_LIFE, Claims, CloudToken, Credential, CredentialKind, DevelopmentHost, InvalidToken,
            PlayerSeat,
        },
    },
};

use super::{
    check, check_idle, check_plain,
    json::{Edit, Mutation, any_json, edited, edits, mutated, mutations, text},
    service::{Operation, Service},
};

const TOKEN_INVALID: (u16, &str) = (401, "TOKEN_INVALID");

/// The kinds of tokens: how each begins, and what the document calls the right that it gives, if it gives
/// any.
const KINDS: [(&str, &str, Option<&str>); 7] = [
    ("CLOUD_TOKEN", "cloud_", Some("cloudToken")),
    ("PUBLIC_TOKEN", "pub_", Some("publicToken")),
    ("DEVELOPMENT_TOKEN", "dev_", Some("developmentToken")),
    ("SERVER_TOKEN", "server_", Some("serverToken")),
    ("LOBBY_TOKEN", "lobby_", Some("lobbyToken")),
    ("PLAYER_TOKEN", "player_", None),
    ("MOCK_TOKEN", "dev_player_", None),
];

/// What is shown for a token.
#[derive(Clone, Debug)]
enum Shown {
    /// A token as it was issued.
    Issued,
    Text(String),
    Edited(Vec<Edit>),
    /// Under the prefix of that kind.
    Renamed(Index),
    /// With that part of a token of that kind.
    Spliced(usize, Index),
    /// With these changes of its header, and its signature or none.
    Header(Vec<Mutation>, bool),
    /// With this algorithm in its header, and its signature, none, or that of a stranger's key.
    Algorithm(&'static str, Signature),
    /// With these changes of its claims.
    Claims(Vec<Mutation>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signature {
    Kept,
    None,
    OfStranger,
}

const ALGORITHMS: [&str; 12] =
    ["none", "None", "NONE", "", "HS256", "hs256", "HS384", "HS512", "RS256", "ES256", "PS256", "EdDSA"];

fn shown() -> impl Strategy<Value = Shown> {
    let signature = select(&[Signature::Kept, Signature::None, Signature::OfStranger][..]);
    prop_oneof![
        3 => Just(Shown::Issued),
        3 => text().prop_map(Shown::Text),
        6 => edits().prop_map(Shown::Edited),
        2 => any::<Index>().prop_map(Shown::Renamed),
        2 => (0..3_usize, any::<Index>()).prop_map(|(part, kind)| Shown::Spliced(part, kind)),
        2 => (mutations(1..3), any::<bool>()).prop_map(|(header, kept)| Shown::Header(header, kept)),
        3 => (select(&ALGORITHMS[..]), signature).prop_map(|(name, signature)| Shown::Algorithm(name, signature)),
        2 => mutations(1..3).prop_map(Shown::Claims),
    ]
}

impl Shown {
    /// What is shown of a token of one kind, given one of each.
    fn of(
        &self,
        (_, prefix, _): (&str, &str, Option<&str>),
        token: &str,
        tokens: &BTreeMap<&str, String>,
    ) -> String {
        let bare = token.strip_prefix(prefix).unwrap();
        let parts: Vec<_> = bare.splitn(3, '.').collect();
        match (self, parts.as_slice()) {
            (Self::Issued, _) => token.to_owned(),
            (Self::Text(text), _) => text.clone(),
            (Self::Edited(edits), _) => String::from_utf8_lossy(&edited(token, edits)).into_owned(),
            (Self::Renamed(kind), _) => format!("{}{bare}", KINDS[kind.index(KINDS.len())].1),
            (Self::Spliced(part, kind), [..]) if parts.len() == 3 => {
                let (name, other, _) = KINDS[kind.index(KINDS.len())];
                let other: Vec<_> = tokens[name].strip_prefix(other).unwrap().splitn(3, '.').collect();
                let mut parts = parts.clone();
                parts[*part] = other.get(*part).copied().unwrap_or(other[0]);
                format!("{prefix}{}", parts.join("."))
            }
            (Self::Header(changes, is_signed), [header, claims, signature]) => {
                let header = changed(header, changes);
                format!("{prefix}{header}.{claims}.{}", if *is_signed { *signature } else { "" })
            }
            (Self::Algorithm(name, signature), [header, claims, kept]) => {
                let mut header = decoded(header);
                header["alg"] = json!(name);
                let header = URL_SAFE_NO_PAD.encode(header.to_string());
                let signed = format!("{header}.{claims}");
                let signature = match signature {
                    Signature::Kept => (*kept).to_owned(),
                    Signature::None => String::new(),
                    Signature::OfStranger => signature_of(&signed, &[7; 32]),
                };
                format!("{prefix}{signed}.{signature}")
            }
            (Self::Claims(changes), [header, claims, signature]) => {
                format!("{prefix}{header}.{}.{signature}", changed(claims, changes))
            }
            // A cloud token has no parts.
            _ => format!("{token}."),
        }
    }
}

fn decoded(part: &str) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

fn changed(part: &str, changes: &[Mutation]) -> String {
    URL_SAFE_NO_PAD.encode(mutated(&decoded(part), changes).to_string())
}

fn signature_of(signed: &str, secret: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes()))
}

fn tokens(service: &Service) -> BTreeMap<&'static str, String> {
    KINDS.iter().map(|(name, _, _)| (*name, service.text(name))).collect()
}

/// Whether the text has the form of a cloud token: 32 bytes behind its prefix.
fn has_cloud_form(text: &str) -> bool {
    Regex::new("^cloud_[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$").unwrap().is_match(text)
}

/// Whether a header can carry the text.
fn fits_header(text: &str) -> bool {
    !text.chars().any(|c| c.is_ascii_control() && c != '\t')
}

#[test]
fn nothing_but_an_issued_token_opens_an_operation() {
    let service = Service::start();
    let guarded: Vec<&Operation> =
        service.operations.iter().filter(|operation| operation.documented.rights() != [None]).collect();
    check_idle((any::<Index>(), any::<Index>(), shown()), |(operation, kind, shown)| {
        let operation = guarded[operation.index(guarded.len())];
        let rights = operation.documented.rights();
        let (name, prefix, right) = KINDS[kind.index(KINDS.len())];
        let is_allowed = right.is_some_and(|right| rights.contains(&Some(right)));
        let mut event = service.event(operation, if is_allowed { right } else { rights[0] });
        let tokens = tokens(&service);
        let text = shown.of((name, prefix, right), &tokens[name], &tokens);
        if !fits_header(&text) {
            return Ok(());
        }
        event.json["headers"]["authorization"] = format!("Bearer {text}").into();
        let answer = service.answer(&event)?;
        let token = text.trim_matches([' ', '\t']);
        let issued = tokens.iter().find(|(_, issued)| *issued == token);
        let expected = match issued {
            Some(_) if token == tokens[name] && is_allowed => (200, ""),
            // Of another kind than the one whose event it is.
            Some((other, _)) if *other != name => return Ok(()),
            Some(_) => (403, "CLAIMS_MISSING_ENTITLEMENT"),
            None if token.is_empty() => (401, "API_UNAUTHORIZED"),
            None if has_cloud_form(token) && rights != [Some("cloudToken")] => {
                (403, "CLAIMS_MISSING_ENTITLEMENT")
            }
            None => TOKEN_INVALID,
        };
        prop_assert_eq!(answer.refusal(), expected, "{} with {:?}", operation.name, text);
        Ok(())
    });
}

#[test]
fn nothing_but_an_issued_player_token_counts_in_a_body() {
    let service = Service::start();
    let operations =
        ["connect-player", "disconnect-player", "remove-player"].map(|name| service.operation(name));
    let rights = ["lobbyToken", "developmentToken"];
    check_idle(
        (any::<Index>(), any::<Index>(), any::<Index>(), shown()),
        |(operation, right, kind, shown)| {
            let (operation, right) = (operations[operation.index(3)], rights[right.index(2)]);
            let mut event = service.event(operation, Some(right));
            let tokens = tokens(&service);
            let kind = KINDS[kind.index(KINDS.len())];
            let text = shown.of(kind, &tokens[kind.0], &tokens);
            event.json["body"] = json!({ "player_token": text }).to_string().into();
            let counts = if Operation::is_mock(Some(right)) { "MOCK_TOKEN" } else { "PLAYER_TOKEN" };
            let expected = if text == tokens[counts] { (200, "") } else { (400, "TOKEN_INVALID") };
            let answer = service.answer(&event)?;
            prop_assert_eq!(answer.refusal(), expected, "{} with {:?}", operation.name, text);
            Ok(())
        },
    );
}

#[test]
fn an_issued_token_counts_to_the_last_second_of_its_life() {
    let service = Service::start();
    let (game_id, ambient) = (service.stack.demo().game_id.clone(), service.stack.ambient());
    let now = service.stack.clock.now();
    let life = CREDENTIAL_LIFE.as_secs();
    let age = prop_oneof![0..2 * life, life - 2..life + 3, Just(0)];
    check((any::<Index>(), age, 0..1_000_u64), |(operation, age, millis)| {
        let operation = &service.operations[operation.index(service.operations.len())];
        let issued_at = Timestamp((now.secs() - age) * 1_000 + millis);
        let then = ambient.with_clock(move || issued_at);
        for right in operation.documented.rights().into_iter().flatten() {
            let mut event = service.event(operation, Some(right));
            let namespace_id: NamespaceId = service.text("NAMESPACE_ID").parse().unwrap();
            let token = match right {
                "publicToken" => service.keys().issue_credential(
                    CredentialKind::Public,
                    &Credential::fresh(&game_id, &namespace_id, &then),
                ),
                // Of the token that the game servers belong to.
                "serverToken" => {
                    let owner = service.keys().verify(&service.token(right), service.stack.clock.now());
                    let Ok(Claims::Server(owner)) = owner else { panic!("no server token") };
                    let fresh = Credential::fresh(&game_id, &namespace_id, &then);
                    let credential = Credential { token_id: owner.token_id, ..fresh };
                    service.keys().issue_credential(CredentialKind::Server, &credential)
                }
                "developmentToken" => service
                    .keys()
                    .issue_development(&Credential::fresh(&game_id, &namespace_id, &then), host("a")),
                "lobbyToken" => {
                    let lobby_id = service.text("LOBBY_ID").parse().unwrap();
                    let claims = lobby_claims(&game_id, &namespace_id, lobby_id, issued_at);
                    service.keys().issue_lobby(&claims, issued_at)
                }
                // Until revoked.
                _ => service.token(right),
            };
            event.json["headers"]["authorization"] = format!("bearer  {token} ").into();
            let is_alive = age < life || right == "cloudToken";
            let expected = if is_alive { (200, "") } else { (401, "CLAIMS_ENTITLEMENT_EXPIRED") };
            let answer = service.answer(&event)?;
            prop_assert_eq!(answer.refusal(), expected, "{} with {}", operation.name, right);
        }
        Ok(())
    });
}

#[test]
fn a_player_token_connects_for_nine_hours_and_disconnects_for_ever() {
    let service = Service::start();
    let now = service.stack.clock.now();
    let life = PLAYER_TOKEN_LIFE.as_secs();
    let age = prop_oneof![0..3 * life, life - 2..life + 3];
    check((any::<bool>(), age), |(connects, age)| {
        let name = if connects { "connect-player" } else { "disconnect-player" };
        let mut event = service.event(service.operation(name), Some("lobbyToken"));
        let Ok(Claims::Player(seat)) = service.keys().verify(&service.text("PLAYER_TOKEN"), now) else {
            panic!("no player token");
        };
        let token = service.keys().issue_player(&seat, now.before(Duration::from_secs(age)));
        event.json["body"] = json!({ "player_token": token }).to_string().into();
        let is_late = connects && age >= life;
        let expected = if is_late { (400, "MATCHMAKER_PLAYER_REGISTRATION_EXPIRED") } else { (200, "") };
        let answer = service.answer(&event)?;
        prop_assert_eq!(answer.refusal(), expected);
        Ok(())
    });
}

fn identifier() -> impl Strategy<Value = String> {
    "[A-Za-z0-9_-]{1,64}"
}

fn id<T: FromStr<Err: fmt::Debug> + fmt::Debug>() -> impl Strategy<Value = T> {
    identifier().prop_map(|text| text.parse().unwrap())
}

/// The data of a player, if `text` is such.
fn player_data(text: &str) -> Option<PlayerData> {
    PlayerData::new(HandedOn::new(serde_json::from_str(text).ok()?, "", DEPTH_MAX).ok()?.json())
}

/// A developer's machine with one port.
fn host(label: &str) -> DevelopmentHost {
    let port = ServerPort {
        hostname: "localhost".to_owned(),
        numbers: PortNumbers::Port(7_777),
        protocol: Protocol::Udp,
    };
    let ports = BTreeMap::from([(label.to_owned(), port)]);
    DevelopmentHost { hostname: "localhost".to_owned(), ports: ports.try_into().unwrap() }
}

#[test]
fn a_token_gives_back_the_claims_that_it_was_issued_for() {
    let ids = (id::<GameId>(), id::<NamespaceId>(), id::<LobbyId>(), id::<SeatId>());
    let secrets = (vec(any::<u8>(), 32..80), vec(any::<u8>(), 32..80));
    let cases = (ids, secrets, 0..Timestamp::NEVER.0, 0..u64::from(u32::MAX), "[a-z0-9]{1,16}");
    check_plain((cases, of(any_json())), |((ids, (secret, other), at, later, label), data)| {
        let (game_id, namespace_id, lobby_id, seat_id) = ids;
        // `null` is no data.
        let data = data.map(|data| data.to_string()).filter(|text| text.trim() != "null");
        let data = data.and_then(|text| player_data(&text));
        if secret == other {
            return Ok(());
        }
        let (issued_at, at) = (Timestamp(at), Timestamp(at + later * 1_000));
        let then = Ambient::system().with_clock(move || issued_at);
        let keys = TokenKeys::new(&secret, None).unwrap();
        let rotated = TokenKeys::new(&other, Some(&secret)).unwrap();
        let strange = TokenKeys::new(&other, None).unwrap();
        let lobby = lobby_claims(&game_id, &namespace_id, lobby_id.clone(), then.now());
        let seat = PlayerSeat {
            namespace_id: namespace_id.clone(),
            lobby_id,
            seat_id,
            generation: 0,
            client: None,
            membership: None,
            data,
        };
        let credential =
            |kind| keys.issue_credential(kind, &Credential::fresh(&game_id, &namespace_id, &then));
        let player = mock_player(host(&label), seat.data.clone(), &then);
        let year = CREDENTIAL_LIFE;
        for (prefix, token, life) in [
            ("pub_", credential(CredentialKind::Public), year),
            ("server_", credential(CredentialKind::Server), year),
            (
                "dev_",
                keys.issue_development(&Credential::fresh(&game_id, &namespace_id, &then), host(&label)),
                year,
            ),
            ("lobby_", keys.issue_lobby(&lobby, issued_at), year),
            ("player_", keys.issue_player(&seat, issued_at), PLAYER_TOKEN_LIFE),
            ("dev_player_", keys.issue_development_player(&player, issued_at), PLAYER_TOKEN_LIFE),
        ] {
            prop_assert!(token.strip_prefix(prefix).is_some_and(|jwt| jwt.starts_with("ey")), "{}", token);
            let claims = keys.verify_at_any_age(&token).unwrap();
            let is_of = |credential: &Credential| {
                credential.game_id == game_id
                    && credential.namespace_id == namespace_id
                    && credential.issued_at == Timestamp(issued_at.secs() * 1_000)
            };
            let is_kept = match (prefix, &claims) {
                ("pub_", Claims::Public(credential)) | ("server_", Claims::Server(credential)) => {
                    is_of(credential)
                }
                ("dev_", Claims::Development(credential, of)) => is_of(credential) && *of == host(&label),
                ("lobby_", Claims::Lobby(of)) => *of == lobby,
                ("player_", Claims::Player(of)) => *of == seat,
                ("dev_player_", Claims::DevelopmentPlayer(of)) => *of == player,
                _ => false,
            };
            prop_assert!(is_kept, "{}: {:?}", prefix, claims);
            let is_alive = at.secs() < issued_at.secs() + life.as_secs();
            let expected = if is_alive { Ok(claims) } else { Err(InvalidToken::Expired) };
            prop_assert_eq!(&rotated.verify(&token, at), &expected);
            prop_assert_eq!(keys.verify(&token, at), expected);
            prop_assert_eq!(strange.verify_at_any_age(&token), Err(InvalidToken::SignedElsewhere));
            for (_, other, _) in KINDS.iter().filter(|(_, other, _)| *other != prefix) {
                let renamed = token.replacen(prefix, other, 1);
                prop_assert_eq!(
                    keys.verify_at_any_age(&renamed),
                    Err(InvalidToken::Malformed),
                    "{}",
                    renamed
                );
            }
        }
        Ok(())
    });
}

/// Whether these are all the claims that a token of this kind needs, by the form of each.
fn are_complete(kind: &str, claims: &Value) -> bool {
    let is_identifier = |name: &str| {
        let form = Regex::new("^[A-Za-z0-9_-]{1,64}$").unwrap();
        claims[name].as_str().is_some_and(|text| form.is_match(text))
    };
    let needed: &[&str] = match kind {
        "public" | "server" | "development" => &["jti", "game", "ns"],
        "lobby" => &["game", "ns", "lobby", "srv"],
        "player" => &["ns", "lobby", "seat"],
        "development_player" => &["jti"],
        _ => return false,
    };
    claims["kind"] == kind
        && claims["iat"].is_u64()
        && claims["exp"].is_u64()
        && needed.iter().all(|name| is_identifier(name))
        && (kind != "lobby" || claims["srv_iat"].is_u64())
        && (!kind.starts_with("development") || claims["host"]["ports"].is_object())
}

#[test]
fn claims_that_are_signed_count_only_when_they_are_complete() {
    let secret = [9; 32];
    let keys = TokenKeys::new(&secret, None).unwrap();
    let (game_id, namespace_id): (GameId, NamespaceId) = ("g".parse().unwrap(), "n".parse().unwrap());
    let ambient = Ambient::system();
    let lobby_id = LobbyId::nil();
    let lobby = lobby_claims(&game_id, &namespace_id, lobby_id.clone(), ambient.now());
    let seat = PlayerSeat {
        namespace_id: namespace_id.clone(),
        lobby_id,
        seat_id: SeatId::random(&ambient),
        generation: 0,
        client: None,
        membership: None,
        data: None,
    };
    let credential =
        |kind| keys.issue_credential(kind, &Credential::fresh(&game_id, &namespace_id, &ambient));
    let tokens = [
        ("public", "pub_", credential(CredentialKind::Public)),
        ("server", "server_", credential(CredentialKind::Server)),
        (
            "development",
            "dev_",
            keys.issue_development(&Credential::fresh(&game_id, &namespace_id, &ambient), host("a")),
        ),
        ("lobby", "lobby_", keys.issue_lobby(&lobby, ambient.now())),
        ("player", "player_", keys.issue_player(&seat, ambient.now())),
        (
            "development_player",
            "dev_player_",
            keys.issue_development_player(&mock_player(host("a"), None, &ambient), ambient.now()),
        ),
    ];
    check_plain((any::<Index>(), mutations(0..2), mutations(0..3)), |(token, header, claims)| {
        let (kind, prefix, token) = &tokens[token.index(tokens.len())];
        let parts: Vec<_> = token.strip_prefix(prefix).unwrap().split('.').collect();
        let (real, is_same) = (decoded(parts[0]), header.is_empty() && claims.is_empty());
        let (header, claims) =
            (mutated(&real, &header).to_string(), mutated(&decoded(parts[1]), &claims).to_string());
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(&header), URL_SAFE_NO_PAD.encode(&claims));
        let shown = format!("{prefix}{signed}.{}", signature_of(&signed, &secret));
        let verified = keys.verify_at_any_age(&shown);
        if is_same {
            prop_assert!(verified.is_ok(), "{}: {:?}", claims, verified);
        }
        if verified.is_ok() {
            // What is too deep to be read here stands in a field that nothing reads.
            let [Ok(header), Ok(claims)] = [header, claims].map(|json| serde_json::from_str::<Value>(&json))
            else {
                return Ok(());
            };
            prop_assert_eq!((&header["alg"], &header["kid"]), (&real["alg"], &real["kid"]));
            prop_assert!(are_complete(kind, &claims), "{} accepts {}", kind, claims);
        } else {
            let is_refused = matches!(verified, Err(InvalidToken::Malformed | InvalidToken::SignedElsewhere));
            prop_assert!(is_refused, "{:?}", verified);
        }
        Ok(())
    });
}

#[test]
fn a_cloud_token_has_32_bytes() {
    let near = ("[A-Za-z0-9_-]{41,44}", select(&["cloud_", "Cloud_", "cloud", "pub_", ""][..]));
    let near = near.prop_map(|(secret, prefix)| format!("{prefix}{secret}"));
    let odd = (near.clone(), edits())
        .prop_map(|(near, edits)| String::from_utf8_lossy(&edited(&near, &edits)).into_owned());
    check_plain(prop_oneof![near, odd, any::<String>()], |text| {
        let token = CloudToken::parse(&text);
        prop_assert_eq!(token.is_some(), has_cloud_form(&text));
        if let Some(token) = token {
            prop_assert_eq!(token.reveal(), &text);
            let debugged = format!("{token:?}");
            prop_assert!(!debugged.contains(&text["cloud_".len()..]));
        }
        Ok(())
    });
}

#[test]
fn a_bearer_ends_at_spaces_and_tabs_alone() {
    let bearer =
        |text: &str| instance::request(&[("authorization", text)], &Value::Null).bearer().map(str::to_owned);
    assert_eq!(bearer("Bearer  token \t"), Some("token".to_owned()));
    assert_eq!(bearer("Bearer \u{2003}token\u{a0}"), Some("\u{2003}token\u{a0}".to_owned()));
}

#[test]
fn a_bearer_is_what_follows_the_scheme() {
    let scheme = prop_oneof![
        select(&["Bearer", "bearer", "BEARER", "Basic", "Bearer:", ""][..]).prop_map(str::to_owned),
        any::<String>()
    ];
    let space = select(&["", " ", "  ", "\t", " \t"][..]);
    let token = prop_oneof!["[!-~]{0,20}", "\\PC{0,20}", "[ -~]{0,20}"];
    check_plain(
        (space.clone(), scheme, space.clone(), token, space),
        |(before, scheme, space, token, after)| {
            let text = format!("{before}{scheme}{space}{token}{after}");
            if !fits_header(&text) {
                return Ok(());
            }
            let request = instance::request(&[("authorization", &text)], &Value::Null);
            let form = Regex::new(r"(?i)^bearer (.*)$").unwrap();
            let shown =
                form.captures(&text).map(|found| found.get(1).unwrap().as_str().trim_matches([' ', '\t']));
            prop_assert_eq!(request.bearer(), shown.filter(|token| !token.is_empty()));
            Ok(())
        },
    );
}
