//! The target of the command: the local stack's store, or AWS.

use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_cloudformation::types::Stack;
use clap::Args;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde::Deserialize;
use shared::{
    base::{ambient::Ambient, aws::CRYPTOGRAPHY},
    store::client::{Store, TableNames, emulator_client},
};

use crate::deployment::{Deployment, KeySource, TargetError};

/// The deployment to use.
#[derive(Debug, Args)]
pub struct Target {
    /// Work in the local stack at this address.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "http://127.0.0.1:3000"
    )]
    local: Option<String>,
    /// Work in AWS, in the deployment of this CloudFormation stack, with your own credentials.
    #[arg(long, global = true, value_name = "NAME", env = "MUSTER_STACK", conflicts_with = "local")]
    stack: Option<String>,
    /// The AWS region; the credential chain's own when absent.
    #[arg(long, global = true, value_name = "REGION")]
    aws_region: Option<String>,
}

/// The local stack's data for the command.
#[derive(Deserialize)]
struct LocalStore {
    endpoint: String,
    signing_key: String,
    tables: LocalTables,
}

#[derive(Deserialize)]
struct LocalTables {
    catalog: String,
    tokens: String,
    lobbies: String,
    lobby_data: String,
    servers: String,
    ledger: String,
    secrets: String,
    clients: String,
}

/// How long the local stack may take to respond.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest response of the local stack, in bytes.
const LOCAL_ANSWER_BYTES_MAX: usize = 64 * 1024;

impl Target {
    /// Whether the deployment runs on this machine.
    pub(crate) const fn is_local(&self) -> bool {
        self.local.is_some()
    }

    /// The deployment.
    ///
    /// # Errors
    /// [`TargetError`].
    pub(crate) async fn open(&self) -> Result<Deployment, TargetError> {
        let ambient = Ambient::system();
        if let Some(url) = &self.local {
            let no_stack = |problem: String| TargetError::NoLocalStack { url: url.clone(), problem };
            let response = tokio::time::timeout(LOCAL_TIMEOUT, ask_local_stack(url)).await;
            let local =
                response.map_err(|_| no_stack("no response in time".to_owned()))?.map_err(no_stack)?;
            let LocalTables { catalog, tokens, lobbies, lobby_data, servers, ledger, clients, secrets } =
                local.tables;
            let tables =
                TableNames { catalog, tokens, lobbies, lobby_data, servers, ledger, clients, secrets };
            let store = Store::new(emulator_client(&local.endpoint), tables);
            return Ok(Deployment {
                store,
                ambient,
                name: url.clone(),
                key: KeySource::Local(local.signing_key),
                api_url: Some(url.clone()),
            });
        }
        let stack = self.stack.as_ref().ok_or(TargetError::Missing)?;
        let no_stack = |problem: String| TargetError::NoStack { stack: stack.clone(), problem };
        let config = self.aws_config().await;
        let response =
            aws_sdk_cloudformation::Client::new(&config).describe_stacks().stack_name(stack).send().await;
        let answer = response.map_err(|error| {
            no_stack(aws_sdk_cloudformation::error::DisplayErrorContext(&error).to_string())
        })?;
        let outputs = answer.stacks().first().map(Stack::outputs).unwrap_or_default();
        let output = |name: &str| {
            let found = outputs.iter().find(|output| output.output_key() == Some(name));
            let value = found.and_then(|output| output.output_value());
            value.map(ToOwned::to_owned).ok_or_else(|| no_stack(format!("it has no output {name}")))
        };
        let tables = TableNames {
            catalog: output("CatalogTableName")?,
            tokens: output("TokensTableName")?,
            lobbies: output("LobbiesTableName")?,
            lobby_data: output("LobbyDataTableName")?,
            servers: output("ServersTableName")?,
            ledger: output("LedgerTableName")?,
            secrets: output("SecretsTableName")?,
            clients: output("ClientsTableName")?,
        };
        let key =
            KeySource::Secret(aws_sdk_secretsmanager::Client::new(&config), output("SigningKeySecretArn")?);
        let store = Store::new(aws_sdk_dynamodb::Client::new(&config), tables);
        let api_url = output("ApiUrl").ok();
        Ok(Deployment { store, ambient, name: stack.clone(), key, api_url })
    }

    async fn aws_config(&self) -> SdkConfig {
        // Trusts the machine's authorities, because hosts other than AWS's may provide credentials, too.
        let http = aws_smithy_http_client::Builder::new().tls_provider(CRYPTOGRAPHY).build_https();
        let mut chain = aws_config::defaults(BehaviorVersion::latest()).http_client(http);
        if let Some(region) = &self.aws_region {
            chain = chain.region(Region::new(region.clone()));
        }
        chain.load().await
    }
}

async fn ask_local_stack(url: &str) -> Result<LocalStore, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let uri = format!("{}/_local/store", url.trim_end_matches('/'));
    let uri = uri.parse().map_err(|error: hyper::http::uri::InvalidUri| text(&error))?;
    let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let answer = client.get(uri).await.map_err(|error| text(&error))?;
    if !answer.status().is_success() {
        return Err(format!("it responded with status {}", answer.status()));
    }
    let body = Limited::new(answer.into_body(), LOCAL_ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| error.to_string())?.to_bytes();
    serde_json::from_slice(&body).map_err(|error| text(&error))
}
