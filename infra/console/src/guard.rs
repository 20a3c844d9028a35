//! Decides who may use a listener of this machine: the console, and every other listener that is not public.
//!
//! Any page that a browser on this machine shows can send requests here. A name of its own that resolves to a
//! loopback address shows in `Host`. A foreign page, even one of another port of this machine, shows in
//! `Sec-Fetch-Site` or `Origin`, which browsers set and pages cannot. What changes something behind the
//! console needs the first, or [`OWN_HEADER`], which a foreign page can send only after a preflight, and no
//! guarded listener answers any.

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Mutex,
};

use http::{
    HeaderMap, HeaderValue, Uri,
    header::{self, CACHE_CONTROL, COOKIE, HOST, HeaderName, ORIGIN, X_CONTENT_TYPE_OPTIONS},
    uri::Authority,
};
use ring::digest::{SHA256, digest};
use shared::base::ambient::Ambient;

/// A header that a page of another origin may send only after a preflight.
pub const OWN_HEADER: HeaderName = HeaderName::from_static("muster-console");
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// What proxies add to requests that they pass on.
const PASSED_ON: [HeaderName; 4] = [
    header::FORWARDED,
    header::VIA,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
];
/// The cookie of a session. A browser shares cookies between ports, so its name has the port.
const COOKIE_PREFIX: &str = "muster_console_";
/// Keep every response from pages of other origins, which may embed it even where they cannot read it, and
/// from caches.
const OF_RESPONSES: [(HeaderName, &str); 3] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Whether a request comes from this machine and was meant for it. One that a proxy or tunnel on this machine
/// passes on comes from elsewhere, and its `Host` may be the proxy's.
#[must_use]
pub fn is_for_this_machine(headers: &HeaderMap, uri: &Uri, peer: SocketAddr) -> bool {
    peer.ip().to_canonical().is_loopback()
        && !PASSED_ON.iter().any(|name| headers.contains_key(name))
        && is_meant_for(headers, uri, is_loopback)
}

/// Whether a request was meant for a name of the listener's own, which `is_own` recognises in its `Host` and
/// in the authority of its target.
pub fn is_meant_for(headers: &HeaderMap, uri: &Uri, is_own: impl Fn(&str) -> bool) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    host.to_str().is_ok_and(&is_own) && uri.authority().is_none_or(|authority| is_own(authority.as_str()))
}

/// Whether a page of another origin sent a request. A program sends neither header, and a person who types
/// the address is no page.
#[must_use]
pub fn is_of_foreign_page(headers: &HeaderMap) -> bool {
    let is_here = |origin: &HeaderValue| {
        let origin = origin.as_bytes().strip_prefix(b"http://");
        origin.is_some() && origin == headers.get(HOST).map(HeaderValue::as_bytes)
    };
    headers.get_all(SEC_FETCH_SITE).iter().any(|site| site != "same-origin" && site != "none")
        || !headers.get_all(ORIGIN).iter().all(is_here)
}

/// Keeps a response from pages of other origins and from caches, whatever it says of them.
pub fn protect(response: &mut HeaderMap) {
    for (name, value) in OF_RESPONSES {
        response.insert(name, HeaderValue::from_static(value));
    }
}

/// Whether the host of `authority`, with or without a port, is `name`.
#[must_use]
pub fn is_host(authority: &str, name: &str) -> bool {
    let authority = authority.parse::<Authority>();
    authority.is_ok_and(|authority| {
        !authority.as_str().contains('@') && authority.host().eq_ignore_ascii_case(name)
    })
}

/// Whether `authority`, a host with or without a port, is this machine by a name that nobody else can own.
#[must_use]
pub fn is_loopback(authority: &str) -> bool {
    let Ok(authority) = authority.parse::<Authority>() else { return false };
    let host = authority.host();
    let ipv6 = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    !authority.as_str().contains('@')
        && (host.eq_ignore_ascii_case("localhost")
            || host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
            || ipv6.is_some_and(|host| host.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback())))
}

/// Whether the console's own page sent a request, or a program that knows [`OWN_HEADER`].
#[must_use]
pub fn is_of_own_page(headers: &HeaderMap) -> bool {
    match headers.get(SEC_FETCH_SITE) {
        Some(site) => site == "same-origin",
        None => headers.contains_key(OWN_HEADER),
    }
}

