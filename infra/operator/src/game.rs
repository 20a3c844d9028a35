//! Games and their regions.

use std::{collections::BTreeMap, path::PathBuf, str::FromStr};

use clap::{Args, Subcommand};
use serde_json::json;
use shared::{
    base::ambient::time,
    cloud::provision::{NewGame, NewNamespace, ProvisionError, create_game, is_region},
    models::{
        game::{Game, Region, StarterKind},
        ids::RegionId,
        namespace::{LOBBY_COUNT_MAX_DEFAULT, MAX_PLAYERS_PER_CLIENT_DEFAULT},
    },
    rules::probe_url::is_probe_url,
    store::catalog::NameOutcome,
    wire::GameFull,
};

use crate::{
    config_file::{self, ConfigSource},
    deployment::Deployment,
    error::CommandError,
    exchange,
    lookup::{self, OfGame},
    report::{Report, Reported},
    starter,
};

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Creates a game with its regions, a first version, the namespaces `prod` and `staging`, and a cloud
    /// token.
    Create(CreateGame),
    /// Lists the games.
    List,
    /// Shows a game with its regions, namespaces and versions.
    Show(OfGame),
    /// Prints a game as a file: regions, versions, namespaces and domains, without secrets, tokens and
    /// passwords.
    Export(OfGame),
    /// Creates the game of such a file, with a cloud token. Secrets of its versions are `null` in the file:
    /// fill them in first.
    Import {
        /// The file.
        file: PathBuf,
        /// The game's name here; by default the file's.
        #[arg(long)]
        name: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum RegionAction {
    /// Adds a region to a game.
    Add {
        /// The game.
        game: String,
        /// The region, such as `fra=Frankfurt@50.11,8.68`.
        #[arg(value_name = "ID=NAME@LATITUDE,LONGITUDE")]
        region: NamedRegion,
        /// The hosting provider there.
        #[arg(long, default_value = "Own servers")]
        provider: String,
        /// The URL that clients call to measure their latency: by https or wss, or by http or ws at
        /// localhost.
        #[arg(long, value_name = "URL")]
        probe: Option<String>,
    },
    /// Sets the URL that clients call to measure their latency to a region.
    Probe {
        /// The game.
        game: String,
        /// The region's ID.
        region: RegionId,
        /// The URL: by https or wss, or by http or ws at localhost; none removes it.
        url: Option<String>,
    },
    /// Has the game servers of a region started on demand: for versions whose `servers` say what to start.
    Start(Box<starter::Start>),
    /// Has no game servers started in a region any more.
    Stop {
        /// The game.
        game: String,
        /// The region's ID.
        region: RegionId,
    },
    /// Lists the regions of a game.
    List(OfGame),
}

/// A new game.
#[derive(Debug, Args)]
pub(crate) struct CreateGame {
    /// The game's name in addresses: a-z, 0-9 and inner hyphens, unique in the deployment.
    name: String,
    /// The name that people read; the name in addresses when absent.
    #[arg(long)]
    display_name: Option<String>,
    /// A region, such as `fra=Frankfurt@50.11,8.68`; repeat for more.
    #[arg(long = "region", required = true, value_name = "ID=NAME@LATITUDE,LONGITUDE")]
    regions: Vec<NamedRegion>,
    /// The hosting provider in the regions.
    #[arg(long, default_value = "Own servers")]
    provider: String,
    /// A file with the first version's configuration, such as `{"game_modes": {"arena": {"regions":
    /// ["fra"]}}}`.
    #[arg(long, value_name = "FILE")]
    config: ConfigSource,
    /// The display name of the first version.
    #[arg(long, default_value = "1")]
    version_name: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NamedRegion {
    region_id: RegionId,
    display_name: String,
    latitude: f64,
    longitude: f64,
}

impl NamedRegion {
    pub const fn region_id(&self) -> &RegionId {
        &self.region_id
    }

    fn into_region(self, provider: &str, probe: Option<String>) -> (RegionId, Region) {
        let Self { region_id, display_name, latitude, longitude } = self;
        let provider_display_name = provider.to_owned();
        let region =
            Region { display_name, provider_display_name, latitude, longitude, probe, starter: None };
        (region_id, region)
    }
}

impl FromStr for NamedRegion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form =
            || "write a region as ID=NAME@LATITUDE,LONGITUDE, such as fra=Frankfurt@50.11,8.68".to_owned();
        let (id, rest) = text.split_once('=').ok_or_else(form)?;
        let (name, place) = rest.rsplit_once('@').ok_or_else(form)?;
        let (latitude, longitude) = place.split_once(',').ok_or_else(form)?;
        Ok(Self {
            region_id: id.parse().map_err(|error| format!("the region's ID {error}"))?,
            display_name: name.to_owned(),
            latitude: latitude.trim().parse().map_err(|_| form())?,
            longitude: longitude.trim().parse().map_err(|_| form())?,
        })
    }
}

