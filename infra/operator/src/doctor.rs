//! A check of a deployment.

use std::{cmp::Reverse, collections::BTreeSet, time::Duration};

use serde_json::json;
use shared::{
    base::ambient::{Timestamp, time},
    models::{
        errors::Error,
        game::Game,
        ids::{GameMode, LobbyId, NamespaceId, RegionId, ServerKey, VersionId},
        launch::ServersConfig,
        lobby::Stage,
        namespace::Namespace,
        server::{PlacementPool, Server},
        token::CloudToken,
        version::Version,
    },
    rules::capacity::lobbies_of,
    screening::secrets::SecretsCache,
    store::{client::Store, replays::ReplayKey},
};

use crate::{deployment::Deployment, error::CommandError, lookup, report::Report};

/// Game servers that a warning names at most.
const NAMED_MAX: usize = 5;
/// Limits on the game servers of a namespace whose lobbies are read, and on the lobbies of each, oldest
/// first: enough to notice a server that never reports a player, at most 500 read units.
const SERVERS_READ_MAX: usize = 20;
const LOBBIES_READ_MAX: usize = 50;
/// A namespace is short from this fraction of `lobby_count_max` on, as finds have it (decision 65).
const SHORT_FROM: u64 = 2;
/// The fewest lobbies without a player that look like a crowd: fewer are friends whose game loads slowly.
const CROWD_LOBBIES_MIN: usize = 8;
/// They are also at least one in so many of the lobbies read. Where players fill a namespace, one in twenty
/// or so waits for its first player. More than half would be too many for a crowd: under one, players soon
/// have most places, and share its lobbies.
const CROWD_FROM: usize = 4;
/// The page that says what to do about one.
const CROWD_PAGE: &str = "infra/docs/operating.md#when-a-crowd-of-scripts-comes";
/// How long a starter may take to be asked for a server, and to say what it called it.
const START_NOTED_IN: Duration = Duration::from_secs(30);
/// How long a process may take to be ended, after its server was last heard.
const END_NOTED_IN: Duration = Duration::from_secs(10 * 60);
/// The page that says what to do about starts.
const START_PAGE: &str = "infra/docs/on-demand.md#what-happens-when-something-fails";

/// Requests that were refused because their IP address held as many seats as it may.
pub(crate) struct RefusalsByAddress {
    /// Of which time, in words.
    pub span: &'static str,
    /// How many; why they cannot be read, in words.
    pub count: Result<u64, String>,
}

/// A task of Amazon ECS that runs or is about to.
pub(crate) struct Task {
    pub arn: String,
    /// The game server that it was started for.
    pub server: ServerKey,
}

/// What the tables do not tell.
pub(crate) struct Outside {
    pub refusals: RefusalsByAddress,
    /// The tasks that run for game servers, where Muster starts some; why they cannot be read, in words.
    pub tasks: Option<Result<Vec<Task>, String>>,
}

/// One check and its result.
struct Finding {
    what: String,
    problem: Option<String>,
    /// A state that works but is probably a mistake.
    warning: Option<String>,
}

impl Finding {
    const fn new(what: String, problem: Option<String>) -> Self {
        Self { what, problem, warning: None }
    }

    /// A check of a secret, which a role that only looks may not read.
    fn of_secret(what: String, problem: Option<String>) -> Self {
        match problem {
            Some(problem) if problem.contains("AccessDenied") => {
                let warning = Some("not checked: your credentials may not read it".to_owned());
                Self { what, problem: None, warning }
            }
            problem => Self::new(what, problem),
        }
    }

    fn warned(what: String, warnings: Vec<String>) -> Self {
        Self { what, problem: None, warning: (!warnings.is_empty()).then(|| warnings.join("; ")) }
    }
}

impl RefusalsByAddress {
    fn finding(self) -> Finding {
        let warning = match self.count {
            Ok(0) => None,
            Ok(count) => Some(format!(
                "{count} {}: a school or a café is one address; raise the limit with `muster mm-config \
                 GAME/NAMESPACE --max-players-per-client`",
                self.span
            )),
            Err(problem) => Some(format!("they cannot be read: {problem}")),
        };
        Finding::warned("refusals at the limit of seats per IP address".to_owned(), Vec::from_iter(warning))
    }
}

