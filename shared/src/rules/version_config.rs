//! Which version configurations are valid (decision 8).

use std::collections::{BTreeMap, BTreeSet};

use http::{HeaderName, HeaderValue};

use crate::{
    models::{
        game::Region,
        ids::RegionId,
        latency::LATENCY_MS_MAX,
        launch::ServersConfig,
        seats::PARTY_SIZE_MAX,
        version::{CaptchaConfig, GameModeConfig, KEEP_SECONDS_MAX, Verification, VersionConfig},
        version_secrets::{SECRETS_BYTES_MAX, VersionSecrets},
        violations::{Violations, listed},
    },
    rules::public_url,
};

/// The most modes of a version.
pub const GAME_MODES_MAX: usize = 32;
/// The largest lobby.
pub const MAX_PLAYERS_LIMIT: u32 = 256;
/// The most parts of an index.
const POOL_SHARDS_MAX: u32 = 32;
/// The longest time that an empty lobby may stay, in seconds: a day.
const IDLE_SECONDS_MAX: u32 = 86_400;
/// The most requests after a passed captcha.
const REQUESTS_BEFORE_REVERIFY_MAX: u32 = 600;
/// The longest time that a passed captcha may count, in milliseconds: 12 hours.
const VERIFICATION_TTL_MS_MAX: u64 = 12 * 3_600_000;
/// Longest key of a site at a captcha provider, in bytes.
const CAPTCHA_KEY_BYTES_MAX: usize = 256;
/// The most headers of a verification.
const HEADERS_MAX: usize = 32;
/// Longest name of such a header, in bytes.
const HEADER_NAME_BYTES_MAX: usize = 128;
/// Longest value of such a header, in bytes.
const HEADER_VALUE_BYTES_MAX: usize = 1_024;
/// Longest build of servers, in bytes of JSON, and as a text in JSON.
const BUILD_BYTES_MAX: usize = 2_048;
const BUILD_ESCAPED_BYTES_MAX: usize = 6_144;
/// The most lobbies of one server that Muster has started: all that wait for it are opened by its
/// registration and its first heartbeats.
const LAUNCHED_CAPACITY_MAX: u32 = 1_000;
/// The most such servers of a region.
const SERVER_COUNT_LIMIT: u32 = 10_000;
/// How long a start may take: a lobby that is not ready within five minutes ends.
const START_SECONDS_MIN: u32 = 5;
const START_SECONDS_MAX: u32 = 240;
/// Transport headers, which a studio cannot set.
const HEADERS_OF_TRANSPORT: [&str; 11] = [
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The violations of `config` in a game with `regions`.
#[must_use]
pub fn validate(config: &VersionConfig, regions: &BTreeMap<RegionId, Region>) -> Violations {
    let mut violations = Violations::default();
    if config.game_modes.is_empty() {
        violations.add(&["game_modes", "too-few"], format!("1 to {GAME_MODES_MAX} modes"));
    }
    if config.game_modes.len() > GAME_MODES_MAX {
        // A list of each mode's violations would have no bound.
        violations.add(&["game_modes", "too-many"], format!("1 to {GAME_MODES_MAX} modes"));
        return violations;
    }
    for (name, mode) in &config.game_modes {
        violations.add_below(&["game_modes", name.as_str()], mode_violations(mode, regions));
        for (kind, action) in mode.actions() {
            let at = ["game_modes", name.as_str(), "actions", kind.name(), "verification"];
            if let Some(verification) = &action.verification {
                violations.add_below(&at, verification_violations(verification));
            }
        }
    }
    if let Some(captcha) = &config.captcha {
        violations.add_below(&["captcha"], captcha_violations(captcha));
    }
    if let Some(servers) = &config.servers {
        violations.add_below(&["servers"], servers_violations(servers));
    }
    if VersionSecrets::of(config).bytes() > SECRETS_BYTES_MAX {
        violations.add(&["secrets", "too-large"], format!("at most {SECRETS_BYTES_MAX} bytes in all"));
    }
    violations
}

fn verification_violations(verification: &Verification) -> Violations {
    let mut violations = Violations::default();
    if let Err(problem) = public_url::parse(&verification.url) {
        violations.add(&["url", problem], "an https URL of a public host, without a user, up to 2048 bytes");
    }
    if verification.headers.len() > HEADERS_MAX {
        // As with modes, a bound for the list.
        violations.add(&["headers", "too-many"], format!("at most {HEADERS_MAX}"));
        return violations;
    }
    let mut names = BTreeSet::new();
    for (name, value) in &verification.headers {
        let lower = name.to_ascii_lowercase();
        if name.len() > HEADER_NAME_BYTES_MAX || HeaderName::from_bytes(name.as_bytes()).is_err() {
            violations.add(
                &["headers", "name-invalid"],
                format!("a header name of at most {HEADER_NAME_BYTES_MAX} bytes"),
            );
        } else if HEADERS_OF_TRANSPORT.contains(&lower.as_str()) {
            violations.add(&["headers", name, "not-allowed"], "none of the headers that the transport sets");
        } else if !names.insert(lower) {
            violations.add(&["headers", name, "duplicate"], "each header once, whatever its case");
        } else if let Some(problem) = header_value_problem(value.reveal()) {
            violations.add(
                &["headers", name, problem],
                format!("printable ASCII of at most {HEADER_VALUE_BYTES_MAX} bytes"),
            );
        }
    }
    violations
}

fn header_value_problem(value: Option<&str>) -> Option<&'static str> {
    let Some(value) = value else { return Some("missing") };
    if value.len() > HEADER_VALUE_BYTES_MAX {
        return Some("too-long");
    }
    let is_visible = value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    (!is_visible || HeaderValue::from_str(value).is_err()).then_some("invalid")
}

