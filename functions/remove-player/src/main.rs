//! The Lambda function of players.remove.

shared::main!(remove_player::RemovePlayer);
