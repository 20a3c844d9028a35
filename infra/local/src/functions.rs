//! The functions of the template, built in this process: each route of the template gets the operation whose
//! code it names.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

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
use lambda_http::{Context, RequestExt as _};
use list_lobbies::ListLobbies;
use list_regions::ListRegions;
use register_server::RegisterServer;
use set_cdn_auth_type::SetCdnAuthType;
use set_domain_public_auth::SetDomainPublicAuth;
use set_lobby_closed::SetLobbyClosed;
use set_lobby_ready::SetLobbyReady;
use set_lobby_state::SetLobbyState;
use shared::{
    auth::{cloud::CloudAuth, keys::TokenKeys, matchmaker::MatchmakerAuth, settings::SettingsCache},
    base::ambient::Ambient,
    cloud::issuing::Issuer,
    function::{
        config::{Environment, InvalidConfig},
        operation::{Operation, answer},
    },
    matchmaking::matchmaker::Matchmaker,
    models::{
        errors::Error,
        ids::{GameId, NamespaceId},
    },
    rules::bcrypt_hash::COST_MAX,
    screening::{check::Screening, outside::Outside},
    store::client::Store,
};
use update_cdn_auth_user::UpdateCdnAuthUser;
use update_matchmaker_config::UpdateMatchmakerConfig;
use update_namespace_version::UpdateNamespaceVersion;
use validate_matchmaker_config::ValidateMatchmakerConfig;
use validate_namespace::ValidateNamespace;
use validate_version::ValidateVersion;

use crate::{
    gateway::Handler,
    permissions::restrict,
    template::{FunctionProperties, Permissions},
};

/// How old settings may be here: another process's write is seen within a second, an own one at once.
const SETTINGS_AGE_MAX: Duration = Duration::from_secs(1);

/// The operations of one stack: one instance of each function, over the tables that the template allows it.
#[derive(Debug)]
pub struct Functions {
    store: Store,
    declared: BTreeMap<String, FunctionProperties>,
    keys: Arc<TokenKeys>,
    ambient: Ambient,
    settings: Arc<Settings>,
    matchmaker: Arc<Matchmaker>,
    outside: Outside,
    bootstrap: GetBootstrap,
}

/// What each function remembers of settings.
#[derive(Debug, Default)]
struct Settings(Mutex<BTreeMap<String, Arc<SettingsCache>>>);

impl Settings {
    /// The memory of the function `name`, which `make` makes the first time.
    fn of(&self, name: &str, make: impl FnOnce() -> SettingsCache) -> Arc<SettingsCache> {
        let mut caches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(caches.entry(name.to_owned()).or_insert_with(|| Arc::new(make())))
    }

    fn all(&self) -> Vec<Arc<SettingsCache>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Has every function read anew.
    fn forget(&self) {
        self.all().iter().for_each(|cache| cache.forget());
    }
}

impl Functions {
    /// The operations over `store`, each as the template `declared` it, by its code's folder; captchas and
    /// verifications are asked of those `outside`.
    ///
    /// # Errors
    /// [`InvalidConfig`] when the process's environment holds an unusable `MUSTER_ACCESS`.
    pub fn new(
        store: Store,
        declared: BTreeMap<String, FunctionProperties>,
        keys: Arc<TokenKeys>,
        ambient: Ambient,
        outside: Outside,
    ) -> Result<Self, InvalidConfig> {
        let finding = restricted(&store, &declared, "find-lobby");
        let settings = Settings::default();
        let of_finding = settings
            .of("find-lobby", || SettingsCache::new(finding.clone(), ambient.clone(), SETTINGS_AGE_MAX));
        let matchmaker = Arc::new(Matchmaker::new(finding, of_finding, ambient.clone()));
        let bootstrap = GetBootstrap::from_environment(Environment::of_process())?;
        let settings = Arc::new(settings);
        Ok(Self { store, declared, keys, ambient, settings, matchmaker, outside, bootstrap })
    }

    /// Lobbies created so far although another was joinable.
    #[must_use]
    pub fn race_creates(&self) -> u64 {
        self.matchmaker.race_creates()
    }

