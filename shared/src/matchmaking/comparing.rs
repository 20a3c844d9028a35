//! Candidates compared by reading them, and the fullest taken.

use std::{collections::BTreeSet, mem, time::Duration};

use futures_util::future::try_join_all;

use crate::{
    base::ambient::Timestamp,
    matchmaking::{
        limits::{CANDIDATES_MAX, COMPARED_MAX, TRIED_WHILE_BUSY_MAX},
        matchmaker::Matchmaker,
        search::{Claimed, searched},
    },
    models::{
        errors::Error,
        ids::{LobbyId, ServerKey},
        lobby::{EndCause, Entry, Lobby, Refusal, sort_fullest_first},
    },
    rules::criteria::SearchedPool,
    seating::{reply::Found, seeker::Seeker},
    store::{
        ending::end_in_passing,
        lobbies::{Candidate, Hiding},
    },
};

/// Lobbies of silent servers that are put out of sight at the same time; later looks meet the others.
const HIDDEN_AT_ONCE: usize = 16;
/// A full lobby still in sight after this long was left there by a find that crashed; who sees it puts it
/// right.
const STALE_HINT_AGE: Duration = Duration::from_secs(2);

impl Matchmaker {
    /// Compares candidates by their seats and tries them, fullest first: in `waves` of [`COMPARED_MAX`] of
    /// each pool, the oldest in the first.
    pub(super) async fn take_fullest(
        &self,
        pools: &[SearchedPool],
        mut candidates: Vec<Candidate>,
        waves: usize,
        seeker: &Seeker,
        deadline: Timestamp,
    ) -> Result<Option<Found>, Error> {
        let mut passed_over = BTreeSet::new();
        for wave in 1..=waves {
            if self.ambient.now() >= deadline {
                return Err(Error::Contention);
            }
            let compared = next_wave(pools, &mut candidates);
            if compared.is_empty() {
                break;
            }
            let now = self.ambient.now();
            let mut lobbies = self.store.lobbies(&compared).await?;
            self.correct_hints(&lobbies, pools, now).await?;
            let silent = silent_servers(&lobbies, now);
            lobbies.retain(|lobby| match lobby.entry_for_find(now) {
                Entry::Refused(refusal) => {
                    seeker.trace().refused(refusal.into());
                    false
                }
                Entry::Free | Entry::TakeOver(_) => true,
            });
            sort_fullest_first(&mut lobbies, now);
            if let [searched] = pools
                && self.recall.is_busy(&searched.pool, now)
            {
                // They would all go to the fullest, as many at once as have seen it.
                let first = self.ambient.below(lobbies.len() as u64);
                lobbies.rotate_left(usize::try_from(first).unwrap_or(0));
                lobbies.truncate(TRIED_WHILE_BUSY_MAX);
            }
            for lobby in lobbies {
                let Some(searched) = searched(pools, &lobby.pool) else { continue };
                let claimed = self.claim_as_seen(&lobby, now).await?;
                match self.take(searched, claimed, seeker).await? {
                    Ok(found) => return Ok(Some(found)),
                    Err(_) => self.recall.note_lost_seat(&searched.pool, now),
                }
            }
            let silent: Vec<_> =
                silent.into_iter().filter(|server| passed_over.insert(server.clone())).collect();
            if wave < waves && !candidates.is_empty() && !silent.is_empty() {
                self.pass_over(&silent, &mut candidates).await?;
            }
        }
        Ok(None)
    }

    /// Takes the lobbies of silent servers out of `candidates`, however many there are, and puts some of them
    /// out of sight.
    ///
    /// A heartbeat extends its server's lease before those of its lobbies, so that the server tells whether
    /// all are dead.
    async fn pass_over(&self, servers: &[ServerKey], candidates: &mut Vec<Candidate>) -> Result<(), Error> {
        let seen = self.store.servers_as_they_are(servers).await?;
        let now = self.ambient.now();
        let alive = seen.into_iter().filter(|server| server.lease_until > now);
        let alive: BTreeSet<ServerKey> = alive.map(|server| server.server).collect();
        for server in servers.iter().filter(|server| !alive.contains(server)) {
            let page = self.store.lobbies_of_server(server, None, CANDIDATES_MAX).await?;
            let dead: BTreeSet<LobbyId> = page.lobby_ids.into_iter().collect();
            let (silent, others): (Vec<_>, Vec<_>) =
                mem::take(candidates).into_iter().partition(|candidate| dead.contains(&candidate.lobby_id));
            *candidates = others;
            let hidden = silent.iter().take(HIDDEN_AT_ONCE);
            try_join_all(hidden.map(|silent| self.store.hide_dead_lobby(&silent.lobby_id, now))).await?;
        }
        Ok(())
    }

