//! The encodings of a response that a client accepts.

/// Whether `accept_encoding`, the value of the header, prefers gzip to an unencoded response (RFC 9110,
/// section 12.5.3). A coding with a malformed weight does not count.
#[must_use]
pub fn prefers_gzip(accept_encoding: &str) -> bool {
    let (mut gzip, mut identity, mut others) = (None, None, None);
    for element in accept_encoding.split(',') {
        let (coding, parameters) = element.split_once(';').unwrap_or((element, "q=1"));
        let Some(thousandths) = weight(parameters.trim()) else { continue };
        match coding.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => gzip = Some(thousandths),
            "identity" => identity = Some(thousandths),
            "*" => others = Some(thousandths),
            _ => {}
        }
    }
    // Not naming identity refuses nothing and prefers nothing.
    gzip.or(others).is_some_and(|gzip| gzip > 0 && gzip >= identity.unwrap_or(0))
}

/// A weight in thousandths: `q=` and a number from 0 to 1 with at most three decimals.
fn weight(parameter: &str) -> Option<u16> {
    let (name, value) = parameter.split_once('=')?;
    if !name.trim_end().eq_ignore_ascii_case("q") {
        return None;
    }
    let (whole, decimals) = value.trim_start().split_once('.').unwrap_or((value.trim_start(), ""));
    if decimals.len() > 3 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let decimals = format!("{decimals:0<3}").parse().ok()?;
    match (whole, decimals) {
        ("0", decimals) => Some(decimals),
        ("1", 0) => Some(1_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_preferred_where_it_is_accepted() {
        for accepted in [
            "gzip",
            "GZIP",
            "x-gzip",
            "gzip, deflate, br, zstd",
            "br;q=1.0, gzip;q=0.8, *;q=0.1",
            "*",
            "deflate , gzip ; q=0.001",
            "gzip;Q=1.000",
            "identity;q=0.5, gzip",
            "gzip;q=1, identity",
            "identity;q=0, *",
        ] {
            assert!(prefers_gzip(accepted), "{accepted}");
        }
    }

    #[test]
    fn gzip_is_not_preferred_where_it_is_refused_or_not_named() {
        for refused in [
            "",
            "identity",
            "br, deflate",
            "gzip;q=0",
            "gzip; q=0.000",
            "*;q=0",
            "gzip;q=0, *",
            "gzip;q=0.5, identity",
            "gzipped",
            "gzip;q=2",
            "gzip;q=0.1234",
            "gzip;q=-1",
            "gzip;q=+1",
            "gzip;q",
            "gzip;level=9",
        ] {
            assert!(!prefers_gzip(refused), "{refused}");
        }
    }
}