/// Checks each table and the signing key, then each namespace's settings, game servers and lobbies, and what
/// is known from `outside`.
///
/// # Errors
/// [`CommandError::Unhealthy`] with every finding when there is a problem.
pub(crate) async fn run(deployment: &Deployment, outside: Option<Outside>) -> Result<Report, CommandError> {
    let mut findings = tables(deployment).await;
    let key = deployment.keys().await.err().map(|error| error.to_string());
    findings.push(Finding::of_secret("signing key".to_owned(), key));
    let (refusals, tasks) = outside.map(|Outside { refusals, tasks }| (refusals, tasks)).unzip();
    // What is in tables that cannot be read would hide that they cannot.
    if findings.iter().all(|finding| finding.problem.is_none()) {
        findings.extend(games(deployment).await?);
        if let Some(tasks) = tasks.flatten() {
            findings.push(strays(&deployment.store, tasks).await?);
        }
    }
    findings.extend(refusals.map(RefusalsByAddress::finding));

    let lines: Vec<_> = findings
        .iter()
        .map(|finding| match (&finding.problem, &finding.warning) {
            (None, None) => format!("ok    {}", finding.what),
            (None, Some(warning)) => format!("warn  {}: {warning}", finding.what),
            (Some(problem), _) => format!("FAIL  {}: {problem}", finding.what),
        })
        .collect();
    let text = lines.join("\n");
    if findings.iter().any(|finding| finding.problem.is_some()) {
        return Err(CommandError::Unhealthy(format!("{} is not as it should be\n{text}", deployment.name)));
    }
    let checked: Vec<_> = findings.iter().map(|finding| finding.what.as_str()).collect();
    let warned = findings.iter().filter_map(|finding| Some((&finding.what, finding.warning.as_ref()?)));
    let warnings: Vec<_> = warned.map(|(what, warning)| format!("{what}: {warning}")).collect();
    Ok(Report {
        text: text.clone(),
        json: json!({ "deployment": deployment.name, "healthy": true, "checked": checked, "warnings": warnings }),
    })
}

/// Reads a missing item of each table, to check that it exists and that these credentials may read it.
async fn tables(deployment: &Deployment) -> Vec<Finding> {
    let (store, ambient) = (&deployment.store, &deployment.ambient);
    let (lobby, namespace) = (LobbyId::from(ambient.uuid()), NamespaceId::from(ambient.uuid()));
    let server = ServerKey { namespace_id: namespace.clone(), server_id: ambient.uuid().into() };
    let tables = store.tables();
    let looks = [
        (&tables.catalog, store.game_by_name("-").await.err()),
        (&tables.tokens, store.cloud_token(&CloudToken::random(ambient)).await.err()),
        (&tables.lobbies, store.lobby(&lobby).await.err()),
        (&tables.lobby_data, store.lobby_state(&lobby).await.err()),
        (&tables.servers, store.server(&server).await.err()),
        (&tables.ledger, store.allotted_lobbies(&namespace).await.err()),
        (&tables.clients, store.replay(&ReplayKey::new(["-"; 3], "-")).await.err()),
    ];
    let secrets = store.version_secrets(&VersionId::from(ambient.uuid())).await.err();
    let of_table =
        |table: &String, error: Option<Error>| (format!("table {table}"), error.as_ref().map(cause));
    let findings = looks.into_iter().map(|(table, error)| of_table(table, error));
    let findings = findings.map(|(what, problem)| Finding::new(what, problem));
    let (what, problem) = of_table(&tables.secrets, secrets);
    findings.chain([Finding::of_secret(what, problem)]).collect()
}

fn cause(error: &Error) -> String {
    error.cause().map_or_else(|| error.to_string(), ToOwned::to_owned)
}

