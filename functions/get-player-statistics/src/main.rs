//! The Lambda function of players.statistics.

shared::main!(get_player_statistics::GetPlayerStatistics);