pub(crate) async fn run(action: Action, deployment: &Deployment) -> Reported {
    match action {
        Action::Create(new) => create(new, deployment).await,
        Action::Export(of) => exchange::export(&of.game, deployment).await,
        Action::Import { file, name } => exchange::import(file, name, deployment).await,
        Action::List => list(deployment).await,
        Action::Show(of) => show(of, deployment).await,
    }
}

async fn create(create: CreateGame, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let new = create.into_new_game()?;
    Ok(Report::of_created(&create_game(store, &deployment.ambient, new).await?))
}

async fn list(deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let head = ["name", "id", "display name", "created"];
    Ok(Report::of_each("games", head, store.games().await?, |game| {
        let Game { game_id, name_id, display_name, created_at, .. } = game;
        let created = time(created_at);
        let json = json!({ "game_id": game_id, "name_id": name_id, "display_name": display_name,
                           "create_ts": created });
        ([name_id, game_id.to_string(), display_name, created], json)
    }))
}

async fn show(of: OfGame, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let game = lookup::game(store, &of.game).await?;
    let namespaces = store.namespaces(&game.game_id).await?;
    let versions = store.listed_versions(&game.game_id).await?;
    let full = GameFull::new(&game, namespaces, versions);
    let mut lines = vec![
        ("game", format!("{}  {}", full.game_id, full.name_id)),
        ("name", full.display_name.clone()),
        ("created", full.create_ts.clone()),
    ];
    let region = |(id, region): (&RegionId, &Region)| {
        let Region { display_name, provider_display_name, latitude, longitude, probe, starter } = region;
        let starter = starter.map(|starter| format!("  {}", starter.name())).unwrap_or_default();
        let probe = probe.as_ref().map(|probe| format!("  {probe}")).unwrap_or_default();
        (
            "region",
            format!("{id}  {display_name}@{latitude},{longitude}  {provider_display_name}{probe}{starter}"),
        )
    };
    lines.extend(game.regions.iter().map(region));
    let version_name = |id| {
        let version = full.versions.iter().find(|version| version.version_id == id);
        version.map(|version| version.display_name.clone()).unwrap_or_default()
    };
    lines.extend(full.namespaces.iter().map(|namespace| {
        let version = version_name(namespace.version_id.clone());
        ("namespace", format!("{}  {}  runs {version}", namespace.namespace_id, namespace.name_id))
    }));
    lines.extend(full.versions.iter().map(|version| {
        ("version", format!("{}  {}  {}", version.version_id, version.display_name, version.create_ts))
    }));
    let json = json!({ "game": full });
    Ok(Report::list(lines, json))
}

pub(crate) async fn run_on_regions(action: RegionAction, deployment: &Deployment) -> Reported {
    match action {
        RegionAction::Add { game, region, provider, probe } => {
            add_region(game, region.into_region(&provider, probe), deployment).await
        }
        RegionAction::Probe { game, region, url } => set_probe(game, region, url, deployment).await,
        RegionAction::Start(start) => starter::start(*start, deployment).await,
        RegionAction::Stop { game, region } => starter::stop(game, region, deployment).await,
        RegionAction::List(of) => list_regions(of, deployment).await,
    }
}

