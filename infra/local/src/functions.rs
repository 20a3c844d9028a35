//! The functions of the template in this process, each with as many instances as it has concurrent requests.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use lambda_http::{Context, RequestExt as _};
use serde_json::{Value, json};
use shared::{
    auth::{keys::TokenKeys, settings::SettingsCache},
    base::ambient::Ambient,
    function::{
        config::{Environment, InvalidConfig},
        instance::Instance,
        metrics::{Counts, Metric},
        operation::{Operation, answer_counted},
    },
    models::{
        errors::Error,
        ids::{GameId, NamespaceId},
    },
    outside::endpoints::Outside,
    request::trace::Trace,
    store::{client::Store, meter::metered},
};

use crate::{gateway::Handler, observed::Observed, permissions::restrict, template::FunctionProperties};

/// How old settings may be here: a write of another process is visible within a second, an own one
/// immediately.
const SETTINGS_AGE_MAX: Duration = Duration::from_secs(1);

/// How long an idle instance is kept. Lambda, too, removes them after some minutes.
const IDLE_MAX: Duration = Duration::from_secs(300);

/// The operations that functions of the template can run.
static KNOWN: [Known; 42] = [
    Known::changing::<add_domain::AddDomain>(),
    Known::of::<connect_player::ConnectPlayer>(),
    Known::of::<create_cloud_token::CreateCloudToken>(),
    Known::of::<create_development_token::CreateDevelopmentToken>(),
    Known::of::<create_lobby::CreateLobby>(),
    Known::changing::<create_namespace::CreateNamespace>(),
    Known::of::<create_public_token::CreatePublicToken>(),
    Known::of::<create_server_token::CreateServerToken>(),
    Known::changing::<create_version::CreateVersion>(),
    Known::changing::<delete_cdn_auth_user::DeleteCdnAuthUser>(),
    Known::changing::<delete_domain::DeleteDomain>(),
    Known::of::<deregister_server::DeregisterServer>(),
    Known::of::<disconnect_player::DisconnectPlayer>(),
    Known::of::<end_lobby::EndLobby>(),
    Known::of::<find_lobby::FindLobby>(),
    Known::of::<get_bootstrap::GetBootstrap>(),
    Known::of::<get_game::GetGame>(),
    Known::of::<get_lobby_state::GetLobbyState>(),
    Known::of::<get_namespace::GetNamespace>(),
    Known::of::<get_player_statistics::GetPlayerStatistics>(),
    Known::of::<get_version::GetVersion>(),
    Known::of::<get_version_history::GetVersionHistory>(),
    Known::of::<heartbeat_server::HeartbeatServer>(),
    Known::of::<join_lobby::JoinLobby>(),
    Known::of::<leave_lobby::LeaveLobby>(),
    Known::of::<list_lobbies::ListLobbies>(),
    Known::of::<list_regions::ListRegions>(),
    Known::of::<register_server::RegisterServer>(),
    Known::of::<rejoin_player::RejoinPlayer>(),
    Known::changing::<set_cdn_auth_type::SetCdnAuthType>(),
    Known::changing::<set_domain_public_auth::SetDomainPublicAuth>(),
    Known::of::<remove_player::RemovePlayer>(),
    Known::of::<set_lobby_closed::SetLobbyClosed>(),
    Known::of::<set_lobby_publicity::SetLobbyPublicity>(),
    Known::of::<set_lobby_ready::SetLobbyReady>(),
    Known::of::<set_lobby_state::SetLobbyState>(),
    Known::changing::<update_cdn_auth_user::UpdateCdnAuthUser>(),
    Known::changing::<update_matchmaker_config::UpdateMatchmakerConfig>(),
    Known::changing::<update_namespace_version::UpdateNamespaceVersion>(),
    Known::of::<validate_matchmaker_config::ValidateMatchmakerConfig>(),
    Known::of::<validate_namespace::ValidateNamespace>(),
    Known::of::<validate_version::ValidateVersion>(),
];

