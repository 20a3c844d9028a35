//! What every test of the whole starts with: a stack of its own, a clock to turn, a client that is a player.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "this is test code: what cannot go on panics"
)]

mod answer;
pub mod binaries;
mod clock;
pub mod declared;
pub mod game_server;
pub mod instance;
pub mod interference;
pub mod left_out;
pub mod load;
pub mod lobby_host;
pub mod local_process;
pub mod node;
pub mod prices;
pub mod readable;
pub mod reckoning;
pub mod runtime_api;
pub mod scripted;
pub mod second_opinion;
mod stack;
mod tables;
pub mod templates;
pub mod tls;
pub mod virtual_time;
pub mod visitor;

pub use answer::{Answer, gunzip};
pub use clock::TestClock;
pub use stack::{TestGame, TestStack, lobby_claims, mock_player, new_game};
pub use tables::{all_lobbies, all_servers, alter, live_lobbies};
