//! `POST /matchmaker/servers/register`: registers a game server, on which lobbies may be placed.

use shared::{
    auth::matchmaker::MatchmakerAuth,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    hosting::game_server::GameServers,
    models::{errors::Error, ids::ServerId, token::TokenKind, warnings::Warning},
    request::Request,
    rules::{public_url::is_public_address, registration::Registration},
    wire::{RegisterServerRequest, RegisterServerResponse, lease_end},
};

/// The operation.
#[derive(Debug)]
pub struct RegisterServer {
    auth: MatchmakerAuth,
    servers: GameServers,
}

impl Operation for RegisterServer {
    type Output = RegisterServerResponse;

    const NAME: &'static str = "register-server";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self {
            auth: instance.matchmaker_auth()?,
            servers: GameServers::new(instance.store()?, instance.ambient()),
        })
    }

    async fn call(&self, request: &Request) -> Result<RegisterServerResponse, Error> {
        let caller = self.auth.caller(request, TokenKind::Server)?;
        if self.auth.developer(&caller).await?.is_some() {
            request.json()?;
            return Ok(RegisterServerResponse { server_id: ServerId::nil(), lease_expires_at: None });
        }
        let (right, settings) = self.auth.game_server(caller).await?;
        let body: RegisterServerRequest = request.body()?;
        // A process that Muster had started need not know the address that it has.
        let hostname = request.source_ip().filter(|_| right.only().is_some()).map(|ip| ip.to_string());
        let registration = Registration::check(&body, &settings.game, hostname.as_deref());
        let registration = registration.map_err(Error::InvalidServer)?;
        // A server of another network than this deployment's: a local stack's are on its own machine.
        if request.source_ip().is_some_and(is_public_address) {
            registration.private_hosts().for_each(|host| request.warn(Warning::NotPublic(host.to_owned())));
        }
        let server = self.servers.register(&right, body.server_id, &registration, &settings).await?;
        tracing::info!(server.id = %server.server.server_id, "a game server registered");
        Ok(RegisterServerResponse {
            server_id: server.server.server_id,
            lease_expires_at: lease_end(server.lease_until),
        })
    }
}
