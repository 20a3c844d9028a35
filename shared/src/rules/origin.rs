//! The host of a web page's origin, if it is a name.

use std::{fmt, str::FromStr};

use url::{Host, Url};

/// The host of an origin: lower case, IDN as Punycode, without scheme and port; never an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OriginHost(String);

/// Text that is not a host name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a host name")]
pub struct InvalidDomain;

/// Longest origin looked at, in bytes: a host has at most 253 characters.
const ORIGIN_BYTES_MAX: usize = 512;

/// Longest host name, in characters.
const DOMAIN_CHARS_MAX: usize = 253;
/// Longest part of a host name, in characters.
const LABEL_CHARS_MAX: usize = 63;

impl OriginHost {
    /// The host of the URL `origin`; `None` for unusable text, which counts as no origin.
    #[must_use]
    pub fn parse(origin: &str) -> Option<Self> {
        if origin.len() > ORIGIN_BYTES_MAX {
            return None;
        }
        let url = Url::parse(origin.trim()).ok()?;
        if !matches!(url.scheme(), "http" | "https") {
            return None;
        }
        match url.host()? {
            Host::Domain(name) => {
                let name = name.strip_suffix('.').unwrap_or(name);
                // A second dot at the end would leave a part without characters.
                let is_name = !name.is_empty() && !name.ends_with('.');
                is_name.then(|| Self(name.to_owned()))
            }
            Host::Ipv4(_) | Host::Ipv6(_) => None,
        }
    }

    /// The host as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for OriginHost {
    type Err = InvalidDomain;

    /// The bare name `domain`: letters, digits, hyphens and dots, beyond ASCII as Punycode, at most 253
    /// characters.
    fn from_str(domain: &str) -> Result<Self, InvalidDomain> {
        let is_bare =
            !domain.contains(|c: char| c.is_whitespace() || c.is_control() || "/?#@:%\\[]".contains(c));
        let host = is_bare.then(|| Self::parse(&format!("https://{domain}"))).flatten();
        let host = host.ok_or(InvalidDomain)?;
        let is_label = |label: &str| {
            (1..=LABEL_CHARS_MAX).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        if host.0.len() <= DOMAIN_CHARS_MAX && host.0.split('.').all(is_label) {
            Ok(host)
        } else {
            Err(InvalidDomain)
        }
    }
}

impl fmt::Display for OriginHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_host_counts() {
        for origin in [
            "https://play.example.com",
            "http://PLAY.example.com:8080",
            "https://play.example.com./a?b#c",
            " https://play.example.com/ ",
        ] {
            assert_eq!(OriginHost::parse(origin).unwrap().as_str(), "play.example.com", "{origin}");
        }
        assert_eq!(OriginHost::parse("https://Bücher.example").unwrap().as_str(), "xn--bcher-kva.example");
    }

    #[test]
    fn a_domain_is_a_bare_host_name() {
        for (domain, host) in [
            ("play.example.com", "play.example.com"),
            ("PLAY.example.com.", "play.example.com"),
            ("localhost", "localhost"),
            ("Bücher.example", "xn--bcher-kva.example"),
        ] {
            assert_eq!(domain.parse::<OriginHost>().unwrap().as_str(), host);
        }
        let (label, name) = ("a".repeat(64), ["a".repeat(60).as_str(); 5].join("."));
        for domain in [
            "",
            ".",
            "a..b",
            "https://a.example",
            "a.example:443",
            "a.example/",
            "user@a.example",
            "a example",
            "*.example",
            "-a.example",
            "a_b.example",
            "127.0.0.1",
            "2130706433",
            "[::1]",
            "%61.example",
            &label,
            &name,
        ] {
            assert_eq!(domain.parse::<OriginHost>(), Err(InvalidDomain), "{domain}");
        }
    }

    #[test]
    fn what_is_no_named_host_is_no_origin() {
        let long = format!("https://{}.example", "a".repeat(600));
        for origin in [
            "",
            "null",
            "play.example.com",
            "https://127.0.0.1",
            "http://[::1]:3000",
            "file:///x",
            "ftp://a.example",
            &long,
        ] {
            assert_eq!(OriginHost::parse(origin), None, "{origin}");
        }
    }
}
