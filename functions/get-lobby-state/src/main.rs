//! The Lambda function of lobbies.state.

shared::main!(get_lobby_state::GetLobbyState);
