//! Muster's common crate: what every operation knows about the domain, the wire and the tables.
//!
//! Its folders are floors. A file imports only from its own floor and from lower ones, and no files import
//! each other in a circle; `tests/it/floors.rs` reads this list and keeps it so.
//!
//! 1. [`base`]: clock, randomness, pauses, bounded memory, strict JSON, lenient records, logs, connections.
//!    Knows nothing of games.
//! 2. [`models`]: what there is: games, namespaces, versions, servers, lobbies, tokens, errors. Plain values.
//! 3. [`wire`]: requests and responses, exactly as they are sent. No decision.
//! 4. [`rules`]: decisions over values. No AWS, no clock, no `async`.
//! 5. [`store`]: one function for each intention, every condition on an item. Only it names an attribute.
//! 6. [`request`]: a gateway event parsed once, and what is noted of it.
//! 7. [`auth`]: tokens in, rights out; signing keys and cached settings.
//! 8. [`seating`]: a request for a seat from its first check to its reply: caps, repeated requests.
//! 9. [`hosting`], [`screening`], [`cloud`], [`overview`]: services, which do not import each other.
//! 10. [`matchmaking`]: looking, taking, creating.
//! 11. [`function`]: a Lambda function: its environment, its loop, its responses, its metrics.

pub mod auth;
pub mod base;
pub mod cloud;
pub mod function;
pub mod hosting;
pub mod matchmaking;
pub mod models;
pub mod overview;
pub mod request;
pub mod rules;
pub mod screening;
pub mod seating;
pub mod store;
pub mod wire;
