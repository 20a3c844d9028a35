//! Why a find came out as it did, in sentences.

use serde_json::json;
use shared::{
    base::usage::Usage,
    models::shortage::{Obstacles, Shortage},
    wire::explanation::{Creation, ExplainedRegion, Explanation, Place, Reason, RegionOutcome, Resolved},
};

use crate::budget::{dollars, dollars_in_all};

/// An explanation in sentences, the most telling ones first.
#[must_use]
pub fn sentences(explanation: &Explanation) -> Vec<String> {
    let Explanation { resolved, considered, refused, created, creation, servers, replayed, .. } = explanation;
    let in_use = explanation.lobbies_in_use.unwrap_or_default();
    let mut sentences = Vec::new();
    if *replayed {
        sentences.push("This is the answer of an earlier request with the same Idempotency-Key.".to_owned());
    }
    if let Some(Resolved { searched, .. }) = resolved {
        let places = searched.iter().map(place).collect::<Vec<_>>().join(", ");
        sentences.push(format!("It looked for {places}."));
        sentences.push(looked_at(*considered, refused));
    }
    let regions = &explanation.regions;
    if !regions.is_empty() {
        let regions = regions.iter().map(by_latency).collect::<Vec<_>>().join(", ");
        sentences.push(format!("By latency: {regions}."));
    }
    if let (Some(servers), Some(Resolved { creates, .. }), false) = (servers, resolved, *created) {
        sentences.push(no_place(servers, creates));
    } else if let Some(creation) = creation {
        let chosen = regions.iter().find(|region| region.outcome == RegionOutcome::Chosen);
        let where_to = match (resolved, chosen) {
            (Some(resolved), None) => place(&resolved.creates),
            (Some(_), Some(chosen)) => format!("a lobby in {}", chosen.region_id),
            (None, _) => String::new(),
        };
        sentences.push(about_creation(*creation, *created, in_use, &where_to));
    } else if resolved.is_some() && *considered > 0 {
        sentences.push("It took a seat in an existing lobby.".to_owned());
    }
    sentences.push(cost(explanation));
    sentences
}

fn by_latency(ExplainedRegion { region_id, latency, outcome }: &ExplainedRegion) -> String {
    let latency = latency.map(|latency| format!(" at {} ms", f64::from(latency))).unwrap_or_default();
    let outcome = match outcome {
        RegionOutcome::Chosen => "has the seat",
        RegionOutcome::NotNeeded => "was not needed",
        RegionOutcome::NothingJoinable => "has no lobby that fits",
        RegionOutcome::NoPlace => "has no lobby that fits and no place for one",
        RegionOutcome::TooFar => "is behind the four nearest",
        RegionOutcome::Unreachable => "is unreachable",
        RegionOutcome::NotMeasured => "has no latency",
        RegionOutcome::NotRequested => "is not requested",
        RegionOutcome::NotEnabled => "runs no requested mode",
        RegionOutcome::NotFound => "is no region of the game",
    };
    format!("{region_id}{latency} {outcome}")
}

fn place(Place { game_mode, region_id }: &Place) -> String {
    format!("{game_mode} in {region_id}")
}

fn looked_at(considered: usize, refused: &std::collections::BTreeMap<Reason, usize>) -> String {
    if considered == 0 {
        return "It saw no lobby with a free seat there.".to_owned();
    }
    let lobbies = if considered == 1 { "1 lobby".to_owned() } else { format!("{considered} lobbies") };
    if refused.is_empty() {
        return format!("It looked at {lobbies}.");
    }
    let why = refused.iter().map(|(reason, count)| format!("{count} {}", words(*reason)));
    format!("It looked at {lobbies} and passed over {}.", why.collect::<Vec<_>>().join(", "))
}

const fn words(reason: Reason) -> &'static str {
    match reason {
        Reason::Full => "full",
        Reason::TooFull => "with fewer free seats than the party has players",
        Reason::Closed => "closed, private or ended",
        Reason::LeaseExpired => "of a silent game server",
        Reason::TagMismatch => "without a requested tag",
        Reason::OtherVersion => "of another version, mode or region",
        Reason::RaceLost => "whose last seat another find took first",
        Reason::Excluded => "that the request excludes",
    }
}

fn no_place(servers: &Obstacles, Place { game_mode, region_id }: &Place) -> String {
    let (game_mode, region_id, servers) = (game_mode.clone(), region_id.clone(), servers.clone());
    format!("No lobby could be created: {}.", Shortage { game_mode, region_id, servers })
}

