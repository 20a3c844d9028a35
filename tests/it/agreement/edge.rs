//! The edge's limits on requests for seats and for lists reach each of them, however its path is written, and
//! it caches lists alone.

use std::fs;

use harness::templates::{argument, template};
use list_lobbies::ListLobbies;
use muster_local::{stack::TEMPLATE, template::Template};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use shared::function::operation::Operation as _;

use crate::artefacts::workspace;

/// The operations that give seats, or that players call without a token of their namespace.
const SEATS: [&str; 5] = [
    "functions/find-lobby",
    "functions/join-lobby",
    "functions/create-lobby",
    "functions/leave-lobby",
    "functions/rejoin-player",
];
/// The operation that lists lobbies.
const LISTS: [&str; 1] = ["functions/list-lobbies"];

/// What the limit on requests of one kind looks at.
struct Limit {
    transformations: Vec<String>,
    path_starts: Vec<String>,
    method: String,
}

fn edge() -> Value {
    template(&fs::read_to_string(workspace().join("infra/edge.yaml")).unwrap())
}

impl Limit {
    fn read(name: &str) -> Self {
        let edge = edge();
        let rules = edge["Resources"]["WebAcl"]["Properties"]["Rules"].as_array().unwrap();
        let rule = rules.iter().find(|rule| rule["Name"] == name).unwrap();
        let within = &rule["Statement"]["RateBasedStatement"]["ScopeDownStatement"]["AndStatement"];
        let [path, method] = within["Statements"].as_array().unwrap().as_slice() else {
            panic!("a path and a method");
        };
        let alternatives = path["OrStatement"]["Statements"].as_array();
        let paths: Vec<_> = alternatives.map_or_else(|| vec![path], |all| all.iter().collect());
        let paths: Vec<_> = paths.into_iter().map(|path| &path["ByteMatchStatement"]).collect();
        let (path, method) = (paths[0], &method["ByteMatchStatement"]);
        for one in &paths {
            assert!(one["FieldToMatch"].get("UriPath").is_some());
            assert_eq!(one["PositionalConstraint"], "STARTS_WITH");
            assert_eq!(one["TextTransformations"], path["TextTransformations"]);
        }
        assert!(method["FieldToMatch"].get("Method").is_some());
        assert_eq!(method["PositionalConstraint"], "EXACTLY");
        let mut transformations = path["TextTransformations"].as_array().unwrap().clone();
        transformations.sort_by_key(|one| one["Priority"].as_u64());
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Self {
            transformations: transformations.iter().map(|one| text(&one["Type"])).collect(),
            path_starts: paths.iter().map(|path| text(&path["SearchString"])).collect(),
            method: text(&method["SearchString"]),
        }
    }

    /// Whether the limit counts a request, as WAF documents its transformations.
    fn counts(&self, method: &str, path: &str) -> bool {
        let seen = self.transformations.iter().fold(path.to_owned(), |path, transformation| {
            match transformation.as_str() {
                "URL_DECODE" => percent_decode_str(&path).decode_utf8_lossy().into_owned(),
                "NORMALIZE_PATH" => normalized(&path),
                "NONE" => path,
                other => panic!("this test does not know {other}"),
            }
        });
        method == self.method && self.path_starts.iter().any(|start| seen.starts_with(start))
    }
}

/// Without repeated slashes, self references and back references within the path.
fn normalized(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// `path` with each of its characters after the first slash percent-encoded, one at a time.
fn encoded(path: &str) -> impl Iterator<Item = String> + '_ {
    path.char_indices().skip(1).map(|(at, c)| {
        let (before, after) = path.split_at(at);
        format!("{before}%{:02x}{}", u32::from(c), &after[c.len_utf8()..])
    })
}

