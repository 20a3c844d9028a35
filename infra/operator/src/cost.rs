//! What a deployment costs in a month.

#[cfg(feature = "aws")]
mod cloudwatch;
#[cfg(feature = "aws")]
pub(crate) mod command;
pub mod month;
#[cfg(feature = "aws")]
mod reading;
