//! The rules: plain functions over values, without AWS, clock or randomness.

pub mod bcrypt_hash;
pub mod capacity;
pub mod cdn_user;
pub mod criteria;
pub mod encodings;
pub mod geography;
pub mod hostname;
pub mod latencies;
pub mod listing;
pub mod matchmaker_config;
mod modes;
pub mod names;
pub mod origin;
pub mod pages;
pub mod parties;
pub mod ports;
pub mod probe_url;
pub mod public_url;
pub mod registration;
pub mod starter;
pub mod version_config;
