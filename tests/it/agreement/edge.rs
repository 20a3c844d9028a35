//! The edge's limit on requests for seats reaches each of them, however its path is written.

use std::fs;

use harness::templates::template;
use muster_local::{stack::TEMPLATE, template::Template};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::artefacts::workspace;

/// The operations that give seats.
const SEATS: [&str; 3] = ["functions/find-lobby", "functions/join-lobby", "functions/create-lobby"];

/// What the limit on requests for seats looks at.
struct SeatLimit {
    transformations: Vec<String>,
    path_start: String,
    method: String,
}

impl SeatLimit {
    fn read() -> Self {
        let text = fs::read_to_string(workspace().join("infra/edge.yaml")).unwrap();
        let edge = template(&text);
        let rules = edge["Resources"]["WebAcl"]["Properties"]["Rules"].as_array().unwrap();
        let rule = rules.iter().find(|rule| rule["Name"] == "seats").unwrap();
        let within = &rule["Statement"]["RateBasedStatement"]["ScopeDownStatement"]["AndStatement"];
        let [path, method] = within["Statements"].as_array().unwrap().as_slice() else {
            panic!("a path and a method");
        };
        let (path, method) = (&path["ByteMatchStatement"], &method["ByteMatchStatement"]);
        assert!(path["FieldToMatch"].get("UriPath").is_some());
        assert_eq!(path["PositionalConstraint"], "STARTS_WITH");
        assert!(method["FieldToMatch"].get("Method").is_some());
        assert_eq!(method["PositionalConstraint"], "EXACTLY");
        let mut transformations = path["TextTransformations"].as_array().unwrap().clone();
        transformations.sort_by_key(|one| one["Priority"].as_u64());
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Self {
            transformations: transformations.iter().map(|one| text(&one["Type"])).collect(),
            path_start: text(&path["SearchString"]),
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
        method == self.method && seen.starts_with(&self.path_start)
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

#[test]
fn the_edge_counts_each_request_for_a_seat_however_its_path_is_written() {
    let limit = SeatLimit::read();
    let routes = Template::parse(TEMPLATE).unwrap().routes;
    let seats: Vec<_> = routes.iter().filter(|route| SEATS.contains(&route.code_uri.as_str())).collect();
    assert_eq!(seats.len(), SEATS.len());
    for route in seats {
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
    for (method, path) in [
        ("GET", "/matchmaker/lobbies/list"),
        ("POST", "/matchmaker/players/connected"),
        ("POST", "/matchmaker/servers/heartbeat"),
    ] {
        assert!(!limit.counts(method, path), "{method} {path}");
    }
}