/// The requests that a console accepts.
#[derive(Clone, Debug)]
pub enum Guard {
    /// All programs and users of this machine: the local stack shows its secrets to them anyway.
    ThisMachine,
    /// Those with a session, which the operator's token begins.
    Session(std::sync::Arc<Session>),
}

/// The one session of a console: its token is exchanged for its cookie, once.
#[derive(Debug)]
pub struct Session {
    token: Mutex<Option<String>>,
    cookie: String,
}

impl Session {
    /// A session that has not begun.
    #[must_use]
    pub fn new(ambient: &Ambient) -> Self {
        let secret = || {
            let bytes = ambient.bytes::<32>();
            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        Self { token: Mutex::new(Some(secret())), cookie: secret() }
    }

    /// The token, until it is exchanged.
    #[must_use]
    pub fn token(&self) -> Option<String> {
        self.token.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// The header that sets the cookie, for the first request that shows the token.
    #[must_use]
    pub fn begin(&self, shown: &str, headers: &HeaderMap) -> Option<HeaderValue> {
        let mut token = self.token.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        token.take_if(|token| is_secret(token, shown))?;
        let (name, cookie) = (cookie_name(headers), &self.cookie);
        let header = format!("{name}={cookie}; Path=/_console; HttpOnly; SameSite=Strict");
        HeaderValue::from_str(&header).ok()
    }

    fn is_shown(&self, headers: &HeaderMap) -> bool {
        let name = cookie_name(headers);
        let cookies = headers.get_all(COOKIE).iter().filter_map(|header| header.to_str().ok());
        let mut pairs = cookies.flat_map(|header| header.split(';')).filter_map(|pair| pair.split_once('='));
        pairs.any(|(shown, value)| shown.trim() == name && is_secret(&self.cookie, value.trim()))
    }
}

impl Guard {
    /// Whether a request may read or change data.
    #[must_use]
    pub fn allows(&self, headers: &HeaderMap) -> bool {
        match self {
            Self::ThisMachine => true,
            Self::Session(session) => session.is_shown(headers),
        }
    }
}

fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
    let port = host.and_then(|host| host.port_u16()).unwrap_or(80);
    format!("{COOKIE_PREFIX}{port}")
}

/// Whether `shown` is the secret `own`.
#[must_use]
pub fn is_secret(own: &str, shown: &str) -> bool {
    // Comparing digests in variable time reveals nothing of the secrets.
    digest(&SHA256, own.as_bytes()).as_ref() == digest(&SHA256, shown.as_bytes()).as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        let mut headers = HeaderMap::new();
        pairs.for_each(|(name, value)| {
            headers.append(name, value);
        });
        headers
    }

    fn reaches(peer: &str, uri: &str, hosts: &[&str]) -> bool {
        let hosts: Vec<_> = hosts.iter().map(|host| ("host", *host)).collect();
        is_for_this_machine(&headers(&hosts), &uri.parse().unwrap(), peer.parse().unwrap())
    }

    #[test]
    fn a_loopback_host_is_let_in_on_any_port() {
        for host in ["localhost", "LocalHost:3000", "127.0.0.1:3000", "127.8.9.1", "[::1]", "[::1]:80"] {
            assert!(reaches("127.0.0.1:9", "/", &[host]), "{host}");
        }
        assert!(reaches("[::ffff:127.0.0.1]:9", "/", &["localhost"]));
    }

