//! AWS prices: the only ones in this repository.
//!
//! List prices of us-east-1 in dollars, as of 2025, the first tier of each, without free allowances.

/// The price of so many units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Dollars for `units`.
    pub dollars: f64,
    /// How many units they buy.
    pub units: f64,
}

impl Price {
    /// What so many units cost, in dollars.
    #[must_use]
    pub fn of(self, units: f64) -> f64 {
        self.dollars * units / self.units
    }
}

const fn a_million(dollars: f64) -> Price {
    Price { dollars, units: 1e6 }
}

const fn each(dollars: f64) -> Price {
    Price { dollars, units: 1.0 }
}

/// Requests to an HTTP API, of up to [`API_REQUEST_BYTES`] each.
pub const API_REQUESTS: Price = a_million(1.00);
/// Bytes of a response for which an HTTP API charges one request.
pub const API_REQUEST_BYTES: f64 = 512.0 * 1_024.0;
/// GB of data sent to the internet.
pub const DATA_SENT_GB: Price = each(0.09);
/// Requests to Lambda.
pub const LAMBDA_REQUESTS: Price = a_million(0.20);
/// GB-seconds of Lambda on arm64: gigabytes of a function's memory times the time that it runs.
pub const LAMBDA_GB_SECONDS: Price = a_million(13.333_4);
/// Read request units of DynamoDB on demand.
pub const READ_UNITS: Price = a_million(0.125);
/// Write request units of DynamoDB on demand.
pub const WRITE_UNITS: Price = a_million(0.625);
/// GB of tables and indexes, a month.
pub const TABLE_GB: Price = each(0.25);
/// GB of tables with point-in-time recovery, a month, besides their own.
pub const BACKUP_GB: Price = each(0.20);
/// GB that CloudWatch Logs takes in. Logs of Lambda and of API Gateway are vended logs, whose first 10 TB a
/// month cost as much as any other.
pub const LOG_GB_WRITTEN: Price = each(0.50);
/// GB that CloudWatch Logs keeps, compressed, a month.
pub const LOG_GB_KEPT: Price = each(0.03);
/// GB of ingested logs that a CloudWatch Logs query scans.
pub const LOG_GB_SCANNED: Price = each(0.005);
/// Metrics of one's own, a month of hours in which each is counted.
pub const METRICS: Price = each(0.30);
/// Metrics that alarms of standard resolution watch, a month: an alarm over an expression watches each metric
/// in it.
pub const ALARM_METRICS: Price = each(0.10);
/// Metrics that are read of CloudWatch: each series of one call counts.
pub const METRIC_READS: Price = Price { dollars: 0.01, units: 1e3 };
/// Dashboards, a month.
pub const DASHBOARDS: Price = each(3.00);
/// Secrets in Secrets Manager, a month.
pub const SECRETS: Price = each(0.40);
/// Keys of one's own in KMS, a month.
pub const KEYS: Price = each(1.00);
/// Requests to KMS, also for keys that AWS manages.
pub const KEY_REQUESTS: Price = Price { dollars: 0.03, units: 1e4 };

/// Memory of a function, as in the template.
const MEMORY_GB: f64 = 0.125;
/// Billed time of a request besides its calls, in seconds.
const BILLED_SECS: f64 = 0.002;
/// Billed time of each DynamoDB call, in seconds, as if none ran beside another.
const BILLED_SECS_A_CALL: f64 = 0.005;

/// GB-seconds of Lambda for requests that make so many calls of DynamoDB together.
#[must_use]
pub fn gb_seconds(requests: f64, calls: f64) -> f64 {
    MEMORY_GB * (BILLED_SECS * requests + BILLED_SECS_A_CALL * calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_of_its_units() {
        assert_eq!([WRITE_UNITS.of(1e6), WRITE_UNITS.of(0.0), METRICS.of(2.0)], [0.625, 0.0, 0.60]);
        assert!((KEY_REQUESTS.of(1e6) - 3.0).abs() < 1e-9);
    }
}
