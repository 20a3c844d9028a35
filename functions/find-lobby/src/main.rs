//! The Lambda function of lobbies.find.

shared::main!(find_lobby::FindLobby);
