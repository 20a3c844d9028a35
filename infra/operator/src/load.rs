//! `muster load`: plays sessions of players at a rate, in lobbies of its own game servers, and reports the
//! results and the cost.
//!
//! Arrivals are open-loop: a slow response delays no later player, and the time of a find counts from when
//! its player was due. In every case, its game servers deregister with their lobbies, and its tokens are
//! revoked.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal as _, Write as _},
    sync::Arc,
    time::Duration,
};

use muster_console::host::Api;
use shared::{
    base::{ambient::Timestamp, usage::Usage},
    hosting::game_server::GameServers,
    models::{
        errors::Error,
        ids::{ServerId, TokenId},
        rights::{GameRight, NamespaceRight},
        server::Server,
        token::CredentialKind,
    },
    store::{listing::servers_of, tokens::RevokeOutcome},
};
use tokio::{
    task::JoinSet,
    time::{interval, timeout},
};

use crate::{
    api::api, deployment::Deployment, error::CommandError, interruption::Interruption, lookup, report::Report,
};

mod cost;
mod crowd;
mod hostile;
mod namespace;
mod plan;
mod players;
mod report;
mod servers;
mod service;
mod sources;
mod tally;
mod toll;

use crowd::Crowd;
pub(crate) use plan::Options;
use plan::{LEASE, Plan};
use players::Players;
use report::Outcome;
use servers::{PREFIX, Servers};
use service::{Meter, Service};
use sources::{Sources, api_from_sources};
use tally::{Call, Listed, OK};

/// How long the tokens live beyond the load: while its game servers register and deregister.
const TOKEN_MARGIN: Duration = Duration::from_secs(600);
/// How long the game servers may take to deregister.
const LEAVE_MAX: Duration = Duration::from_secs(60);
/// How often a terminal shows how far the load is.
const PROGRESS: Duration = Duration::from_secs(2);

/// The namespace of a load.
struct Scene<'a> {
    deployment: &'a Deployment,
    right: NamespaceRight,
    /// The API that the players use.
    api: Api,
    /// The API of the local stack, which shows what operations took.
    meter: Option<Api>,
    /// The addresses that the requests of a hostile load come from.
    sources: Option<Sources>,
}

