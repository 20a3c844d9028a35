//! The target of the command: the local stack's store, or AWS.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_cloudformation::types::Stack;
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use clap::Args;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{Request, body::Bytes, http::request};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde::{Deserialize, de::DeserializeOwned};
use shared::{
    base::{ambient::Ambient, aws::CRYPTOGRAPHY},
    store::client::{Store, TableNames, emulator_client},
};

use crate::{
    deployment::{Deployment, KeySource},
    operator::Operator,
    reach::{TargetError, problem},
};

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
    /// Work on this machine, where `muster-local serve` serves this folder.
    #[arg(long, global = true, value_name = "DIR", conflicts_with = "local")]
    data: Option<PathBuf>,
    /// Work in AWS, in the deployment of this CloudFormation stack, with your own credentials.
    #[arg(long, global = true, value_name = "NAME", env = "MUSTER_STACK", conflicts_with_all = ["local", "data"])]
    stack: Option<String>,
    /// The AWS region; the credential chain's own when absent.
    #[arg(long, global = true, value_name = "REGION")]
    aws_region: Option<String>,
}

/// A stack in AWS, with the configuration of its clients.
pub(crate) struct Described {
    pub name: String,
    pub stack: Stack,
    pub config: SdkConfig,
}

impl Described {
    fn output(&self, name: &str) -> Result<String, TargetError> {
        let found = self.stack.outputs().iter().find(|output| output.output_key() == Some(name));
        let value = found.and_then(|output| output.output_value());
        value.map(ToOwned::to_owned).ok_or_else(|| TargetError::NoStack {
            stack: self.name.clone(),
            problem: format!("it has no output {name}"),
        })
    }

    /// Its tables.
    ///
    /// # Errors
    /// [`TargetError::NoStack`] when it is not Muster's.
    pub fn tables(&self) -> Result<TableNames, TargetError> {
        Ok(TableNames {
            catalog: self.output("CatalogTableName")?,
            tokens: self.output("TokensTableName")?,
            lobbies: self.output("LobbiesTableName")?,
            lobby_data: self.output("LobbyDataTableName")?,
            servers: self.output("ServersTableName")?,
            ledger: self.output("LedgerTableName")?,
            secrets: self.output("SecretsTableName")?,
            clients: self.output("ClientsTableName")?,
        })
    }

    /// The value of a parameter; `None` when it is empty, or there is none.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.stack.parameters().iter().find(|parameter| parameter.parameter_key() == Some(name));
        found.and_then(|parameter| parameter.parameter_value()).filter(|value| !value.is_empty())
    }
}

/// The local stack's data for the command.
#[derive(Deserialize)]
struct LocalStore {
    endpoint: String,
    signing_key: String,
    tables: LocalTables,
}

#[derive(Clone, Deserialize)]
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

impl LocalTables {
    fn names(&self) -> TableNames {
        let Self { catalog, tokens, lobbies, lobby_data, servers, ledger, clients, secrets } = self.clone();
        TableNames { catalog, tokens, lobbies, lobby_data, servers, ledger, clients, secrets }
    }
}

/// The door of a served folder.
#[derive(Deserialize)]
pub(crate) struct Door {
    url: String,
    endpoint: String,
    tables: LocalTables,
    /// Where it takes orders, and the key for them.
    pub status: String,
    pub key: String,
}

impl Door {
    /// The door that the process which serves `folder` has put there.
    ///
    /// # Errors
    /// [`TargetError::NotServed`].
    pub fn of(folder: &Path) -> Result<Self, TargetError> {
        let path = folder.join("door.json");
        let not_served = |problem: String| TargetError::NotServed { folder: folder.to_owned(), problem };
        let text = fs::read_to_string(&path).map_err(|error| not_served(error.to_string()))?;
        serde_json::from_str(&text).map_err(|error| not_served(error.to_string()))
    }

    /// The store behind it.
    pub fn store(&self) -> Store {
        Store::new(emulator_client(&self.endpoint), self.tables.names())
    }
}

/// What the local stack counts.
#[derive(Deserialize)]
pub(crate) struct LocalCounts {
    /// Requests refused because their IP address held as many seats as it may.
    pub refused_by_address: u64,
}

/// How long the local stack may take to respond.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest response of the local stack, in bytes.
const LOCAL_ANSWER_BYTES_MAX: usize = 64 * 1024;

impl Target {
    /// Whether the deployment is the local stack, where nothing is real.
    pub(crate) const fn is_local(&self) -> bool {
        self.local.is_some()
    }

    /// Whether the deployment runs on this machine, where AWS charges nothing.
    pub(crate) const fn is_here(&self) -> bool {
        self.local.is_some() || self.data.is_some()
    }

    /// Whether the command names a deployment.
    pub(crate) const fn is_named(&self) -> bool {
        self.is_here() || self.stack.is_some()
    }

