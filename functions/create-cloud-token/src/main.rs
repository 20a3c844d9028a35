//! The Lambda function of tokens/cloud.

shared::main!(create_cloud_token::CreateCloudToken);
