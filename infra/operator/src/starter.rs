//! Starters of regions: what starts game servers on demand there.

use std::io::Read as _;

use clap::Args;
use serde_json::json;
use shared::{
    models::{
        game::Game,
        ids::RegionId,
        starter::{EcsSettings, SigningSecret, StarterSettings},
    },
    rules::starter::mistake,
    store::listing::servers_of,
};

use crate::{
    deployment::Deployment,
    error::CommandError,
    lookup,
    report::{Report, Reported},
};

/// A starter for a region.
#[derive(Debug, Args)]
pub(crate) struct Start {
    /// The game.
    pub game: String,
    /// The region's ID.
    region: RegionId,
    #[command(flatten)]
    how: How,
    /// The webhook's signing secret, as `whsec_…` on standard input (`-`); without it, a new one is made and
    /// shown once.
    #[arg(long, value_name = "-", requires = "webhook", value_parser = ["-"])]
    secret: Option<String>,
    /// The task definition of ECS: its family, with or without revision, or its ARN.
    #[arg(long, requires = "ecs", value_name = "NAME")]
    task_definition: Option<String>,
    /// The container of the task definition that runs the game server; by default the name of its family.
    #[arg(long, requires = "ecs", value_name = "NAME")]
    container: Option<String>,
    /// The subnets of the tasks, of one network.
    #[arg(long, requires = "ecs", value_name = "ID,…", value_delimiter = ',')]
    subnets: Vec<String>,
    /// The security groups of the tasks: they must let players in.
    #[arg(long, requires = "ecs", value_name = "ID,…", value_delimiter = ',')]
    security_groups: Vec<String>,
    /// Has Fargate Spot run the tasks: cheaper, but AWS may end one with two minutes' notice.
    #[arg(long, requires = "ecs")]
    spot: bool,
}

/// The kind of starter.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct How {
    /// Starts this command on the machine of the local stack or of `muster-local serve`; it takes the rest of
    /// the line.
    #[arg(long, value_name = "COMMAND", num_args = 1.., allow_hyphen_values = true)]
    process: Vec<String>,
    /// Calls this URL, signed by Standard Webhooks.
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,
    /// Runs a task of Amazon ECS in this cluster.
    #[arg(long, value_name = "CLUSTER", requires = "task_definition", requires = "subnets")]
    ecs: Option<String>,
}

impl Start {
    /// What it changes, without secrets: a command line may have some.
    pub fn target(&self) -> String {
        let Self { game, region, how, .. } = self;
        let how = match how {
            How { webhook: Some(_), .. } => "--webhook",
            How { ecs: Some(_), .. } => "--ecs",
            How { .. } => "--process",
        };
        format!("{game} {region} {how}")
    }

    /// The starter, with the secrets that its webhook has: the last one of `now` stays the second, so that
    /// the receiver has time to change.
    fn settings(
        self,
        now: Option<StarterSettings>,
        deployment: &Deployment,
    ) -> Result<StarterSettings, CommandError> {
        let Self { how: How { process, webhook, ecs }, .. } = self;
        if let Some(url) = webhook {
            let secret = match self.secret {
                Some(_) => read_secret(deployment)?,
                None => SigningSecret::random(&deployment.ambient),
            };
            let former = match now {
                Some(StarterSettings::Webhook { secrets, .. }) => secrets.into_iter().next(),
                _ => None,
            };
            let former = former.filter(|former| *former != secret);
            return Ok(StarterSettings::Webhook {
                url,
                secrets: [secret].into_iter().chain(former).collect(),
            });
        }
        let Some(cluster) = ecs else { return Ok(StarterSettings::Process { command: process }) };
        let task_definition = self.task_definition.unwrap_or_default();
        Ok(StarterSettings::Ecs(EcsSettings {
            cluster,
            container: self.container.unwrap_or_else(|| family(&task_definition).to_owned()),
            task_definition,
            subnets: self.subnets,
            security_groups: self.security_groups,
            spot: self.spot,
        }))
    }
}

/// The family of a task definition's name or ARN.
fn family(task_definition: &str) -> &str {
    let name = task_definition.rsplit('/').next().unwrap_or_default();
    name.split(':').next().unwrap_or_default()
}

/// Most bytes that are read of a secret.
const SECRET_BYTES_MAX: u64 = 1_024;

