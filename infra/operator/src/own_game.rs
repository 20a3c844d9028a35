//! A game that follows a file, for a process that applies the file again whenever it changes.

use std::{collections::BTreeMap, path::Path};

use shared::{
    base::ambient::Ambient,
    cloud::provision::{ProvisionError, add_namespace, add_version, is_region},
    models::{
        game::Game,
        ids::VersionId,
        namespace::Namespace,
        rights::{GameRight, NamespaceRight},
        version::{ListedVersion, Version, VersionConfig},
        version_secrets::VersionSecrets,
    },
    rules::{names::namespace_violations, version_config},
    store::{catalog::NameOutcome, client::Store, deployments::VersionOutcome},
};

use crate::{
    config_file::{self, Kind},
    error::{CommandError, Problem},
    exchange::{self, GameFile, NamespaceEntry, VersionEntry},
};

/// What a file may be.
const WANTED: &str = "a version file, with `game_modes`, or a game, as `muster game export` prints it";

/// A game in the file of an export, or of a version, which follows every rule.
#[derive(Debug)]
pub struct OwnGame(GameFile<VersionConfig>);

/// A game as a file has it.
#[derive(Debug)]
pub struct Applied {
    /// The game.
    pub game: Game,
    /// Its namespaces, in the order of the file.
    pub namespaces: Vec<Namespace>,
    /// What was changed, in words.
    pub changes: Vec<String>,
}

impl OwnGame {
    /// The text of a game's file.
    ///
    /// # Errors
    /// [`CommandError::UnreadableFile`].
    pub fn text_of(path: &Path) -> Result<String, CommandError> {
        exchange::text_of(path)
    }

    /// The game in the `text` of a file, which has a namespace; for a version file a game that runs it.
    /// Secrets, which are `null` in an export, must be filled in.
    ///
    /// # Errors
    /// [`CommandError::OtherFile`]; [`CommandError::BrokenRules`], with all mistakes of the file.
    pub fn parse(path: &Path, text: &str) -> Result<Self, CommandError> {
        if config_file::kind(text) == Kind::Version {
            return Self::of_version(path, text);
        }
        let file = exchange::checked(path, text).map_err(|error| match error {
            CommandError::OtherFile { path, is, .. } => CommandError::OtherFile { path, is, wanted: WANTED },
            error => error,
        })?;
        if file.namespaces.is_empty() {
            let problems = vec![Problem { line: None, at: "namespaces/missing".to_owned() }];
            return Err(CommandError::BrokenRules { path: path.to_owned(), problems });
        }
        Ok(Self(file))
    }

    /// A game whose one namespace runs the version in a text, in the regions that its modes name.
    fn of_version(path: &Path, text: &str) -> Result<Self, CommandError> {
        let read = config_file::of_text(path.to_owned(), text.to_owned())?;
        let regions = config_file::named_regions(&read.config);
        let broken = version_config::validate(&read.config, &regions);
        if !broken.is_empty() {
            return Err(read.broken(broken));
        }
        Ok(Self(GameFile::of_version(read.config, regions)))
    }

    /// Its name in addresses.
    #[must_use]
    pub fn name_id(&self) -> &str {
        &self.0.name_id
    }

    /// Creates the game, or changes what differs in the game of that name: adds regions, versions and
    /// namespaces, and sets versions, limits, page settings and domains of namespaces. It removes only
    /// domains.
    ///
    /// # Errors
    /// [`CommandError`]. A failure of the store may leave a part applied, which the next call completes.
    pub async fn apply(self, store: &Store, ambient: &Ambient) -> Result<Applied, CommandError> {
        let Some(game) = store.game_by_name(&self.0.name_id).await? else {
            let (created, taken) = exchange::create(self.0, store, ambient).await?;
            let taken = taken.into_iter().map(|domain| format!("another namespace has {domain}"));
            let changes = std::iter::once(format!("{} is created", created.game.name_id)).chain(taken);
            let namespaces = created.namespaces;
            return Ok(Applied { game: created.game, namespaces, changes: changes.collect() });
        };
        let GameFile { regions, versions, namespaces, .. } = self.0;
        if !regions.iter().all(|(id, region)| is_region(id, region)) {
            return Err(ProvisionError::InvalidRegions.into());
        }
        let known = store.namespaces(&game.game_id).await?;
        let is_known = |entry: &NamespaceEntry| known.iter().any(|other| other.name_id == entry.name_id);
        let is_invalid = |entry: &&NamespaceEntry| {
            !is_known(entry) && !namespace_violations(&entry.display_name, &entry.name_id).is_empty()
        };
        if let Some(invalid) = namespaces.iter().find(is_invalid) {
            return Err(ProvisionError::InvalidName(invalid.name_id.clone()).into());
        }
        let mut changes = Vec::new();
        for (region_id, region) in &regions {
            match game.regions.get(region_id) {
                Some(there) if there != region => {
                    changes.push(format!("region {region_id} stays as it was: no region can change"));
                }
                Some(_) => {}
                None => {
                    if store.add_region(&game.game_id, region_id, region).await? == NameOutcome::Created {
                        changes.push(format!("region {region_id} is new"));
                    }
                }
            }
        }
        let mut update = Update { store, ambient, game: &game, changes };
        let made = update.versions(versions).await?;
        let mut applied = Vec::new();
        for entry in &namespaces {
            let there = known.iter().find(|other| other.name_id == entry.name_id).cloned();
            applied.push(update.namespace(entry, there, &made).await?);
        }
        let changes = update.changes;
        let game = store.game(&game.game_id).await?.unwrap_or(game);
        Ok(Applied { game, namespaces: applied, changes })
    }
}

