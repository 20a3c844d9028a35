//! What a load will do and cost.

use std::time::Duration;

use clap::{Args, value_parser};
use serde_json::{Value, json};
use shared::models::{
    ids::{GameMode, RegionId},
    namespace::Namespace,
    version::{GameModeConfig, VersionConfig},
};

use crate::{
    consent::Consent,
    error::CommandError,
    load::{
        cost::{self, Spent},
        hostile::{Hostile, Share, check_limit},
        namespace::{check_clients, check_lobbies, check_screening, mode, region},
    },
    lookup::NamespaceName,
};

/// Of so many players one finds and never connects.
const ABSENT: u32 = 20;
/// The least time from a player's find to its game server, as a share of the longest.
const CONNECTS_AFTER_MIN: f64 = 0.25;
/// Spreads players over the rest of that time as evenly as randomness would, but the same in each run: the
/// fractional part of the golden ratio.
const SPREAD: f64 = 0.618_033_988_749_895;
/// Lobbies planned for each one that would do if all but one were full: players are leaving others, or a race
/// created them.
const LOBBIES_FOR_ONE: f64 = 1.25;
/// Game servers by default, at most. Each sends heartbeats of its own.
const SERVERS_MAX: u32 = 100;
/// Lobbies of each by default, and at most if so many game servers need more.
const LOBBIES_PER_SERVER: u32 = 20;
const LOBBIES_PER_SERVER_MAX: u32 = 1_000;
/// Minimum limit on concurrent requests; otherwise the limit is the arrivals of one second.
const UNDER_WAY_MIN: u32 = 100;

/// The lease of a game server after each heartbeat, and the time between two: shorter than players' servers
/// need, so that the lobbies of a load that was killed are soon out of players' sight.
pub(crate) const LEASE: Duration = Duration::from_secs(15);
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(5);
/// The least time between two heartbeats of a game server that a player comes to in a new lobby.
pub(crate) const HEARTBEAT_GAP: Duration = Duration::from_secs(1);

/// What to play, and how much of it.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The namespace: one of its own, from `muster namespace create GAME/load --version VERSION`.
    #[arg(value_name = "GAME/NAMESPACE")]
    pub namespace: NamespaceName,
    /// Players that arrive in a second, 1 to 1000: a stack's own throttle refuses more.
    #[arg(long, value_name = "PLAYERS", default_value_t = 20, value_parser = value_parser!(u32).range(1..=1_000))]
    pub rate: u32,
    /// Seconds in which they arrive, 1 to 3600.
    #[arg(long, default_value_t = 60, value_parser = value_parser!(u32).range(1..=3_600))]
    pub seconds: u32,
    /// The game mode. May be left out if the version has only one.
    #[arg(long)]
    pub mode: Option<String>,
    /// The region. By default the first one of the mode.
    #[arg(long)]
    pub region: Option<String>,
    /// The longest time in seconds, 1 to 60, that a player takes from its find to its game server. Each takes
    /// between a quarter of it and all of it.
    #[arg(long, value_name = "SECONDS", default_value_t = 4, value_parser = value_parser!(u32).range(1..=60))]
    pub connect_seconds: u32,
    /// Seconds for which a player stays connected, 0 to 600.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = value_parser!(u32).range(..=600))]
    pub stay_seconds: u32,
    /// Game servers, 1 to 500. By default as many as the load needs.
    #[arg(long, value_parser = value_parser!(u32).range(1..=500))]
    pub servers: Option<u32>,
    /// Lobbies that each of them can run, 1 to 1000. By default 20, or more if 100 servers need it.
    #[arg(long, value_name = "LOBBIES", value_parser = value_parser!(u32).range(1..=1_000))]
    pub lobbies_per_server: Option<u32>,
    /// Refuses a load of a stack that costs more dollars than this, up to 1000, by the estimate.
    #[arg(long, value_name = "DOLLARS", default_value_t = 1.0, value_parser = dollars)]
    pub dollars_max: f64,
    /// The API's address, if players use another one than the stack's own, such as that of an edge.
    #[arg(long, value_name = "URL")]
    pub api_url: Option<String>,
    /// Loads a namespace although it has game servers: its players then get into lobbies that nobody runs,
    /// and the load takes seats in theirs.
    #[arg(long)]
    pub among_players: bool,
    #[command(flatten)]
    pub share: Share,
    #[command(flatten)]
    pub consent: Consent,
}