    /// How to take a seat in `lobby` as it was read at `seen_at`: if that is the last one, the same write
    /// puts the lobby out of sight. Who took a seat there since then holds it longer than one of `seen_at`
    /// would have been held.
    pub(super) async fn claim_as_seen<'a>(
        &self,
        lobby: &'a Lobby,
        seen_at: Timestamp,
    ) -> Result<Claimed<'a>, Error> {
        let lapse = lobby.earliest_lapse().min(seen_at + lobby.reservation());
        let is_last = lobby.taken + 1 == lobby.max_players && lapse > self.ambient.now();
        let hiding = if is_last {
            Hiding::IfLast { taken: lobby.taken, lapse, shard: self.choose_shard(&lobby.pool).await? }
        } else {
            Hiding::No
        };
        Ok(Claimed { pool: &lobby.pool, lobby_id: lobby.lobby_id.clone(), hiding })
    }

    /// Puts out of sight what was met there in vain, so that no later find meets it: lobbies of silent
    /// servers, until they are heard again; one full lobby that nobody hid for so long that its filler must
    /// have crashed; one lobby that never became ready, which ends.
    pub(super) async fn correct_hints(
        &self,
        lobbies: &[Lobby],
        pools: &[SearchedPool],
        now: Timestamp,
    ) -> Result<(), Error> {
        let is_stale = |lobby: &&Lobby| {
            let Some(searched) = searched(pools, &lobby.pool) else {
                return false;
            };
            let in_sight = lobby.joinable_from.is_some_and(|from| from <= now);
            let last_taken = lobby.reserved.values().max().map(|until| until.before(searched.reservation));
            let filled_long_ago = last_taken.is_none_or(|taken_at| now.since(taken_at) >= STALE_HINT_AGE);
            in_sight && filled_long_ago && lobby.entry_for_find(now) == Entry::Refused(Refusal::Full)
        };
        if let Some(lobby) = lobbies.iter().find(is_stale) {
            self.hide(lobby).await?;
        }
        if let Some(lobby) = lobbies.iter().find(|lobby| lobby.is_overdue(now)) {
            end_in_passing(&self.store, lobby, EndCause::NeverReady, &self.ambient).await;
        }
        let silent = lobbies.iter().filter(|lobby| {
            let in_sight = lobby.joinable_from.is_some_and(|from| from <= now);
            in_sight && lobby.entry_for_find(now) == Entry::Refused(Refusal::LeaseLapsed)
        });
        let silent = silent.take(HIDDEN_AT_ONCE);
        try_join_all(silent.map(|lobby| self.store.hide_dead_lobby(&lobby.lobby_id, now))).await?;
        Ok(())
    }
}

/// The next [`COMPARED_MAX`] candidates of each pool, taken out of `candidates`.
fn next_wave(pools: &[SearchedPool], candidates: &mut Vec<Candidate>) -> Vec<LobbyId> {
    let mut wave = Vec::new();
    for searched in pools {
        let is_of = |candidate: &mut Candidate| candidate.pool.is_shard_of(&searched.pool);
        wave.extend(candidates.extract_if(.., is_of).take(COMPARED_MAX).map(|candidate| candidate.lobby_id));
    }
    wave
}

/// The servers of which more than one of `lobbies` is dead: they may have many more, which need not be read.
fn silent_servers(lobbies: &[Lobby], now: Timestamp) -> BTreeSet<ServerKey> {
    let is_silent = |lobby: &&Lobby| lobby.entry_for_find(now) == Entry::Refused(Refusal::LeaseLapsed);
    let mut met = BTreeSet::new();
    let servers = lobbies.iter().filter(is_silent).filter_map(|lobby| lobby.server.clone());
    servers.filter(|server| !met.insert(server.clone())).collect()
}