fn captcha_violations(captcha: &CaptchaConfig) -> Violations {
    let mut violations = Violations::default();
    if captcha.requests_before_reverify > REQUESTS_BEFORE_REVERIFY_MAX {
        violations
            .add(&["requests_before_reverify", "too-high"], format!("0 to {REQUESTS_BEFORE_REVERIFY_MAX}"));
    }
    if captcha.verification_ttl > VERIFICATION_TTL_MS_MAX {
        violations
            .add(&["verification_ttl", "too-high"], format!("0 to {VERIFICATION_TTL_MS_MAX} milliseconds"));
    }
    match captcha.providers().count() {
        0 => violations.add(&["provider", "missing"], "`hcaptcha` or `turnstile`"),
        1 => {}
        _ => violations.add(&["provider", "too-many"], "`hcaptcha` or `turnstile`, not both"),
    }
    for (provider, keys) in captcha.providers() {
        for (field, key) in
            [("site_key", Some(keys.site_key.as_str())), ("secret_key", keys.secret_key.reveal())]
        {
            let problem = match key {
                None | Some("") => "missing",
                Some(key) if key.len() > CAPTCHA_KEY_BYTES_MAX => "too-long",
                Some(key) if !key.bytes().all(|byte| byte.is_ascii_graphic()) => "invalid",
                Some(_) => continue,
            };
            violations.add(
                &[provider.name(), field, problem],
                format!("1 to {CAPTCHA_KEY_BYTES_MAX} printable ASCII characters"),
            );
        }
    }
    violations
}

fn servers_violations(servers: &ServersConfig) -> Violations {
    let mut violations = Violations::default();
    if servers.build.is_null() {
        violations.add(&["build", "missing"], "what to start, as any JSON but null");
    }
    let json = servers.build.to_string();
    // An environment has it as a text within JSON.
    let escaped = serde_json::Value::from(json.as_str()).to_string();
    if json.len() > BUILD_BYTES_MAX || escaped.len() > BUILD_ESCAPED_BYTES_MAX {
        let allowed = format!("JSON of at most {BUILD_BYTES_MAX} bytes, {BUILD_ESCAPED_BYTES_MAX} escaped");
        violations.add(&["build", "too-large"], allowed);
    }
    for (field, value, min, max) in [
        ("capacity", servers.capacity, 1, LAUNCHED_CAPACITY_MAX),
        ("server_count_max", servers.server_count_max, 1, SERVER_COUNT_LIMIT),
        ("start_seconds", servers.start_seconds, START_SECONDS_MIN, START_SECONDS_MAX),
        ("idle_seconds", servers.idle_seconds, 0, IDLE_SECONDS_MAX),
    ] {
        violations.add_unless_within(field, value, min, max);
    }
    violations
}