fn dollars(text: &str) -> Result<f64, &'static str> {
    let dollars = text.parse().ok().filter(|dollars| (0.0..=1_000.0).contains(dollars));
    dollars.ok_or("must be a number from 0 to 1000")
}

/// A load.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// As the command names it.
    pub namespace: String,
    pub mode: GameMode,
    pub region: RegionId,
    /// Seats of a lobby.
    pub seats: u32,
    pub rate: u32,
    pub seconds: u32,
    /// The longest time from a find to the game server.
    pub connect: Duration,
    pub stay: Duration,
    pub servers: u32,
    pub lobbies_per_server: u32,
    /// Lobbies at a time, about.
    pub lobbies: u32,
    /// Requests of clients that never connect.
    pub hostile: Option<Hostile>,
}

impl Plan {
    /// The plan of `options` for a namespace that runs a version of `config`.
    ///
    /// # Errors
    /// Why the namespace cannot be loaded, and the remedy.
    pub fn of(
        options: &Options,
        namespace: &Namespace,
        config: &VersionConfig,
    ) -> Result<Self, CommandError> {
        let NamespaceName { game, namespace: name } = &options.namespace;
        let name = format!("{game}/{name}");
        let (mode, mode_config) = mode(options.mode.as_deref(), config)?;
        let region = region(options.region.as_deref(), mode, mode_config)?;
        check_screening(&name, mode, mode_config, config)?;
        let hostile = Hostile::of(options.share, options.rate, options.seconds, mode_config);
        match hostile {
            Some(_) => check_limit(&name, namespace)?,
            None => check_clients(&name, namespace)?,
        }
        let lobbies = lobbies(options, mode_config);
        check_lobbies(&name, namespace, lobbies)?;
        let lobbies = hostile.as_ref().map_or(lobbies, |hostile| hostile.lobbies(lobbies, namespace));
        let enough = lobbies.div_ceil(options.servers.unwrap_or(SERVERS_MAX));
        let enough = enough.clamp(LOBBIES_PER_SERVER, LOBBIES_PER_SERVER_MAX);
        let lobbies_per_server = options.lobbies_per_server.unwrap_or(enough);
        let servers =
            options.servers.unwrap_or_else(|| lobbies.div_ceil(lobbies_per_server).min(SERVERS_MAX));
        Ok(Self {
            namespace: name,
            mode: mode.clone(),
            region: region.clone(),
            seats: mode_config.max_players,
            rate: options.rate,
            seconds: options.seconds,
            connect: Duration::from_secs(options.connect_seconds.into()),
            stay: Duration::from_secs(options.stay_seconds.into()),
            servers,
            lobbies_per_server,
            lobbies,
            hostile,
        })
    }

    /// Players that arrive.
    pub const fn sessions(&self) -> u32 {
        self.rate * self.seconds
    }

    /// When player `number` arrives, after the beginning.
    pub fn due(&self, number: u32) -> Duration {
        Duration::from_secs(1) * number / self.rate
    }

    /// How long player `number` takes from its find to its game server.
    pub fn connects_after(&self, number: u32) -> Duration {
        let spread = (f64::from(number) * SPREAD).fract();
        self.connect.mul_f64(CONNECTS_AFTER_MIN + (1.0 - CONNECTS_AFTER_MIN) * spread)
    }

    /// Whether player `number` connects at all.
    pub const fn connects(number: u32) -> bool {
        number % ABSENT != ABSENT - 1
    }

    /// Limit on concurrent requests. Each may need a connection, and so an open file.
    pub fn under_way_max(&self) -> usize {
        self.rate.max(UNDER_WAY_MIN) as usize
    }

    /// Times that a player finds at most, until one gets a seat.
    pub const fn attempts(&self) -> u32 {
        if self.hostile.is_some() { Hostile::attempts() } else { 1 }
    }

    /// How long it lasts, if every player gets a seat at once.
    pub fn lasts(&self) -> Duration {
        Duration::from_secs(self.seconds.into()) + self.connect + self.stay
    }