async fn games(deployment: &Deployment) -> Result<Vec<Finding>, CommandError> {
    let (store, now) = (&deployment.store, deployment.ambient.now());
    let secrets = SecretsCache::new(store.clone(), deployment.ambient.clone());
    let mut findings = Vec::new();
    for game in store.games().await? {
        for namespace in store.namespaces(&game.game_id).await? {
            let Namespace { name_id, namespace_id, version_id, .. } = &namespace;
            let at = format!("{}/{name_id}", game.name_id);
            let version = store.version(&game.game_id, version_id).await?;
            let problem = version.is_none().then(|| format!("its version {version_id} is not there"));
            findings.push(Finding::new(format!("{at} runs a version"), problem));
            if let Some(version) = version.as_ref().filter(|version| version.has_secrets) {
                let problem = secrets.of(version).await.err().map(|error| cause(&error));
                findings.push(Finding::of_secret(format!("{at} can read its secrets"), problem));
            }
            let servers = lookup::servers_with_silent(store, &game, namespace_id, now).await?;
            let (living, silent): (Vec<_>, Vec<_>) =
                servers.iter().partition(|server| server.lease_until > now);
            let living: Vec<_> = living.into_iter().filter(|server| !server.is_deregistered()).collect();
            let started = version.as_ref().and_then(|version| Started::of(&game, namespace_id, version));
            let has_starts = started.as_ref().is_some_and(|started| !started.regions.is_empty());
            let mut warnings = Vec::new();
            if !has_starts {
                warnings.extend(version.as_ref().and_then(|version| want_of_servers(version, &living)));
            }
            let may_start =
                |region: &RegionId| started.as_ref().is_some_and(|it| it.may_start(region, &servers));
            let full = full_regions(&living, may_start);
            let is_short = full.is_some()
                || u64::from(lobbies_of(&servers)) * SHORT_FROM >= u64::from(namespace.lobby_count_max);
            warnings.extend(full);
            findings.push(Finding::warned(format!("{at} has {} game servers", living.len()), warnings));
            if let Some(started) = started {
                findings.push(started.finding(store, &at, &servers, now).await?);
            }
            findings.extend(silence(&at, &silent));
            findings.push(lobbies(&at, &namespace, &servers));
            findings.extend(Turnout::of(store, &living, now).await?.finding(&at, is_short));
        }
    }
    Ok(findings)
}

/// The game servers that Muster has started for a version.
struct Started<'a> {
    rules: &'a ServersConfig,
    /// Where: the regions of its modes that have a starter.
    regions: Vec<PlacementPool>,
    /// Regions of its modes that have none.
    without: Vec<&'a RegionId>,
}

impl<'a> Started<'a> {
    fn of(game: &'a Game, namespace_id: &NamespaceId, version: &'a Version) -> Option<Self> {
        let rules = version.config.servers.as_ref()?;
        let regions: BTreeSet<_> =
            version.config.game_modes.values().flat_map(|mode| &mode.regions).collect();
        let has_starter =
            |id: &&RegionId| game.regions.get(*id).is_some_and(|region| region.starter.is_some());
        let (with, without): (Vec<_>, Vec<_>) = regions.into_iter().partition(has_starter);
        let pool = |region_id: &RegionId| PlacementPool {
            namespace_id: namespace_id.clone(),
            region_id: region_id.clone(),
            build_id: Some(rules.build_id()),
        };
        Some(Self { rules, regions: with.into_iter().map(pool).collect(), without })
    }

    /// Whether another server may be requested in a region.
    fn may_start(&self, region_id: &RegionId, servers: &[Server]) -> bool {
        self.regions.iter().filter(|pool| pool.region_id == *region_id).any(|pool| {
            let started =
                servers.iter().filter(|server| server.pool() == *pool && server.counts_as_started());
            started.count() < self.rules.server_count_max as usize
        })
    }

    /// Where none can be started, and what was not done for those that were requested, or are over.
    async fn finding(
        self,
        store: &Store,
        at: &str,
        servers: &[Server],
        now: Timestamp,
    ) -> Result<Finding, CommandError> {
        let mut warnings = Vec::new();
        let build = self.rules.build_id();
        for region in self.without {
            let has_one = servers
                .iter()
                .any(|server| server.region_id == *region && server.build_id.as_ref() == Some(&build));
            if !has_one {
                warnings.push(format!(
                    "{region} has no starter, so every find that needs a new lobby there is refused: see `muster region start`"
                ));
            }
        }
        for pool in &self.regions {
            let nursery = store.nursery(pool).await?;
            if let Some(failure) = nursery.start_failure(&pool.region_id, now) {
                let (region, secs) = (&pool.region_id, failure.retry_after.as_secs());
                warnings.push(format!(
                    "none is requested in {region} for {secs} s, since the last {} starts failed: {}",
                    nursery.failures, failure.reason
                ));
            }
        }
        let mut late = Vec::new();
        for server in servers.iter().filter(|server| server.stands_launched()) {
            let (Some(launch), id) = (&server.launch, &server.server.server_id) else { continue };
            if server.is_requested() && server.handle.is_none() && launch.requested_at + START_NOTED_IN < now
            {
                let (at, page) = (time(launch.requested_at), START_PAGE);
                late.push(format!("{id} was requested at {at}, and nothing has started it: see {page}"));
            } else if server.is_over() && server.beat_at.max(launch.deadline) + END_NOTED_IN < now {
                late.push(format!("{id} is over, and its process was not ended: see {START_PAGE}"));
            }
        }
        Ok(Finding::warned(format!("{at} has game servers started"), [warnings, first_of(late)].concat()))
    }
}

