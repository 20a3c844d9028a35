//! Places and times: hosts, ports, coordinates, instants.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use aws_sdk_dynamodb::{
    primitives::{DateTime, DateTimeFormat},
    types::AttributeValue,
};
use harness::instance;
use proptest::{
    collection::vec,
    option,
    prelude::{any, prop_oneof},
    prop_assert, prop_assert_eq,
    sample::select,
    strategy::{Just, Strategy},
};
use regex_lite::Regex;
use serde_json::{Value, json};
use shared::{
    base::ambient::Timestamp,
    models::{coordinates::Coordinates, ports::Ports},
    rules::origin::OriginHost,
    wire::{self, ports::PortSpec},
};
use url::Url;

use crate::fuzz::{check_plain, json::text};

#[test]
fn of_an_origin_the_host_counts_and_nothing_else() {
    let label = "[a-zA-Z][a-zA-Z0-9]{0,10}(-[a-z0-9]{1,5})?";
    let scheme = select(&["https", "http", "HTTPS", "Http"][..]);
    let user = select(&["", "user@", "user:secret@", "evil.example@"][..]);
    let port = prop_oneof![Just(String::new()), any::<u16>().prop_map(|port| format!(":{port}"))];
    let rest = prop_oneof!["", "/", "\\.?/[!-~]{0,10}", "\\?[!-~]{0,10}", "#[!-~]{0,10}"];
    let space = || select(&["", " ", "\t "][..]);
    check_plain((space(), scheme, user, vec(label, 1..5), port, rest, space()), |parts| {
        let (before, scheme, user, labels, port, rest, after) = parts;
        // A dot at the end names the same host.
        let (dot, rest) = rest.strip_prefix('.').map_or(("", rest.as_str()), |rest| (".", rest));
        let host = labels.join(".");
        let origin = format!("{before}{scheme}://{user}{host}{dot}{port}{rest}{after}");
        let parsed = OriginHost::parse(&origin);
        prop_assert_eq!(parsed.map(|host| host.to_string()), Some(host.to_lowercase()));
        Ok(())
    });
}

#[test]
fn an_origin_is_a_named_host_or_nothing() {
    let near = (
        select(&["https://", "http://", "HTTP://", "ftp://", "//", "", "https:", "https:/", "file://"][..]),
        prop_oneof![
            "[a-z0-9.-]{0,20}",
            "[0-9a-fx.]{1,12}",
            "\\PC{0,10}",
            "[!-~]{0,12}",
            "\\[[0-9a-f:.]{2,12}\\]"
        ],
    );
    let near = near.prop_map(|(scheme, rest)| format!("{scheme}{rest}"));
    check_plain(prop_oneof![3 => near, 1 => text(), 1 => any::<String>()], |origin| {
        let Some(host) = OriginHost::parse(&origin) else { return Ok(()) };
        let scheme = Regex::new("(?i)^https?:").unwrap();
        prop_assert!(scheme.is_match(origin.trim()), "{} is no web page's", origin);
        let host = host.as_str();
        prop_assert!(!host.is_empty() && host.is_ascii() && host == host.to_lowercase(), "{}", host);
        prop_assert!(!host.contains([' ', '/', ':', '?', '#', '@', '[', ']', '%', '\\']), "{}", host);
        prop_assert!(host.parse::<IpAddr>().is_err(), "{} is an address", host);
        for again in
            [format!("https://{host}"), format!("http://{host}:8080/a?b#c"), format!("https://{host}.")]
        {
            let again = OriginHost::parse(&again);
            prop_assert_eq!(again.as_ref().map(OriginHost::as_str), Some(host), "of {}", &origin);
        }
        Ok(())
    });
}