    #[test]
    fn any_other_host_and_machine_is_kept_out() {
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost@evil.example",
            "evil@localhost",
            "[::2]",
            "0.0.0.0",
            "10.0.0.1",
            "0177.0.0.1",
            "",
        ] {
            assert!(!reaches("127.0.0.1:9", "/", &[host]), "{host}");
        }
        assert!(!reaches("127.0.0.1:9", "/", &[]));
        assert!(!reaches("127.0.0.1:9", "/", &["localhost", "evil.example"]));
        assert!(!reaches("127.0.0.1:9", "http://evil.example/", &["localhost"]));
        assert!(!reaches("192.0.2.7:9", "/", &["localhost"]));
    }

    #[test]
    fn what_a_proxy_of_this_machine_passes_on_is_kept_out() {
        let uri = "/".parse().unwrap();
        for name in ["forwarded", "via", "x-forwarded-for", "x-forwarded-host"] {
            let passed_on = headers(&[("host", "localhost"), (name, "127.0.0.1")]);
            assert!(!is_for_this_machine(&passed_on, &uri, "127.0.0.1:9".parse().unwrap()), "{name}");
        }
    }

    #[test]
    fn a_page_of_another_origin_is_known_even_on_this_machine() {
        let of = |pairs: &[(&'static str, &str)]| {
            is_of_foreign_page(&headers(&[&[("host", "127.0.0.1:3000")], pairs].concat()))
        };
        for own in [
            &[][..],
            &[("sec-fetch-site", "none")],
            &[("sec-fetch-site", "same-origin")],
            &[("sec-fetch-site", "same-origin"), ("origin", "http://127.0.0.1:3000")],
        ] {
            assert!(!of(own), "{own:?}");
        }
        for origin in [
            "https://evil.example",
            "http://evil.example",
            "null",
            "",
            "http://127.0.0.1:3001",
            "http://localhost:3000",
            "https://127.0.0.1:3000",
            "http://127.0.0.1:3000.evil.example",
        ] {
            assert!(of(&[("origin", origin)]), "{origin}");
        }
        for site in ["cross-site", "same-site", ""] {
            assert!(of(&[("sec-fetch-site", site)]), "{site}");
            assert!(of(&[("sec-fetch-site", "same-origin"), ("sec-fetch-site", site)]), "{site}");
        }
        assert!(is_of_foreign_page(&headers(&[("origin", "http://127.0.0.1:3000")])), "without a host");
    }

    #[test]
    fn a_response_is_kept_from_caches_even_if_it_allows_them() {
        let mut response = headers(&[("cache-control", "no-cache"), ("content-type", "text/event-stream")]);
        protect(&mut response);
        let all: Vec<_> = response.get_all(CACHE_CONTROL).iter().collect();
        assert_eq!(all, ["no-store"]);
        assert_eq!(response.len(), 4);
    }

    #[test]
    fn a_host_is_a_whole_name() {
        for authority in ["db.example", "DB.example:8000"] {
            assert!(is_host(authority, "db.example"), "{authority}");
        }
        for authority in ["db.example.evil", "x.db.example", "evil@db.example", "db.example@evil", ""] {
            assert!(!is_host(authority, "db.example"), "{authority}");
        }
        assert!(is_host("[fd00::1]:8000", "[fd00::1]"));
    }

    #[test]
    fn only_the_own_page_counts_whatever_else_a_foreign_one_sends() {
        assert!(is_of_own_page(&headers(&[("sec-fetch-site", "same-origin")])));
        assert!(is_of_own_page(&headers(&[("muster-console", "1")])));
        assert!(!is_of_own_page(&headers(&[])));
        for site in ["cross-site", "same-site", "none", ""] {
            let forged = [("sec-fetch-site", site), ("muster-console", "1")];
            assert!(!is_of_own_page(&headers(&forged)), "{site}");
        }
    }

    #[test]
    fn a_token_begins_one_session_whose_cookie_counts_on_its_port() {
        let session = Session::new(&Ambient::system());
        let token = session.token().unwrap();
        let here = headers(&[("host", "127.0.0.1:4000")]);
        assert_eq!(session.begin("", &here), None);
        assert_eq!(session.begin(&token[1..], &here), None, "a wrong token leaves the right one valid");
        let set = session.begin(&token, &here).unwrap();
        let set = set.to_str().unwrap();
        assert!(set.ends_with("; Path=/_console; HttpOnly; SameSite=Strict"), "{set}");
        assert_eq!(session.begin(&token, &here), None, "it is exchanged once");
        let cookie = set.split(';').next().unwrap();
        let access = Guard::Session(session.into());
        let with = |host: &str, cookie: &str| access.allows(&headers(&[("host", host), ("cookie", cookie)]));
        assert!(with("127.0.0.1:4000", &format!("a=b; {cookie}")));
        assert!(!with("127.0.0.1:4001", cookie) && !with("127.0.0.1:4000", "muster_console_4000=x"));
        assert!(!access.allows(&here));
    }
}