/// Plays a load.
///
/// # Errors
/// [`CommandError`], before anything has begun, and when the game servers cannot register.
pub(crate) async fn run(
    options: Options,
    deployment: &Deployment,
    is_local: bool,
) -> Result<Report, CommandError> {
    let Deployment { store, ambient, api_url, .. } = deployment;
    let (game, right) = lookup::namespace(store, &options.namespace).await?;
    let version = store.version(&game.game_id, &right.namespace().version_id).await?;
    let version = version.ok_or(Error::VersionNotFound)?;
    let plan = Plan::of(&options, right.namespace(), &version.config)?;
    let url = options.api_url.as_ref().or(api_url.as_ref()).ok_or_else(|| {
        CommandError::Refused(
            "the stack has no output `ApiUrl`; give the API's address by --api-url".to_owned(),
        )
    })?;
    let sources = plan.hostile.as_ref().map(|hostile| Sources::new(hostile.addresses, ambient));
    if let Some(sources) = sources {
        sources.check(url).await?;
    }
    let servers = servers_of(store, &game, right.namespace_id()).await?;
    let dead = check_servers(&plan.namespace, &servers, options.among_players, ambient.now())?;
    if !is_local {
        plan.check_cost(options.dollars_max)?;
    }
    say(&plan.text(is_local));
    if !is_local {
        options.consent.to("begins this load, which costs money", deployment)?;
    }
    let game_servers = GameServers::new(store.clone(), ambient.clone());
    for server_id in dead {
        match game_servers.remove(&right, server_id).await {
            Ok(()) | Err(Error::ServerNotFound) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // Another address may be that of another deployment.
    let meter = api_url.clone().filter(|_| is_local && options.api_url.is_none()).map(api);
    let api = if sources.is_some() { api_from_sources(url.clone()) } else { api(url.clone()) };
    Scene { deployment, right, api, meter, sources }.load(plan).await
}

/// The servers that a killed load left. Refuses a namespace with others.
fn check_servers(
    namespace: &str,
    servers: &[Server],
    among_players: bool,
    now: Timestamp,
) -> Result<Vec<ServerId>, CommandError> {
    let is_of_load = |server: &&Server| server.server.server_id.as_str().starts_with(PREFIX);
    let (of_loads, others): (Vec<_>, Vec<_>) = servers.iter().partition(is_of_load);
    if let (Some(other), false) = (others.first(), among_players) {
        return Err(CommandError::Refused(format!(
            "{namespace} has game servers of others, such as `{}`, whose players a load would disturb; create a namespace for it: `muster namespace create GAME/load --version VERSION`",
            other.server.server_id
        )));
    }
    let is_alive = |server: &&&Server| server.lease_until > now && !server.is_deregistered();
    if let Some(server) = of_loads.iter().find(is_alive) {
        return Err(CommandError::Refused(format!(
            "another load is in {namespace}: its game server `{}` is alive; wait for its end, or {} s if it was killed",
            server.server.server_id,
            LEASE.as_secs()
        )));
    }
    Ok(of_loads.into_iter().map(|server| server.server.server_id.clone()).collect())
}

impl Scene<'_> {
    async fn load(self, plan: Plan) -> Result<Report, CommandError> {
        let interruption = Interruption::listen().await;
        let life = plan.lasts() + TOKEN_MARGIN;
        let issuer = self.deployment.issuer().await?;
        let (public_id, public) = issuer.short_lived(&self.right, CredentialKind::Public, life).await?;
        let (server_id, server) = issuer.short_lived(&self.right, CredentialKind::Server, life).await?;
        let service = Arc::new(Service::new(self.api.clone(), public, server));
        let servers = Arc::new(Servers::new(&plan, Arc::clone(&service), &self.deployment.ambient));

        let before = self.metered().await;
        let mut heartbeats = JoinSet::new();
        let registered = servers.register(&plan, &mut heartbeats, || interruption.was_pressed()).await;
        if registered.is_ok() {
            let crowd = Crowd::of(&plan, Arc::clone(&service), self.sources);
            let players =
                Players::new(plan.clone(), Arc::clone(&service), Arc::clone(&servers), self.sources);
            let players = Arc::new(players);
            let attack = async {
                if let Some(crowd) = crowd {
                    crowd.come().await;
                    self.look(&service).await;
                }
            };
            tokio::select! {
                ((), ()) = async { tokio::join!(players.come_and_go(), attack) } => {}
                () = interruption.pressed() => {}
                () = show_progress(&service, &plan) => {}
            }
        }
        heartbeats.shutdown().await;
        let mut left = match timeout(LEAVE_MAX, servers.leave()).await {
            Ok(left) => left,
            Err(_) => vec!["game servers".to_owned()],
        };
        left.iter_mut().for_each(|left| *left += &format!(", which expires in {} s", LEASE.as_secs()));
        left.extend(self.revoke([public_id, server_id], life).await);
        registered.map_err(|result| {
            CommandError::Refused(format!("a game server of the load could not register: {result}"))
        })?;

        let metered = before.zip(self.metered().await);
        let metered = metered.map(|(before, after)| difference(&before, &after, plan.hostile.is_some()));
        let tally = service.tally().clone();
        let was_interrupted = interruption.was_pressed();
        Ok(Outcome { plan, tally, metered, was_interrupted, left }.report())
    }

    async fn metered(&self) -> Option<Meter> {
        Service::meter(self.meter.as_ref()?).await
    }

    /// Counts the lobbies that a player sees listed now.
    async fn look(&self, service: &Service) {
        let Some(meter) = &self.meter else { return };
        let Some(listed) = service.listed(meter).await else { return };
        let Ok(lobbies) = self.deployment.store.lobbies(&listed).await else { return };
        let used = lobbies.iter().filter(|lobby| lobby.connected_by.is_some()).count();
        let unused = listed.len().saturating_sub(used);
        service.tally().listed = Some(Listed { lobbies: listed.len(), unused });
    }

    /// Revokes the tokens. Returns which could not be.
    async fn revoke(&self, token_ids: [TokenId; 2], life: Duration) -> Vec<String> {
        let Deployment { store, ambient, .. } = self.deployment;
        let right = GameRight::of_operator(self.right.game_id().clone());
        let mut left = Vec::new();
        for token_id in token_ids {
            let outcome = store.revoke_token(&right, &token_id, ambient.now()).await;
            if !matches!(outcome, Ok(RevokeOutcome::Revoked)) {
                left.push(format!("token {token_id}, which expires in {} s", life.as_secs()));
            }
        }
        left
    }
}

/// What the operations of a load took between two readings.
fn difference(before: &Meter, after: &Meter, is_hostile: bool) -> BTreeMap<String, (u64, Usage)> {
    let of = |name: &str| {
        let (requests, usage) = after.get(name).copied().unwrap_or_default();
        let (requests_before, usage_before) = before.get(name).copied().unwrap_or_default();
        (name.to_owned(), (requests - requests_before, usage - usage_before))
    };
    let hostile = Call::HOSTILE.into_iter().filter(|_| is_hostile);
    Call::ALL.into_iter().chain(hostile).map(|operation| of(operation.name())).collect()
}

/// Shows how far the load is, on a terminal, as long as it is polled.
async fn show_progress(service: &Service, plan: &Plan) {
    if !io::stderr().is_terminal() {
        std::future::pending::<()>().await;
    }
    let mut every = interval(PROGRESS);
    loop {
        every.tick().await;
        let (found, sent, not_sent, left) = {
            let tally = service.tally();
            let found = tally.of(Call::Find, OK);
            (found, tally.players(), tally.not_sent, tally.of(Call::Disconnect, OK))
        };
        let text = format!(
            "{} of {} players came, {found} found a lobby, {} did not, {not_sent} were not sent, {left} left",
            sent + not_sent,
            plan.sessions(),
            sent - found
        );
        let _no_reader = write!(io::stderr(), "\r{text}\x1b[K").and_then(|()| io::stderr().flush());
    }
}

fn say(text: &str) {
    // The load goes on without a reader.
    let _no_reader = writeln!(io::stderr(), "{text}");
}
