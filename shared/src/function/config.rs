//! The configuration of a function in its environment, parsed once before the first request.
//!
//! Every variable is set by `template.yaml`; each is documented where it is declared here.

use std::{collections::BTreeMap, env, fs, str::FromStr, sync::Arc};

use aws_sdk_dynamodb::config::Credentials;
use aws_smithy_runtime_api::client::http::SharedHttpClient;

use crate::{
    auth::keys::{SigningKeyTooShort, TokenKeys},
    base::{ambient::Ambient, aws},
    outside::{aws_api::AwsApi, endpoints::Outside, web_client::Reach},
    store::client::{Store, TableNames, aws_client, emulator_client},
};

/// A variable that is missing or unusable; its value is never shown, since it may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {variable} {problem}")]
pub struct InvalidConfig {
    variable: &'static str,
    problem: String,
}

/// The environment of a function; by default an empty one.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The process's environment, as far as it is text.
    #[must_use]
    pub fn of_process() -> Self {
        Self(
            env::vars_os()
                .filter_map(|(name, text)| Some((name.into_string().ok()?, text.into_string().ok()?)))
                .collect(),
        )
    }

    /// An environment of `variables`, by name.
    #[must_use]
    pub fn of<const N: usize>(variables: [(&str, &str); N]) -> Self {
        Self(variables.map(|(name, text)| (name.to_owned(), text.to_owned())).into())
    }

    /// The same with one variable more, or another value of it.
    #[must_use]
    pub fn with(mut self, name: &str, text: &str) -> Self {
        self.0.insert(name.to_owned(), text.to_owned());
        self
    }

    /// The names of the tables in this environment; those that it lacks are empty.
    ///
    /// `MUSTER_CATALOG_TABLE`, `MUSTER_TOKENS_TABLE`, `MUSTER_LOBBIES_TABLE`, `MUSTER_LOBBY_DATA_TABLE`,
    /// `MUSTER_SERVERS_TABLE`, `MUSTER_LEDGER_TABLE`, `MUSTER_CLIENTS_TABLE`, `MUSTER_SECRETS_TABLE`.
    #[must_use]
    pub fn tables(&self) -> TableNames {
        let table = |variable| self.optional(variable).unwrap_or_default();
        TableNames {
            catalog: table("MUSTER_CATALOG_TABLE"),
            tokens: table("MUSTER_TOKENS_TABLE"),
            lobbies: table("MUSTER_LOBBIES_TABLE"),
            lobby_data: table("MUSTER_LOBBY_DATA_TABLE"),
            servers: table("MUSTER_SERVERS_TABLE"),
            ledger: table("MUSTER_LEDGER_TABLE"),
            secrets: table("MUSTER_SECRETS_TABLE"),
            clients: table("MUSTER_CLIENTS_TABLE"),
        }
    }

    /// A store over [`Self::tables`].
    ///
    /// `AWS_ENDPOINT_URL_DYNAMODB`: an emulator, as `http://key@host:port` with the access key that it
    /// demands, or DynamoDB at another address than the region's, as `https://host`. `AWS_CA_BUNDLE`: a
    /// file of the authorities to trust instead of AWS's own. `AWS_REGION`, `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`: set by Lambda.
    ///
    /// # Errors
    /// [`InvalidConfig`] when region or credentials are missing, or the endpoint is no such address.
    pub fn store(&self) -> Result<Store, InvalidConfig> {
        let client = match self.optional("AWS_ENDPOINT_URL_DYNAMODB") {
            Some(endpoint) if self.has_emulator() => emulator_client(&endpoint),
            Some(endpoint) if !endpoint.starts_with("https://") || endpoint.contains('@') => {
                let problem = "must begin with http:// or https:// and hold no password";
                return Err(invalid("AWS_ENDPOINT_URL_DYNAMODB", problem));
            }
            endpoint => {
                let (region, credentials) = (self.required("AWS_REGION")?, self.credentials()?);
                let http = self.https_client(&region)?;
                aws_client(region, credentials, endpoint, http)
            }
        };
        Ok(Store::new(client, self.tables()))
    }

    /// Whether DynamoDB is an emulator, which has no TLS.
    fn has_emulator(&self) -> bool {
        let endpoint = self.optional("AWS_ENDPOINT_URL_DYNAMODB");
        endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"))
    }

    /// AWS's other services. `AWS_CA_BUNDLE` and the variables of Lambda as for [`Self::store`].
    ///
    /// # Errors
    /// [`InvalidConfig`] when region or credentials are missing.
    pub fn aws_api(&self, ambient: Ambient) -> Result<AwsApi, InvalidConfig> {
        let region = self.required("AWS_REGION")?;
        let connector = aws::https_connector(&region, self.authorities()?)
            .map_err(|_| invalid("AWS_CA_BUNDLE", "names authorities that cannot be used"))?;
        Ok(AwsApi::new(region, self.credentials()?, connector, ambient))
    }

    fn https_client(&self, region: &str) -> Result<SharedHttpClient, InvalidConfig> {
        aws::https_client(region, self.authorities()?)
            .map_err(|_| invalid("AWS_CA_BUNDLE", "names authorities that cannot be used"))
    }

    fn authorities(&self) -> Result<Option<Vec<u8>>, InvalidConfig> {
        let unusable = |problem| invalid("AWS_CA_BUNDLE", problem);
        let read = |path: String| fs::read(path).map_err(|_| unusable("names a file that cannot be read"));
        let bundle = self.optional("AWS_CA_BUNDLE").map(read).transpose()?;
        match &bundle {
            Some(bundle) if !aws::is_bundle(bundle) => {
                Err(unusable("names a file that holds no certificates"))
            }
            _ => Ok(bundle),
        }
    }

    // Lambda renews credentials by starting a new process, so the environment's hold for this one.
    fn credentials(&self) -> Result<Credentials, InvalidConfig> {
        Ok(Credentials::new(
            self.required("AWS_ACCESS_KEY_ID")?,
            self.required("AWS_SECRET_ACCESS_KEY")?,
            self.optional("AWS_SESSION_TOKEN"),
            None,
            "environment",
        ))
    }

    /// The captcha providers and backends to call, for tests: no template sets these variables.
    ///
    /// `MUSTER_HCAPTCHA_URL`, `MUSTER_TURNSTILE_URL`: the providers' `siteverify`. `MUSTER_REACH`: `anywhere`
    /// lets calls go to private addresses, and without TLS.
    ///
    /// # Errors
    /// [`InvalidConfig`] for another reach.
    pub fn outside(&self) -> Result<Outside, InvalidConfig> {
        let outside = Outside::default();
        Ok(Outside {
            hcaptcha_url: self.optional("MUSTER_HCAPTCHA_URL").unwrap_or(outside.hcaptcha_url),
            turnstile_url: self.optional("MUSTER_TURNSTILE_URL").unwrap_or(outside.turnstile_url),
            reach: self.parsed::<Reach>("MUSTER_REACH")?.unwrap_or_default(),
            resolver: outside.resolver,
        })
    }

    /// `MUSTER_SIGNING_KEY`: the secret that tokens are signed with. `MUSTER_SIGNING_KEY_PREVIOUS`: one that
    /// is still accepted while rotating.
    ///
    /// # Errors
    /// [`InvalidConfig`] when the current one is missing or either is too short.
    pub fn token_keys(&self) -> Result<Arc<TokenKeys>, InvalidConfig> {
        let current = self.required("MUSTER_SIGNING_KEY")?;
        let previous = self.optional("MUSTER_SIGNING_KEY_PREVIOUS");
        let unusable = |variable| move |error: SigningKeyTooShort| invalid(variable, &error.to_string());
        let keys = TokenKeys::new(current.as_bytes(), None).map_err(unusable("MUSTER_SIGNING_KEY"))?;
        match previous {
            Some(previous) => TokenKeys::new(current.as_bytes(), Some(previous.as_bytes()))
                .map_err(unusable("MUSTER_SIGNING_KEY_PREVIOUS")),
            None => Ok(keys),
        }
        .map(Arc::new)
    }

    /// A variable's text; `None` when it is absent or empty.
    #[must_use]
    pub fn optional(&self, variable: &str) -> Option<String> {
        self.0.get(variable).filter(|text| !text.is_empty()).cloned()
    }

    /// A variable's value; `None` when it is absent or empty.
    ///
    /// # Errors
    /// [`InvalidConfig`] when it does not parse.
    pub fn parsed<T: FromStr>(&self, variable: &'static str) -> Result<Option<T>, InvalidConfig> {
        let parse = |text: String| text.parse().map_err(|_| invalid(variable, "does not parse"));
        self.optional(variable).map(parse).transpose()
    }

    /// A variable's text.
    ///
    /// # Errors
    /// [`InvalidConfig`] when it is absent or empty.
    pub fn required(&self, variable: &'static str) -> Result<String, InvalidConfig> {
        self.optional(variable).ok_or_else(|| invalid(variable, "is missing"))
    }
}

fn invalid(variable: &'static str, problem: &str) -> InvalidConfig {
    InvalidConfig { variable, problem: problem.to_owned() }
}
