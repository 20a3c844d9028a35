//! Servers as separate processes: any server that prints its address, and the local stack with games created
//! in it.

use std::{fs, path::Path, process::Stdio};

use http::Method;
use muster_local::stack::table_names;
use serde_json::{Value, json};
use shared::{
    base::ambient::Ambient,
    cloud::provision::create_game,
    models::ids::{GameId, LobbyId, NamespaceId},
    store::client::{Store, emulator_client},
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::{
    binaries,
    load::{Connection, Post},
    stack::new_game,
};

/// A server on this machine, killed at the end.
#[derive(Debug)]
pub struct ServerProcess {
    /// Where it listens.
    pub base_url: String,
    /// Its process.
    pub child: Child,
}

impl ServerProcess {
    /// Starts a server, once it printed a line that ends with `says` and its address.
    pub async fn start(command: &mut Command, says: &str) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let base_url = loop {
            let line = lines.next_line().await.expect("a process prints UTF-8");
            let line = line.unwrap_or_else(|| panic!("{command:?} ended without `{says}`"));
            if let Some((_, base_url)) = line.split_once(says) {
                break base_url.to_owned();
            }
        };
        // Whatever else it prints must not fill the pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { base_url, child }
    }

    /// The memory that the process holds now, which only Linux reports.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let id = self.child.id().expect("it runs");
        let status = fs::read_to_string(format!("/proc/{id}/status")).expect("a process of Linux");
        let megabytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("its memory");
            let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
            kibibytes * 1_024.0 / 1e6
        };
        Memory { own: megabytes("RssAnon:"), resident: megabytes("VmRSS:") }
    }
}

/// What a process holds of the machine's memory, in MB.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// What it allocated itself.
    pub own: f64,
    /// That and the pages of its program and libraries, which the kernel lets go and fetches again as it
    /// likes.
    pub resident: f64,
}

/// The binary `muster-local` as a process, in memory and silent but for errors.
#[derive(Debug)]
pub struct LocalProcess {
    server: ServerProcess,
    store: Store,
    /// Where its database listens, and the access key that it demands.
    store_url: String,
    store_key: String,
}

/// A game that was made there, with one game server or more.
#[derive(Clone, Debug)]
pub struct LocalGame {
    /// Its identifier.
    pub game_id: GameId,
    /// A cloud token.
    pub cloud: String,
    /// Its namespace.
    pub namespace_id: NamespaceId,
    /// The namespace's public token.
    pub public: String,
    /// The namespace's server token.
    pub server: String,
    /// Its game servers.
    pub server_ids: Vec<String>,
}

impl LocalProcess {
    /// Builds the binary with the profile of this benchmark and starts it.
    pub async fn start() -> Self {
        Self::start_with(&[], &[]).await
    }

    /// The same with more arguments and variables.
    pub async fn start_with(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Self::command();
        command.args(["--port", "0"]).args(arguments).envs(variables.iter().copied());
        let server = ServerProcess::start(&mut command, "Muster listens on ").await;
        let response =
            Connection::open(&server.base_url).await.ask(Method::GET, "/_local/store").await.expect_ok();
        Self::of(server, &response)
    }

    /// The same as it serves players from the folder `data`.
    pub async fn serve(data: &Path) -> Self {
        let mut command = Self::command();
        command.args(["serve", "--port", "0", "--status", "127.0.0.1:0", "--data"]).arg(data);
        let server = ServerProcess::start(&mut command, "Muster listens on ").await;
        let door = fs::read(data.join("door.json")).expect("a door");
        Self::of(server, &serde_json::from_slice(&door).expect("JSON"))
    }

    fn command() -> Command {
        let is_quick = binaries::profile_folder().ends_with("debug");
        // Without `--package`, so that all crates have the features of the whole workspace, with which they
        // are already built.
        let mut binaries =
            binaries::build(&["--bin", "muster-local"], if is_quick { "dev" } else { "bench" });
        let mut command = Command::new(binaries.remove("muster-local").expect("it was built"));
        // Not --quiet, which would not print the port.
        command.env_clear().env("MUSTER_LOG", "error,dynoxide=off");
        command
    }

