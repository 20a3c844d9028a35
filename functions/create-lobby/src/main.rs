//! The Lambda function of lobbies.create.

shared::main!(create_lobby::CreateLobby);
