//! The Lambda function of games.

shared::main!(get_game::GetGame);
