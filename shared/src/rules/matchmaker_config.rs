//! Which matchmaker settings a namespace may have.

use crate::models::violations::Violations;

/// The most lobbies that a namespace may be allowed to hold.
pub const LOBBY_COUNT_MAX_LIMIT: u32 = 32_767;

/// The sources of players that each have a limit in the interface of decision 1; here all share one.
const PLAYER_SOURCES: [&str; 5] = ["client", "vpn", "proxy", "tor", "hosting"];

/// The violations of the values.
#[must_use]
pub fn validate(lobby_count_max: u32, max_players: u32) -> Violations {
    let mut violations = Violations::default();
    let lobbies = format!("1 to {LOBBY_COUNT_MAX_LIMIT}");
    if lobby_count_max == 0 {
        violations.add(&["lobby-count", "too-low"], lobbies.clone());
    }
    if lobby_count_max > LOBBY_COUNT_MAX_LIMIT {
        violations.add(&["lobby-count", "too-high"], lobbies);
    }
    if max_players == 0 {
        violations.add(&["max-players", "too-low"], "1 or more");
        for source in PLAYER_SOURCES {
            violations.add(&["max-players", source, "too-low"], "1 or more");
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(lobby_count_max: u32, max_players: u32) -> Vec<String> {
        validate(lobby_count_max, max_players).joined().collect()
    }

    #[test]
    fn values_within_the_bounds_are_valid() {
        for (lobbies, players) in [(1, 1), (32_767, u32::MAX)] {
            assert!(validate(lobbies, players).is_empty(), "{lobbies}, {players}");
        }
    }

    #[test]
    fn each_violation_has_its_path() {
        assert_eq!(joined(0, 1), ["lobby-count/too-low"]);
        assert_eq!(joined(32_768, 1), ["lobby-count/too-high"]);
        assert_eq!(joined(u32::MAX, 1), ["lobby-count/too-high"]);
        assert_eq!(
            joined(1, 0),
            [
                "max-players/too-low",
                "max-players/client/too-low",
                "max-players/vpn/too-low",
                "max-players/proxy/too-low",
                "max-players/tor/too-low",
                "max-players/hosting/too-low",
            ]
        );
        assert_eq!(joined(0, 0).len(), 7);
    }
}
