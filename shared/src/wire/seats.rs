//! Requests to find, join and create lobbies, and the seat in the response.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    base::json::optional_object,
    models::{
        errors::{Error, bad_body},
        handed_on::HandedOn,
        ids::{LobbyId, RegionId},
        latency::Latency,
        lobby_code::LobbyCode,
        lobby_config::LobbyConfig,
        player_data::PlayerData,
        pool::Tags,
        ports::{PortNumbers, PortRange, Ports, ServerPort},
        publicity::Publicity,
        seats::{PARTY_SIZE_MAX, Party},
        tag_digests::TagKey,
    },
    wire::{body::JsonBody, explanation::Explanation, values::null_as_default},
};

/// The most lobbies that a find excludes.
const EXCLUDED_MAX: usize = 8;
/// The most regions of which a find has latencies.
const LATENCIES_MAX: usize = 64;

/// A body that asks for seats in a lobby.
pub trait SeatRequest: Sized {
    /// Whether its lobby is a new one, which has a code.
    const CREATES: bool = false;

    /// The request in `body`.
    ///
    /// # Errors
    /// [`Error::BadBody`]; for a find without modes [`Error::NoGameModeProvided`].
    fn read(body: JsonBody<'_>) -> Result<Self, Error>;

    /// What each request for seats has.
    fn entry(&self) -> &Entry;
}

/// What each request for seats has: who wants them, and what screening needs.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Entry {
    /// The version of the game that the client is made for; absent means any.
    pub version_id: Option<String>,
    /// The client's captcha response.
    #[serde(default, deserialize_with = "optional_object")]
    pub captcha: Option<Captcha>,
    /// Data for the studio's verification, not parsed, so that it stays as it was sent.
    #[serde(skip)]
    pub verification_data: Option<HandedOn>,
    /// How many players want seats together, and what the client says of each, for the lobby server: not
    /// parsed, so that it stays as it was sent.
    #[serde(skip)]
    pub party: Party,
}

impl Entry {
    /// Takes its fields out of `body`.
    ///
    /// # Errors
    /// [`Error::BadBody`].
    fn take(body: &mut JsonBody<'_>) -> Result<Self, Error> {
        let verification_data = body.take_handed_on("verification_data")?;
        if verification_data.as_ref().is_some_and(|data| !data.is_object()) {
            return Err(bad_body("verification_data", "an object is needed"));
        }
        let party = party(body)?;
        Ok(Self { verification_data, party, ..body.split_off(&["version_id", "captcha"]).parse()? })
    }
}

/// Request of lobbies.find.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct FindLobbyRequest {
    /// Modes that the lobby may have.
    pub game_modes: Vec<String>,
    /// Regions that the lobby may be in; none given means the recommended one.
    #[serde(default, deserialize_with = "null_as_default")]
    pub regions: Vec<String>,
    /// The client's latencies by region, in milliseconds; `None` for a region that it cannot reach. Regions
    /// are any texts, of which only those of the game count. None given means that nothing was measured.
    #[serde(default, deserialize_with = "null_as_default")]
    pub latencies: BTreeMap<String, Option<Latency>>,
    /// Tags that the lobby must have.
    #[serde(default, deserialize_with = "null_as_default")]
    pub tags: Tags,
    /// Seats of a lobby created for this request.
    pub max_players: Option<u32>,
    /// Whether no lobby may be created for this request.
    #[serde(default, deserialize_with = "null_as_default")]
    pub prevent_auto_create_lobby: bool,
    /// Lobbies in which no seat is wanted; any texts, of which only identifiers name one.
    #[serde(default, deserialize_with = "null_as_default")]
    pub exclude_lobby_ids: Vec<String>,
    /// What each request for seats has.
    #[serde(skip)]
    pub entry: Entry,
}

impl FindLobbyRequest {
    /// The lobbies in which no seat is wanted.
    #[must_use]
    pub fn excluded(&self) -> Vec<LobbyId> {
        self.exclude_lobby_ids.iter().filter_map(|text| LobbyId::typed(text).ok()).collect()
    }
}

