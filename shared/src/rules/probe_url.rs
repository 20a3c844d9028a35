//! Which URLs clients may probe to measure their latency to a region. Muster itself calls none of them.

use url::{Host, Url};

use crate::rules::public_url::URL_BYTES_MAX;

/// Whether `text` is a URL that pages may call: https or wss, or http or ws on the machine itself, without a
/// user.
#[must_use]
pub fn is_probe_url(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else { return false };
    let is_local = match url.host() {
        None => return false,
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
    };
    let is_safe = match url.scheme() {
        "https" | "wss" => true,
        "http" | "ws" => is_local,
        _ => false,
    };
    is_safe && url.username().is_empty() && url.password().is_none() && text.len() <= URL_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_encrypted_unless_it_stays_on_the_machine() {
        for text in [
            "https://fra.example/probe",
            "wss://fra.example:7777",
            "https://10.0.0.1/",
            "http://localhost:8080/probe",
            "ws://127.0.0.1:7777",
            "http://[::1]/",
        ] {
            assert!(is_probe_url(text), "{text}");
        }
        let long = format!("https://fra.example/{}", "x".repeat(URL_BYTES_MAX));
        for text in [
            "",
            "fra.example",
            "http://fra.example/",
            "ws://10.0.0.1/",
            "http://localhost.example/",
            "ftp://fra.example/",
            "https://user@fra.example/",
            "https://",
            "data:,",
            &long,
        ] {
            assert!(!is_probe_url(text), "{text}");
        }
    }
}
