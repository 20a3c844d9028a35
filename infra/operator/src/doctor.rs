//! Whether a deployment can be worked with, and what is not as it should be.

use serde_json::json;
use shared::{
    errors::Error,
    ids::{LobbyId, NamespaceId, VersionId},
    models::ServerKey,
    overview::servers_of,
    secrets::SecretsCache,
    settings::Namespace,
    store::replays::ReplayKey,
    tokens::CloudToken,
};

use crate::{CommandError, deployment::Deployment, report::Report};

/// One look, and what it showed.
struct Finding {
    what: String,
    problem: Option<String>,
}

/// Reads each table and the signing key, then what finds in each namespace depend on.
///
/// # Errors
/// [`CommandError::Unhealthy`] with every finding when there is a problem.
pub(crate) async fn run(deployment: &Deployment) -> Result<Report, CommandError> {
    let mut findings = tables(deployment).await;
    let key = deployment.keys().await.err().map(|error| error.to_string());
    findings.push(Finding { what: "signing key".to_owned(), problem: key });
    if findings.iter().all(|finding| finding.problem.is_none()) {
        findings.extend(games(deployment).await?);
    }

    let lines: Vec<_> = findings
        .iter()
        .map(|finding| match &finding.problem {
            None => format!("ok    {}", finding.what),
            Some(problem) => format!("FAIL  {}: {problem}", finding.what),
        })
        .collect();
    let text = lines.join("\n");
    if findings.iter().any(|finding| finding.problem.is_some()) {
        return Err(CommandError::Unhealthy(format!("{} is not as it should be\n{text}", deployment.name)));
    }
    let checked: Vec<_> = findings.iter().map(|finding| finding.what.as_str()).collect();
    Ok(Report {
        text: text.clone(),
        json: json!({ "deployment": deployment.name, "healthy": true, "checked": checked }),
    })
}

/// Each table by a read of nothing: that it is there, and that these credentials may read it.
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
        (&tables.secrets, store.version_secrets(&VersionId::from(ambient.uuid())).await.err()),
        (&tables.clients, store.replay(&ReplayKey::new(["-"; 3], "-"), ambient.now()).await.err()),
    ];
    let finding = |(table, error): (&String, Option<Error>)| Finding {
        what: format!("table {table}"),
        problem: error.as_ref().map(cause),
    };
    looks.into_iter().map(finding).collect()
}

fn cause(error: &Error) -> String {
    error.cause().map_or_else(|| error.to_string(), ToOwned::to_owned)
}

async fn games(deployment: &Deployment) -> Result<Vec<Finding>, CommandError> {
    let (store, now) = (&deployment.store, deployment.ambient.now());
    let secrets = SecretsCache::new(store.clone(), deployment.ambient.clone());
    let mut findings = Vec::new();
    for game in store.games().await? {
        let versions = store.versions(&game.game_id).await?;
        for namespace in store.namespaces(&game.game_id).await? {
            let Namespace { name_id, namespace_id, version_id, .. } = &namespace;
            let at = format!("{}/{name_id}", game.name_id);
            let has_version = versions.iter().any(|version| version.version_id == *version_id);
            let problem = (!has_version).then(|| format!("its version {version_id} is not there"));
            findings.push(Finding { what: format!("{at} runs a version"), problem });
            let version = versions.iter().find(|version| version.version_id == *version_id);
            if let Some(version) = version.filter(|version| version.has_secrets) {
                let problem = secrets.of(version).await.err().map(|error| cause(&error));
                findings.push(Finding { what: format!("{at} can read its secrets"), problem });
            }
            let servers = servers_of(store, &game, namespace_id).await?;
            let living =
                servers.iter().filter(|server| server.lease_until > now && !server.is_deregistered()).count();
            findings.push(Finding { what: format!("{at} has {living} game servers"), problem: None });
        }
    }
    Ok(findings)
}
