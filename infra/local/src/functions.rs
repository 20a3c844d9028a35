//! The functions of the template, built in this process: each route of the template gets the operation whose code it
//! names.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use add_domain::AddDomain;
use connect_player::ConnectPlayer;
use create_cloud_token::CreateCloudToken;
use create_development_token::CreateDevelopmentToken;
use create_lobby::CreateLobby;
use create_namespace::CreateNamespace;
use create_public_token::CreatePublicToken;
use create_server_token::CreateServerToken;
use create_version::CreateVersion;
use delete_cdn_auth_user::DeleteCdnAuthUser;
use delete_domain::DeleteDomain;
use deregister_server::DeregisterServer;
use disconnect_player::DisconnectPlayer;
use end_lobby::EndLobby;
use find_lobby::FindLobby;
use get_bootstrap::GetBootstrap;
use get_game::GetGame;
use get_lobby_state::GetLobbyState;
use get_namespace::GetNamespace;
use get_player_statistics::GetPlayerStatistics;
use get_version::GetVersion;
use get_version_history::GetVersionHistory;
use heartbeat_server::HeartbeatServer;
use join_lobby::JoinLobby;
use list_lobbies::ListLobbies;
use list_regions::ListRegions;
use register_server::RegisterServer;
use set_cdn_auth_type::SetCdnAuthType;
use set_domain_public_auth::SetDomainPublicAuth;
use set_lobby_closed::SetLobbyClosed;
use set_lobby_ready::SetLobbyReady;
use set_lobby_state::SetLobbyState;
use shared::{
    ambient::Ambient,
    auth::{CloudAuth, MatchmakerAuth},
    config::{Environment, InvalidConfig},
    http::{Operation, answer},
    issuing::Issuer,
    matchmaking::Matchmaker,
    rules::bcrypt_hash::COST_MAX,
    screening::{Outside, Screening},
    secrets::Secrets,
    settings_cache::SettingsCache,
    store::Store,
    tokens::TokenKeys,
};
use update_cdn_auth_user::UpdateCdnAuthUser;
use update_matchmaker_config::UpdateMatchmakerConfig;
use update_namespace_version::UpdateNamespaceVersion;
use validate_matchmaker_config::ValidateMatchmakerConfig;
use validate_namespace::ValidateNamespace;
use validate_version::ValidateVersion;

use crate::{gateway::Handler, permissions::restrict, stack::SECRETS_TABLE, template::Permissions};

/// How old settings may be here: another process's write is seen within a second, an own one at once.
const SETTINGS_AGE_MAX: Duration = Duration::from_secs(1);

/// The operations of one stack: one instance of each function, over the tables that the template allows it. They share the
/// settings that they read, as the instances of a deployment do not.
#[derive(Debug)]
pub struct Functions {
    store: Store,
    permissions: BTreeMap<String, Permissions>,
    keys: Arc<TokenKeys>,
    ambient: Ambient,
    settings: Arc<SettingsCache>,
    matchmaker: Arc<Matchmaker>,
    outside: Outside,
    bootstrap: GetBootstrap,
}

impl Functions {
    /// The operations over `store`, each with its `permissions`, by its code's folder; captchas and verifications are asked of
    /// those `outside`.
    ///
    /// # Errors
    /// [`InvalidConfig`] when the process's environment holds an unusable `MUSTER_ACCESS`.
    pub fn new(
        store: Store,
        permissions: BTreeMap<String, Permissions>,
        keys: Arc<TokenKeys>,
        ambient: Ambient,
        outside: Outside,
    ) -> Result<Self, InvalidConfig> {
        // Listing regions reads the settings and nothing else.
        let settings = restricted(&store, &permissions, "list-regions");
        let settings = Arc::new(SettingsCache::new(settings, ambient.clone(), SETTINGS_AGE_MAX));
        let finding = restricted(&store, &permissions, "find-lobby");
        let matchmaker = Arc::new(Matchmaker::new(finding, Arc::clone(&settings), ambient.clone()));
        let bootstrap = GetBootstrap::from_environment(Environment::of_process())?;
        Ok(Self { store, permissions, keys, ambient, settings, matchmaker, outside, bootstrap })
    }

    /// Lobbies created so far although another was joinable.
    #[must_use]
    pub fn race_creates(&self) -> u64 {
        self.matchmaker.race_creates()
    }

    /// The handler of the function whose code lies at `code_uri`; nothing for code that is not known here.
    #[must_use]
    pub fn handler(&self, code_uri: &str) -> Option<Handler> {
        let name = code_uri.strip_prefix("functions/")?;
        self.matchmaker_handler(name).or_else(|| self.cloud_handler(name))
    }

