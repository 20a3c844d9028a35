//! The Lambda function of tokens/development.

shared::main!(create_development_token::CreateDevelopmentToken);
