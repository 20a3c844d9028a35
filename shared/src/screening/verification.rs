//! Verification: a studio's backend decides which players may enter, in response to a POST to the URL of the
//! mode's action.
//!
//! Only the status of its response counts, and no redirect is followed (decision 50).

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    time::Duration,
};

use futures_util::future::join_all;
use serde::Serialize;

use crate::{
    base::ambient::within,
    models::{
        errors::Error,
        handed_on::HandedOn,
        ids::{GameMode, NamespaceId, RegionId},
        player_data::PlayerData,
        pool::Tags,
        version::{EntryKind, Verification},
        version_secrets::VersionSecrets,
    },
    outside::web_client::Post,
    screening::admission::{Admission, Screening},
};

/// How long all verifications of a request may take together.
const VERIFICATION_TIMEOUT: Duration = Duration::from_secs(5);

/// The request to a studio's backend.
#[derive(Debug, Serialize)]
struct Question<'a> {
    /// The client's data for it; `null` when it sent none.
    verification_data: Option<&'a HandedOn>,
    /// What the client says of its player; absent when it sent none.
    /// Of a player alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    player_data: Option<&'a PlayerData>,
    /// Of a party.
    #[serde(skip_serializing_if = "Option::is_none")]
    party_size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    players_data: Option<&'a [Option<PlayerData>]>,
    game: QuestionGame<'a>,
    client: QuestionClient,
    kind: EntryKind,
}

#[derive(Debug, Serialize)]
struct QuestionGame<'a> {
    namespace_id: &'a NamespaceId,
    game_mode: &'a GameMode,
    region_ids: &'a [&'a RegionId],
    tags: &'a Tags,
    max_players: Option<u32>,
}

#[derive(Debug, Serialize)]
struct QuestionClient {
    /// `null` when the gateway did not report it.
    address: Option<IpAddr>,
}

/// A mode's action with a backend to call.
struct Rule<'a> {
    mode: &'a GameMode,
    region_ids: &'a [&'a RegionId],
    verification: &'a Verification,
}

impl Screening {
    /// Checks that the backends of all modes' actions admit the player. Calls different URLs at the same
    /// time, and one URL for one mode after the other.
    pub(super) async fn verify(&self, admission: &Admission<'_>) -> Result<(), Error> {
        let mut by_url: BTreeMap<&str, Vec<Rule<'_>>> = BTreeMap::new();
        for (mode, region_ids) in &admission.modes {
            let config = admission.version.config.game_modes.get(*mode);
            let verification = config.and_then(|config| config.action(admission.kind).verification.as_ref());
            if let Some(verification) = verification {
                by_url.entry(&verification.url).or_default().push(Rule { mode, region_ids, verification });
            }
        }
        if by_url.is_empty() {
            return Ok(());
        }
        admission.seeker.before_screening().await?;
        let secrets = self.secrets.of(admission.version).await?;
        let calls = by_url.values().map(|rules| self.ask_in_turn(admission, rules, &secrets));
        let answered = within(&self.ambient, VERIFICATION_TIMEOUT, join_all(calls)).await;
        let Some(answers) = answered else {
            let urls: BTreeSet<_> = by_url.keys().map(|url| host(url)).collect();
            tracing::warn!(verification.hosts = ?urls, "not all verifications responded in time");
            return Err(Error::VerificationRequestFailed);
        };
        // A refusal takes precedence over a failure.
        let refused = answers.iter().any(|answer| matches!(answer, Err(Error::VerificationFailed)));
        if refused { Err(Error::VerificationFailed) } else { answers.into_iter().collect() }
    }

    async fn ask_in_turn(
        &self,
        admission: &Admission<'_>,
        rules: &[Rule<'_>],
        secrets: &VersionSecrets,
    ) -> Result<(), Error> {
        for rule in rules {
            self.ask_backend(admission, rule, secrets).await?;
        }
        Ok(())
    }

    async fn ask_backend(
        &self,
        admission: &Admission<'_>,
        rule: &Rule<'_>,
        secrets: &VersionSecrets,
    ) -> Result<(), Error> {
        let party = Some(&admission.entry.party).filter(|party| party.size > 1);
        let of_one = admission.entry.party.data.first().filter(|_| party.is_none());
        let question = Question {
            verification_data: admission.entry.verification_data.as_ref(),
            player_data: of_one.and_then(Option::as_ref),
            party_size: party.map(|party| party.size),
            players_data: party.map(|party| party.data.as_slice()).filter(|data| !data.is_empty()),
            game: QuestionGame {
                namespace_id: &admission.seeker.client().namespace_id,
                game_mode: rule.mode,
                region_ids: rule.region_ids,
                tags: admission.tags,
                max_players: admission.max_players,
            },
            client: QuestionClient {
                address: admission.seeker.client_ip().map(|address| address.to_canonical()),
            },
            kind: admission.kind,
        };
        let body = serde_json::to_string(&question).map_err(|error| Error::Bug(error.to_string()))?;
        let mut headers = Vec::new();
        for name in rule.verification.headers.keys() {
            let value = secrets.header(rule.mode, admission.kind, name);
            let value =
                value.ok_or_else(|| Error::Bug("a version's verification header is gone".to_owned()))?;
            headers.push((name.as_str(), value));
        }
        let url = &rule.verification.url;
        let post = Post { url, content_type: "application/json", headers, body, answer_bytes_max: None };
        match self.web.post(post, VERIFICATION_TIMEOUT).await {
            Ok(answer) if (200..300).contains(&answer.status.as_u16()) => Ok(()),
            Ok(_) => Err(Error::VerificationFailed),
            Err(problem) => {
                let (host, mode) = (host(url), rule.mode);
                tracing::warn!(verification.host = host, game_mode = %mode, problem = %problem, "a verification failed");
                Err(Error::VerificationRequestFailed)
            }
        }
    }
}

/// The host of a URL, for the log; the rest may hold secrets.
fn host(url: &str) -> String {
    url.parse().ok().and_then(|url: url::Url| url.host_str().map(ToOwned::to_owned)).unwrap_or_default()
}