    fn matchmaker_handler(&self, name: &str) -> Option<Handler> {
        let (keys, ambient) = (Arc::clone(&self.keys), self.ambient.clone());
        let store = restricted(&self.store, &self.permissions, name);
        let auth = MatchmakerAuth::new(Arc::clone(&self.settings), keys, ambient.clone());
        let matchmaker =
            || Arc::new(Matchmaker::new(store.clone(), Arc::clone(&self.settings), ambient.clone()));
        Some(match name {
            "find-lobby" => {
                let matchmaker = Arc::clone(&self.matchmaker);
                reading(FindLobby::new(auth, matchmaker, self.screening(name), ambient, None))
            }
            "join-lobby" => reading(JoinLobby::new(auth, matchmaker(), self.screening(name), ambient, None)),
            "create-lobby" => {
                reading(CreateLobby::new(auth, matchmaker(), self.screening(name), ambient, None))
            }
            "list-lobbies" => reading(ListLobbies::new(auth, store, ambient)),
            "get-lobby-state" => reading(GetLobbyState::new(auth, store, ambient)),
            "set-lobby-state" => reading(SetLobbyState::new(auth, store, ambient)),
            "set-lobby-ready" => reading(SetLobbyReady::new(auth, store, ambient)),
            "set-lobby-closed" => reading(SetLobbyClosed::new(auth, store, ambient)),
            "connect-player" => reading(ConnectPlayer::new(auth, store, ambient)),
            "disconnect-player" => reading(DisconnectPlayer::new(auth, store, ambient)),
            "get-player-statistics" => reading(GetPlayerStatistics::new(auth, store, ambient)),
            "list-regions" => reading(ListRegions::new(auth, None)),
            "register-server" => reading(RegisterServer::new(auth, store, ambient)),
            "heartbeat-server" => reading(HeartbeatServer::new(auth, store, ambient)),
            "end-lobby" => reading(EndLobby::new(auth, store, ambient)),
            "deregister-server" => reading(DeregisterServer::new(auth, store, ambient)),
            _ => return None,
        })
    }

    fn cloud_handler(&self, name: &str) -> Option<Handler> {
        let (keys, ambient) = (Arc::clone(&self.keys), self.ambient.clone());
        let store = restricted(&self.store, &self.permissions, name);
        let auth = CloudAuth::new(store.clone(), Arc::clone(&keys), ambient.clone());
        let issuer = Issuer::new(store.clone(), keys, ambient.clone());
        Some(match name {
            "get-bootstrap" => reading(self.bootstrap.clone()),
            "validate-matchmaker-config" => reading(ValidateMatchmakerConfig::new(auth)),
            "update-matchmaker-config" => self.writing(UpdateMatchmakerConfig::new(auth, store)),
            "set-cdn-auth-type" => self.writing(SetCdnAuthType::new(auth, store)),
            "update-cdn-auth-user" => self.writing(UpdateCdnAuthUser::new(auth, store, COST_MAX)),
            "update-namespace-version" => self.writing(UpdateNamespaceVersion::new(auth, store, ambient)),
            "create-namespace" => self.writing(CreateNamespace::new(auth, store, ambient)),
            "create-version" => {
                let secrets = Secrets::Table(self.secrets_store(name));
                self.writing(CreateVersion::new(auth, store, secrets, ambient))
            }
            "delete-cdn-auth-user" => reading(DeleteCdnAuthUser::new(auth, store)),
            "set-domain-public-auth" => self.writing(SetDomainPublicAuth::new(auth, store)),
            "add-domain" => self.writing(AddDomain::new(auth, store, ambient)),
            "delete-domain" => self.writing(DeleteDomain::new(auth, store)),
            "get-game" => reading(GetGame::new(auth, store)),
            "get-namespace" => reading(GetNamespace::new(auth, store)),
            "get-version" => reading(GetVersion::new(auth, store)),
            "get-version-history" => reading(GetVersionHistory::new(auth, store)),
            "validate-namespace" => reading(ValidateNamespace::new(auth, store)),
            "validate-version" => reading(ValidateVersion::new(auth, store)),
            "create-public-token" => reading(CreatePublicToken::new(auth, issuer)),
            "create-development-token" => reading(CreateDevelopmentToken::new(auth, issuer)),
            "create-server-token" => reading(CreateServerToken::new(auth, issuer)),
            "create-cloud-token" => reading(CreateCloudToken::new(auth, issuer)),
            _ => return None,
        })
    }

    fn screening(&self, name: &str) -> Arc<Screening> {
        let store = restricted(&self.store, &self.permissions, name);
        let (keys, ambient) = (Arc::clone(&self.keys), self.ambient.clone());
        let secrets = Secrets::Table(self.secrets_store(name));
        Arc::new(Screening::new(store, secrets, keys, ambient, self.outside.clone()))
    }

    /// The store for the secrets of the function `name`, which may there what the template allows it of parameters.
    fn secrets_store(&self, name: &str) -> Store {
        let permissions = self.permissions.get(&format!("functions/{name}")).cloned().unwrap_or_default();
        self.store.with_client(restrict(
            self.store.client(),
            name,
            &permissions.of_parameters_on(SECRETS_TABLE),
        ))
    }

    /// A handler that changes settings: the next find must see them.
    fn writing<O: Operation>(&self, operation: O) -> Handler {
        let (operation, settings) = (Arc::new(operation), Arc::clone(&self.settings));
        Arc::new(move |event| {
            let (operation, settings) = (Arc::clone(&operation), Arc::clone(&settings));
            Box::pin(async move {
                let response = answer(&*operation, event).await;
                settings.forget();
                response
            })
        })
    }
}

/// The store as the function `name` may use it.
fn restricted(store: &Store, permissions: &BTreeMap<String, Permissions>, name: &str) -> Store {
    let none = Permissions::default();
    let permissions = permissions.get(&format!("functions/{name}")).unwrap_or(&none);
    store.with_client(restrict(store.client(), name, permissions))
}

fn reading<O: Operation>(operation: O) -> Handler {
    let operation = Arc::new(operation);
    Arc::new(move |event| {
        let operation = Arc::clone(&operation);
        Box::pin(async move { answer(&*operation, event).await })
    })
}
