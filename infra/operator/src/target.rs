//! Where the command works: the local stack's store, or AWS.

use std::time::Duration;

use aws_config::{BehaviorVersion, Region};
use clap::Args;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde::Deserialize;
use shared::store::{Store, TableNames, emulator_client};

/// Which deployment is meant.
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
    /// The AWS deployment's catalogue table: its stack output CatalogTableName.
    #[arg(long, global = true, value_name = "TABLE", env = "MUSTER_CATALOG_TABLE")]
    catalog_table: Option<String>,
    /// The AWS deployment's token table: its stack output TokensTableName.
    #[arg(long, global = true, value_name = "TABLE", env = "MUSTER_TOKENS_TABLE")]
    tokens_table: Option<String>,
    /// The AWS region; the credential chain's own when absent.
    #[arg(long, global = true, value_name = "REGION")]
    aws_region: Option<String>,
}

/// Why a deployment cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// Nothing said which.
    #[error(
        "say which deployment: --local for the local stack, or --catalog-table and --tokens-table \
         (the stack's outputs) for AWS"
    )]
    Missing,
    /// The local stack did not answer.
    #[error("no local stack answers at {url} ({problem}); start it with `cargo run`")]
    NoLocalStack {
        /// Where it was looked for.
        url: String,
        /// What happened.
        problem: String,
    },
}

/// What the local stack tells its other processes.
#[derive(Deserialize)]
struct LocalStore {
    endpoint: String,
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
}

/// How long the local stack may take to answer.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest answer of the local stack, in bytes.
const LOCAL_ANSWER_BYTES_MAX: usize = 64 * 1024;

impl Target {
    /// The store of the deployment.
    ///
    /// # Errors
    /// [`TargetError`].
    pub async fn store(&self) -> Result<Store, TargetError> {
        if let Some(url) = &self.local {
            let no_stack = |problem: String| TargetError::NoLocalStack { url: url.clone(), problem };
            let asked = tokio::time::timeout(LOCAL_TIMEOUT, ask_local_stack(url)).await;
            let local = asked.map_err(|_| no_stack("no answer in time".to_owned()))?.map_err(no_stack)?;
            let LocalTables { catalog, tokens, lobbies, lobby_data, servers, ledger } = local.tables;
            let tables = TableNames { catalog, tokens, lobbies, lobby_data, servers, ledger };
            return Ok(Store::new(emulator_client(&local.endpoint), tables));
        }
        let (Some(catalog), Some(tokens)) = (&self.catalog_table, &self.tokens_table) else {
            return Err(TargetError::Missing);
        };
        let tls = aws_smithy_http_client::tls::Provider::Rustls(
            aws_smithy_http_client::tls::rustls_provider::CryptoMode::Ring,
        );
        let http = aws_smithy_http_client::Builder::new().tls_provider(tls).build_https();
        let mut chain = aws_config::defaults(BehaviorVersion::latest()).http_client(http);
        if let Some(region) = &self.aws_region {
            chain = chain.region(Region::new(region.clone()));
        }
        let client = aws_sdk_dynamodb::Client::new(&chain.load().await);
        let tables = TableNames { catalog: catalog.clone(), tokens: tokens.clone(), ..TableNames::default() };
        Ok(Store::new(client, tables))
    }
}

async fn ask_local_stack(url: &str) -> Result<LocalStore, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let uri = format!("{}/_local/store", url.trim_end_matches('/'));
    let uri = uri.parse().map_err(|error: hyper::http::uri::InvalidUri| text(&error))?;
    let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let answer = client.get(uri).await.map_err(|error| text(&error))?;
    if !answer.status().is_success() {
        return Err(format!("it answered {}", answer.status()));
    }
    let body = Limited::new(answer.into_body(), LOCAL_ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| error.to_string())?.to_bytes();
    serde_json::from_slice(&body).map_err(|error| text(&error))
}
