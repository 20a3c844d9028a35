//! `POST /cloud/games/{game_id}/namespaces`: a new namespace of the game, with its version.

use shared::{
    cloud::provision::{NewNamespace, add_namespace},
    function::{cloud_parts::CloudParts, config::InvalidConfig, instance::Instance, operation::Operation},
    models::{
        errors::Error,
        namespace::{LOBBY_COUNT_MAX_DEFAULT, MAX_PLAYERS_PER_CLIENT_DEFAULT},
    },
    request::Request,
    rules::names::namespace_violations,
    wire::{CreateNamespaceRequest, CreateNamespaceResponse},
};

/// The operation.
#[derive(Debug)]
pub struct CreateNamespace(CloudParts);

impl Operation for CreateNamespace {
    type Output = CreateNamespaceResponse;

    const NAME: &'static str = "create-namespace";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        CloudParts::of(instance).map(Self)
    }

    async fn call(&self, request: &Request) -> Result<CreateNamespaceResponse, Error> {
        let right = self.0.auth.game(request).await?;
        let CreateNamespaceRequest { display_name, version_id, name_id } = request.body()?;
        let violations = namespace_violations(&display_name, &name_id);
        if !violations.is_empty() {
            return Err(Error::Validation(violations));
        }
        let version_id = version_id.parse().map_err(|_| Error::VersionNotFound)?;
        let version = self.0.store.listed_version(right.game_id(), &version_id).await?;
        let version = version.ok_or(Error::VersionNotFound)?;
        let new = NewNamespace {
            name_id,
            display_name,
            lobby_count_max: LOBBY_COUNT_MAX_DEFAULT,
            max_players_per_client: MAX_PLAYERS_PER_CLIENT_DEFAULT,
        };
        let namespace = add_namespace(&self.0.store, &self.0.ambient, new, &version).await?;
        Ok(CreateNamespaceResponse { namespace_id: namespace.ok_or(Error::NameTaken)?.namespace_id })
    }
}
