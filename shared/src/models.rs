//! The domain as plain values, without AWS, clock or `async`.

pub mod client;
pub mod coordinates;
pub mod errors;
pub mod game;
pub mod handed_on;
pub mod ids;
pub mod lifecycle;
pub mod lobby;
pub mod lobby_code;
pub mod lobby_config;
pub mod namespace;
pub mod player_data;
pub mod pool;
pub mod ports;
pub mod rights;
pub mod seats;
pub mod secret;
pub mod server;
pub mod shortage;
pub mod standing;
pub mod tag_digests;
pub mod token;
pub mod version;
pub mod version_secrets;
pub mod violations;
pub mod warnings;
