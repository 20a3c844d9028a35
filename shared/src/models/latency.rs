//! How long a client's packets take to a region and back.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The lowest that a client may report, in milliseconds: many report 0 for what they could not reach.
pub const LATENCY_MS_MIN: u32 = 1;
/// The highest, in milliseconds.
pub const LATENCY_MS_MAX: u32 = 10_000;

/// A round trip between a client and a region, as the client measured it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Latency {
    micros: u32,
}

impl Latency {
    /// How far it is above another; zero if it is below.
    #[must_use]
    pub const fn above(self, other: Self) -> Duration {
        Duration::from_micros(self.micros.saturating_sub(other.micros) as u64)
    }
}

impl TryFrom<f64> for Latency {
    type Error = String;

    /// The latency of so many milliseconds, to the microsecond.
    fn try_from(ms: f64) -> Result<Self, String> {
        if !(f64::from(LATENCY_MS_MIN)..=f64::from(LATENCY_MS_MAX)).contains(&ms) {
            return Err(format!(
                "a latency is {LATENCY_MS_MIN} to {LATENCY_MS_MAX} milliseconds, or null where the region cannot be reached"
            ));
        }
        Ok(Self { micros: whole(ms * 1_000.0) })
    }
}

impl From<Latency> for f64 {
    fn from(latency: Latency) -> Self {
        Self::from(latency.micros) / 1_000.0
    }
}

/// A number within the range of `u32`, rounded.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "its callers check the range")]
const fn whole(number: f64) -> u32 {
    number.round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Latency, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_latency_is_an_integer_or_a_decimal_within_its_range() {
        for (text, written) in [("1", "1.0"), ("23.4", "23.4"), ("10000", "10000.0"), ("20.00049", "20.0")] {
            let latency = read(text).unwrap();
            assert_eq!(serde_json::to_string(&latency).unwrap(), written, "{text}");
        }
        for text in ["0", "0.99", "-1", "10000.001", "1e400", "\"20\"", "true", "[]"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_latency_is_exactly_so_far_above_another() {
        let (near, far) = (read("20.5").unwrap(), read("70.501").unwrap());
        assert_eq!(far.above(near), Duration::from_micros(50_001));
        assert_eq!(near.above(far), Duration::ZERO);
    }
}
