//! Which region is nearest.

use crate::models::{coordinates::Coordinates, game::Region, ids::RegionId};

impl Region {
    /// Its coordinates, checked when the region was created.
    #[must_use]
    pub const fn coordinates(&self) -> Coordinates {
        Coordinates { latitude: self.latitude, longitude: self.longitude }
    }
}

/// The region of `regions` nearest to `viewer`, the first of equals.
pub fn nearest<'a>(
    viewer: Coordinates,
    regions: impl IntoIterator<Item = (&'a RegionId, &'a Region)>,
) -> Option<&'a RegionId> {
    let distance = |region: &Region| viewer.distance_km(region.coordinates());
    regions
        .into_iter()
        .map(|(id, region)| (id, distance(region)))
        .min_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(id, _)| id)
}
