//! The Lambda function of lobbies.publicity.

shared::main!(set_lobby_publicity::SetLobbyPublicity);
