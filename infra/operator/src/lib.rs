//! The operator's command: makes games and hands out their first token, in the local stack or in AWS.
//!
//! It writes to the tables with the operator's own credentials; no HTTP operation creates a game.

use std::{collections::BTreeMap, fs, path::PathBuf, str::FromStr};

use clap::{Args, Parser, Subcommand};
use serde_json::json;
use shared::{
    ambient::Ambient,
    ids::RegionId,
    provision::{CreatedGame, NewGame, NewNamespace, ProvisionError, create_game},
    settings::{LOBBY_COUNT_MAX_DEFAULT, MAX_PLAYERS_PER_CLIENT_DEFAULT, Region, VersionConfig},
};

mod target;

pub use target::{Target, TargetError};

/// Operates a Muster deployment.
#[derive(Debug, Parser)]
#[command(name = "muster", version, about)]
pub struct Command {
    #[command(subcommand)]
    topic: Topic,
    #[command(flatten)]
    target: Target,
    /// Answer with JSON, for programs.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Topic {
    /// Games of the deployment.
    Game {
        #[command(subcommand)]
        action: GameAction,
    },
}

#[derive(Debug, Subcommand)]
enum GameAction {
    /// Makes a game: its regions, a first version, the namespaces `prod` and `staging`, and a cloud token.
    Create(CreateGame),
}

/// What a new game is to be.
#[derive(Debug, Args)]
struct CreateGame {
    /// The game's name in addresses: a-z, 0-9 and inner hyphens, unique in the deployment.
    name: String,
    /// The name that people read; the name in addresses when absent.
    #[arg(long)]
    display_name: Option<String>,
    /// A region, such as `fra=Frankfurt@50.11,8.68`; repeat for more.
    #[arg(long = "region", required = true, value_name = "ID=NAME@LATITUDE,LONGITUDE")]
    regions: Vec<NamedRegion>,
    /// Who runs the machines in the regions.
    #[arg(long, default_value = "Own servers")]
    provider: String,
    /// A file with the first version's configuration, such as `{"game_modes": {"arena": {"regions": ["fra"]}}}`.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// What the first version is called.
    #[arg(long, default_value = "1")]
    version_name: String,
}

#[derive(Clone, Debug, PartialEq)]
struct NamedRegion {
    region_id: RegionId,
    display_name: String,
    latitude: f64,
    longitude: f64,
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

/// Why the command did not do what it was asked, in words for its user.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// A file that cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    UnreadableFile {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A file that is no version configuration.
    #[error("{} is no version configuration: at `{at}`: {problem}", path.display())]
    InvalidFile {
        /// The file.
        path: PathBuf,
        /// Where in it.
        at: String,
        /// What is wrong there.
        problem: String,
    },
    /// A region given twice.
    #[error("the region `{0}` is given twice")]
    RepeatedRegion(RegionId),
    /// The game cannot be made.
    #[error(transparent)]
    Provision(#[from] ProvisionError),
    /// The deployment cannot be reached.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// Does what the command says; the text to print.
///
/// # Errors
/// [`CommandError`].
pub async fn run(command: Command) -> Result<String, CommandError> {
    let Topic::Game { action: GameAction::Create(create) } = command.topic;
    let new = create.into_new_game()?;
    let store = command.target.store().await?;
    let created = create_game(&store, &Ambient::system(), new).await?;
    Ok(if command.json { show_json(&created) } else { show_text(&created) })
}

impl CreateGame {
    fn into_new_game(self) -> Result<NewGame, CommandError> {
        let config = read_config(&self.config)?;
        let mut regions = BTreeMap::new();
        for named in self.regions {
            let region = Region {
                display_name: named.display_name,
                provider_display_name: self.provider.clone(),
                latitude: named.latitude,
                longitude: named.longitude,
            };
            if regions.insert(named.region_id.clone(), region).is_some() {
                return Err(CommandError::RepeatedRegion(named.region_id));
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

fn read_config(path: &PathBuf) -> Result<VersionConfig, CommandError> {
    let text = fs::read_to_string(path)
        .map_err(|error| CommandError::UnreadableFile { path: path.clone(), error })?;
    let invalid = |at: String, problem: String| CommandError::InvalidFile { path: path.clone(), at, problem };
    let mut json = serde_json::Deserializer::from_str(&text);
    let config = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| invalid(error.path().to_string(), error.inner().to_string()))?;
    json.end().map_err(|error| invalid(".".to_owned(), error.to_string()))?;
    Ok(config)
}

fn show_json(created: &CreatedGame) -> String {
    let namespaces: BTreeMap<_, _> =
        created.namespaces.iter().map(|namespace| (&namespace.name_id, &namespace.namespace_id)).collect();
    json!({
        "game_id": created.game.game_id,
        "version_id": created.version.version_id,
        "namespaces": namespaces,
        "cloud_token": created.cloud_token.reveal(),
    })
    .to_string()
}

fn show_text(created: &CreatedGame) -> String {
    let mut lines = vec![
        format!("game       {}  {}", created.game.game_id, created.game.name_id),
        format!("version    {}  {}", created.version.version_id, created.version.display_name),
    ];
    let namespace = |namespace: &shared::settings::Namespace| {
        format!("namespace  {}  {}", namespace.namespace_id, namespace.name_id)
    };
    lines.extend(created.namespaces.iter().map(namespace));
    lines.push(format!("token      {}", created.cloud_token.reveal()));
    lines.push("Keep the token now: only its digest is stored, so it cannot be shown again.".to_owned());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Command::command().debug_assert();
    }

    #[test]
    fn the_local_stack_is_meant_with_and_without_an_address() {
        for option in ["--local", "--local=http://127.0.0.1:3001"] {
            let create = ["game", "create", "x", "--region", "fra=F@1,2", "--config", "x.json"];
            let before = [&["muster", option], &create[..]].concat();
            let after = [&["muster"], &create[..], &[option]].concat();
            assert!(Command::try_parse_from(before).is_ok() && Command::try_parse_from(after).is_ok());
        }
    }

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
