//! The Lambda function of servers.deregister.

shared::main!(deregister_server::DeregisterServer);
