//! The Lambda function of players.rejoin.

shared::main!(rejoin_player::RejoinPlayer);
