//! What AWS charges for what was counted: one table, us-east-1, as of the design.

pub use muster_console::budget::{
    DOLLARS_PER_MILLION_READS as READ_UNITS, DOLLARS_PER_MILLION_WRITES as WRITE_UNITS,
};
use shared::base::usage::Usage;

/// Dollars per million requests to Lambda.
pub const LAMBDA_REQUESTS: f64 = 0.20;
/// Dollars per million GB-seconds of Lambda on arm64.
pub const LAMBDA_GB_SECONDS: f64 = 13.333_4;
/// Dollars per million requests to an HTTP API.
pub const HTTP_API: f64 = 1.00;

/// Memory of a function, as in the template.
const MEMORY_GB: f64 = 0.125;
/// Billed time of a request besides its calls, in seconds.
const BILLED_SECS: f64 = 0.002;
/// Billed time of each DynamoDB call, in seconds, as if none ran beside another.
const BILLED_SECS_A_CALL: f64 = 0.005;

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
        self.read_units * READ_UNITS + self.write_units * WRITE_UNITS
    }

    /// Lambda's part, in dollars per million.
    #[must_use]
    pub fn lambda(&self) -> f64 {
        let billed_secs = BILLED_SECS + BILLED_SECS_A_CALL * self.calls;
        LAMBDA_REQUESTS + billed_secs * MEMORY_GB * LAMBDA_GB_SECONDS
    }

    /// All of it, in dollars per million; logs, metrics and traces are not in it.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.dynamodb() + self.lambda() + HTTP_API
    }
}
