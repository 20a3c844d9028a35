//! Names, words and password hashes.

use std::str::FromStr;

use proptest::{
    prelude::{any, prop_oneof},
    prop_assert, prop_assert_eq,
    sample::select,
    strategy::Strategy,
};
use serde_json::json;
use shared::{
    models::{namespace::CdnAuthType, ports::Protocol, publicity::Publicity},
    rules::{
        bcrypt_hash::BcryptHash,
        cdn_user::CdnUserName,
        names::{display_name_violations, is_name_id},
    },
    wire::DeploymentAccess,
};

use crate::{
    agreement::document::Document,
    fuzz::{
        check_plain,
        json::{edited, edits, text},
    },
};

/// What bcrypt writes 6 bits with.
const ALPHABET: &str = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Whether the text is a bcrypt hash of at most this cost, whose unused bits are zero.
fn is_bcrypt(text: &str, cost_max: u32) -> bool {
    let parts: Vec<&str> = text.split('$').collect();
    let ["", version, cost, hash] = parts.as_slice() else { return false };
    let bits = |c: char| ALPHABET.find(c);
    let hash: Option<Vec<usize>> = hash.chars().map(bits).collect();
    let is_canonical = |hash: Vec<usize>| {
        hash.len() == 22 + 31 && hash[21].is_multiple_of(1 << 4) && hash[52].is_multiple_of(1 << 2)
    };
    let has_cost = cost.len() == 2
        && cost.chars().all(|c| c.is_ascii_digit())
        && (4..=cost_max.min(31)).contains(&cost.parse().unwrap());
    ["2a", "2b", "2y"].contains(version) && has_cost && hash.is_some_and(is_canonical)
}

#[test]
fn a_password_is_a_bcrypt_hash_in_canonical_form() {
    let version =
        prop_oneof![3 => select(&["2a", "2b", "2y"][..]), 1 => select(&["2", "2x", "2c", "1", ""][..])];
    let cost = prop_oneof![8 => (0..34_u32).prop_map(|cost| format!("{cost:02}")), 1 => "[ +0-9]{0,3}"];
    let last = |plain: &'static str| prop_oneof![plain, "[./A-Za-z0-9]"];
    let salt = ("[./A-Za-z0-9]{21}", last("[.Oeu]"));
    let digest =
        (prop_oneof![8 => "[./A-Za-z0-9]{30}", 1 => "[./A-Za-z0-9]{29,32}"], last("[.CGKOSWaeimquy26]"));
    let near = (version, cost, salt, digest).prop_map(|(version, cost, (salt, end), (digest, last))| {
        format!("${version}${cost}${salt}{end}{digest}{last}")
    });
    let odd = (near.clone(), edits())
        .prop_map(|(near, edits)| String::from_utf8_lossy(&edited(&near, &edits)).into_owned());
    check_plain((prop_oneof![5 => near, 2 => odd, 1 => text()], 0..40_u32), |(text, cost_max)| {
        let hash = BcryptHash::parse(&text, cost_max);
        prop_assert_eq!(hash.is_ok(), is_bcrypt(&text, cost_max));
        if let Ok(hash) = hash {
            prop_assert_eq!(hash.reveal(), &text);
            let debugged = format!("{hash:?}");
            prop_assert!(!debugged.contains(&text[7..]));
        }
        Ok(())
    });
}

/// Whether the document allows the text for a field of a body.
fn is_documented(schema: &str, field: &str, text: &str) -> bool {
    let schema = &Document::read().root["components"]["schemas"][schema]["properties"][field];
    Document::read().violations(schema, &json!(text)).is_empty()
}

#[test]
fn names_are_those_that_the_document_allows() {
    let near = prop_oneof![
        "[a-z0-9-]{0,66}",
        "\\PC{0,130}",
        "[a-zA-Z0-9 :_\u{7f}\u{85}\u{ad}\u{200b}\u{a0}-]{0,6}",
    ];
    check_plain(prop_oneof![3 => near, 1 => text(), 1 => any::<String>()], |text| {
        let is_control = |c: char| matches!(c, '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}');
        let length = text.chars().count();
        let is_line = (1..=128).contains(&length) && !text.chars().any(is_control);

        let is_user = is_line && !text.contains(':');
        prop_assert_eq!(text.parse::<CdnUserName>().is_ok(), is_user);
        prop_assert_eq!(is_documented("UpdateCdnAuthUserRequest", "user", &text), is_user);

        let is_shown = is_line && !text.chars().all(char::is_whitespace);
        prop_assert_eq!(display_name_violations(&text).is_empty(), is_shown);
        prop_assert_eq!(is_documented("CreateVersionRequest", "display_name", &text), is_line);
        prop_assert_eq!(is_documented("CreateNamespaceRequest", "display_name", &text), is_line);

        let is_plain = |c| matches!(c, 'a'..='z' | '0'..='9' | '-');
        let is_of_address = (1..=64).contains(&length)
            && text.chars().all(is_plain)
            && !text.starts_with('-')
            && !text.ends_with('-');
        prop_assert_eq!(is_name_id(&text), is_of_address);
        prop_assert_eq!(is_documented("CreateNamespaceRequest", "name_id", &text), is_of_address);
        Ok(())
    });
}

#[test]
fn words_are_taken_to_the_letter() {
    const WORDS: [&str; 14] = [
        "http", "https", "tcp", "tcp_tls", "udp", "none", "basic", "private", "public", "HTTP", "Tcp_tls",
        "tls", "Public", "null",
    ];
    let near = (select(&WORDS[..]), edits())
        .prop_map(|(word, edits)| String::from_utf8_lossy(&edited(word, &edits)).into_owned());
    check_plain(prop_oneof![select(&WORDS[..]).prop_map(str::to_owned), near, text()], |word| {
        let json = json!(word);
        let protocol = serde_json::from_value::<Protocol>(json.clone()).ok();
        let is_protocol = ["http", "https", "tcp", "tcp_tls", "udp"].contains(&word.as_str());
        prop_assert_eq!(protocol.map(|protocol| json!(protocol)), is_protocol.then(|| json.clone()));
        let is_tls = ["https", "tcp_tls"].contains(&word.as_str());
        prop_assert_eq!(protocol.is_some_and(Protocol::is_tls), is_tls);

        let auth_type = serde_json::from_value::<CdnAuthType>(json.clone()).ok();
        let is_auth_type = ["none", "basic"].contains(&word.as_str());
        prop_assert_eq!(auth_type.map(|auth_type| json!(auth_type)), is_auth_type.then(|| json.clone()));

        let is_public_or_private = ["public", "private"].contains(&word.as_str());
        let publicity = serde_json::from_value::<Publicity>(json.clone()).ok();
        let known = if word == "public" { Publicity::Public } else { Publicity::Private };
        prop_assert_eq!(publicity, is_public_or_private.then_some(known));
        let access = DeploymentAccess::from_str(&word).ok();
        prop_assert_eq!(access.map(|access| json!(access)), is_public_or_private.then_some(json));
        Ok(())
    });
}