    /// What it takes, rather too much than too little.
    pub fn estimate(&self) -> Spent {
        let (sessions, servers) = (f64::from(self.sessions()), f64::from(self.servers));
        let connected = sessions * (1.0 - 1.0 / f64::from(ABSENT));
        let created = sessions / f64::from(self.seats);
        let lobbies =
            self.lobbies.min(self.servers * self.lobbies_per_server).div_ceil(self.servers) as usize;
        let heartbeats = |every: Duration| servers * self.lasts().div_duration_f64(every);
        // A heartbeat shows every lobby that was created since the one before.
        let early = created.min(heartbeats(HEARTBEAT_GAP));
        let players = cost::find(self.seats).times(sessions)
            + cost::CONNECT.times(connected)
            + cost::DISCONNECT.times(connected)
            + cost::END.times(created);
        players
            + cost::REGISTER.times(servers)
            + cost::heartbeat(lobbies).times(heartbeats(HEARTBEAT) + early)
            + cost::deregister(1).times(servers)
            // Most are refused.
            + cost::REFUSED.times(self.hostile.as_ref().map_or(0.0, |hostile| hostile.requests.into()))
    }

    /// Refuses a load that costs more than `dollars_max` by the estimate.
    ///
    /// # Errors
    /// [`CommandError::Refused`].
    pub fn check_cost(&self, dollars_max: f64) -> Result<(), CommandError> {
        let dollars = self.estimate().dollars();
        if dollars <= dollars_max {
            return Ok(());
        }
        Err(CommandError::Refused(format!(
            "the load would cost about ${dollars:.2}, more than ${dollars_max:.2}; lower --rate or --seconds, or raise --dollars-max"
        )))
    }

    /// The plan in sentences.
    pub fn text(&self, is_local: bool) -> String {
        let Self { namespace, mode, region, seats, rate, seconds, servers, lobbies_per_server, .. } = self;
        let Spent { requests, read_units, write_units, .. } = self.estimate();
        let room = servers * lobbies_per_server;
        let short = if room < self.lobbies { ": finds beyond them are refused" } else { "" };
        let here = if is_local { " in AWS, nothing here" } else { "" };
        let hostile =
            self.hostile.as_ref().map_or_else(String::new, |hostile| format!("\n{}", hostile.text()));
        format!(
            "{namespace}: {rate} players a second for {seconds} s, {} sessions of mode {mode} ({seats} seats) in {region}\n\
             some {} lobbies at a time, on {servers} game servers of the load with room for {room}{short}\n\
             about {requests:.0} requests, {read_units:.0} read and {write_units:.0} write units: ${:.4}{here}{hostile}",
            self.sessions(),
            self.lobbies,
            self.estimate().dollars(),
        )
    }

    /// The plan for programs.
    pub fn json(&self) -> Value {
        let Self { namespace, mode, region, rate, seconds, servers, lobbies_per_server, lobbies, .. } = self;
        let mut json = json!({
            "namespace": namespace, "game_mode": mode, "region_id": region, "rate": rate, "seconds": seconds,
            "connect_seconds": self.connect.as_secs(), "stay_seconds": self.stay.as_secs(),
            "sessions": self.sessions(), "servers": servers, "lobbies_per_server": lobbies_per_server,
            "lobbies": lobbies, "under_way_max": self.under_way_max(),
            "estimate": self.estimate(), "dollars": self.estimate().dollars(),
        });
        if let (Some(hostile), Some(fields)) = (&self.hostile, json.as_object_mut()) {
            fields.insert("hostile".to_owned(), hostile.json());
        }
        json
    }
}

