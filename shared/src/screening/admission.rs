//! What a screening works with, and whom it is to admit.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    auth::{keys::TokenKeys, matchmaker::PublicRight},
    base::ambient::Ambient,
    models::{
        handed_on::HandedOn,
        ids::{GameMode, NamespaceId, RegionId},
        lobby::Lobby,
        pool::Tags,
        seats::Party,
        version::{EntryKind, Version},
    },
    outside::{endpoints::Outside, web_client::WebClient},
    rules::criteria::Criteria,
    screening::secrets::SecretsCache,
    store::client::Store,
    wire::{Captcha, CreateLobbyRequest, FindLobbyRequest, JoinLobbyRequest},
};

/// The modes and regions, or the lobby, to which a player seeks admission.
#[derive(Debug)]
pub struct Admission<'a> {
    pub(super) kind: EntryKind,
    pub(super) namespace_id: &'a NamespaceId,
    pub(super) version: &'a Version,
    /// Each mode with its regions.
    pub(super) modes: Vec<(&'a GameMode, Vec<&'a RegionId>)>,
    pub(super) tags: &'a Tags,
    pub(super) max_players: Option<u32>,
    pub(super) captcha: Option<&'a Captcha>,
    pub(super) verification_data: Option<&'a HandedOn>,
    pub(super) party: &'a Party,
}

impl<'a> Admission<'a> {
    /// A find that every rule allows.
    #[must_use]
    pub fn find(
        body: &'a FindLobbyRequest,
        criteria: &'a Criteria,
        right: &'a PublicRight,
        version: &'a Version,
    ) -> Self {
        let named: BTreeSet<_> = body.game_modes.iter().map(String::as_str).collect();
        let modes = version.config.game_modes.keys().filter(|mode| named.contains(mode.as_str()));
        let regions = |mode: &GameMode| {
            let pools = criteria.pools.iter().chain(&criteria.beyond).map(|searched| &searched.pool);
            pools.filter(|pool| pool.game_mode == *mode).map(|pool| &pool.region_id).collect()
        };
        Self {
            kind: EntryKind::Find,
            namespace_id: right.namespace_id(),
            version,
            modes: modes.map(|mode| (mode, regions(mode))).collect(),
            tags: &criteria.tags,
            max_players: body.max_players,
            captcha: body.captcha.as_ref(),
            verification_data: body.verification_data.as_ref(),
            party: &body.party,
        }
    }

    /// A join of a lobby, under the rules of its own version.
    #[must_use]
    pub fn join(body: &'a JoinLobbyRequest, lobby: &'a Lobby, version: &'a Version, tags: &'a Tags) -> Self {
        Self {
            kind: EntryKind::Join,
            namespace_id: &lobby.pool.namespace_id,
            version,
            modes: vec![(&lobby.pool.game_mode, vec![&lobby.pool.region_id])],
            tags,
            max_players: Some(lobby.max_players_direct),
            captcha: body.captcha.as_ref(),
            verification_data: body.verification_data.as_ref(),
            party: &body.party,
        }
    }

    /// A creation that every rule allows.
    #[must_use]
    pub fn create(body: &'a CreateLobbyRequest, criteria: &'a Criteria, version: &'a Version) -> Self {
        let pool = &criteria.new_lobby.pool;
        Self {
            kind: EntryKind::Create,
            namespace_id: &pool.namespace_id,
            version,
            modes: vec![(&pool.game_mode, vec![&pool.region_id])],
            tags: &criteria.tags,
            max_players: body.max_players,
            captcha: body.captcha.as_ref(),
            verification_data: body.verification_data.as_ref(),
            party: &body.party,
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
