//! The Lambda function of players.connected.

shared::main!(connect_player::ConnectPlayer);
