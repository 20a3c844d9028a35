//! Calls of DynamoDB, and the units that it charged.

use std::ops::{Add, Sub};

/// Calls and units so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Calls of the store; a transaction or a batch is one.
    pub calls: u64,
    /// Read units.
    pub read_units: f64,
    /// Write units, those of indexes and of refused writes included.
    pub write_units: f64,
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            read_units: self.read_units + other.read_units,
            write_units: self.write_units + other.write_units,
        }
    }
}

impl Sub for Usage {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            calls: self.calls - earlier.calls,
            read_units: self.read_units - earlier.read_units,
            write_units: self.write_units - earlier.write_units,
        }
    }
}
