//! The Lambda function of lobbies.list.

shared::main!(list_lobbies::ListLobbies);