/// Tasks that run for a game server of which no record is left, such as after tables were restored: nothing
/// ends them. In the cluster there may also be those of other stacks.
async fn strays(store: &Store, tasks: Result<Vec<Task>, String>) -> Result<Finding, CommandError> {
    let what = "tasks of Amazon ECS have a game server".to_owned();
    let tasks = match tasks {
        Ok(tasks) => tasks,
        Err(problem) => return Ok(Finding::warned(what, vec![format!("they cannot be read: {problem}")])),
    };
    let mut own = BTreeSet::new();
    for game in store.games().await? {
        let namespaces = store.namespaces(&game.game_id).await?;
        own.extend(namespaces.into_iter().map(|namespace| namespace.namespace_id));
    }
    let tasks: Vec<_> = tasks.into_iter().filter(|task| own.contains(&task.server.namespace_id)).collect();
    let keys: Vec<_> = tasks.iter().map(|task| task.server.clone()).collect();
    let servers = store.servers_as_they_are(&keys).await?;
    let recorded: BTreeSet<_> = servers.into_iter().map(|server| server.server).collect();
    let strays = tasks.iter().filter(|task| !recorded.contains(&task.server));
    let strays = strays.map(|task| format!("{} of {} has none: stop it", task.arn, task.server.server_id));
    Ok(Finding::warned(what, first_of(strays.collect())))
}

/// The first few of `all`, and how many more there are.
fn first_of(mut all: Vec<String>) -> Vec<String> {
    let more = all.len().saturating_sub(NAMED_MAX);
    all.truncate(NAMED_MAX);
    all.extend((more > 0).then(|| format!("and {more} more")));
    all
}

/// Regions whose game servers are all full, and in which no other is started.
fn full_regions(living: &[&Server], may_start: impl Fn(&RegionId) -> bool) -> Option<String> {
    let regions: BTreeSet<_> = living.iter().map(|server| &server.region_id).collect();
    let is_full = |region: &&&RegionId| {
        living
            .iter()
            .filter(|server| server.region_id == ***region)
            .all(|server| server.used >= server.capacity)
    };
    let full = regions.iter().filter(is_full).filter(|region| !may_start(region));
    let full: Vec<_> = full.map(|region| region.as_str()).collect();
    (!full.is_empty())
        .then(|| format!("all of {} are full: start more, or raise their `capacity` or, where Muster starts them, `server_count_max`", full.join(", ")))
}

/// The game servers whose heartbeats stopped, and those that never sent one.
fn silence(at: &str, silent: &[&Server]) -> Option<Finding> {
    if silent.is_empty() {
        return None;
    }
    let mut silent = silent.to_vec();
    silent.sort_by_key(|server| Reverse(server.beat_at));
    let said = |server: &&Server| {
        let (id, at) = (&server.server.server_id, time(server.beat_at));
        if server.beat_at == server.ranked_at {
            format!("{id} sent no heartbeat since it registered at {at}")
        } else {
            format!("{id} was last heard at {at}")
        }
    };
    let warnings = first_of(silent.iter().map(said).collect());
    Some(Finding::warned(format!("{at} has {} silent game servers", silent.len()), warnings))
}

/// The lobbies of a namespace against its limit.
fn lobbies(at: &str, namespace: &Namespace, servers: &[Server]) -> Finding {
    let (held, most) = (lobbies_of(servers), namespace.lobby_count_max);
    let warning = if held >= most {
        Some("finds that need a new lobby are refused unless another may end")
    } else if u64::from(held) * 10 >= u64::from(most) * 9 {
        Some("the limit is near")
    } else {
        None
    };
    let warning = warning.map(|warning| {
        format!("{warning}: raise it with `muster mm-config {at} --lobby-count-max`, or see `muster lobby list {at}`")
    });
    Finding::warned(format!("{at} holds {held} of {most} lobbies"), Vec::from_iter(warning))
}

