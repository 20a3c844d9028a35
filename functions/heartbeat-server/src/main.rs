//! The Lambda function of servers.heartbeat.

shared::main!(heartbeat_server::HeartbeatServer);
