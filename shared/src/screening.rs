//! Screening by captcha providers and studios' backends, after every rule and before any seat is taken.
//!
//! Both fail closed (decision 48). Muster calls neither for a client at its limit, nor for a request that
//! another run has claimed.

pub mod admission;
pub mod captcha;
pub mod check;
pub mod secrets;
pub mod verification;