/// A change of a game that exists.
struct Update<'a> {
    store: &'a Store,
    ambient: &'a Ambient,
    game: &'a Game,
    changes: Vec<String>,
}

impl Update<'_> {
    /// Adds the versions whose configurations the game lacks. Returns the version of each entry.
    async fn versions(
        &mut self,
        entries: Vec<VersionEntry<VersionConfig>>,
    ) -> Result<BTreeMap<VersionId, ListedVersion>, CommandError> {
        let game_id = &self.game.game_id;
        let mut stored = self.store.versions_as_stored(game_id).await?;
        stored.sort_by_key(|version| std::cmp::Reverse(version.created_at));
        let mut listed = self.store.listed_versions(game_id).await?;
        let mut made = BTreeMap::new();
        for VersionEntry { version_id, display_name, config } in entries {
            let found = self.same(&stored, &display_name, &config).await?;
            let is_it = |version: &&ListedVersion| {
                Some(&version.version_id) == found.as_ref() && version.retired_at.is_none()
            };
            let found = listed.iter().find(is_it).cloned();
            let version = match found {
                Some(version) => version,
                None => {
                    let name = free_name(display_name, &listed);
                    let version = add_version(self.store, self.ambient, game_id, name, config).await?;
                    self.changes.push(format!("version {} is new", version.display_name));
                    let version = ListedVersion::of(&version);
                    listed.push(version.clone());
                    version
                }
            };
            made.insert(version_id, version);
        }
        Ok(made)
    }

    /// The version with this configuration, of this name if there is one.
    async fn same(
        &self,
        stored: &[Version<serde_json::Value>],
        name: &str,
        config: &VersionConfig,
    ) -> Result<Option<VersionId>, CommandError> {
        let is_same = |version: &&Version<serde_json::Value>| {
            let known = serde_json::from_value::<VersionConfig>(version.config.clone());
            known.is_ok_and(|known| serde_json::to_value(known).ok() == serde_json::to_value(config).ok())
        };
        let mut same: Vec<_> = stored.iter().filter(is_same).collect();
        same.sort_by_key(|version| version.display_name != name);
        // A record shows only which secrets there are.
        let secrets = VersionSecrets::of(config);
        for version in same {
            let kept = match version.has_secrets {
                true => self.store.version_secrets(&version.version_id).await?.unwrap_or_default(),
                false => VersionSecrets::default(),
            };
            if kept == secrets {
                return Ok(Some(version.version_id.clone()));
            }
        }
        Ok(None)
    }

    /// Gives a namespace what its entry says, or creates it.
    async fn namespace(
        &mut self,
        entry: &NamespaceEntry,
        there: Option<Namespace>,
        made: &BTreeMap<VersionId, ListedVersion>,
    ) -> Result<Namespace, CommandError> {
        let unknown = || CommandError::Refused(format!("{} runs no version of the file", entry.name_id));
        let version = made.get(&entry.version_id).ok_or_else(unknown)?;
        let namespace = match there {
            Some(namespace) => namespace,
            None => {
                self.changes.push(format!("namespace {} is new", entry.name_id));
                let new = add_namespace(self.store, self.ambient, entry.new_namespace(), version).await?;
                new.ok_or_else(|| ProvisionError::InvalidName(entry.name_id.clone()))?
            }
        };
        let right = GameRight::of_operator(self.game.game_id.clone());
        let right = right.on_namespace(&namespace.namespace_id, self.store).await?;
        match self.store.set_version(&right, &version.version_id, self.ambient.now()).await? {
            VersionOutcome::Changed => {
                self.changes.push(format!("{} runs version {}", entry.name_id, version.display_name));
            }
            VersionOutcome::Unchanged => {}
            VersionOutcome::UnknownVersion => {
                return Err(CommandError::Refused(format!(
                    "{} is retired; `muster version delete --cancel` keeps it",
                    version.version_id
                )));
            }
        }
        self.settings(entry, &right).await?;
        Ok(namespace)
    }

    /// Sets limits, page settings and domains that differ.
    async fn settings(&mut self, entry: &NamespaceEntry, right: &NamespaceRight) -> Result<(), CommandError> {
        let (store, name, before) = (self.store, &entry.name_id, right.namespace());
        let (lobbies, players) = (entry.lobby_count_max, entry.max_players_per_client);
        if (before.lobby_count_max, before.max_players_per_client) != (lobbies, players) {
            store.set_matchmaker_config(right, lobbies, players).await?;
            self.changes.push(format!("{name} has {lobbies} lobbies and {players} seats a client at most"));
        }
        let domains = store.cdn_settings(right).await?.domains;
        let wanted: Vec<_> = entry.hosts().map(|host| host.to_string()).collect();
        let pages = (before.cdn_auth_type, before.enable_domain_public_auth);
        let are_same = domains.len() == wanted.len() && wanted.iter().all(|host| domains.contains_key(host));
        if pages == (entry.cdn_auth_type, entry.enable_domain_public_auth) && are_same {
            return Ok(());
        }
        for gone in domains.keys().filter(|domain| !wanted.contains(domain)) {
            if let Ok(host) = gone.parse() {
                store.remove_domain(right, &host).await?;
            }
        }
        let taken = exchange::furnish(entry, right, store, self.ambient).await?;
        self.changes.push(format!("{name} has other domains or page settings"));
        self.changes.extend(taken.into_iter().map(|domain| format!("another namespace has {domain}")));
        Ok(())
    }
}

/// `name`, or the next one like it that no version has.
fn free_name(name: String, versions: &[ListedVersion]) -> String {
    let is_free = |name: &String| versions.iter().all(|version| version.display_name != *name);
    let numbered = (2_u32..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or(name)
}
