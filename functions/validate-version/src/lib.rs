//! `POST /cloud/games/{game_id}/versions/validate`: the violations of a new version, without creating it.

use shared::{
    function::{cloud_parts::CloudParts, config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    wire::{CreateVersionRequest, ValidationResponse},
};

/// The operation.
#[derive(Debug)]
pub struct ValidateVersion(CloudParts);

impl Operation for ValidateVersion {
    type Output = ValidationResponse;

    const NAME: &'static str = "validate-version";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        CloudParts::of(instance).map(Self)
    }

    async fn call(&self, request: &Request) -> Result<ValidationResponse, Error> {
        let right = self.0.auth.game(request).await?;
        let game = self.0.store.game(right.game_id()).await?.ok_or(Error::NotFound)?;
        let (_body, violations) = CreateVersionRequest::read(request, &game)?;
        Ok(ValidationResponse::new(violations))
    }
}
