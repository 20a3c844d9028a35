//! Places on Earth and distances between them.

/// Miles in a kilometre.
pub const MILES_PER_KILOMETER: f64 = 0.621_371_192;

/// A place on Earth, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coordinates {
    /// North, -90 to 90.
    pub latitude: f64,
    /// East, -180 to 180.
    pub longitude: f64,
}

impl Coordinates {
    /// Coordinates; `None` when either is out of its range.
    #[must_use]
    pub fn new(latitude: f64, longitude: f64) -> Option<Self> {
        let valid = (-90.0..=90.0).contains(&latitude) && (-180.0..=180.0).contains(&longitude);
        valid.then_some(Self { latitude, longitude })
    }

    /// Great-circle distance, in kilometres (haversine on a sphere of 6,371 km).
    #[must_use]
    pub fn distance_km(self, other: Self) -> f64 {
        const EARTH_RADIUS_KM: f64 = 6_371.0;
        let (lat1, lat2) = (self.latitude.to_radians(), other.latitude.to_radians());
        let half = |from: f64, to: f64| ((to - from) / 2.0).sin().powi(2);
        let longitude = half(self.longitude.to_radians(), other.longitude.to_radians());
        let chord = half(lat1, lat2) + lat1.cos() * lat2.cos() * longitude;
        2.0 * EARTH_RADIUS_KM * chord.sqrt().min(1.0).asin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(latitude: f64, longitude: f64) -> Coordinates {
        Coordinates::new(latitude, longitude).unwrap()
    }

    #[test]
    fn distances_are_those_of_the_globe() {
        let (berlin, sydney) = (place(52.52, 13.405), place(-33.87, 151.21));
        assert!((berlin.distance_km(sydney) - 16_090.0).abs() < 50.0);
        let across_the_date_line = place(0.0, 179.5).distance_km(place(0.0, -179.5));
        assert!((across_the_date_line - 111.2).abs() < 1.0);
    }

    #[test]
    fn coordinates_outside_the_globe_are_none() {
        for (latitude, longitude) in [(90.1, 0.0), (0.0, -180.1), (f64::NAN, 0.0), (0.0, f64::INFINITY)] {
            assert_eq!(Coordinates::new(latitude, longitude), None);
        }
    }
}
