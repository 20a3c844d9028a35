//! What a web page's origin is worth: its host, when it is a name.

use std::fmt;

use url::{Host, Url};

/// The host of an origin: lower case, IDN as Punycode, without scheme and port; never an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OriginHost(String);

/// Longest origin looked at, in bytes: a host has at most 253 characters.
const ORIGIN_BYTES_MAX: usize = 512;

impl OriginHost {
    /// The host of the URL `origin`; nothing for anything unusable, which counts as no origin.
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