/// The host that clients get for a text: as URLs have it, if a player can connect there.
fn host_in_urls(text: &str) -> Option<String> {
    let whole = text.parse::<Ipv6Addr>().map_or_else(|_| text.to_owned(), |_| format!("[{text}]"));
    let address = match whole.strip_prefix('[') {
        Some(rest) => Some(rest.strip_suffix(']')?.parse::<Ipv6Addr>().ok()?.to_canonical()),
        None => whole.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    };
    if let Some(address) = address {
        let is_of_one = address != IpAddr::V4(Ipv4Addr::BROADCAST) && !address.is_multicast();
        return (is_of_one && !address.is_unspecified()).then_some(whole);
    }
    let is_part =
        |letter: char| !letter.is_control() && !letter.is_whitespace() && !"/:@?#\\".contains(letter);
    let url = Url::parse(&format!("http://{text}/")).ok().filter(|_| text.chars().all(is_part))?;
    let name = if text.is_ascii() { text } else { url.host_str()? };
    let label = Regex::new("^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$").unwrap();
    let is_name = name.len() <= 253 && name.split('.').all(|part| label.is_match(part));
    (is_name && url.host_str()?.eq_ignore_ascii_case(name)).then(|| name.to_owned())
}

fn near_hostname() -> impl Strategy<Value = String> + Clone {
    prop_oneof![
        6 => "[a-zA-Z0-9_]{1,5}(\\.[a-z0-9-]{1,5}){0,3}",
        1 => "[a-z\u{e4}\u{df}\u{4e00}-\u{4e20}-]{1,5}(\\.[a-z\u{e4}]{1,5}){0,2}",
        1 => select(&["0.0.0.0", "::", "[::]", "255.255.255.255", "224.0.0.1", "ff02::1", "127.1", "0x7f.1", "xn--a"][..])
            .prop_map(str::to_owned),
        1 => any::<IpAddr>().prop_map(|ip| ip.to_string()),
        2 => any::<Ipv6Addr>().prop_map(|ip| format!("[{ip}]")),
        1 => "\\[?[0-9a-f:.%]{0,10}\\]?",
        1 => "[a-z0-9]{60,66}(\\.[a-z0-9]{62,63}){2,3}",
        1 => text(),
    ]
}

fn near_number() -> impl Strategy<Value = u32> + Clone {
    prop_oneof![6 => 1..65_536_u32, 1 => select(&[0, 1, 65_535, 65_536, u32::MAX][..])]
}

fn near_ports() -> impl Strategy<Value = BTreeMap<String, Value>> {
    let label = prop_oneof![8 => "[a-z0-9]{1,16}", 1 => "[a-z0-9-]{0,18}", 1 => text()];
    let range = || {
        (near_number(), near_number(), any::<bool>())
            .prop_map(|(a, b, swapped)| if swapped { (a.max(b), a.min(b)) } else { (a.min(b), a.max(b)) })
    };
    let numbers = prop_oneof![
        5 => near_number().prop_map(|port| json!({ "port": port })),
        4 => range().prop_map(|(min, max)| json!({ "port_range": { "min": min, "max": max } })),
        1 => (near_number(), range()).prop_map(|(port, (min, max))| json!({ "port": port, "port_range": { "min": min, "max": max } })),
        1 => Just(json!({ "port": null })),
    ];
    let plain = select(&["http", "tcp", "udp"][..]);
    let with_tls = select(&["https", "tcp_tls"][..]);
    let port = move |protocol: proptest::sample::Select<&'static str>| {
        (option::weighted(0.9, near_hostname()), numbers.clone(), protocol).prop_map(
            |(hostname, mut port, protocol)| {
                port["protocol"] = json!(protocol);
                port["hostname"] = json!(hostname);
                port
            },
        )
    };
    let (plain, with_tls) = (port(plain), port(with_tls));
    let mixed = prop_oneof![plain.clone(), with_tls.clone()];
    prop_oneof![
        proptest::collection::btree_map(label.clone(), plain, 0..4),
        proptest::collection::btree_map(label.clone(), with_tls, 0..18),
        proptest::collection::btree_map(label, mixed, 0..4),
    ]
}

