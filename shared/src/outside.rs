//! Whatever is outside of a deployment, and how it is called.

pub mod aws_api;
pub mod endpoints;
pub mod web_client;
pub mod webhook;
