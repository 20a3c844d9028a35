//! `POST /cloud/games/{game_id}/namespaces/validate`: the violations of a new namespace, without creating it.

use shared::{
    function::{cloud_parts::CloudParts, config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    rules::names::{is_name_id, namespace_violations},
    wire::{ValidateNamespaceRequest, ValidationResponse},
};

/// The operation.
#[derive(Debug)]
pub struct ValidateNamespace(CloudParts);

impl Operation for ValidateNamespace {
    type Output = ValidationResponse;

    const NAME: &'static str = "validate-namespace";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        CloudParts::of(instance).map(Self)
    }

    async fn call(&self, request: &Request) -> Result<ValidationResponse, Error> {
        let right = self.0.auth.game(request).await?;
        let ValidateNamespaceRequest { display_name, name_id } = request.body()?;
        let mut violations = namespace_violations(&display_name, &name_id);
        if is_name_id(&name_id) && self.0.store.has_namespace(right.game_id(), &name_id).await? {
            violations.add(&["name-id", "not-unique"], "a name that no other namespace of the game has");
        }
        Ok(ValidationResponse::new(violations))
    }
}
