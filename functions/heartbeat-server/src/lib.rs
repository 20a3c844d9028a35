//! `POST /matchmaker/servers/heartbeat`: renews a game server's lease, and lists its lobbies.

use std::collections::HashMap;

use shared::{
    auth::matchmaker::{GameServerRight, MatchmakerAuth},
    base::ambient::{Ambient, time},
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    hosting::game_server::{GameServers, Heartbeat},
    models::{
        errors::{Error, bad_body},
        ids::LobbyId,
        lobby::Lobby,
        token::TokenKind,
    },
    request::Request,
    store::{client::Store, lobby_data::Part},
    wire::{HeartbeatRequest, HeartbeatResponse, HeldSeats, ServerLobby, lease_end},
};

/// The operation.
#[derive(Debug)]
pub struct HeartbeatServer {
    auth: MatchmakerAuth,
    store: Store,
    servers: GameServers,
    ambient: Ambient,
}

impl HeartbeatServer {
    async fn reply(&self, right: &GameServerRight, heartbeat: Heartbeat) -> Result<HeartbeatResponse, Error> {
        let Heartbeat { server, lobbies, next } = heartbeat;
        let configured = lobbies.iter().filter(|lobby| lobby.has_config);
        let configured: Vec<LobbyId> = configured.map(|lobby| lobby.lobby_id.clone()).collect();
        let mut configs: HashMap<_, _> =
            self.store.lobby_data(&configured, Part::Config).await?.into_iter().collect();
        let mut tags = self.store.lobby_tags(&lobbies).await?;
        let now = self.ambient.now();
        let server_lobby = |lobby: Lobby| {
            let connected = lobby.connected_seats(now);
            let seats = HeldSeats { reserved: lobby.held_seats(now) - connected, connected };
            let Lobby { lobby_id, pool, max_players, created_at, .. } = lobby;
            let claims = right.lobby_claims(lobby_id.clone());
            ServerLobby {
                lobby_token: self.auth.keys().issue_lobby(&claims, now),
                game_mode: pool.game_mode,
                region_id: pool.region_id,
                tags: tags.remove(&lobby_id).unwrap_or_default(),
                max_players,
                seats,
                lobby_config: configs.remove(&lobby_id),
                created_at: time(created_at),
                lobby_id,
            }
        };
        Ok(HeartbeatResponse {
            lease_expires_at: lease_end(server.lease_until),
            draining: server.is_deregistered() && !server.is_stopping(),
            stop: server.is_stopping(),
            cursor: next.map(|cursor| cursor.to_string()),
            lobbies: lobbies.into_iter().map(server_lobby).collect(),
        })
    }
}

impl Operation for HeartbeatServer {
    type Output = HeartbeatResponse;

    const NAME: &'static str = "heartbeat-server";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        let (store, ambient) = (instance.store()?, instance.ambient());
        let servers = GameServers::new(store.clone(), ambient.clone());
        Ok(Self { auth: instance.matchmaker_auth()?, servers, store, ambient })
    }

    async fn call(&self, request: &Request) -> Result<HeartbeatResponse, Error> {
        let caller = self.auth.caller(request, TokenKind::Server)?;
        if self.auth.developer(&caller).await?.is_some() {
            request.json()?;
            return Ok(HeartbeatResponse {
                lease_expires_at: None,
                draining: false,
                stop: false,
                cursor: None,
                lobbies: Vec::new(),
            });
        }
        let (right, _settings) = self.auth.game_server(caller).await?;
        let body: HeartbeatRequest = request.body()?;
        let cursor = body.cursor.map(|cursor| cursor.parse()).transpose();
        let cursor =
            cursor.map_err(|_| bad_body("cursor", "must be the cursor of a heartbeat's response"))?;
        let heartbeat =
            self.servers.heartbeat(&right, (body.server_id, body.start_id.as_ref()), cursor.as_ref()).await?;
        self.reply(&right, heartbeat).await
    }
}