fn mode_violations(mode: &GameModeConfig, regions: &BTreeMap<RegionId, Region>) -> Violations {
    let mut violations = Violations::default();
    if mode.regions.is_empty() {
        violations.add(&["regions", "too-few"], "at least one region");
    }
    if mode.regions.iter().collect::<BTreeSet<_>>().len() < mode.regions.len() {
        violations.add(&["regions", "duplicate"], "each region once");
    }
    let unknown: Vec<_> = mode.regions.iter().filter(|region| !regions.contains_key(*region)).collect();
    if !unknown.is_empty() {
        let allowed = format!("{} is not one of {}", listed(&texts(unknown)), listed(&texts(regions.keys())));
        violations.add(&["regions", "not-found"], allowed);
    }
    let mut bound = |field, value, min, max| violations.add_unless_within(field, value, min, max);
    bound("max_players", mode.max_players, 1, MAX_PLAYERS_LIMIT);
    if let Some(direct) = mode.max_players_direct {
        bound("max_players_direct", direct, mode.max_players, MAX_PLAYERS_LIMIT);
    }
    if let Some(party) = mode.max_players_party {
        bound("max_players_party", party, 1, MAX_PLAYERS_LIMIT);
    }
    if let Some(largest) = mode.party_size_max {
        bound("party_size_max", largest, 1, PARTY_SIZE_MAX);
    }
    bound("reservation_seconds", mode.reservation_seconds, 5, 600);
    bound("idle_seconds", mode.idle_seconds, 0, IDLE_SECONDS_MAX);
    bound("keep_seconds", mode.keep_seconds, 0, KEEP_SECONDS_MAX);
    bound("pool_shards", mode.pool_shards, 1, POOL_SHARDS_MAX);
    if let Some(tolerance) = mode.latency_tolerance {
        bound("latency_tolerance", tolerance, 0, LATENCY_MS_MAX);
    }
    if let Some(max) = mode.latency_max {
        bound("latency_max", max, 0, LATENCY_MS_MAX);
    }
    violations
}

