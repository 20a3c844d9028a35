//! Who asks, and what they may do: tokens in, rights out.

pub mod cloud;
pub mod keys;
pub mod matchmaker;
mod ring_provider;
pub mod settings;
