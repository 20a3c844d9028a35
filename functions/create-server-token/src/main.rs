//! The Lambda function of tokens/server.

shared::main!(create_server_token::CreateServerToken);
