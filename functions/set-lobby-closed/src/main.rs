//! The Lambda function of lobbies.closed.

shared::main!(set_lobby_closed::SetLobbyClosed);