/// The requests of `operations`, and whether `limit` counts each however its path is written.
fn assert_counts(limit: &Limit, operations: &[&str]) {
    let routes = Template::parse(TEMPLATE).unwrap().routes;
    let counted: Vec<_> =
        routes.iter().filter(|route| operations.contains(&route.code_uri.as_str())).collect();
    assert_eq!(counted.len(), operations.len());
    for route in counted {
        let (method, path) = (route.method.as_str(), route.path.to_string());
        let mut written = vec![path.clone()];
        written.extend(encoded(&path));
        // The gateway decodes parameters of a path twice.
        written.extend(encoded(&path).map(|once| once.replace('%', "%25")));
        for detour in ["//", "/./", "/x/../", "/%2e/", "/x/%2e%2e/"] {
            written.push(path.replace('/', detour));
            written.push(path.replacen('/', detour, 1));
        }
        for path in written {
            assert!(limit.counts(method, &path), "{method} {path}");
        }
    }
}

#[test]
fn the_edge_counts_each_request_for_a_seat_however_its_path_is_written() {
    let limit = Limit::read("seats");
    assert_counts(&limit, &SEATS);
    for (method, path) in [
        ("GET", "/matchmaker/lobbies/list"),
        ("POST", "/matchmaker/players/connected"),
        ("POST", "/matchmaker/servers/heartbeat"),
    ] {
        assert!(!limit.counts(method, path), "{method} {path}");
    }
}

#[test]
fn the_edge_counts_each_request_for_a_list_however_its_path_is_written() {
    let limit = Limit::read("lists");
    assert_counts(&limit, &LISTS);
    let state = "/matchmaker/lobbies/6b0ff0c5-6d3c-4a0b-9a38-0f6d6a2f9a51/state";
    for (method, path) in
        [("GET", "/matchmaker/regions"), ("GET", state), ("POST", "/matchmaker/lobbies/find")]
    {
        assert!(!limit.counts(method, path), "{method} {path}");
    }
    let parameters = &edge()["Parameters"];
    let most = |name: &str| parameters[name]["Default"].as_u64().unwrap();
    assert!(most("ListRequestsMax") < most("RequestsMax"));
}

#[test]
fn the_edge_caches_lists_for_as_long_as_their_clients_do_and_nothing_else() {
    let edge = edge();
    let resources = &edge["Resources"];
    let config = &resources["Distribution"]["Properties"]["DistributionConfig"];
    let routes = Template::parse(TEMPLATE).unwrap().routes;
    let list = routes.iter().find(|route| route.code_uri == LISTS[0]).unwrap();
    let [behavior] = config["CacheBehaviors"].as_array().unwrap().as_slice() else {
        panic!("one path is cached");
    };
    assert_eq!(behavior["PathPattern"], list.path.to_string());
    let lifetimes = |policy: &Value| {
        let policy = &resources[argument(policy).unwrap()]["Properties"]["CachePolicyConfig"];
        let secs = ["MinTTL", "DefaultTTL", "MaxTTL"].map(|name| policy[name].as_u64().unwrap());
        (secs, policy["ParametersInCacheKeyAndForwardedToOrigin"].clone())
    };
    let (secs, key) = lifetimes(&behavior["CachePolicyId"]);
    assert_eq!(ListLobbies::CACHE_CONTROL, Some(format!("private, max-age={}", secs[0]).as_str()));
    assert_eq!(secs, [secs[0]; 3]);
    assert_eq!(key["HeadersConfig"]["Headers"], json!(["Authorization", "Origin"]));
    assert_eq!(key["QueryStringsConfig"]["QueryStringBehavior"], "all");
    assert_eq!(key["EnableAcceptEncodingGzip"], true);
    let (secs, _) = lifetimes(&config["DefaultCacheBehavior"]["CachePolicyId"]);
    assert_eq!(secs[..2], [0, 0]);
    let errors = config["CustomErrorResponses"].as_array().unwrap();
    assert!(errors.iter().all(|error| error["ErrorCachingMinTTL"] == 0));
    for code in [404, 500, 503] {
        assert!(errors.iter().any(|error| error["ErrorCode"] == code), "{code}");
    }
}
