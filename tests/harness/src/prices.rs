//! What a counted request costs, by the console's table of prices.

use muster_console::prices::{
    API_REQUESTS, LAMBDA_GB_SECONDS, LAMBDA_REQUESTS, Price, READ_UNITS, WRITE_UNITS, gb_seconds,
};
use shared::base::usage::Usage;

/// What so many of a request cost on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// DynamoDB calls of one.
    pub calls: f64,
    /// Read units of one.
    pub read_units: f64,
    /// Write units of one.
    pub write_units: f64,
}

impl Cost {
    /// The mean of `requests` that used `usage` together.
    #[must_use]
    pub fn mean(usage: Usage, requests: usize) -> Self {
        let requests = requests as f64;
        Self {
            calls: usage.calls as f64 / requests,
            read_units: usage.read_units / requests,
            write_units: usage.write_units / requests,
        }
    }

    /// DynamoDB's part, in dollars per million.
    #[must_use]
    pub fn dynamodb(&self) -> f64 {
        million(READ_UNITS, self.read_units) + million(WRITE_UNITS, self.write_units)
    }

    /// GB-seconds of Lambda of one.
    #[must_use]
    pub fn gb_seconds(&self) -> f64 {
        gb_seconds(1.0, self.calls)
    }

    /// Lambda's part, in dollars per million.
    #[must_use]
    pub fn lambda(&self) -> f64 {
        million(LAMBDA_REQUESTS, 1.0) + million(LAMBDA_GB_SECONDS, self.gb_seconds())
    }

    /// The HTTP API's part, in dollars per million.
    #[must_use]
    pub fn http_api() -> f64 {
        million(API_REQUESTS, 1.0)
    }

    /// The total in dollars per million, without logs, metrics and traces.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.dynamodb() + self.lambda() + Self::http_api()
    }
}

/// Dollars for a million times `units`.
fn million(price: Price, units: f64) -> f64 {
    price.of(1e6 * units)
}
