//! The Lambda function of lobbies.ready.

shared::main!(set_lobby_ready::SetLobbyReady);
