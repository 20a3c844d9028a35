//! A check of a deployment.

use serde_json::json;
use shared::{
    models::{
        errors::Error,
        ids::{GameMode, LobbyId, NamespaceId, ServerKey, VersionId},
        namespace::Namespace,
        server::Server,
        token::CloudToken,
        version::Version,
    },
    screening::secrets::SecretsCache,
    store::{listing::servers_of, replays::ReplayKey},
};

use crate::{CommandError, deployment::Deployment, report::Report};

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
}

/// Checks each table and the signing key, then each namespace's settings and game servers.
///
/// # Errors
/// [`CommandError::Unhealthy`] with every finding when there is a problem.
pub(crate) async fn run(deployment: &Deployment) -> Result<Report, CommandError> {
    let mut findings = tables(deployment).await;
    let key = deployment.keys().await.err().map(|error| error.to_string());
    findings.push(Finding::of_secret("signing key".to_owned(), key));
    if findings.iter().all(|finding| finding.problem.is_none()) {
        findings.extend(games(deployment).await?);
    }

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
            let servers = servers_of(store, &game, namespace_id).await?;
            let living: Vec<_> = servers
                .iter()
                .filter(|server| server.lease_until > now && !server.is_deregistered())
                .collect();
            let warning = version.and_then(|version| want_of_servers(&version, &living));
            findings.push(Finding {
                warning,
                ..Finding::new(format!("{at} has {} game servers", living.len()), None)
            });
            let speechless = servers
                .iter()
                .filter(|server| server.lease_until <= now && server.beat_at == server.ranked_at);
            let speechless: Vec<_> = speechless.map(|server| server.server.server_id.as_str()).collect();
            if !speechless.is_empty() {
                let warning =
                    Some(format!("{} sent no heartbeat since they registered", speechless.join(", ")));
                findings.push(Finding { warning, ..Finding::new(format!("heartbeats of {at}"), None) });
            }
        }
    }
    Ok(findings)
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