async fn add_region(
    game: String,
    (region_id, region): (RegionId, Region),
    deployment: &Deployment,
) -> Reported {
    let store = &deployment.store;
    let game = lookup::game(store, &game).await?;
    if !is_region(&region_id, &region) {
        return Err(ProvisionError::InvalidRegions.into());
    }
    match store.add_region(&game.game_id, &region_id, &region).await? {
        NameOutcome::Created => Ok(Report {
            text: format!("{} has the region {region_id}; new versions may use it", game.name_id),
            json: json!({ "region_id": region_id }),
        }),
        NameOutcome::Taken => {
            Err(CommandError::Refused(format!("{} has a region `{region_id}` already", game.name_id)))
        }
    }
}

async fn set_probe(
    game: String,
    region_id: RegionId,
    url: Option<String>,
    deployment: &Deployment,
) -> Reported {
    let store = &deployment.store;
    let game = lookup::game(store, &game).await?;
    if !url.as_deref().is_none_or(is_probe_url) {
        return Err(ProvisionError::InvalidRegions.into());
    }
    if !store.set_probe(&game.game_id, &region_id, url.as_deref()).await? {
        return Err(CommandError::Refused(format!("{} has no region `{region_id}`", game.name_id)));
    }
    let text = match &url {
        Some(url) => format!("clients measure their latency to {region_id} by {url}, within 30 seconds"),
        None => format!("{region_id} has no probe"),
    };
    Ok(Report { text, json: json!({ "region_id": region_id, "probe": url }) })
}

async fn list_regions(of: OfGame, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let game = lookup::game(store, &of.game).await?;
    let rows = game.regions.iter().map(|(id, region)| {
        let Region { display_name, provider_display_name, latitude, longitude, probe, starter } = region;
        [
            id.to_string(),
            display_name.clone(),
            format!("{latitude},{longitude}"),
            provider_display_name.clone(),
            probe.clone().unwrap_or_default(),
            starter.map(StarterKind::name).unwrap_or_default().to_owned(),
        ]
    });
    let json = json!({ "regions": game.regions });
    Ok(Report::table(["id", "name", "place", "provider", "probe", "starter"], rows.collect(), json))
}

impl CreateGame {
    pub fn name(&self) -> &str {
        &self.name
    }

    fn into_new_game(self) -> Result<NewGame, CommandError> {
        let config = config_file::read(&self.config)?.config;
        let mut regions = BTreeMap::new();
        for named in self.regions {
            let (region_id, region) = named.into_region(&self.provider, None);
            if regions.insert(region_id.clone(), region).is_some() {
                return Err(CommandError::RepeatedRegion(region_id));
            }
        }
        let namespace = |name_id: &str, display_name: &str| NewNamespace {
            name_id: name_id.to_owned(),
            display_name: display_name.to_owned(),
            lobby_count_max: LOBBY_COUNT_MAX_DEFAULT,
            max_players_per_client: MAX_PLAYERS_PER_CLIENT_DEFAULT,
        };
        Ok(NewGame {
            display_name: self.display_name.unwrap_or_else(|| self.name.clone()),
            name_id: self.name,
            regions,
            version_name: self.version_name,
            config,
            namespaces: vec![namespace("prod", "Production"), namespace("staging", "Staging")],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_read_from_its_short_form() {
        let region: NamedRegion = "fra=Frankfurt @ Main@50.11,-8.68".parse().unwrap();
        assert_eq!((region.region_id.as_str(), region.display_name.as_str()), ("fra", "Frankfurt @ Main"));
        assert_eq!((region.latitude, region.longitude), (50.11, -8.68));
        for text in ["fra", "fra=Frankfurt", "=F@1,2", "fra=F@1", "fra=F@x,y", "f a=F@1,2"] {
            assert!(text.parse::<NamedRegion>().is_err(), "{text}");
        }
    }
}
