//! The starters of regions: the kind in the game's record, the settings in the table of secrets, one item for
//! each game and region.

use serde::{Deserialize, Serialize};

use crate::{
    models::{
        errors::Error,
        ids::{GameId, RegionId},
        starter::StarterSettings,
    },
    store::{
        client::Store,
        items::{Item, text, to_item, to_value},
        keys::{game_key, key},
        writes::Write,
    },
};

/// The item, in the place of a version: its key is `starter/<game>/<region>`, which is no version's.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StarterItem {
    version_id: String,
    starter: StarterSettings,
}

fn starter_key(game_id: &GameId, region_id: &RegionId) -> String {
    format!("starter/{game_id}/{region_id}")
}

fn starter_item(game_id: &GameId, region_id: &RegionId) -> Item {
    Item::from([("version_id".to_owned(), text(starter_key(game_id, region_id)))])
}

impl Store {
    /// Sets how game servers of a region are started, and returns whether the game has the region. Four write
    /// units.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn set_starter(
        &self,
        game_id: &GameId,
        region_id: &RegionId,
        starter: StarterSettings,
    ) -> Result<bool, Error> {
        let region = self
            .on_region(game_id, region_id)
            .change("SET #regions.#id.#starter = :kind")
            .with(":kind", to_value(starter.kind())?);
        let item = to_item(&StarterItem { version_id: starter_key(game_id, region_id), starter })?;
        let parts = vec![region, Write::put(&self.tables.secrets, item)];
        Ok(self.together(parts).await?.is_empty())
    }

    /// Has no game servers started in a region any more, and returns whether the game has the region. Four
    /// write units.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn remove_starter(&self, game_id: &GameId, region_id: &RegionId) -> Result<bool, Error> {
        let region = self.on_region(game_id, region_id).change("REMOVE #regions.#id.#starter");
        let settings = Write::to(&self.tables.secrets, starter_item(game_id, region_id)).delete();
        Ok(self.together(vec![region, settings]).await?.is_empty())
    }

    /// How game servers of a region are started; `None` when they are not. One consistent read unit.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Bug`].
    pub async fn starter(
        &self,
        game_id: &GameId,
        region_id: &RegionId,
    ) -> Result<Option<StarterSettings>, Error> {
        let item: Option<StarterItem> =
            self.read(&self.tables.secrets, starter_item(game_id, region_id), true).await?;
        Ok(item.map(|item| item.starter))
    }

    fn on_region(&self, game_id: &GameId, region_id: &RegionId) -> Write {
        self.on_catalog(key(game_key(game_id), "GAME".to_owned()))
            .when("attribute_exists(#regions.#id)")
            .name("#id", region_id.as_str())
    }
}