    /// Has every function that was started know the settings of a namespace, as after an earlier request for
    /// it.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn know_settings(&self, game_id: &GameId, id: &NamespaceId) -> Result<(), Error> {
        for cache in self.settings.all() {
            cache.settings(game_id, id).await?;
        }
        Ok(())
    }

    /// The handler of the function whose code lies at `code_uri`; nothing for code that is not known
    /// here or to the template.
    #[must_use]
    pub fn handler(&self, code_uri: &str) -> Option<Handler> {
        let name = code_uri.strip_prefix("functions/")?;
        let timeout = self.declared.get(code_uri)?.timeout;
        let handler = self.cloud_handler(name).or_else(|| self.matchmaker_handler(name))?;
        Some(within(timeout, self.ambient.clone(), handler))
    }

    fn matchmaker_handler(&self, name: &str) -> Option<Handler> {
        let (keys, ambient) = (Arc::clone(&self.keys), self.ambient.clone());
        let store = restricted(&self.store, &self.declared, name);
        let settings =
            self.settings.of(name, || SettingsCache::new(store.clone(), ambient.clone(), SETTINGS_AGE_MAX));
        let auth = MatchmakerAuth::new(Arc::clone(&settings), keys, ambient.clone());
        let matchmaker = || Arc::new(Matchmaker::new(store.clone(), Arc::clone(&settings), ambient.clone()));
        Some(match name {
            "find-lobby" => {
                let matchmaker = Arc::clone(&self.matchmaker);
                self.reading(FindLobby::new(auth, matchmaker, self.screening(name), ambient, None))
            }
            "join-lobby" => {
                self.reading(JoinLobby::new(auth, matchmaker(), self.screening(name), ambient, None))
            }
            "create-lobby" => {
                self.reading(CreateLobby::new(auth, matchmaker(), self.screening(name), ambient, None))
            }
            "list-lobbies" => self.reading(ListLobbies::new(auth, store, ambient, None)),
            "get-lobby-state" => self.reading(GetLobbyState::new(auth, store, ambient)),
            "set-lobby-state" => self.reading(SetLobbyState::new(auth, store, ambient)),
            "set-lobby-ready" => self.reading(SetLobbyReady::new(auth, store, ambient)),
            "set-lobby-closed" => self.reading(SetLobbyClosed::new(auth, store, ambient)),
            "connect-player" => self.reading(ConnectPlayer::new(auth, store, ambient)),
            "disconnect-player" => self.reading(DisconnectPlayer::new(auth, store, ambient)),
            "get-player-statistics" => self.reading(GetPlayerStatistics::new(auth, store, ambient)),
            "list-regions" => self.reading(ListRegions::new(auth, None)),
            "register-server" => self.reading(RegisterServer::new(auth, store, ambient)),
            "heartbeat-server" => self.reading(HeartbeatServer::new(auth, store, ambient)),
            "end-lobby" => self.reading(EndLobby::new(auth, store, ambient)),
            "deregister-server" => self.reading(DeregisterServer::new(auth, store, ambient)),
            _ => return None,
        })
    }

    fn cloud_handler(&self, name: &str) -> Option<Handler> {
        let (keys, ambient) = (Arc::clone(&self.keys), self.ambient.clone());
        let store = restricted(&self.store, &self.declared, name);
        let auth = CloudAuth::new(store.clone(), Arc::clone(&keys), ambient.clone());
        let issuer = Issuer::new(store.clone(), keys, ambient.clone());
        Some(match name {
            "get-bootstrap" => self.reading(self.bootstrap.clone()),
            "validate-matchmaker-config" => self.reading(ValidateMatchmakerConfig::new(auth)),
            "update-matchmaker-config" => self.writing(UpdateMatchmakerConfig::new(auth, store)),
            "set-cdn-auth-type" => self.writing(SetCdnAuthType::new(auth, store)),
            "update-cdn-auth-user" => self.writing(UpdateCdnAuthUser::new(auth, store, COST_MAX)),
            "update-namespace-version" => self.writing(UpdateNamespaceVersion::new(auth, store, ambient)),
            "create-namespace" => self.writing(CreateNamespace::new(auth, store, ambient)),
            "create-version" => self.writing(CreateVersion::new(auth, store, ambient)),
            "delete-cdn-auth-user" => self.reading(DeleteCdnAuthUser::new(auth, store)),
            "set-domain-public-auth" => self.writing(SetDomainPublicAuth::new(auth, store)),
            "add-domain" => self.writing(AddDomain::new(auth, store, ambient)),
            "delete-domain" => self.writing(DeleteDomain::new(auth, store)),
            "get-game" => self.reading(GetGame::new(auth, store)),
            "get-namespace" => self.reading(GetNamespace::new(auth, store)),
            "get-version" => self.reading(GetVersion::new(auth, store)),
            "get-version-history" => self.reading(GetVersionHistory::new(auth, store)),
            "validate-namespace" => self.reading(ValidateNamespace::new(auth, store)),
            "validate-version" => self.reading(ValidateVersion::new(auth, store)),
            "create-public-token" => self.reading(CreatePublicToken::new(auth, issuer)),
            "create-development-token" => self.reading(CreateDevelopmentToken::new(auth, issuer)),
            "create-server-token" => self.reading(CreateServerToken::new(auth, issuer)),
            "create-cloud-token" => self.reading(CreateCloudToken::new(auth, issuer)),
            _ => return None,
        })
    }

    fn screening(&self, name: &str) -> Arc<Screening> {
        let store = restricted(&self.store, &self.declared, name);
        let (keys, ambient) = (Arc::clone(&self.keys), self.ambient.clone());
        Arc::new(Screening::new(store, keys, ambient, self.outside.clone()))
    }

    fn reading<O: Operation>(&self, operation: O) -> Handler {
        let served = Arc::new((operation, self.ambient.clone()));
        Arc::new(move |event| {
            let served = Arc::clone(&served);
            Box::pin(async move { answer(&served.0, event, &served.1).await })
        })
    }

    /// A handler that changes settings: the next find must see them.
    fn writing<O: Operation>(&self, operation: O) -> Handler {
        let (handler, settings) = (self.reading(operation), Arc::clone(&self.settings));
        Arc::new(move |event| {
            let (answered, settings) = (handler(event), Arc::clone(&settings));
            Box::pin(async move {
                let response = answered.await;
                settings.forget();
                response
            })
        })
    }
}

/// What the function `name` may do: nothing when the template does not know it.
fn permissions_of(declared: &BTreeMap<String, FunctionProperties>, name: &str) -> Permissions {
    let function = declared.get(&format!("functions/{name}"));
    function.map(|function| function.permissions.clone()).unwrap_or_default()
}

/// The store as the function `name` may use it.
fn restricted(store: &Store, declared: &BTreeMap<String, FunctionProperties>, name: &str) -> Store {
    store.with_client(restrict(store.client(), name, &permissions_of(declared, name)))
}

/// A handler that has as much time for each event as Lambda gives its function.
fn within(timeout: Duration, ambient: Ambient, handler: Handler) -> Handler {
    Arc::new(move |event| {
        let mut context = Context::default();
        context.deadline = (ambient.now() + timeout).0;
        handler(event.with_lambda_context(context))
    })
}