impl SeatRequest for FindLobbyRequest {
    fn read(mut body: JsonBody<'_>) -> Result<Self, Error> {
        let entry = Entry::take(&mut body)?;
        let read: Self = body.parse()?;
        if read.exclude_lobby_ids.len() > EXCLUDED_MAX {
            return Err(bad_body("exclude_lobby_ids", "at most 8 lobbies can be excluded"));
        }
        if read.latencies.len() > LATENCIES_MAX {
            return Err(bad_body("latencies", "at most 64 regions can have a latency"));
        }
        if read.game_modes.is_empty() {
            return Err(Error::NoGameModeProvided);
        }
        Ok(Self { entry, ..read })
    }

    fn entry(&self) -> &Entry {
        &self.entry
    }
}

/// Request of lobbies.join.
#[derive(Clone, Debug, Deserialize)]
pub struct JoinLobbyRequest {
    /// The lobby; any text, of which only identifiers and codes name one.
    pub lobby_id: String,
    /// What each request for seats has.
    #[serde(skip)]
    pub entry: Entry,
}

impl JoinLobbyRequest {
    /// The lobby that it names in the namespace of `key`: by its code, or by its identifier, which never
    /// looks like a code.
    ///
    /// # Errors
    /// [`Error::LobbyNotFound`] for other text.
    pub fn named(&self, key: &TagKey) -> Result<LobbyId, Error> {
        match LobbyCode::typed(&self.lobby_id) {
            Some(code) => Ok(code.lobby_id(key)),
            None => LobbyId::typed(&self.lobby_id).map_err(|_| Error::LobbyNotFound),
        }
    }
}

impl SeatRequest for JoinLobbyRequest {
    fn read(mut body: JsonBody<'_>) -> Result<Self, Error> {
        let entry = Entry::take(&mut body)?;
        Ok(Self { entry, ..body.parse()? })
    }

    fn entry(&self) -> &Entry {
        &self.entry
    }
}

/// Request of lobbies.create.
#[derive(Clone, Debug, Deserialize)]
pub struct CreateLobbyRequest {
    /// The lobby's mode.
    pub game_mode: String,
    /// Its region; absent means the recommended one.
    pub region: Option<String>,
    /// Who may enter.
    #[serde(default, deserialize_with = "null_as_default")]
    pub publicity: Publicity,
    /// Its tags.
    #[serde(default, deserialize_with = "null_as_default")]
    pub tags: Tags,
    /// Its seats.
    pub max_players: Option<u32>,
    /// Any JSON for its lobby server, not parsed, so that it stays as it was sent.
    #[serde(skip)]
    pub lobby_config: Option<LobbyConfig>,
    /// What each request for seats has.
    #[serde(skip)]
    pub entry: Entry,
}

impl SeatRequest for CreateLobbyRequest {
    const CREATES: bool = true;

    fn read(mut body: JsonBody<'_>) -> Result<Self, Error> {
        let lobby_config = body.take_handed_on("lobby_config")?.map(LobbyConfig::new).transpose()?;
        let entry = Entry::take(&mut body)?;
        Ok(Self { lobby_config, entry, ..body.parse()? })
    }

    fn entry(&self) -> &Entry {
        &self.entry
    }
}

/// The players of a request for seats: `party_size`, 1 to 16, and their data, which is `player_data` for one
/// player and `players_data` for a party, with an element for each.
///
/// # Errors
/// [`Error::BadBody`] for another size, and for data that is too large, of too many players, or of both
/// kinds; or as [`HandedOn::new`].
pub fn party(body: &mut JsonBody<'_>) -> Result<Party, Error> {
    let data = |name: &str, json: &RawValue| {
        let data = (json.get() != "null").then(|| PlayerData::new(json));
        let data = data.map(|data| data.ok_or_else(|| bad_body(name, "larger than 512 bytes")));
        data.transpose()
    };
    let size = body.take_handed_on("party_size")?;
    let size = size.map(|size| serde_json::from_str(size.json().get()));
    let sizes = 1..=PARTY_SIZE_MAX;
    let size = match size.transpose() {
        Ok(size) => Some(size.unwrap_or(1)).filter(|size| sizes.contains(size)),
        Err(_) => None,
    };
    let size = size.ok_or_else(|| bad_body("party_size", "a number of players, 1 to 16, is needed"))?;
    let of_one = body.take_handed_on("player_data")?;
    let Some(of_each) = body.take_handed_on("players_data")? else {
        let of_one = of_one.map(|json| data("player_data", json.json())).transpose()?;
        return Ok(Party { size, data: of_one.into_iter().collect() });
    };
    let of_each: Vec<&RawValue> = serde_json::from_str(of_each.json().get())
        .map_err(|_| bad_body("players_data", "an array is needed, with an element for each player"))?;
    if size == 1 || of_one.is_some() || of_each.len() != size as usize {
        return Err(bad_body(
            "players_data",
            "as many elements as `party_size` are needed, and no `player_data`",
        ));
    }
    let numbered = of_each.into_iter().enumerate();
    let of_each = numbered.map(|(nth, json)| data(&format!("players_data[{nth}]"), json));
    Ok(Party { size, data: of_each.collect::<Result<_, _>>()? })
}