/// What the lobbies that were read say of their players.
#[derive(Debug, Default)]
struct Turnout {
    /// Ready lobbies.
    read: usize,
    /// Those that a player has ever connected to.
    used: usize,
    /// The median time until the first player of these connected.
    wait: Duration,
    /// Those that have waited longer, without a player so far. The players of others may be on their way.
    unused: usize,
    /// Game servers without any player, on which reservations lapsed.
    unjoined: Vec<String>,
    /// Lobbies on them in which some did.
    lapsed: usize,
}

impl Turnout {
    async fn of(store: &Store, living: &[&Server], now: Timestamp) -> Result<Self, CommandError> {
        let mut turnout = Self::default();
        let (mut waits, mut ages) = (Vec::new(), Vec::new());
        for server in living.iter().filter(|server| server.used > 0).take(SERVERS_READ_MAX) {
            let page = store.lobbies_of_server(&server.server, None, LOBBIES_READ_MAX).await?;
            let lobbies = store.lobbies(&page.lobby_ids).await?;
            let ready = || lobbies.iter().filter(|lobby| lobby.stage == Stage::Ready);
            turnout.read += ready().count();
            turnout.used += ready().filter(|lobby| lobby.connected_by.is_some()).count();
            waits.extend(ready().filter_map(|lobby| Some(lobby.joined_at?.since(lobby.created_at))));
            let unused = ready().filter(|lobby| lobby.connected_by.is_none());
            ages.extend(unused.map(|lobby| now.since(lobby.created_at)));
            let lapsed = ready().filter(|lobby| lobby.has_lapsed_reservation(now)).count();
            if lapsed > 0 && lobbies.iter().all(|lobby| lobby.connected_by.is_none()) {
                turnout.unjoined.push(server.server.server_id.to_string());
                turnout.lapsed += lapsed;
            }
        }
        waits.sort_unstable();
        turnout.wait = waits.get(waits.len() / 2).copied().unwrap_or_default();
        turnout.unused = ages.iter().filter(|age| **age > turnout.wait).count();
        Ok(turnout)
    }

    /// Who fills a namespace that is short of lobbies or places, and whether game servers report players.
    fn finding(&self, at: &str, is_short: bool) -> Option<Finding> {
        let Self { read, used, unused, wait, .. } = *self;
        let waiting = read - used;
        let is_share = |lobbies: usize| lobbies * CROWD_FROM >= read;
        let is_crowd = is_short && unused >= CROWD_LOBBIES_MIN && is_share(unused);
        let mut warnings = Vec::new();
        if is_crowd && used > 0 {
            warnings.push(format!(
                "looks like a crowd of scripts: {unused} of the {read} lobbies read have had no player for more than {:.1} s, in which half of the others had one: see {CROWD_PAGE}",
                wait.as_secs_f64()
            ));
        }
        if self.lapsed > 0 {
            // Where no player was ever reported, nothing tells the two apart.
            let or_crowd = if is_crowd && used == 0 {
                format!(" If it does, they are of a crowd of scripts: see {CROWD_PAGE}")
            } else {
                String::new()
            };
            warnings.push(format!(
                "reservations lapsed in {} lobbies of {}, and no player ever connected: does it call `players/connected`?{or_crowd}",
                self.lapsed,
                self.unjoined.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ")
            ));
        }
        if !warnings.is_empty() {
            return Some(Finding::warned(format!("players of {at}"), warnings));
        }
        if is_short && used > 0 && !is_share(waiting) {
            return Some(Finding::new(
                format!(
                    "players fill {at}: {used} of the {read} lobbies read have had one; for more, raise its limit or start game servers"
                ),
                None,
            ));
        }
        (is_short && waiting >= CROWD_LOBBIES_MIN).then(|| {
            let what = format!("{waiting} of the {read} lobbies read of {at} have had no player so far: too soon to say who fills it");
            Finding::new(what, None)
        })
    }
}

/// The lack of game servers for finds that need a new lobby, if any.
fn want_of_servers(version: &Version, living: &[&Server]) -> Option<String> {
    if living.is_empty() {
        return Some("every find that needs a new lobby is refused".to_owned());
    }
    let runs = |mode: &GameMode| {
        living.iter().any(|server| server.game_modes.as_ref().is_none_or(|modes| modes.contains(mode)))
    };
    let lacking: Vec<_> =
        version.config.game_modes.keys().filter(|mode| !runs(mode)).map(GameMode::as_str).collect();
    (!lacking.is_empty()).then(|| format!("none of them runs {}", lacking.join(", ")))
}
