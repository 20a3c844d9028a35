//! The Lambda function of lobbies.state.

shared::main!(set_lobby_state::SetLobbyState);
