//! `POST /matchmaker/servers/deregister`: removes a game server. Its lobbies close, and end when they are
//! empty.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    hosting::game_server::GameServers,
    models::{errors::Error, token::TokenKind},
    request::Request,
    wire::{DeregisterServerRequest, values::Empty},
};

/// The operation.
#[derive(Debug)]
pub struct DeregisterServer {
    auth: MatchmakerAuth,
    servers: GameServers,
}

impl Operation for DeregisterServer {
    type Output = Empty;

    const NAME: &'static str = "deregister-server";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self {
            auth: instance.matchmaker_auth()?,
            servers: GameServers::new(instance.store()?, instance.ambient()),
        })
    }

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let caller = self.auth.caller(request, TokenKind::Server)?;
        if self.auth.developer(&caller).await?.is_some() {
            request.json()?;
            return Ok(Empty {});
        }
        let (right, _settings) = self.auth.game_server(caller).await?;
        let body: DeregisterServerRequest = request.body()?;
        let ends_lobbies = body.end_lobbies.unwrap_or(false);
        self.servers.deregister(&right, (body.server_id, body.start_id.as_ref()), ends_lobbies).await?;
        Ok(Empty {})
    }
}
