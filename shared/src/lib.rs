//! Muster's common crate: the domain, the wire and the tables, for every operation.
//!
//! Its folders are floors. A file imports only from its own floor and from lower ones, and no files import
//! each other in a circle; `tests/tidy` reads this list and checks both.
//!
//! 1. [`base`]: clock, randomness, pauses, bounded memory, strict JSON, lenient records, logs, connections.
//!    No game concepts.
//! 2. [`models`]: games, namespaces, versions, servers, lobbies, tokens, errors, as plain values.
//! 3. [`wire`]: requests and responses, exactly as on the wire. No decisions.
//! 4. [`rules`]: decisions over values. No AWS, no clock, no `async`.
//! 5. [`store`]: one function for each intention, with all conditions on items. Only this floor names
//!    attributes.
//! 6. [`request`]: a gateway event, parsed once, and its trace.
//! 7. [`outside`]: guarded calls of services outside of the deployment.
//! 8. [`auth`]: tokens in, rights out; signing keys and cached settings.
//! 9. [`seating`]: a request for a seat from its first check to its response: caps, retries.
//! 10. [`hosting`], [`screening`], [`cloud`], [`overview`]: services, which do not import each other.
//! 11. [`matchmaking`]: looking, taking, creating.
//! 12. [`function`]: a Lambda function: its environment, its loop, its responses, its metrics.

pub mod auth;
pub mod base;
pub mod cloud;
pub mod function;
pub mod hosting;
pub mod matchmaking;
pub mod models;
pub mod outside;
pub mod overview;
pub mod request;
pub mod rules;
pub mod screening;
pub mod seating;
pub mod store;
pub mod wire;