fn texts<'a>(regions: impl IntoIterator<Item = &'a RegionId>) -> Vec<&'a str> {
    regions.into_iter().map(RegionId::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::record::Strict;

    fn violations(config: &str) -> Vec<String> {
        let region = Region {
            display_name: "Frankfurt".to_owned(),
            provider_display_name: "Own".to_owned(),
            latitude: 50.1,
            longitude: 8.7,
            probe: None,
            starter: None,
        };
        let regions = BTreeMap::from([("eu".parse().unwrap(), region)]);
        let config = serde_json::from_str(config).unwrap();
        validate(&config, &regions).joined().collect()
    }

    #[test]
    fn defaults_are_valid() {
        assert!(violations(r#"{"game_modes": {"a": {"regions": ["eu"]}}}"#).is_empty());
    }

    #[test]
    fn each_violation_names_its_mode_and_field() {
        assert_eq!(violations(r#"{"game_modes": {}}"#), ["game_modes/too-few"]);
        let modes = r#"{"game_modes": {"a": {"regions": ["us"], "max_players": 257, "max_players_direct": 3,
            "max_players_party": 0, "reservation_seconds": 4, "idle_seconds": 86401, "keep_seconds": 601}, "b": {"regions": [], "max_players": 0},
            "c": {"regions": ["eu", "eu"]}}}"#;
        assert_eq!(
            violations(modes),
            [
                "game_modes/a/regions/not-found",
                "game_modes/a/max_players/too-high",
                "game_modes/a/max_players_direct/too-low",
                "game_modes/a/max_players_party/too-low",
                "game_modes/a/reservation_seconds/too-low",
                "game_modes/a/idle_seconds/too-high",
                "game_modes/a/keep_seconds/too-high",
                "game_modes/b/regions/too-few",
                "game_modes/b/max_players/too-low",
                "game_modes/c/regions/duplicate",
            ]
        );
    }

    fn with_captcha(captcha: serde_json::Value) -> Vec<String> {
        let modes = serde_json::json!({ "a": { "regions": ["eu"] } });
        violations(&serde_json::json!({ "game_modes": modes, "captcha": captcha }).to_string())
    }

    fn with_verification(verification: serde_json::Value) -> Vec<String> {
        let action = serde_json::json!({ "enabled": true, "verification": verification });
        let mode = serde_json::json!({ "regions": ["eu"], "actions": { "join": action } });
        violations(&serde_json::json!({ "game_modes": { "a": mode } }).to_string())
    }

    #[test]
    fn a_captcha_has_one_provider_its_keys_and_bounds() {
        let keys = serde_json::json!({ "site_key": "site", "secret_key": "secret" });
        let captcha = |requests: u32, ttl: u64| serde_json::json!({ "requests_before_reverify": requests, "verification_ttl": ttl, "hcaptcha": keys });
        for (requests, ttl) in [(0, 0), (600, 43_200_000)] {
            assert!(with_captcha(captcha(requests, ttl)).is_empty(), "{requests} {ttl}");
        }
        assert_eq!(
            with_captcha(captcha(601, 43_200_001)),
            ["captcha/requests_before_reverify/too-high", "captcha/verification_ttl/too-high"]
        );
        let mut both = captcha(1, 1);
        both["turnstile"] = keys.clone();
        assert_eq!(with_captcha(both), ["captcha/provider/too-many"]);
        let mut none = captcha(1, 1);
        none.as_object_mut().unwrap().remove("hcaptcha");
        assert_eq!(with_captcha(none), ["captcha/provider/missing"]);
        let mut unusable = captcha(1, 1);
        unusable["hcaptcha"] = serde_json::json!({ "site_key": "", "secret_key": "a b" });
        assert_eq!(
            with_captcha(unusable.clone()),
            ["captcha/hcaptcha/site_key/missing", "captcha/hcaptcha/secret_key/invalid"]
        );
        unusable["hcaptcha"] = serde_json::json!({ "site_key": "x".repeat(257), "secret_key": null });
        assert_eq!(
            with_captcha(unusable),
            ["captcha/hcaptcha/site_key/too-long", "captcha/hcaptcha/secret_key/missing"]
        );
    }

    #[test]
    fn a_verification_goes_to_a_public_address_with_legal_headers() {
        let url = "https://verify.example/";
        let all = serde_json::json!({ "url": url, "headers": { "Authorization": "Bearer x", "x-a": "" } });
        assert!(with_verification(all).is_empty());
        let at = "game_modes/a/actions/join/verification";
        for (url, problem) in [("http://verify.example/", "not-https"), ("https://10.0.0.1/", "not-public")] {
            let problem = format!("{at}/url/{problem}");
            assert_eq!(with_verification(serde_json::json!({ "url": url })), [problem]);
        }
        for (headers, problem) in [
            (serde_json::json!({ "a b": "x" }), "name-invalid"),
            (serde_json::json!({ "": "x" }), "name-invalid"),
            (serde_json::json!({ "Host": "x" }), "Host/not-allowed"),
            (serde_json::json!({ "content-length": "1" }), "content-length/not-allowed"),
            (serde_json::json!({ "X-A": "x", "x-a": "y" }), "x-a/duplicate"),
            (serde_json::json!({ "x-a": null }), "x-a/missing"),
            (serde_json::json!({ "x-a": "a\r\nb: c" }), "x-a/invalid"),
            (serde_json::json!({ "x-a": "ä" }), "x-a/invalid"),
            (serde_json::json!({ "x-a": "x".repeat(1_025) }), "x-a/too-long"),
        ] {
            let problem = format!("{at}/headers/{problem}");
            assert_eq!(with_verification(serde_json::json!({ "url": url, "headers": headers })), [problem]);
        }
        let many = |count: u32| -> serde_json::Value {
            (0..count).map(|n| (format!("x-{n}"), serde_json::Value::from("x".repeat(1_024)))).collect()
        };
        assert_eq!(
            with_verification(serde_json::json!({ "url": url, "headers": many(33) })),
            [format!("{at}/headers/too-many"), "secrets/too-large".to_owned()]
        );
        assert_eq!(
            with_verification(serde_json::json!({ "url": url, "headers": many(32) })),
            ["secrets/too-large"]
        );
        assert!(with_verification(serde_json::json!({ "url": url, "headers": many(24) })).is_empty());
    }

    #[test]
    fn unknown_fields_are_reported() {
        let typo = r#"{"game_modes": {"a": {"regions": ["eu"], "max_player": 3}}}"#;
        let error = serde_json::from_str::<Strict<VersionConfig>>(typo).unwrap().known().unwrap_err();
        assert_eq!(error.to_string(), "unknown field `game_modes.a.max_player`");
    }
}