/// Lobbies that the load needs at a time, about.
fn lobbies(options: &Options, config: &GameModeConfig) -> u32 {
    let (rate, seconds) = (f64::from(options.rate), f64::from(options.seconds));
    let connects_after = f64::from(options.connect_seconds) * f64::midpoint(CONNECTS_AFTER_MIN, 1.0);
    let present = seconds.min(connects_after + f64::from(options.stay_seconds));
    let absent = seconds.min(config.reservation_seconds.into());
    let share = 1.0 / f64::from(ABSENT);
    let seats = rate * (present * (1.0 - share) + absent * share);
    let full = seats / f64::from(config.max_players);
    // A float to an integer saturates.
    (full * LOBBIES_FOR_ONE).ceil().max(1.0) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Parser;

    use super::*;
    use crate::load::tally::Kind;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn options(words: &[&str]) -> Result<Options, clap::Error> {
        let line = Line::try_parse_from([&["load", "kart/load"], words].concat());
        line.map(|line| line.options)
    }

    fn namespace(lobby_count_max: u32, max_players_per_client: u32) -> Namespace {
        serde_json::from_value(json!({
            "game_id": "g", "namespace_id": "n", "name_id": "load", "display_name": "Load", "created_at": 0,
            "version_id": "v", "deployed_at": 0, "lobby_count_max": lobby_count_max,
            "max_players_per_client": max_players_per_client, "enable_domain_public_auth": false,
            "tag_key": "key",
        }))
        .unwrap()
    }

    fn config() -> Value {
        json!({ "game_modes": {
            "arena": { "regions": ["fra", "nyc"], "max_players": 10 },
            "duel": { "regions": ["nyc"], "max_players": 2 },
        } })
    }

    fn plan_of(words: &[&str], namespace: &Namespace, config: Value) -> Result<Plan, String> {
        let config = serde_json::from_value(config).unwrap();
        Plan::of(&options(words).unwrap(), namespace, &config).map_err(|error| error.to_string())
    }

    fn plan(words: &[&str]) -> Plan {
        plan_of(words, &namespace(32_767, 1_001), config()).unwrap()
    }

    #[test]
    fn bounds_are_inclusive() {
        for words in [
            ["--rate", "1"],
            ["--rate", "1000"],
            ["--seconds", "3600"],
            ["--stay-seconds", "0"],
            ["--dollars-max", "0.01"],
            ["--hostile", "0.01"],
            ["--hostile", "0.95"],
        ] {
            assert!(options(&words).is_ok(), "{words:?}");
        }
        for words in [
            ["--rate", "0"],
            ["--rate", "1001"],
            ["--seconds", "3601"],
            ["--connect-seconds", "0"],
            ["--stay-seconds", "601"],
            ["--servers", "0"],
            ["--lobbies-per-server", "1001"],
            ["--dollars-max", "-1"],
            ["--dollars-max", "NaN"],
            ["--dollars-max", "1001"],
            ["--hostile", "0"],
            ["--hostile", "-0.5"],
            ["--hostile", "0.951"],
            ["--hostile", "NaN"],
            ["--addresses", "100"],
        ] {
            assert!(options(&words).is_err(), "{words:?}");
        }
        let hostile = |more: &[&str]| options(&[&["--hostile", "0.5"], more].concat());
        for addresses in ["1", "2000"] {
            assert!(hostile(&["--addresses", addresses]).is_ok(), "{addresses}");
        }
        for more in [["--addresses", "0"], ["--addresses", "2001"], ["--api-url", "http://127.0.0.1:1"]] {
            assert!(hostile(&more).is_err(), "{more:?}");
        }
        assert_eq!(hostile(&[]).unwrap().share.addresses, 100);
    }

    fn hostile_config() -> Value {
        let create = json!({ "create": { "enabled": true } });
        json!({ "game_modes": {
            "open": { "regions": ["fra"], "max_players": 10, "taggable": true, "actions": create },
            "plain": { "regions": ["fra"], "max_players": 10, "actions": { "join": { "enabled": false } } },
        } })
    }

    fn hostile_plan(words: &[&str]) -> Plan {
        plan_of(words, &namespace(128, 8), hostile_config()).unwrap()
    }

    #[test]
    fn hostile_requests_are_their_share_of_all_and_come_in_turn_from_all_addresses() {
        let plan = hostile_plan(&["--mode", "open", "--rate", "10", "--seconds", "7", "--hostile", "0.9"]);
        let hostile = plan.hostile.as_ref().unwrap();
        assert_eq!((hostile.requests, hostile.rate.round(), plan.sessions()), (630, 90.0, 70));
        assert_eq!((hostile.due(90).as_millis(), hostile.due(629).as_secs()), (1_000, 6));
        let kinds: Vec<_> = (0..14).filter_map(|number| hostile.kind(number)).collect();
        assert_eq!(kinds, [Kind::ALL, Kind::ALL].concat());
        for kind in Kind::ALL {
            let its = (0..630).filter(|number| hostile.kind(*number) == Some(kind));
            let addresses: BTreeSet<_> = its.map(|number| hostile.address(number)).collect();
            assert!(addresses.len() > 60 && addresses.iter().all(|address| *address < 100), "{kind:?}");
        }
        let few = hostile_plan(&["--mode", "open", "--hostile", "0.9", "--addresses", "1"]);
        assert_eq!(few.hostile.unwrap().address(17), 0);
    }

    #[test]
    fn a_hostile_load_leaves_out_what_the_mode_does_not_allow_and_has_places_for_all_lobbies() {
        let open = hostile_plan(&["--mode", "open", "--hostile", "0.9"]);
        assert!(open.servers * open.lobbies_per_server >= 128, "{open:?}");
        assert!(open.text(true).ends_with("wrong bodies, forged tokens, in turn"), "{}", open.text(true));
        let plain = hostile_plan(&["--mode", "plain", "--hostile", "0.9"]);
        let text = plain.text(true);
        assert!(
            text.ends_with(
                "\nhostile share 0.9: 180.0 requests a second, 10800 in all, from 100 IP addresses: finds, \
                 lists, wrong bodies, forged tokens, in turn; the mode allows no tags, creates, joins"
            ),
            "{text}"
        );
        assert_eq!(plain.json()["hostile"]["left_out"], json!(["tags", "creates", "joins"]));
        assert_eq!(open.json()["hostile"]["requests"], 10_800);
        let few = hostile_plan(&["--mode", "open", "--hostile", "0.1", "--addresses", "1"]);
        let without = plan_of(&["--mode", "open"], &namespace(128, 1_001), hostile_config()).unwrap();
        assert_eq!((without.hostile.as_ref(), without.json().get("hostile")), (None, None));
        assert_eq!(few.lobbies, 8 + without.lobbies);
    }

    #[test]
    fn a_hostile_load_needs_the_local_stack_and_a_limit_of_seats_per_address() {
        let open = ["--mode", "open", "--hostile", "0.9"];
        let unlimited = plan_of(&open, &namespace(128, 1_001), hostile_config()).unwrap_err();
        assert!(
            unlimited.contains("`muster mm-config kart/load --max-players-per-client 32`"),
            "{unlimited}"
        );
        assert!(plan_of(&open, &namespace(128, 1_000), hostile_config()).is_ok());
        let share = options(&open).unwrap().share;
        let refused = share.check_target(false).unwrap_err().to_string();
        assert!(refused.starts_with("--hostile needs --local: "), "{refused}");
        assert_eq!([&unlimited, &refused].map(|text| text.lines().count()), [1, 1]);
        assert!(share.check_target(true).is_ok());
        assert!(options(&["--mode", "open"]).unwrap().share.check_target(false).is_ok());
    }

    #[test]
    fn players_are_due_at_the_rate_and_connect_within_their_time() {
        let plan = plan(&["--mode", "duel", "--rate", "3", "--seconds", "2"]);
        let due: Vec<_> = (0..plan.sessions()).map(|number| plan.due(number).as_millis()).collect();
        assert_eq!(due, [0, 333, 666, 1_000, 1_333, 1_666]);
        let spans: Vec<_> = (0..100).map(|number| plan.connects_after(number).as_secs_f64()).collect();
        assert!(spans.iter().all(|span| (1.0..4.0).contains(span)), "{spans:?}");
        let mean = spans.iter().sum::<f64>() / 100.0;
        assert!((2.4..2.6).contains(&mean), "{mean}");
        assert_eq!((0..100).filter(|number| !Plan::connects(*number)).count(), 5);
    }

    #[test]
    fn a_load_needs_more_servers_for_more_players_that_stay_longer() {
        let small = plan(&["--mode", "arena"]);
        assert_eq!((small.region.as_str(), small.seats), ("fra", 10));
        let longer = plan(&["--mode", "arena", "--stay-seconds", "60"]);
        assert!(small.lobbies < longer.lobbies && small.servers < longer.servers, "{small:?} {longer:?}");
        let fixed = plan(&["--mode", "arena", "--servers", "1", "--region", "nyc"]);
        assert!(fixed.lobbies_per_server >= fixed.lobbies, "{fixed:?}");
        assert_eq!(fixed.region.as_str(), "nyc");
        let narrow = plan(&["--mode", "arena", "--servers", "1", "--lobbies-per-server", "1"]);
        assert!(
            narrow.text(false).contains("room for 1: finds beyond them are refused"),
            "{}",
            narrow.text(false)
        );
        assert!(!fixed.text(false).contains("refused"), "{}", fixed.text(false));
        let large = plan(&["--mode", "duel", "--rate", "500"]);
        assert!(large.servers <= SERVERS_MAX && large.lobbies_per_server > LOBBIES_PER_SERVER, "{large:?}");
        assert!(large.servers * large.lobbies_per_server >= large.lobbies, "{large:?}");
    }

    #[test]
    fn a_load_that_costs_more_than_allowed_is_refused() {
        let minute = plan(&["--mode", "arena"]);
        let dollars = minute.estimate().dollars();
        assert!((0.005..0.03).contains(&dollars), "{dollars}");
        assert!(minute.check_cost(1.0).is_ok() && minute.check_cost(dollars).is_ok());
        let hour = plan(&["--mode", "arena", "--seconds", "3600", "--rate", "200"]);
        let refused = hour.check_cost(1.0).unwrap_err().to_string();
        assert!(refused.contains("raise --dollars-max"), "{refused}");
        assert!(hour.estimate().dollars() > 400.0 * dollars, "{}", hour.estimate().dollars());
    }

    #[test]
    fn a_namespace_that_cannot_be_loaded_is_refused_with_the_remedy() {
        let fitting = namespace(32_767, 1_001);
        let refusal = |words: &[&str], namespace: &Namespace, config| {
            let refusal = plan_of(words, namespace, config).unwrap_err();
            assert_eq!(refusal.lines().count(), 1, "{refusal}");
            refusal
        };
        let arena = ["--mode", "arena"];
        assert_eq!(refusal(&[], &fitting, config()), "name a mode with --mode: arena, duel");
        assert_eq!(
            refusal(&["--mode", "race"], &fitting, config()),
            "there is no mode `race`; the version has arena, duel"
        );
        assert_eq!(
            refusal(&["--mode", "duel", "--region", "fra"], &fitting, config()),
            "there is no region `fra`; mode duel runs in nyc"
        );
        assert_eq!(
            refusal(&arena, &namespace(32_767, 1_000), config()),
            "kart/load allows 1000 seats per IP address, and a load has one; \
             `muster mm-config kart/load --max-players-per-client 1001` lifts the limit"
        );
        let few = refusal(&arena, &namespace(9, 1_001), config());
        let lobbies = plan(&arena).lobbies;
        assert!(few.contains(&format!("`muster mm-config kart/load --lobby-count-max {lobbies}`")), "{few}");
        let many = ["--mode", "duel", "--rate", "1000", "--stay-seconds", "600", "--seconds", "600"];
        let many = refusal(&many, &fitting, config());
        assert!(many.ends_with("; lower --rate or --stay-seconds"), "{many}");
        let with = |path: &str, value: Value| {
            let mut config = config();
            config["game_modes"]["arena"]["actions"] = json!({ "find": { "enabled": true } });
            *config.pointer_mut(path).unwrap() = value;
            config
        };
        let find = "/game_modes/arena/actions/find";
        let disabled = refusal(&arena, &fitting, with(find, json!({ "enabled": false })));
        assert!(disabled.contains("does not let players find lobbies of mode arena"), "{disabled}");
        let backend = json!({ "enabled": true, "verification": { "url": "https://backend.example/" } });
        let verified = refusal(&arena, &fitting, with(find, backend));
        assert!(verified.contains("asks a backend about each player of mode arena"), "{verified}");
        let mut guarded = config();
        guarded["captcha"] = json!({ "requests_before_reverify": 9, "verification_ttl": 60_000 });
        let guarded = refusal(&arena, &fitting, guarded);
        assert!(guarded.contains("has a captcha"), "{guarded}");
    }

    #[test]
    fn the_only_mode_need_not_be_named() {
        let only = json!({ "game_modes": { "solo": { "regions": ["fra"], "max_players": 1 } } });
        assert_eq!(plan_of(&[], &namespace(32_767, 1_001), only).unwrap().mode.as_str(), "solo");
    }
}