fn about_creation(creation: Creation, created: bool, in_use: usize, where_to: &str) -> String {
    match (creation, created) {
        (Creation::Prevented, _) => {
            format!("None fitted, and the request prevents the creation of {where_to}.")
        }
        (Creation::NothingJoinable, true) => format!("None could be taken, so it created {where_to}."),
        (Creation::PoolBusy, true) => {
            format!(
                "So many finds come that it created {where_to}, beside {in_use} others in use, without looking further."
            )
        }
        (_, false) => format!("None could be taken, and {where_to} was not created."),
    }
}

fn cost(explanation: &Explanation) -> String {
    let Explanation { calls, read_units, write_units, .. } = *explanation;
    let usage = Usage { calls, read_units, write_units };
    let calls = if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") };
    let (million, in_all) = (dollars(usage) * 1e6, dollars_in_all(1, usage) * 1e6);
    format!(
        "It made {calls} to DynamoDB, with {} read and {} write units. A million such requests cost \
         ${million:.2} of DynamoDB, and ${in_all:.2} with Lambda and the HTTP API.",
        json!(read_units),
        json!(write_units)
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use shared::models::shortage::Obstacle;

    use super::*;

    fn explanation() -> Explanation {
        let place = Place { game_mode: "duel".parse().unwrap(), region_id: "fra".parse().unwrap() };
        let resolved =
            Resolved { searched: vec![place.clone()], creates: place, tags: BTreeMap::new(), max_players: 2 };
        Explanation {
            resolved: Some(resolved),
            calls: 2,
            read_units: 0.5,
            write_units: 1.0,
            ..Explanation::default()
        }
    }

    #[test]
    fn a_find_that_no_server_has_a_place_for_names_the_servers() {
        let mut find = Explanation { servers: Some(Obstacles::new()), ..explanation() };
        assert_eq!(
            sentences(&find),
            [
                "It looked for duel in fra.",
                "It saw no lobby with a free seat there.",
                "No lobby could be created: `fra` has no game server: start one.",
                "It made 2 calls to DynamoDB, with 0.5 read and 1.0 write units. A million such requests cost \
                 $0.69 of DynamoDB, and $1.91 with Lambda and the HTTP API.",
            ]
        );
        find.servers = Some(Obstacles::from([(Obstacle::Silent, 1), (Obstacle::Unfit, 2)]));
        let text = sentences(&find).join(" ");
        assert!(
            text.contains(": 1 silent (") && text.contains(", 2 unfit (registered without `duel`)."),
            "{text}"
        );
    }

    #[test]
    fn lobbies_passed_over_stand_beside_the_created_one() {
        let find = Explanation {
            considered: 3,
            refused: BTreeMap::from([(Reason::Full, 2), (Reason::RaceLost, 1)]),
            created: true,
            creation: Some(Creation::NothingJoinable),
            ..explanation()
        };
        let text = sentences(&find).join(" ");
        assert!(
            text.contains("3 lobbies and passed over 2 full, 1 whose last seat another find took first.")
        );
        assert!(text.contains("None could be taken, so it created duel in fra."), "{text}");
    }

    #[test]
    fn a_lobby_created_by_latency_is_in_the_region_chosen() {
        let region = |region_id: &str, ms: Option<f64>, outcome| ExplainedRegion {
            region_id: region_id.to_owned(),
            latency: ms.map(|ms| ms.try_into().unwrap()),
            outcome,
        };
        let find = Explanation {
            regions: vec![
                region("fra", Some(20.0), RegionOutcome::NoPlace),
                region("ams", Some(31.5), RegionOutcome::Chosen),
                region("nyc", None, RegionOutcome::Unreachable),
            ],
            servers: Some(Obstacles::new()),
            created: true,
            creation: Some(Creation::NothingJoinable),
            ..explanation()
        };
        let text = sentences(&find).join(" ");
        let regions = "fra at 20 ms has no lobby that fits and no place for one, ams at 31.5 ms has the seat, nyc is \
                       unreachable.";
        assert!(text.contains(&format!("By latency: {regions}")), "{text}");
        assert!(text.contains("so it created a lobby in ams."), "{text}");
    }

    #[test]
    fn a_seat_in_an_existing_lobby_is_named_so() {
        let text = sentences(&Explanation { considered: 1, ..explanation() }).join(" ");
        assert!(text.contains("It looked at 1 lobby. It took a seat in an existing lobby."), "{text}");
    }
}
