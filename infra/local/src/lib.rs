//! The local stack: the whole of Muster in one process, without Docker or an AWS account.
//!
//! `template.yaml` determines what runs: [`template`] reads its routes, tables and cross-origin rules,
//! [`emulator`] holds the tables, [`gateway`] turns each HTTP request into the event that API Gateway would
//! send, [`functions`] runs the operations, [`demo`] creates a demo game or [`own_game`] a studio's own,
//! [`console`] shows it all, [`requests`] logs a line for each request, [`faults`] makes some fail, and
//! `launcher` starts game servers on demand as `processes`.
//! [`serve`] is the same for players, on one machine.

pub mod addresses;
pub mod console;
pub mod cors;
pub mod demo;
pub mod emulator;
pub mod event;
pub mod faults;
pub mod functions;
pub mod gateway;
pub mod hints;
#[cfg(unix)]
pub mod launcher;
pub mod local;
pub mod observed;
pub mod own_game;
pub mod permissions;
pub mod private;
#[cfg(unix)]
pub mod processes;
pub mod requests;
pub mod route;
pub mod serve;
pub mod signing_key;
pub mod stack;
pub mod store_alone;
pub mod template;
pub mod welcome;
