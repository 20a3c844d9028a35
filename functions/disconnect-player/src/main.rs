//! The Lambda function of players.disconnected.

shared::main!(disconnect_player::DisconnectPlayer);
