//! What a counted request costs, by the console's table of prices.

use muster_console::prices::{
    API_REQUEST_BYTES, API_REQUESTS, DATA_SENT_GB, LAMBDA_GB_SECONDS, LAMBDA_REQUESTS, Price, READ_UNITS,
    WRITE_UNITS, gb_seconds,
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
    /// Bytes of the body of one response.
    pub sent_bytes: f64,
}

/// Bytes of a GB.
const GB: f64 = 1e9;

impl Cost {
    /// One request that used `usage`, and whose response has a body of `sent_bytes`.
    #[must_use]
    pub fn of(usage: Usage, sent_bytes: usize) -> Self {
        let Usage { calls, read_units, write_units } = usage;
        Self { calls: calls as f64, read_units, write_units, sent_bytes: sent_bytes as f64 }
    }

    /// The mean of several.
    #[must_use]
    pub fn mean(costs: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| costs.iter().map(of).sum::<f64>() / costs.len() as f64;
        Self {
            calls: mean(|cost| cost.calls),
            read_units: mean(|cost| cost.read_units),
            write_units: mean(|cost| cost.write_units),
            sent_bytes: mean(|cost| cost.sent_bytes),
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

    /// The HTTP API's part, in dollars per million: a larger response counts as several requests.
    #[must_use]
    pub fn http_api(&self) -> f64 {
        million(API_REQUESTS, (self.sent_bytes / API_REQUEST_BYTES).ceil().max(1.0))
    }

    /// The part of the data sent, in dollars per million.
    #[must_use]
    pub fn data_sent(&self) -> f64 {
        million(DATA_SENT_GB, self.sent_bytes / GB)
    }

    /// The total in dollars per million, without logs, metrics and traces.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.dynamodb() + self.lambda() + self.http_api() + self.data_sent()
    }
}

/// Dollars for a million times `units`.
fn million(price: Price, units: f64) -> f64 {
    price.of(1e6 * units)
}
