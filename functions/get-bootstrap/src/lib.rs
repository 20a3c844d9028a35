//! `GET /cloud/bootstrap`: the data that clients need for the cloud operations. It needs no token.

use shared::{
    function::{config::InvalidConfig, instance::Instance, operation::Operation},
    models::errors::Error,
    request::Request,
    wire::{
        BootstrapCaptcha, BootstrapResponse, DeploymentAccess, Domains, LoginMethods, Origins, Turnstile,
    },
};

/// The hub's origin, unless the deployment sets another.
const HUB_ORIGIN_DEFAULT: &str = "http://localhost:3000";

/// The operation, whose response the deployment's environment determines.
///
/// `MUSTER_ACCESS`: `private` (default) or `public`. `MUSTER_DOMAIN_MAIN`, `MUSTER_DOMAIN_CDN`,
/// `MUSTER_DOMAIN_JOB`: returned only when all three are set. `MUSTER_ORIGIN_HUB`: the hub's origin.
/// `MUSTER_TURNSTILE_SITE_KEY`: returned when set.
#[derive(Clone, Debug)]
pub struct GetBootstrap {
    answer: BootstrapResponse,
}

impl Operation for GetBootstrap {
    type Output = BootstrapResponse;

    const NAME: &'static str = "get-bootstrap";

    fn start(instance: &Instance) -> Result<Self, InvalidConfig> {
        let environment = instance.environment();
        let domain = |variable| environment.optional(variable);
        let domains = || {
            Some(Domains {
                main: domain("MUSTER_DOMAIN_MAIN")?,
                cdn: domain("MUSTER_DOMAIN_CDN")?,
                job: domain("MUSTER_DOMAIN_JOB")?,
            })
        };
        let turnstile =
            environment.optional("MUSTER_TURNSTILE_SITE_KEY").map(|site_key| Turnstile { site_key });
        let hub = environment.optional("MUSTER_ORIGIN_HUB").unwrap_or_else(|| HUB_ORIGIN_DEFAULT.to_owned());
        let answer = BootstrapResponse {
            access: environment.parsed::<DeploymentAccess>("MUSTER_ACCESS")?.unwrap_or_default(),
            captcha: BootstrapCaptcha { turnstile },
            cluster: "oss",
            domains: domains(),
            login_methods: LoginMethods { access_token: true, email: false },
            origins: Origins { hub },
        };
        Ok(Self { answer })
    }

    async fn call(&self, _request: &Request) -> Result<BootstrapResponse, Error> {
        Ok(self.answer.clone())
    }
}