fn read_secret(deployment: &Deployment) -> Result<SigningSecret, CommandError> {
    if deployment.operator.is_in_console {
        return Err(CommandError::Refused("the console reads no secret: leave --secret out".to_owned()));
    }
    let mut text = String::new();
    std::io::stdin()
        .take(SECRET_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(|error| CommandError::Refused(format!("cannot read a secret: {error}")))?;
    SigningSecret::parse(text.trim()).ok_or_else(|| {
        let form =
            "the secret must be `whsec_` and 24 to 64 bytes in Base64; leave --secret out to have one made";
        CommandError::Refused(form.to_owned())
    })
}

pub(crate) async fn start(start: Start, deployment: &Deployment) -> Reported {
    if deployment.server_concurrency == Some(0) {
        return Err(CommandError::Refused(format!(
            "{} reserves no executions for game servers, so finds that wait for one could keep it from \
             registering: deploy it with the parameter ServerConcurrency of at least 1 first",
            deployment.name
        )));
    }
    let store = &deployment.store;
    let game = lookup::game(store, &start.game).await?;
    let region_id = start.region.clone();
    let no_region = || CommandError::Refused(format!("{} has no region `{region_id}`", game.name_id));
    if !game.regions.contains_key(&region_id) {
        return Err(no_region());
    }
    let shows_secret = start.secret.is_none();
    let settings = start.settings(store.starter(&game.game_id, &region_id).await?, deployment)?;
    if let Some(mistake) = mistake(&settings, deployment.server_concurrency.is_none()) {
        return Err(CommandError::Refused(mistake));
    }
    let kind = settings.kind().name();
    let fresh = match &settings {
        StarterSettings::Webhook { secrets, .. } if shows_secret => secrets.first().cloned(),
        _ => None,
    };
    if game
        .regions
        .get(&region_id)
        .and_then(|region| region.starter)
        .is_some_and(|now| now != settings.kind())
    {
        // The other kind does not know them.
        refuse_with_servers(deployment, &game, &region_id).await?;
    }
    if !store.set_starter(&game.game_id, &region_id, settings).await? {
        return Err(no_region());
    }
    let mut report = Report {
        text: format!(
            "{kind} starts the game servers of {region_id} for versions with `servers`, within {} seconds",
            deployment.settings_age().as_secs()
        ),
        json: json!({ "region_id": region_id, "starter": kind }),
    };
    if let (Some(secret), Some(fields)) = (fresh, report.json.as_object_mut()) {
        let secret = secret.reveal();
        report.text += &format!("\nsecret  {secret}\nKeep the secret now: it cannot be shown again.");
        fields.insert("secret".to_owned(), secret.into());
    }
    Ok(report)
}

/// Most servers that a refusal names.
const NAMED_MAX: usize = 5;

pub(crate) async fn stop(game: String, region_id: RegionId, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let game = lookup::game(store, &game).await?;
    refuse_with_servers(deployment, &game, &region_id).await?;
    if !store.remove_starter(&game.game_id, &region_id).await? {
        return Err(CommandError::Refused(format!("{} has no region `{region_id}`", game.name_id)));
    }
    Ok(Report {
        text: format!("no game servers are started in {region_id} any more"),
        json: json!({ "region_id": region_id, "starter": null }),
    })
}

/// Refuses while game servers that were started stand in a region.
async fn refuse_with_servers(
    deployment: &Deployment,
    game: &Game,
    region_id: &RegionId,
) -> Result<(), CommandError> {
    let store = &deployment.store;
    let mut standing = Vec::new();
    for namespace in store.namespaces(&game.game_id).await? {
        let servers = servers_of(store, game, &namespace.namespace_id).await?.into_iter();
        let here = servers.filter(|server| server.region_id == *region_id && server.stands_launched());
        standing.extend(here.map(|server| format!("{}/{}", namespace.name_id, server.server.server_id)));
    }
    if standing.is_empty() {
        return Ok(());
    }
    let more = standing.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    standing.truncate(NAMED_MAX);
    Err(CommandError::Refused(format!(
        "game servers that were started stand in {region_id}, and only its starter can end them: {}{more}. Set \
   versions without `servers`, and repeat the command when they are gone",
        standing.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_of_a_task_definition_is_read_from_each_form() {
        for text in ["game", "game:7", "arn:aws:ecs:eu-central-1:123456789012:task-definition/game:7"] {
            assert_eq!(family(text), "game");
        }
    }
}
