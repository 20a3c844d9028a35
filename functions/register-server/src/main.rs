//! The Lambda function of servers.register.

shared::main!(register_server::RegisterServer);
