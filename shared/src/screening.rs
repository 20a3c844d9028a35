//! Whom captcha providers and studios' own backends let in: asked after every rule, before any seat is taken.

pub mod captcha;
pub mod check;
pub mod outside;
pub mod secrets;
pub mod verification;
pub mod web_client;
