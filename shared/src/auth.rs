//! Authentication and authorization: tokens in, rights out.

pub mod cloud;
pub mod keys;
pub mod matchmaker;
mod ring_provider;
pub mod settings;
