//! The functions of the template, built in this process: each route of the template gets the operation whose code it
//! names.

use std::{sync::Arc, time::Duration};

use find_lobby::FindLobby;
use get_bootstrap::GetBootstrap;
use set_cdn_auth_type::SetCdnAuthType;
use shared::{
    ambient::Ambient,
    auth::CloudAuth,
    config::{Environment, InvalidConfig},
    http::{Operation, answer},
    matchmaking::Matchmaker,
    rules::bcrypt_hash::COST_MAX,
    settings_cache::SettingsCache,
    store::Store,
    tokens::TokenKeys,
};
use update_cdn_auth_user::UpdateCdnAuthUser;
use update_namespace_version::UpdateNamespaceVersion;
use validate_matchmaker_config::ValidateMatchmakerConfig;

use crate::gateway::Handler;

/// How old settings may be here: another process's write is seen within a second, an own one at once.
const SETTINGS_AGE_MAX: Duration = Duration::from_secs(1);

/// The operations of one stack, which share one memory as the instances of a deployment do not.
#[derive(Debug)]
pub struct Functions {
    store: Store,
    keys: Arc<TokenKeys>,
    ambient: Ambient,
    settings: Arc<SettingsCache>,
    bootstrap: GetBootstrap,
    find_lobby: Arc<FindLobby>,
}

impl Functions {
    /// The operations over `store`.
    ///
    /// # Errors
    /// [`InvalidConfig`] when the process's environment holds an unusable `MUSTER_ACCESS`.
    pub fn new(store: Store, keys: Arc<TokenKeys>, ambient: Ambient) -> Result<Self, InvalidConfig> {
        let settings = Arc::new(SettingsCache::new(store.clone(), ambient.clone(), SETTINGS_AGE_MAX));
        let matchmaker = Matchmaker::new(store.clone(), Arc::clone(&settings), ambient.clone());
        let find_lobby =
            FindLobby::new(Arc::clone(&settings), matchmaker, Arc::clone(&keys), ambient.clone(), None);
        let bootstrap = GetBootstrap::from_environment(Environment::of_process())?;
        Ok(Self { store, keys, ambient, settings, bootstrap, find_lobby: Arc::new(find_lobby) })
    }

    /// Lobbies created so far although another was joinable.
    #[must_use]
    pub fn race_creates(&self) -> u64 {
        self.find_lobby.matchmaker().race_creates()
    }

    /// The handler of the function whose code lies at `code_uri`; nothing for code that is not known here.
    #[must_use]
    pub fn handler(&self, code_uri: &str) -> Option<Handler> {
        let auth = CloudAuth::new(self.store.clone(), Arc::clone(&self.keys), self.ambient.clone());
        let store = self.store.clone();
        Some(match code_uri {
            "functions/find-lobby" => reading(Arc::clone(&self.find_lobby)),
            "functions/get-bootstrap" => reading(Arc::new(self.bootstrap.clone())),
            "functions/validate-matchmaker-config" => reading(Arc::new(ValidateMatchmakerConfig::new(auth))),
            "functions/set-cdn-auth-type" => self.writing(SetCdnAuthType::new(auth, store)),
            "functions/update-cdn-auth-user" => self.writing(UpdateCdnAuthUser::new(auth, store, COST_MAX)),
            "functions/update-namespace-version" => {
                self.writing(UpdateNamespaceVersion::new(auth, store, self.ambient.clone()))
            }
            _ => return None,
        })
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

fn reading<O: Operation>(operation: Arc<O>) -> Handler {
    Arc::new(move |event| {
        let operation = Arc::clone(&operation);
        Box::pin(async move { answer(&*operation, event).await })
    })
}
