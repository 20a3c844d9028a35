//! Data of a lobby that would make its item too large: its tags, its state and its configuration.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    models::{errors::Error, handed_on::HandedOn, ids::LobbyId, lobby::Lobby, pool::Tags},
    store::{
        client::Store,
        items::{Item, from_item, text},
        writes::Write,
    },
};

/// A part of a lobby's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The state that the lobby server set last, which every holder of a public token may read.
    State,
    /// The creator's configuration, for the lobby server.
    Config,
    /// Its tags, for display: finds match their digests.
    Tags,
}

impl Part {
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Config => "config",
            Self::Tags => "tags",
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct StoredData {
    lobby_id: LobbyId,
    json: String,
}

pub(super) fn data_key(lobby_id: &LobbyId, part: Part) -> Item {
    Item::from([("lobby_id".to_owned(), text(lobby_id.as_str())), ("part".to_owned(), text(part.key()))])
}

/// A part of a lobby as stored: the JSON text exactly as it was given.
pub(super) fn data_item(lobby_id: &LobbyId, part: Part, json: &RawValue) -> Item {
    let mut item = data_key(lobby_id, part);
    item.insert("json".to_owned(), text(json.get()));
    item
}

impl Store {
    /// Records on a lobby that it has a state, and returns whether it lives. One write unit for a lobby up to
    /// 1 KB.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn note_lobby_state(&self, lobby_id: &LobbyId) -> Result<bool, Error> {
        let note = self.on_lobby(lobby_id).change("SET #has_state = :true");
        Ok(self.update::<Lobby>(note.when("attribute_exists(#server)")).await?.is_ok())
    }

    /// Sets the state of a lobby. One write unit for each started KB.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn set_lobby_state(&self, lobby_id: &LobbyId, state: &HandedOn) -> Result<(), Error> {
        let write = self.on_lobby_data(lobby_id, Part::State).change("SET #json = :json");
        self.applies(write.with(":json", text(state.json().get()))).await.map(|_set| ())
    }

    /// A write of a part of a lobby's data.
    pub(super) fn on_lobby_data(&self, lobby_id: &LobbyId, part: Part) -> Write {
        Write::to(&self.tables.lobby_data, data_key(lobby_id, part))
    }

    /// The state of a lobby; `None` when it was never set. One consistent read unit for each started 4 KB.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn lobby_state(&self, lobby_id: &LobbyId) -> Result<Option<Box<RawValue>>, Error> {
        let stored: Option<StoredData> =
            self.read(&self.tables.lobby_data, data_key(lobby_id, Part::State), true).await?;
        stored.map(|stored| stored.json().map(|(_, json)| json)).transpose()
    }

    /// A part of each of `ids` that has it, in no order. One call for each hundred or 16 MB, 0.5 read units
    /// for each started 4 KB; eventually consistent.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn lobby_data(
        &self,
        ids: &[LobbyId],
        part: Part,
    ) -> Result<Vec<(LobbyId, Box<RawValue>)>, Error> {
        self.read_data(ids, part, false).await
    }

    /// The tags of each of `lobbies` that has some and has not ended. One call for each hundred of those, one
    /// read unit for each started 4 KB; consistent, because a lobby without its tags would be a different
    /// one.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn lobby_tags<'a>(
        &self,
        lobbies: impl IntoIterator<Item = &'a Lobby>,
    ) -> Result<HashMap<LobbyId, Tags>, Error> {
        let tagged = lobbies.into_iter().filter(|lobby| !lobby.tag_digests.is_empty());
        let tagged: Vec<LobbyId> = tagged.map(|lobby| lobby.lobby_id.clone()).collect();
        let read = self.read_data(&tagged, Part::Tags, true).await?;
        let tags = read.into_iter().map(|(lobby_id, json)| {
            let tags = serde_json::from_str(json.get());
            let tags = tags.map_err(|error| Error::Bug(format!("a lobby's tags did not parse: {error}")))?;
            Ok((lobby_id, tags))
        });
        tags.collect()
    }

    async fn read_data(
        &self,
        ids: &[LobbyId],
        part: Part,
        is_consistent: bool,
    ) -> Result<Vec<(LobbyId, Box<RawValue>)>, Error> {
        let keys = ids.iter().map(|id| data_key(id, part)).collect();
        self.batch_get(&self.tables.lobby_data, keys, is_consistent)
            .await?
            .into_iter()
            .map(|item| from_item::<StoredData>(item)?.json())
            .collect()
    }
}

impl StoredData {
    fn json(self) -> Result<(LobbyId, Box<RawValue>), Error> {
        let json = RawValue::from_string(self.json)
            .map_err(|error| Error::Bug(format!("a lobby's data is not JSON: {error}")))?;
        Ok((self.lobby_id, json))
    }
}
