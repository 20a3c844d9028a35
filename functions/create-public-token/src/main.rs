//! The Lambda function of tokens/public.

shared::main!(create_public_token::CreatePublicToken);