/// An operation, by the folder of its code.
struct Known {
    name: &'static str,
    /// Whether it changes settings, which the next request of every function must see.
    changes_settings: bool,
    start: fn(&Functions, &Instance) -> Result<Handler, InvalidConfig>,
}

impl Known {
    const fn of<O: Operation>() -> Self {
        Self { name: O::NAME, changes_settings: false, start: Functions::started::<O> }
    }

    const fn changing<O: Operation>() -> Self {
        Self { changes_settings: true, ..Self::of::<O>() }
    }
}

/// What the instances of one function share.
struct Function {
    known: &'static Known,
    timeout: Duration,
    /// The store, as far as the template permits.
    store: Store,
}

/// The functions of one stack, each with the permissions that the template gives it.
pub struct Functions {
    store: Store,
    declared: BTreeMap<String, FunctionProperties>,
    keys: Arc<TokenKeys>,
    ambient: Ambient,
    outside: Outside,
    environment: Environment,
    settings: Arc<Settings>,
    counted: Arc<Counted>,
}

/// The counts of all requests so far, by operation.
#[derive(Debug, Default)]
pub struct Counted(Mutex<BTreeMap<(&'static str, Metric), u64>>);

impl Counted {
    fn add(&self, operation: &'static str, counts: &Counts) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for metric in Metric::ALL.iter().filter(|metric| counts.get(**metric) > 0) {
            *all.entry((operation, *metric)).or_default() += counts.get(*metric);
        }
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> BTreeMap<(&'static str, Metric), u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What `/_local/counts` shows: lobbies created although another one was joinable, and requests refused
    /// because their IP address held as many seats as it may.
    #[must_use]
    pub fn shown(&self) -> Value {
        let all = self.all();
        let sum = |wanted| {
            all.iter().filter(|((_, metric), _)| *metric == wanted).map(|(_, count)| count).sum::<u64>()
        };
        json!({
            "race_creates": sum(Metric::RaceCreate),
            "refused_by_address": sum(Metric::TooManyPlayersFromSource),
        })
    }
}

/// Why a function has no instance.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No operation here has its code, or the template does not declare it.
    #[error("is not part of the local stack")]
    Unknown,
    /// A variable of the process is missing or invalid.
    #[error("{0}")]
    Config(#[from] InvalidConfig),
}

impl Functions {
    /// The functions over `store`, each as the template `declared` it, by its code's folder, with the captcha
    /// providers and backends `outside`.
    #[must_use]
    pub fn new(
        store: Store,
        declared: BTreeMap<String, FunctionProperties>,
        keys: Arc<TokenKeys>,
        ambient: Ambient,
        outside: Outside,
    ) -> Self {
        let (settings, counted) = Default::default();
        let environment = Environment::of_process();
        Self { store, declared, keys, ambient, outside, environment, settings, counted }
    }

    /// The same, whose errors link their code on `page`.
    #[must_use]
    pub fn with_documentation(self, page: &str) -> Self {
        Self { environment: self.environment.with("MUSTER_DOCUMENTATION_URL", page), ..self }
    }

    /// The counts of all requests so far.
    #[must_use]
    pub fn counted(&self) -> &Counted {
        &self.counted
    }

    /// Loads the settings of a namespace into every instance, as an earlier request would.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn know_settings(&self, game_id: &GameId, id: &NamespaceId) -> Result<(), Error> {
        for cache in self.settings.all() {
            cache.settings(game_id, id).await?;
        }
        Ok(())
    }

    /// The handler of the function with its code at `code_uri`. As in Lambda, an instance has one request at
    /// a time: each request goes to the instance that became free last, or to a new one. One that was free
    /// for five minutes goes with the next response.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn handler(self: &Arc<Self>, code_uri: &str) -> Result<Handler, StartError> {
        let function = self.function(code_uri)?;
        let first = self.instance_of(&function)?;
        let (functions, ambient) = (Arc::clone(self), self.ambient.clone());
        // The first instance has started, so others can start, too.
        Ok(observed(one_at_a_time(first, ambient, move || {
            functions.instance_of(&function).unwrap_or_else(|error| unreachable!("{error}"))
        })))
    }

    /// A new instance of the function with its code at `code_uri`, which may have several requests at a time.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn instance(&self, code_uri: &str) -> Result<Handler, StartError> {
        Ok(self.instance_of(&self.function(code_uri)?)?)
    }

    fn function(&self, code_uri: &str) -> Result<Function, StartError> {
        let name = code_uri.strip_prefix("functions/").ok_or(StartError::Unknown)?;
        let known = KNOWN.iter().find(|known| known.name == name).ok_or(StartError::Unknown)?;
        let declared = self.declared.get(code_uri).ok_or(StartError::Unknown)?;
        let store = self.store.with_client(restrict(self.store.client(), name, &declared.permissions));
        Ok(Function { known, timeout: declared.timeout, store })
    }

    fn instance_of(&self, function: &Function) -> Result<Handler, InvalidConfig> {
        let Function { known, timeout, store } = function;
        let settings = self.settings.cache(store.clone(), self.ambient.clone());
        let instance = Instance::over(store.clone(), Arc::clone(&self.keys), self.ambient.clone())
            .with_environment(self.environment.clone())
            .with_outside(self.outside.clone())
            .with_settings(settings);
        let mut handler = (known.start)(self, &instance)?;
        if known.changes_settings {
            handler = self.settings.forgotten_after(handler);
        }
        Ok(within(*timeout, self.ambient.clone(), handler))
    }

    fn started<O: Operation>(&self, instance: &Instance) -> Result<Handler, InvalidConfig> {
        let counted = Arc::clone(&self.counted);
        let served = Arc::new((O::start(instance)?, self.ambient.clone(), instance.documentation(), counted));
        Ok(Arc::new(move |event| {
            let served = Arc::clone(&served);
            Box::pin(async move {
                let (operation, ambient, documentation, counted) = &*served;
                let (response, counts) =
                    answer_counted(operation, event, ambient, documentation.as_deref()).await;
                counted.add(O::NAME, &counts);
                response
            })
        }))
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Functions").field("declared", &self.declared).finish_non_exhaustive()
    }
}

