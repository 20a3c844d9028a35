//! `POST /cloud/games/{game_id}/namespaces/{namespace_id}/mm-config`: how many lobbies, how many players of
//! one client.

use shared::{
    auth::cloud::CloudAuth,
    function::operation::Operation,
    models::errors::Error,
    request::Request,
    rules::matchmaker_config::validate,
    store::client::Store,
    wire::{MatchmakerConfigRequest, values::Empty},
};

/// The operation.
#[derive(Debug)]
pub struct UpdateMatchmakerConfig {
    auth: CloudAuth,
    store: Store,
}

impl UpdateMatchmakerConfig {
    /// The operation on `store`, for whom `auth` lets in.
    #[must_use]
    pub const fn new(auth: CloudAuth, store: Store) -> Self {
        Self { auth, store }
    }
}

impl Operation for UpdateMatchmakerConfig {
    type Output = Empty;

    const NAME: &'static str = "update-matchmaker-config";

    async fn call(&self, request: &Request) -> Result<Empty, Error> {
        let (game_id, namespace_id) = (request.path("game_id")?, request.path("namespace_id")?);
        let right = self.auth.namespace(request, &game_id, &namespace_id).await?;
        let body: MatchmakerConfigRequest = request.body()?;
        let violations = validate(body.lobby_count_max, body.max_players);
        if !violations.is_empty() {
            return Err(Error::Validation(violations));
        }
        self.store.set_matchmaker_config(&right, body.lobby_count_max, body.max_players).await?;
        Ok(Empty {})
    }
}