    /// The deployment.
    ///
    /// # Errors
    /// [`TargetError`].
    pub(crate) async fn open(&self) -> Result<Deployment, TargetError> {
        let ambient = Ambient::system();
        if let Some(url) = &self.local {
            let no_stack = |problem: String| TargetError::NoLocalStack { url: url.clone(), problem };
            let local: LocalStore = ask_local_stack(url, "store").await.map_err(no_stack)?;
            let store = Store::new(emulator_client(&local.endpoint), local.tables.names());
            return Ok(Deployment {
                store,
                ambient,
                name: url.clone(),
                key: KeySource::Local(local.signing_key),
                api_url: Some(url.clone()),
                api_host: None,
                server_concurrency: None,
                operator: Operator::here(),
            });
        }
        if let Some(folder) = &self.data {
            let door = Door::of(folder)?;
            let path = folder.join("signing-key");
            let key = fs::read(&path)
                .map_err(|error| TargetError::NoSigningKey(format!("{}: {error}", path.display())))?;
            return Ok(Deployment {
                store: door.store(),
                ambient,
                name: folder.display().to_string(),
                key: KeySource::Local(BASE64.encode(key)),
                api_url: Some(door.url),
                api_host: None,
                server_concurrency: None,
                operator: Operator::here(),
            });
        }
        let stack = self.described().await?;
        let key = KeySource::Secret(
            aws_sdk_secretsmanager::Client::new(&stack.config),
            stack.output("SigningKeySecretArn")?,
        );
        let store = Store::new(aws_sdk_dynamodb::Client::new(&stack.config), stack.tables()?);
        let (api_url, api_host) = (stack.output("ApiUrl").ok(), stack.output("DomainTarget").ok());
        let server_concurrency = stack.parameter("ServerConcurrency").and_then(|count| count.parse().ok());
        Ok(Deployment {
            store,
            ambient,
            name: stack.name,
            key,
            api_url,
            api_host,
            server_concurrency: Some(server_concurrency.unwrap_or(0)),
            operator: Operator::here(),
        })
    }

    /// What the process of this machine counts, if that is the deployment; why it cannot be read, in words.
    pub(crate) async fn local_counts(&self) -> Option<Result<LocalCounts, String>> {
        if let Some(folder) = &self.data {
            return Some(match Door::of(folder) {
                Ok(door) => ask(Request::get(format!("{}/counts", door.status)), LOCAL_TIMEOUT).await,
                Err(error) => Err(error.to_string()),
            });
        }
        let url = self.local.as_ref()?;
        Some(ask_local_stack(url, "counts").await)
    }

    /// The stack in AWS.
    ///
    /// # Errors
    /// [`TargetError`].
    pub(crate) async fn described(&self) -> Result<Described, TargetError> {
        let name = self.stack.clone().ok_or(TargetError::Missing)?;
        let config = self.aws_config().await;
        if config.region().is_none() {
            return Err(TargetError::NoRegion);
        }
        let response =
            aws_sdk_cloudformation::Client::new(&config).describe_stacks().stack_name(&name).send().await;
        let no_stack = |problem| TargetError::NoStack { stack: name.clone(), problem };
        let answer = response.map_err(|error| problem(&error, no_stack))?;
        let stack = answer.stacks.unwrap_or_default().into_iter().next();
        let problem = || TargetError::NoStack { stack: name.clone(), problem: "it is not there".to_owned() };
        Ok(Described { stack: stack.ok_or_else(problem)?, name, config })
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

/// What the local stack answers to `/_local/<named>`.
async fn ask_local_stack<T: DeserializeOwned>(url: &str, named: &str) -> Result<T, String> {
    ask(Request::get(format!("{}/_local/{named}", url.trim_end_matches('/'))), LOCAL_TIMEOUT).await
}

/// What a process of this machine answers to a request without a body, within `patience`.
pub(crate) async fn ask<T: DeserializeOwned>(
    request: request::Builder,
    patience: Duration,
) -> Result<T, String> {
    ask_with(request, Bytes::new(), patience).await
}

/// The same with a body.
pub(crate) async fn ask_with<T: DeserializeOwned>(
    request: request::Builder,
    body: Bytes,
    patience: Duration,
) -> Result<T, String> {
    let request = request.body(Full::new(body)).map_err(|error| error.to_string())?;
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let answered = async {
        let answer = client.request(request).await.map_err(|error| error.to_string())?;
        if !answer.status().is_success() {
            return Err(format!("it responded with status {}", answer.status()));
        }
        let body = Limited::new(answer.into_body(), LOCAL_ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        serde_json::from_slice(&body).map_err(|error| error.to_string())
    };
    let in_time = tokio::time::timeout(patience, answered).await;
    in_time.unwrap_or_else(|_| Err("no response in time".to_owned()))
}