/// The instances' caches of settings.
#[derive(Debug, Default)]
struct Settings(Mutex<Vec<Weak<SettingsCache>>>);

impl Settings {
    /// The cache of a new instance that reads from `store`.
    fn cache(&self, store: Store, ambient: Ambient) -> Arc<SettingsCache> {
        let cache = Arc::new(SettingsCache::new(store, ambient, SETTINGS_AGE_MAX));
        let mut caches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        caches.retain(|cache| cache.strong_count() > 0);
        caches.push(Arc::downgrade(&cache));
        cache
    }

    fn all(&self) -> Vec<Arc<SettingsCache>> {
        let caches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        caches.iter().filter_map(Weak::upgrade).collect()
    }

    /// `handler`, after whose requests every instance reads settings again.
    fn forgotten_after(self: &Arc<Self>, handler: Handler) -> Handler {
        let settings = Arc::clone(self);
        Arc::new(move |event| {
            let (answered, settings) = (handler(event), Arc::clone(&settings));
            Box::pin(async move {
                let response = answered.await;
                settings.all().iter().for_each(|cache| cache.forget());
                response
            })
        })
    }
}

/// A handler over instances that have one request at a time: the `first`, and those from `start`.
fn one_at_a_time(
    first: Handler,
    ambient: Ambient,
    start: impl Fn() -> Handler + Send + Sync + 'static,
) -> Handler {
    let free = Arc::new(Mutex::new(vec![(ambient.now(), first)]));
    Arc::new(move |event| {
        let last = free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let instance = last.map_or_else(&start, |(_, instance)| instance);
        let (ambient, free) = (ambient.clone(), Arc::clone(&free));
        Box::pin(async move {
            let response = instance(event).await;
            let now = ambient.now();
            let mut free = free.lock().unwrap_or_else(PoisonError::into_inner);
            free.retain(|(since, _)| now.since(*since) < IDLE_MAX);
            free.push((now, instance));
            response
        })
    })
}

