//! The records: every type that is read from a table, in one list, so that a test covers all of them.

use serde::de::IgnoredAny;

use crate::{
    models::{
        game::Game,
        lobby::Lobby,
        namespace::{Deployment, Namespace},
        server::Server,
        version::{ListedVersion, Version},
    },
    store::{
        actions::OperatorAction,
        allotment::Allotment,
        captcha::CaptchaPass,
        catalog::{DomainOwner, NameOwner},
        cdn::Cdn,
        creation::Burst,
        failed_searches::FailedSearch,
        holds::HoldsItem,
        items::Record,
        lobbies::{Candidate, LobbyCursor},
        lobby_data::StoredData,
        nursery::Nursery,
        replays::ReplayRecord,
        secrets::SecretsItem,
        starters::StarterItem,
        statistics::KeptCount,
        tokens::{CloudTokenRecord, IssuedToken, ListedToken},
    },
};

macro_rules! records {
    ($($record:ty,)*) => {
        $(impl Record for $record {})*

        #[cfg(test)]
        fn each_record() {
            $(tests::reads_what_a_later_release_stored::<$record>();)*
        }
    };
}

// An item of which only the existence matters.
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
    SecretsItem,
    StarterItem,
    KeptCount,
    ListedVersion,
    Lobby,
    LobbyCursor,
    NameOwner,
    Nursery,
    Namespace,
    ListedToken,
    OperatorAction,
    ReplayRecord,
    Server,
    StoredData,
    FailedSearch,
    Version,
    Version<serde_json::Value>,
}

#[cfg(test)]
mod tests;