/// Captcha responses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Captcha {
    /// Of hCaptcha.
    #[serde(default, deserialize_with = "optional_object")]
    pub hcaptcha: Option<CaptchaResponse>,
    /// Of Turnstile.
    #[serde(default, deserialize_with = "optional_object")]
    pub turnstile: Option<CaptchaResponse>,
}

/// The response to one provider's captcha.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CaptchaResponse {
    /// The text from the provider.
    pub client_response: String,
}

/// Response of lobbies.find.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FindLobbyResponse {
    /// The lobby; it repeats ports and player, which deployed clients parse there.
    pub lobby: JoinLobby,
    /// Where to connect.
    pub ports: BTreeMap<String, Port>,
    /// The player's token; the first one's of a party.
    pub player: Player,
    /// The tokens of all players of a party.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub players: Option<Vec<Player>>,
    /// The explanation of the find, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<Explanation>,
}

impl FindLobbyResponse {
    /// The response of seats in a lobby, of which there is a token for each.
    #[must_use]
    pub fn new(
        lobby_id: LobbyId,
        code: Option<LobbyCode>,
        region: Region,
        ports: BTreeMap<String, Port>,
        tokens: Vec<String>,
    ) -> Self {
        let players: Vec<_> = tokens.into_iter().map(|token| Player { token }).collect();
        let player = players.first().cloned().unwrap_or_default();
        let lobby = JoinLobby { lobby_id, code, region, ports: ports.clone(), player: player.clone() };
        Self {
            lobby,
            ports,
            player,
            players: Some(players).filter(|players| players.len() > 1),
            explain: None,
        }
    }
}

/// A lobby in the response of a find.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinLobby {
    /// Its identifier.
    pub lobby_id: LobbyId,
    /// Its code, for the player who created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<LobbyCode>,
    /// Where it runs.
    pub region: Region,
    /// Where to connect.
    pub ports: BTreeMap<String, Port>,
    /// The player's token.
    pub player: Player,
}

impl JoinLobby {
    /// The lobby for storage, without the token that lets a player connect.
    #[must_use]
    pub fn without_token(&self) -> Self {
        Self { player: Player { token: String::new() }, ..self.clone() }
    }
}

/// A region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// Its short name, which requests use.
    pub region_id: RegionId,
    /// The name that players read.
    pub display_name: String,
}

/// A player.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Player {
    /// The token that the client passes to the lobby server.
    pub token: String,
}

/// A port; fields that do not apply are null (decision 7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Hostname and port, without a range.
    pub host: Option<String>,
    /// The host alone.
    pub hostname: String,
    /// The port, without a range.
    pub port: Option<u16>,
    /// The range, inclusive.
    pub port_range: Option<PortRange>,
    /// Whether to connect with TLS.
    pub is_tls: bool,
}

impl Port {
    fn at(hostname: &str, port: &ServerPort) -> Self {
        let (single, range) = match port.numbers {
            PortNumbers::Port(number) => (Some(number), None),
            PortNumbers::PortRange(range) => (None, Some(range)),
            PortNumbers::Unknown => (None, None),
        };
        Self {
            host: single.map(|number| format!("{hostname}:{number}")),
            hostname: hostname.to_owned(),
            port: single,
            port_range: range,
            is_tls: port.protocol.is_tls(),
        }
    }
}

/// The ports of a game server as clients read them.
#[must_use]
pub fn ports(ports: &Ports) -> BTreeMap<String, Port> {
    ports.iter().map(|(label, port)| (label.clone(), Port::at(&port.hostname, port))).collect()
}

/// The same ports, all on `hostname`: a developer's machine.
#[must_use]
pub fn ports_on(hostname: &str, ports: &Ports) -> BTreeMap<String, Port> {
    ports.iter().map(|(label, port)| (label.clone(), Port::at(hostname, port))).collect()
}
