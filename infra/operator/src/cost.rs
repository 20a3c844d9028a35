//! What a deployment costs in a month.

#[cfg(feature = "aws")]
mod cloudwatch;
#[cfg(feature = "aws")]
pub(crate) mod command;
#[cfg(feature = "aws")]
pub(crate) mod counts;
pub mod month;
#[cfg(feature = "aws")]
mod reading;
