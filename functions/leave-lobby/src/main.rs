//! The Lambda function of players.leave.

shared::main!(leave_lobby::LeaveLobby);
