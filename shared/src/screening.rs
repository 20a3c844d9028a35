//! Whom captcha providers and studios' backends let in: asked after every rule, before any seat is taken.
//!
//! Both fail closed (decision 48). Neither is asked about a client at its limit, or about a request that
//! another run has claimed.

pub mod captcha;
pub mod check;
pub mod outside;
pub mod secrets;
pub mod verification;
pub mod web_client;