#[test]
fn the_ports_of_a_server_are_those_that_clients_can_use() {
    check_plain((near_ports(), option::of(near_hostname())), |(described, hostname)| {
        let specs: BTreeMap<String, PortSpec> = serde_json::from_value(json!(described)).unwrap();
        let host_of = |port: &Value| port["hostname"].as_str().map(str::to_owned).or(hostname.clone());
        let is_tls = |port: &Value| ["https", "tcp_tls"].contains(&port["protocol"].as_str().unwrap());
        let label = Regex::new("^[a-z0-9]([a-z0-9-]*[a-z0-9])?$").unwrap();
        let numbers = |port: &Value| match (port["port"].as_u64(), &port["port_range"]) {
            (Some(port), Value::Null) => (1..=65_535).contains(&port),
            (None, Value::Object(range)) => {
                let (min, max) = (range["min"].as_u64().unwrap(), range["max"].as_u64().unwrap());
                1 <= min && min <= max && max <= 65_535
            }
            _ => false,
        };
        let is_valid = (1..=16).contains(&described.len())
            && described.keys().all(|text| text.len() <= 16 && label.is_match(text))
            && described
                .values()
                .all(|port| host_of(port).is_some_and(|host| host_in_urls(&host).is_some()) && numbers(port))
            && (described.values().all(is_tls) || !described.values().any(is_tls));

        let ports = match Ports::of_specs(&specs, hostname.as_deref()) {
            Ok(ports) => ports,
            Err(invalid) => {
                prop_assert!(!is_valid, "{} are refused: {}", json!(described), invalid);
                prop_assert!(
                    !invalid.is_empty()
                        && invalid
                            .into_iter()
                            .all(|broken| broken.path[0] == "ports" && broken.path.len() > 1)
                );
                return Ok(());
            }
        };
        prop_assert!(is_valid, "{} are taken", json!(described));
        prop_assert_eq!(&serde_json::from_value::<Ports>(json!(ports)).unwrap(), &ports);
        let stored: AttributeValue = serde_dynamo::to_attribute_value(&ports).unwrap();
        prop_assert_eq!(&serde_dynamo::from_attribute_value::<_, Ports>(stored).unwrap(), &ports);
        for (answered, hostname) in
            [(wire::ports(&ports), None), (wire::ports_on("dev.example", &ports), Some("dev.example"))]
        {
            let expected: BTreeMap<_, _> = described
                .iter()
                .map(|(label, port)| {
                    let registered = || host_in_urls(&host_of(port).unwrap()).unwrap();
                    let hostname = hostname.map_or_else(registered, str::to_owned);
                    let host = port["port"].as_u64().map(|port| format!("{hostname}:{port}"));
                    let expected = json!({ "host": host, "hostname": hostname, "port": port["port"],
                                           "port_range": port["port_range"], "is_tls": is_tls(port) });
                    (label.clone(), expected)
                })
                .collect();
            prop_assert_eq!(json!(answered), json!(expected));
        }
        Ok(())
    });
}

fn near_degrees() -> impl Strategy<Value = f64> {
    prop_oneof![6 => -91.0..91.0, 4 => -181.0..181.0, 1 => any::<f64>(), 1 => select(&[90.0, -90.0, 180.0, -180.0, -0.0][..])]
}

