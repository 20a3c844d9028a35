//! What the operations of a lobby server on its lobby share: the caller, the mock, the right.

use std::{future::Future, marker::PhantomData};

use crate::{
    auth::matchmaker::{LobbyRight, MatchmakerAuth},
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    hosting::lobby_server::LobbyServer,
    models::{errors::Error, token::TokenKind},
    request::Request,
    wire::values::Empty,
};

/// One operation of a lobby server on its lobby.
pub trait LobbyOperation: Send + Sync + 'static {
    /// As [`Operation::NAME`].
    const NAME: &'static str;

    /// Checks a developer's request, whose response is a mock.
    ///
    /// # Errors
    /// What is wrong with it.
    fn check_mock(request: &Request, auth: &MatchmakerAuth) -> Result<(), Error>;

    /// Does what the request asks for.
    fn call(call: LobbyCall<'_>) -> impl Future<Output = Result<(), Error>> + Send;
}

/// A call of such an operation.
#[derive(Clone, Copy, Debug)]
pub struct LobbyCall<'a> {
    /// The request, whose body is not checked yet.
    pub request: &'a Request,
    /// The right on the lobby.
    pub right: &'a LobbyRight,
    /// The lobbies.
    pub lobbies: &'a LobbyServer,
    /// Turns further tokens into rights.
    pub auth: &'a MatchmakerAuth,
}

/// The function of an operation on a lobby.
#[derive(Debug)]
pub struct OnLobby<O> {
    auth: MatchmakerAuth,
    lobbies: LobbyServer,
    operation: PhantomData<O>,
}

impl<O: LobbyOperation> Operation for OnLobby<O> {
    type Output = Empty;

    const NAME: &'static str = O::NAME;

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self {
            auth: instance.matchmaker_auth()?,
            lobbies: LobbyServer::new(instance.store()?, instance.ambient()),
            operation: PhantomData,
        })
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let caller = self.auth.caller(request, TokenKind::Lobby)?;
        if self.auth.developer(&caller).await?.is_some() {
            O::check_mock(request, &self.auth)?;
            return Ok(Empty {});
        }
        let right = self.auth.lobby(caller).await?;
        O::call(LobbyCall { request, right: &right, lobbies: &self.lobbies, auth: &self.auth }).await?;
        Ok(Empty {})
    }
}
