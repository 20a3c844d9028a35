//! The Lambda function of servers.end-lobby.

shared::main!(end_lobby::EndLobby);