/// `handler`, whose responses carry what console and log show of them.
fn observed(handler: Handler) -> Handler {
    Arc::new(move |mut event| {
        let trace = Trace::default();
        event.extensions_mut().insert(trace.clone());
        let answered = handler(event);
        Box::pin(async move {
            let (mut response, usage) = metered(answered).await;
            response.extensions_mut().insert(Observed { usage, explanation: trace.explanation() });
            response
        })
    })
}

/// A handler that has the time limit of its Lambda function for each event.
fn within(timeout: Duration, ambient: Ambient, handler: Handler) -> Handler {
    Arc::new(move |event| {
        let mut context = Context::default();
        context.deadline = (ambient.now() + timeout).0;
        handler(event.with_lambda_context(context))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures_util::FutureExt as _;
    use lambda_http::{Body, Response};
    use shared::base::ambient::Timestamp;
    use tokio::sync::Semaphore;

    use super::*;

    /// An instance that responds with its number as soon as `permits` has a permit.
    fn numbered(number: u16, permits: &Arc<Semaphore>) -> Handler {
        let permits = Arc::clone(permits);
        Arc::new(move |_event| {
            let permits = Arc::clone(&permits);
            Box::pin(async move {
                permits.acquire().await.unwrap().forget();
                let mut response = Response::new(Body::Empty);
                *response.status_mut() = http::StatusCode::from_u16(number).unwrap();
                response
            })
        })
    }

    /// A handler over instances with the numbers from 200 on, by a clock of milliseconds.
    fn instances(permits: &Arc<Semaphore>, clock: &Arc<AtomicU64>) -> Handler {
        let (numbers, starting) = (AtomicU64::new(201), Arc::clone(permits));
        let start = move || {
            let number = numbers.fetch_add(1, Ordering::Relaxed).try_into().unwrap();
            numbered(number, &starting)
        };
        let clock = Arc::clone(clock);
        let ambient = Ambient::system().with_clock(move || Timestamp(clock.load(Ordering::Relaxed)));
        one_at_a_time(numbered(200, permits), ambient, start)
    }

    #[tokio::test]
    async fn an_instance_that_was_free_for_five_minutes_goes() {
        let (permits, clock) = (Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)), Arc::default());
        let handler = instances(&permits, &clock);
        let begin = || handler(lambda_http::Request::new(Body::Empty));
        let both = async || {
            let (one, two) = (begin(), begin());
            (two.await.status().as_u16(), one.await.status().as_u16())
        };
        assert_eq!(both().await, (201, 200));
        clock.store(299_999, Ordering::Relaxed);
        assert_eq!(begin().await.status().as_u16(), 200);
        assert_eq!(both().await, (201, 200), "both are there");
        clock.store(599_999, Ordering::Relaxed);
        assert_eq!(begin().await.status().as_u16(), 200);
        assert_eq!(both().await, (202, 200), "the second went when the first responded");
    }

    #[tokio::test]
    async fn an_instance_has_one_request_at_a_time_and_that_which_was_free_last_has_the_next() {
        let permits = Arc::new(Semaphore::new(0));
        let handler = instances(&permits, &Arc::default());
        let event = || lambda_http::Request::new(Body::Empty);
        let (mut one, mut two) = (handler(event()), handler(event()));
        assert!((&mut one).now_or_never().is_none() && (&mut two).now_or_never().is_none());
        permits.add_permits(1);
        assert_eq!(one.await.status().as_u16(), 200);
        permits.add_permits(2);
        assert_eq!(handler(event()).await.status().as_u16(), 200, "it is free again");
        assert_eq!(two.await.status().as_u16(), 201, "the first was busy");
        permits.add_permits(2);
        assert_eq!(handler(event()).await.status().as_u16(), 201, "it was free last");
        // An instance whose request is dropped gets no other request.
        drop(handler(event()));
        assert_eq!(handler(event()).await.status().as_u16(), 200);
    }
}