#[test]
fn coordinates_lie_on_the_globe_and_count_by_the_word_of_the_edge_alone() {
    let degrees =
        || prop_oneof![4 => near_degrees().prop_map(|degrees| degrees.to_string()), 1 => "[ -~]{0,8}"];
    // An edge without a secret is none.
    let secret = || option::of(prop_oneof![Just("the edge's".to_owned()), "[!-~]{1,3}"]);
    let shown = prop_oneof![4 => secret(), 1 => Just(Some(String::new()))];
    check_plain((degrees(), degrees(), shown, secret()), |(latitude, longitude, shown, secret)| {
        let number = |text: &str, most: f64| {
            text.parse::<f64>().ok().filter(|number| -most <= *number && *number <= most)
        };
        let place = number(&latitude, 90.0).zip(number(&longitude, 180.0));
        if let (Ok(latitude), Ok(longitude)) = (latitude.parse(), longitude.parse()) {
            let coordinates = Coordinates::new(latitude, longitude);
            prop_assert_eq!(coordinates.map(|at| (at.latitude, at.longitude)), place);
        }
        let mut headers = vec![
            ("cloudfront-viewer-latitude", latitude.as_str()),
            ("cloudfront-viewer-longitude", longitude.as_str()),
        ];
        headers.extend(shown.as_deref().map(|shown| ("x-muster-edge-secret", shown)));
        let viewer = instance::request(&headers, &Value::Null).viewer(secret.as_deref());
        let is_of_edge = shown.is_some() && shown == secret;
        let expected = place.filter(|_| is_of_edge);
        prop_assert_eq!(viewer.map(|at| (at.latitude, at.longitude)), expected);
        Ok(())
    });
}

#[test]
fn an_address_is_another_than_the_gateway_saw_by_the_word_of_the_edge_alone() {
    for (viewer, shown, expected) in [
        ("198.51.100.10:46532", "secret", "198.51.100.10"),
        ("2001:db8:1:2:3:4:5:6:46532", "secret", "2001:db8:1:2:3:4:5:6"),
        ("[2001:db8::1]:46532", "secret", "2001:db8::1"),
        ("198.51.100.10:46532", "guessed", "127.0.0.1"),
        ("198.51.100.10", "secret", "127.0.0.1"),
        ("nonsense:1", "secret", "127.0.0.1"),
    ] {
        let headers = [("cloudfront-viewer-address", viewer), ("x-muster-edge-secret", shown)];
        let request = instance::request(&headers, &Value::Null);
        assert_eq!(request.client_ip(Some("secret")), Some(expected.parse().unwrap()), "{viewer} {shown}");
        assert_eq!(request.client_ip(None), request.source_ip(), "{viewer} {shown}");
    }
}

#[test]
fn a_distance_is_that_of_the_globe() {
    let place = || (-90.0..90.0, -180.0..180.0);
    check_plain(
        (place(), place()),
        |((north, east), (other_north, other_east)): ((f64, f64), (f64, f64))| {
            let (here, there) =
                (Coordinates::new(north, east).unwrap(), Coordinates::new(other_north, other_east).unwrap());
            let unit = |north: f64, east: f64| {
                let (north, east) = (north.to_radians(), east.to_radians());
                [north.cos() * east.cos(), north.cos() * east.sin(), north.sin()]
            };
            let (a, b) = (unit(north, east), unit(other_north, other_east));
            let chord = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
            let expected = 6_371.0 * 2.0 * (chord / 2.0).min(1.0).asin();
            prop_assert!((here.distance_km(there) - expected).abs() < 0.01, "{} km", expected);
            prop_assert!((here.distance_km(there) - there.distance_km(here)).abs() < 0.01);
            Ok(())
        },
    );
}

#[test]
fn an_instant_reads_back_to_the_millisecond() {
    // To the last millisecond of the year 9999.
    check_plain(prop_oneof![0..253_402_300_800_000_u64, 0..4_000_000_000_000_u64], |millis| {
        let text = shared::base::ambient::time(Timestamp(millis));
        let form = Regex::new(r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$").unwrap();
        prop_assert!(form.is_match(&text), "{}", text);
        let read = DateTime::from_str(&text, DateTimeFormat::DateTime).unwrap();
        prop_assert_eq!(read.to_millis().unwrap(), i64::try_from(millis).unwrap());
        let lease_end = wire::lease_end(Timestamp(millis));
        prop_assert_eq!(lease_end, (millis < Timestamp::NEVER.0).then_some(text));
        Ok(())
    });
}
