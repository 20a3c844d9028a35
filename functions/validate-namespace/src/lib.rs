//! `POST /cloud/games/{game_id}/namespaces/validate`: the violations of a new namespace, without creating it.

use shared::{
    auth::cloud::CloudAuth,
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    rules::names::{is_name_id, namespace_violations},
    store::client::Store,
    wire::{ValidateNamespaceRequest, ValidationResponse},
};

/// The operation.
#[derive(Debug)]
pub struct ValidateNamespace {
    auth: CloudAuth,
    store: Store,
}

impl Operation for ValidateNamespace {
    type Output = ValidationResponse;

    const NAME: &'static str = "validate-namespace";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        Ok(Self { auth: instance.cloud_auth()?, store: instance.store()? })
    }

    async fn call(&self, request: &Request) -> Result<ValidationResponse, Error> {
        let game_id = request.path("game_id")?;
        let right = self.auth.game(request, &game_id).await?;
        let ValidateNamespaceRequest { display_name, name_id } = request.body()?;
        let mut violations = namespace_violations(&display_name, &name_id);
        if is_name_id(&name_id) && self.store.has_namespace(right.game_id(), &name_id).await? {
            violations.add(&["name-id", "not-unique"], "a name that no other namespace of the game has");
        }
        Ok(ValidationResponse::new(violations))
    }
}
