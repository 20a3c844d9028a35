//! The records: everything that is read out of a table, each type in one list, so that none is left out where all are tested.

use serde::de::{DeserializeOwned, IgnoredAny};

use super::{
    allotment::Allotment,
    captcha::CaptchaPass,
    catalog::{DomainOwner, NameOwner},
    cdn::Cdn,
    creation::Burst,
    deployments::Deployment,
    holds::HoldsItem,
    lobbies::{Candidate, LobbyCursor},
    lobby_data::StoredData,
    replays::ReplayRecord,
    secrets::Kept,
    servers::Server,
    shards::Sign,
    statistics::KeptCount,
    tokens::{CloudTokenRecord, IssuedToken, Noted},
    vain_searches::VainSearch,
};
use crate::{
    lobby::Lobby,
    settings::{Game, ListedVersion, Namespace, Version},
};

/// What an item can be read as ([`crate::record`]).
pub trait Record: DeserializeOwned {}

macro_rules! records {
    ($($record:ty,)*) => {
        $(impl Record for $record {})*

        #[cfg(test)]
        fn each_record() {
            $(tests::reads_what_a_later_release_stored::<$record>();)*
        }
    };
}

// That an item is there.
impl Record for IgnoredAny {}

records! {
    Allotment,
    Burst,
    Candidate,
    CaptchaPass,
    Cdn,
    CloudTokenRecord,
    Deployment,
    DomainOwner,
    Game,
    HoldsItem,
    IssuedToken,
    Kept,
    KeptCount,
    ListedVersion,
    Lobby,
    LobbyCursor,
    NameOwner,
    Namespace,
    Noted,
    ReplayRecord,
    Server,
    Sign,
    StoredData,
    VainSearch,
    Version,
    Version<serde_json::Value>,
}

#[cfg(test)]
mod tests;
