//! The Lambda function of lobbies.join.

shared::main!(join_lobby::JoinLobby);
