//! The embedded DynamoDB alone, with the demo game, for functions in `sam local` on this machine.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde_json::json;
use shared::{auth::keys::TokenKeys, base::ambient::Ambient, store::client::Store};

use crate::{
    demo::Demo,
    emulator::{Emulator, Storage, link::patient_client_over, port::in_url},
    private, signing_key,
    stack::{StackError, TEMPLATE, table_names},
    template::Template,
};

/// The template's functions are for arm64, which a container on another processor could only emulate.
const ARCHITECTURE: &str =
    if cfg!(target_arch = "aarch64") { "" } else { " --parameter-overrides Architecture=x86_64" };
/// The default URL of `sam local start-api`.
const SAM_LOCAL_URL: &str = "http://127.0.0.1:3000";
/// The environment for `sam local`, which only passes variables of the function's template.
const SAM_LOCAL_FILE: &str = "sam-local.json";

/// Options of the database.
#[derive(Clone, Debug)]
pub struct Options {
    /// An address of this machine to listen on; port 0 takes a free one.
    pub address: SocketAddr,
    /// The name of this machine for functions in containers; by default the address, or
    /// `host.docker.internal` for loopback.
    pub container_host: Option<String>,
    /// The folder for the functions' environment, which holds the key that tokens are signed with.
    pub environment: PathBuf,
    /// The clock and randomness.
    pub ambient: Ambient,
}

/// A running database.
#[derive(Debug)]
pub struct StoreAlone {
    /// Its demo.
    pub demo: Demo,
    emulator: Emulator,
    environment: PathBuf,
}

impl StoreAlone {
    /// Starts a database in memory, creates the demo game there, and writes the environment of functions that
    /// use it.
    ///
    /// # Errors
    /// [`StackError`].
    pub async fn start(options: Options) -> Result<Self, StackError> {
        let Options { address, container_host, environment, ambient } = options;
        let container_host = container_host.unwrap_or_else(|| host_for_containers(address.ip()));
        let tables = Template::parse(TEMPLATE)?.tables;
        let emulator = Emulator::start_on(address, Some(&container_host), &Storage::Memory, &tables)?;
        // As text, for a variable of the functions.
        let key = BASE64.encode(signing_key::fresh(&ambient));
        let keys = Arc::new(TokenKeys::new(key.as_bytes(), None)?);
        let store = Store::new(patient_client_over(Arc::clone(&emulator.link)), table_names());
        let demo = Demo::prepare(&store, &keys, &ambient, SAM_LOCAL_URL.to_owned(), None).await?;

        let from_containers = emulator.endpoint_at(&container_host);
        let parameters = json!({
            "AWS_ENDPOINT_URL_DYNAMODB": from_containers,
            "MUSTER_SIGNING_KEY": key,
        });
        let sam_local = format!("{:#}\n", json!({ "Parameters": parameters }));
        let unusable = |path| |source| StackError::EnvironmentFile { path, source };
        fs::create_dir_all(&environment).map_err(unusable(environment.clone()))?;
        let path = environment.join(SAM_LOCAL_FILE);
        private::write(&path, sam_local.as_bytes()).map_err(unusable(path))?;
        Ok(Self { demo, emulator, environment })
    }

    /// Starts to delete expired items once a `period`, by the machine's clock.
    pub fn sweep_every(&self, period: Duration) {
        self.emulator.sweep_every(period);
    }

    /// The address, and commands to paste.
    #[must_use]
    pub fn text(&self) -> String {
        let Demo { game_id, namespace_id, version_ids, tokens, .. } = &self.demo;
        let sam_local = self.environment.join(SAM_LOCAL_FILE);
        format!(
            r#"
DynamoDB listens on {endpoint}

Functions in containers, after `sam build{architecture}`:

sam local start-api --env-vars {sam_local}{architecture}

One of them, with a token of the demo:

sed s/TOKEN/{public}/ tests/events/find-lobby.json | sam local invoke FindLobbyFunction --event - --env-vars {sam_local}{architecture}

What tests/events/README.md calls

PUBLIC={public}
CLOUD={cloud}
SERVER={server}
GAME_ID={game}
NAMESPACE_ID={namespace}
VERSION_ID={version}

Ctrl-C stops it.
"#,
            endpoint = self.emulator.url,
            architecture = ARCHITECTURE,
            sam_local = sam_local.display(),
            public = tokens.public,
            cloud = tokens.cloud,
            server = tokens.server,
            game = game_id,
            namespace = namespace_id,
            version = version_ids.first().map(ToString::to_string).unwrap_or_default(),
        )
    }

    /// Stops it.
    ///
    /// # Errors
    /// [`StackError::Emulator`] when it had stopped before.
    pub async fn stop(self) -> Result<(), StackError> {
        Ok(self.emulator.shutdown().await?)
    }
}

/// The name of this machine for functions in containers when the database listens at `address`: the address
/// itself if it is one of a network, such as that of Docker's bridge on Linux. A container cannot reach the
/// machine's loopback, but Docker Desktop resolves its name for the machine to it.
fn host_for_containers(address: IpAddr) -> String {
    if address.is_loopback() { "host.docker.internal".to_owned() } else { in_url(address) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_reach_an_address_of_a_network_by_itself_and_loopback_by_dockers_name() {
        let host = |address: &str| host_for_containers(address.parse().unwrap());
        assert_eq!(host("172.17.0.1"), "172.17.0.1");
        assert_eq!(host("fd00::1"), "[fd00::1]");
        assert_eq!(host("127.0.0.1"), "host.docker.internal");
        assert_eq!(host("::1"), "host.docker.internal");
    }
}
