//! Creating a lobby near the client, for finds with latencies (decision 69).
//!
//! A lobby in sight of a region is preferred to a new one there, and a new one to a lobby beyond the mode's
//! tolerance. Servers decide where it is created: the nearest region with a place for it. Only where no
//! region has one, the find searches for capacity to free, nearest first.

use crate::{
    base::ambient::Timestamp,
    matchmaking::{
        matchmaker::Matchmaker,
        outcomes::{NoCapacity, Step},
        search::{Existing, Search, is_beside},
    },
    models::{errors::Error, shortage::Obstacles},
    rules::criteria::SearchedPool,
    seating::{reply::Found, seeker::Seeker},
    wire::explanation::RegionOutcome,
};

/// A region in which a find may create a lobby.
struct Place {
    search: Search,
    /// Pools there that the find did not look in before.
    unseen: Vec<SearchedPool>,
}

impl Matchmaker {
    /// Runs a `round` of creation, counted from 0: in the nearest region that has a place. The reason where
    /// searches for capacity were in vain a moment ago.
    pub(super) async fn create_nearest(
        &self,
        search: &Search,
        seeker: &Seeker,
        round: u32,
        deadline: Timestamp,
    ) -> Result<Result<Step, NoCapacity>, Error> {
        if search.criteria.elsewhere.is_empty() {
            return match self.known_shortage(search, true, seeker).await? {
                Some(reason) => Ok(Err(reason)),
                None => Ok(Ok(self.create(search, seeker, round).await?)),
            };
        }
        let (mut without_place, mut is_known, mut obstacles) = (Vec::new(), true, None);
        for place in places(search) {
            if self.ambient.now() >= deadline {
                return Ok(Ok(Step::LookAgain));
            }
            if let Some(found) = self.find_unseen(&place, seeker, (round == 0, deadline)).await? {
                return Ok(Ok(Step::Found(found)));
            }
            match self.known_shortage(&place.search, true, seeker).await? {
                Some(NoCapacity::AtCap) => return Ok(Err(NoCapacity::AtCap)),
                Some(NoCapacity::NoServer) => {
                    place.note(seeker, RegionOutcome::NoPlace);
                    obstacles = obstacles.or_else(|| place.obstacles(search, seeker));
                    continue;
                }
                None => is_known = false,
            }
            if !self.has_place(&place.search, seeker).await? {
                place.note(seeker, RegionOutcome::NoPlace);
                without_place.push(place);
            } else if let Some(step) = self.create_in(&place, seeker, round).await? {
                return Ok(Ok(step));
            } else {
                obstacles = obstacles.or_else(|| place.obstacles(search, seeker));
            }
        }
        for place in without_place {
            if self.ambient.now() >= deadline {
                return Ok(Ok(Step::LookAgain));
            }
            if let Some(step) = self.create_in(&place, seeker, round).await? {
                return Ok(Ok(step));
            }
            obstacles = obstacles.or_else(|| place.obstacles(search, seeker));
        }
        if let Some(obstacles) = obstacles {
            seeker.trace().servers(obstacles);
        }
        Ok(if is_known { Err(NoCapacity::NoServer) } else { Ok(Step::NoCapacity(NoCapacity::NoServer)) })
    }

    /// Takes a seat in the pools of a region that the find did not look in before.
    async fn find_unseen(
        &self,
        place: &Place,
        seeker: &Seeker,
        round: (bool, Timestamp),
    ) -> Result<Option<Box<Found>>, Error> {
        if place.unseen.is_empty() {
            return Ok(None);
        }
        let (is_first, _) = round;
        if is_first {
            self.pools.begin_find(&place.unseen, self.ambient.now());
        }
        match self.find_existing(&place.unseen, true, seeker, round).await? {
            Existing::Taken(found) => Ok(Some(found)),
            Existing::None { .. } => {
                place.note(seeker, RegionOutcome::NothingJoinable);
                Ok(None)
            }
        }
    }

    /// Creates a lobby in a region; `None` where no game server has a place for it.
    async fn create_in(&self, place: &Place, seeker: &Seeker, round: u32) -> Result<Option<Step>, Error> {
        match self.create(&place.search, seeker, round).await? {
            Step::NoCapacity(NoCapacity::NoServer) => {
                place.note(seeker, RegionOutcome::NoPlace);
                Ok(None)
            }
            step => Ok(Some(step)),
        }
    }

    /// Whether a game server in the region of the new lobby has a place for it, or a burst under way leads to
    /// a seat there: it may have got the last place. One query and one read unit at most, none where this
    /// instance knows a place.
    async fn has_place(&self, search: &Search, seeker: &Seeker) -> Result<bool, Error> {
        let new = &search.criteria.new_lobby;
        Ok(self.servers.has_place(new, seeker.trace()).await?
            || self.is_burst_under_way(search, seeker).await?)
    }
}

/// The regions in which a find may create a lobby, nearest first.
fn places(search: &Search) -> impl Iterator<Item = Place> {
    let criteria = &search.criteria;
    std::iter::once(&criteria.new_lobby).chain(&criteria.elsewhere).map(|new_lobby| {
        let unseen = criteria.beyond.iter().filter(|searched| is_beside(searched, new_lobby));
        Place { unseen: unseen.cloned().collect(), search: search.creating(new_lobby) }
    })
}

impl Place {
    /// Why there is no place, if it is the region that `search` creates in first, which the refusal names.
    fn obstacles(&self, search: &Search, seeker: &Seeker) -> Option<Obstacles> {
        let is_first = self.search.criteria.new_lobby == search.criteria.new_lobby;
        if is_first { seeker.trace().obstacles() } else { None }
    }

    fn note(&self, seeker: &Seeker, outcome: RegionOutcome) {
        seeker.trace().region(&self.search.criteria.new_lobby.pool.region_id, outcome);
    }
}
