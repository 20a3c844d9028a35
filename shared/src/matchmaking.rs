//! Matching, a file for each step: [`matchmaker`] runs the rounds and takes seats, `comparing` reads
//! candidates and puts the fullest first, `busy` and `sharding` look where many find at one time, `create`
//! creates lobbies, `room` makes place for one, [`join`] enters by identifier or creates a lobby of one's
//! own, `starting` waits for the game server. `recall` is what an instance remembers, `limits` what several
//! steps share.

mod busy;
mod comparing;
mod create;
pub mod join;
mod limits;
pub mod matchmaker;
mod outcomes;
mod recall;
mod room;
pub mod search;
mod sharding;
mod starting;
