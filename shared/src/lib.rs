//! Muster's common crate: what every operation knows about the domain, the wire and the tables.
//!
//! The layers, outermost first: [`http`] turns gateway events into [`http::Request`] and answers into responses,
//! [`auth`] turns tokens into rights and [`issuing`] rights into tokens, [`rules`] decides over plain values, [`screening`] has
//! captcha providers and studios' backends say who may enter, [`matchmaking`] chooses and creates lobbies, [`hosting`] is what their servers do, [`overview`] what is seen from outside, [`store`] holds
//! every DynamoDB condition. Nothing below `http` knows a gateway; nothing above `store` knows an attribute name; rules know
//! neither clock nor randomness.

mod aged;
pub mod ambient;
pub mod auth;
pub mod aws;
pub mod client_address;
pub mod config;
pub mod errors;
pub mod explaining;
pub mod function;
pub mod hosting;
pub mod http;
pub mod ids;
pub mod issuing;
pub mod lobby;
pub mod matchmaking;
pub mod metrics;
pub mod models;
pub mod overview;
pub mod provision;
pub mod record;
pub mod retirement;
pub mod rules;
pub mod screening;
pub mod seating;
pub mod secrets;
pub mod settings;
pub mod settings_cache;
pub mod store;
pub mod tag_digests;
pub mod telemetry;
pub mod tokens;
pub mod wire;