    fn of(server: ServerProcess, response: &Value) -> Self {
        let endpoint = response["endpoint"].as_str().expect("an endpoint");
        let store = Store::new(emulator_client(endpoint), table_names());
        let (key, address) = endpoint.trim_start_matches("http://").split_once('@').expect("a key");
        let (store_url, store_key) = (format!("http://{address}"), key.to_owned());
        Self { server, store, store_url, store_key }
    }

    /// The memory that the process holds now, which only Linux reports.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.server.memory()
    }

    /// Where the gateway listens.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.server.base_url
    }

    /// A store on the process's database.
    #[must_use]
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// Where its database listens.
    #[must_use]
    pub fn store_url(&self) -> &str {
        &self.store_url
    }

    /// A conditional write on a lobby as a find makes it, for the database itself.
    #[must_use]
    pub fn raw_write(&self, lobby_id: &LobbyId) -> Post {
        let body = json!({
            "TableName": self.store.tables().lobbies,
            "Key": { "lobby_id": { "S": lobby_id.as_str() } },
            "UpdateExpression": "SET taken = taken + :one",
            "ConditionExpression": "taken < :max AND closed = :open AND lease_until > :now",
            "ExpressionAttributeValues": {
                ":one": { "N": "1" },
                ":max": { "N": "1000000" },
                ":open": { "BOOL": false },
                ":now": { "N": "1" },
            },
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        });
        // The emulator wants its key and does not check the signature.
        let signature = format!(
            "AWS4-HMAC-SHA256 Credential={}/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0",
            self.store_key
        );
        let headers = [
            ("content-type", "application/x-amz-json-1.0"),
            ("x-amz-target", "DynamoDB_20120810.UpdateItem"),
            ("x-amz-date", "20260101T000000Z"),
            ("authorization", &signature),
        ];
        let headers = headers.map(|(name, value)| (name, value.to_owned())).to_vec();
        Post { path: "/".to_owned(), headers, body: body.to_string().into() }
    }

    /// Makes a game as its operator and its studio do: game servers with `places` for lobbies each, which
    /// never lapse.
    pub async fn make_game(
        &self,
        name: &str,
        modes: Value,
        lobby_count_max: u32,
        servers: usize,
        places: u32,
    ) -> LocalGame {
        let new = new_game(name, modes, lobby_count_max);
        let created = create_game(&self.store, &Ambient::system(), new).await.expect("a game");
        let namespace_id = created.namespaces[0].namespace_id.clone();
        let mut service = Connection::open(self.base_url()).await;
        let mut ask = async |path: &str, token: &str, body: Value| {
            service.post(&Post::json(path, Some(token), &body)).await.expect_ok()
        };

        let tokens = format!("/cloud/games/{}/namespaces/{namespace_id}/tokens", created.game.game_id);
        let mut issue = async |kind: &str| {
            let answer = ask(&format!("{tokens}/{kind}"), created.cloud_token.reveal(), json!({})).await;
            answer["token"].as_str().expect("a token").to_owned()
        };
        let (public, server) = (issue("public").await, issue("server").await);
        let mut server_ids = Vec::new();
        for number in 0..servers {
            let ports =
                json!({ "default": { "hostname": "server.example", "port": 1 + number, "protocol": "udp" } });
            let registration =
                json!({ "region_id": "fra", "capacity": places, "lease_seconds": 0, "ports": ports });
            let answer = ask("/matchmaker/servers/register", &server, registration).await;
            server_ids.push(answer["server_id"].as_str().expect("an identifier").to_owned());
        }
        LocalGame {
            game_id: created.game.game_id,
            cloud: created.cloud_token.reveal().to_owned(),
            namespace_id,
            public,
            server,
            server_ids,
        }
    }
}
