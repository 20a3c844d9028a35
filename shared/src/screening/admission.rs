//! What a screening works with, and whom it is to admit.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    auth::keys::TokenKeys,
    base::ambient::Ambient,
    models::{
        ids::{GameMode, RegionId},
        lobby::Lobby,
        pool::Tags,
        version::{EntryKind, Version},
    },
    outside::{endpoints::Outside, web_client::WebClient},
    rules::criteria::Criteria,
    screening::secrets::SecretsCache,
    seating::seeker::Seeker,
    store::client::Store,
    wire::{CreateLobbyRequest, Entry, FindLobbyRequest, JoinLobbyRequest},
};

/// The modes and regions, or the lobby, to which a player seeks admission.
#[derive(Debug)]
pub struct Admission<'a> {
    pub(super) kind: EntryKind,
    pub(super) version: &'a Version,
    /// Each mode with its regions.
    pub(super) modes: Vec<(&'a GameMode, Vec<&'a RegionId>)>,
    pub(super) tags: &'a Tags,
    pub(super) max_players: Option<u32>,
    pub(super) entry: &'a Entry,
    pub(super) seeker: &'a Seeker,
}

impl<'a> Admission<'a> {
    /// A find that every rule allows.
    #[must_use]
    pub fn find(
        body: &'a FindLobbyRequest,
        criteria: &'a Criteria,
        version: &'a Version,
        seeker: &'a Seeker,
    ) -> Self {
        let named: BTreeSet<_> = body.game_modes.iter().map(String::as_str).collect();
        let modes = version.config.game_modes.keys().filter(|mode| named.contains(mode.as_str()));
        let regions = |mode: &GameMode| {
            let pools = criteria.pools.iter().chain(&criteria.beyond).map(|searched| &searched.pool);
            pools.filter(|pool| pool.game_mode == *mode).map(|pool| &pool.region_id).collect()
        };
        Self {
            kind: EntryKind::Find,
            version,
            modes: modes.map(|mode| (mode, regions(mode))).collect(),
            tags: &criteria.tags,
            max_players: body.max_players,
            entry: &body.entry,
            seeker,
        }
    }

    /// A join of a lobby, under the rules of its own version.
    #[must_use]
    pub fn join(
        body: &'a JoinLobbyRequest,
        lobby: &'a Lobby,
        version: &'a Version,
        tags: &'a Tags,
        seeker: &'a Seeker,
    ) -> Self {
        Self {
            kind: EntryKind::Join,
            version,
            modes: vec![(&lobby.pool.game_mode, vec![&lobby.pool.region_id])],
            tags,
            max_players: Some(lobby.max_players_direct),
            entry: &body.entry,
            seeker,
        }
    }

    /// A creation that every rule allows.
    #[must_use]
    pub fn create(
        body: &'a CreateLobbyRequest,
        criteria: &'a Criteria,
        version: &'a Version,
        seeker: &'a Seeker,
    ) -> Self {
        let pool = &criteria.new_lobby.pool;
        Self {
            kind: EntryKind::Create,
            version,
            modes: vec![(&pool.game_mode, vec![&pool.region_id])],
            tags: &criteria.tags,
            max_players: body.max_players,
            entry: &body.entry,
            seeker,
        }
    }
}

/// Calls captcha providers and studios' backends.
#[derive(Debug)]
pub struct Screening {
    pub(super) store: Store,
    pub(super) secrets: SecretsCache,
    pub(super) keys: Arc<TokenKeys>,
    pub(super) ambient: Ambient,
    pub(super) web: WebClient,
    pub(super) hcaptcha_url: String,
    pub(super) turnstile_url: String,
}

impl Screening {
    /// A screening by the providers and backends `outside`. The `store` has versions' secrets and passed
    /// captchas.
    #[must_use]
    pub fn new(store: Store, keys: Arc<TokenKeys>, ambient: Ambient, outside: Outside) -> Self {
        let Outside { hcaptcha_url, turnstile_url, reach, resolver } = outside;
        let secrets = SecretsCache::new(store.clone(), ambient.clone());
        let web = WebClient::new(reach, resolver, ambient.clone());
        Self { store, secrets, keys, ambient, web, hcaptcha_url, turnstile_url }
    }
}
