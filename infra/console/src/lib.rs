//! The console: a page that shows a namespace live, lets you play in it, and runs the operator's commands.
//!
//! A host gives it a store, the API and the commands, and passes it the requests for `/` and `/_console/`.
//! The hosts are the local stack and the command `muster console`. The console polls the store within a
//! budget, and changes a deployment only through the API or the operator's commands. It is never deployed.
//!
//! [`listening`] is the accept loop of both hosts, and [`guard`] decides who may use what they serve.

pub mod budget;
mod calls;
pub mod changes;
pub mod console;
mod counts;
mod details;
pub mod errors;
mod events;
mod files;
pub mod guard;
pub mod host;
pub mod listening;
pub mod prices;
mod queries;
mod search;
pub mod standing;
pub mod tape;
mod view;
mod watch;
mod why;
