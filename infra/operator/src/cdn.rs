//! Access to a namespace's pages: authentication, users, domains.

use std::io::{IsTerminal as _, Read as _};

use clap::{Subcommand, ValueEnum};
use serde_json::json;
use shared::{
    base::ambient::time,
    models::{errors::Error, namespace::CdnAuthType},
    rules::{
        bcrypt_hash::{BcryptHash, COST_MAX},
        cdn_user::CdnUserName,
        origin::OriginHost,
    },
    store::cdn::{CdnUserOutcome, DomainOutcome},
};

use crate::{
    consent::Consent,
    deployment::Deployment,
    error::CommandError,
    lookup::{self, NamespaceName, OfNamespace},
    report::{Report, Reported, counted},
};

/// The cost of new hashes: a quarter of a second.
const BCRYPT_COST: u32 = 12;
/// The longest password that bcrypt reads, in bytes.
const PASSWORD_BYTES_MAX: usize = 72;

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Sets how visitors are authenticated.
    Auth {
        /// The namespace.
        #[arg(value_name = "GAME/NAMESPACE")]
        namespace: NamespaceName,
        /// The type of authentication.
        auth_type: AuthType,
    },
    /// The users for HTTP Basic.
    #[command(subcommand)]
    User(UserAction),
}

#[derive(Clone, Copy, Debug, ValueEnum, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum AuthType {
    /// No authentication.
    None,
    /// HTTP Basic, with the namespace's users.
    Basic,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UserAction {
    /// Lists the users.
    List(OfNamespace),
    /// Adds a user, or sets another password. Prompts for it, or reads it from standard input if that is not
    /// a terminal.
    Set {
        /// The namespace.
        #[arg(value_name = "GAME/NAMESPACE")]
        namespace: NamespaceName,
        /// The user's name: 1 to 128 characters without `:` and control characters.
        #[arg(value_parser = |text: &str| text.parse::<CdnUserName>())]
        user: CdnUserName,
    },
    /// Removes a user.
    Remove {
        /// The namespace.
        #[arg(value_name = "GAME/NAMESPACE")]
        namespace: NamespaceName,
        /// The user's name.
        #[arg(value_parser = |text: &str| text.parse::<CdnUserName>())]
        user: CdnUserName,
        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum DomainAction {
    /// Lists the domains.
    List(OfNamespace),
    /// Adds a domain that no other namespace of the deployment has.
    Add {
        /// The namespace.
        #[arg(value_name = "GAME/NAMESPACE")]
        namespace: NamespaceName,
        /// The host name, without scheme and port.
        #[arg(value_parser = |text: &str| text.parse::<OriginHost>())]
        domain: OriginHost,
    },
    /// Removes a domain.
    Remove {
        /// The namespace.
        #[arg(value_name = "GAME/NAMESPACE")]
        namespace: NamespaceName,
        /// The host name.
        #[arg(value_parser = |text: &str| text.parse::<OriginHost>())]
        domain: OriginHost,
        #[command(flatten)]
        consent: Consent,
    },
    /// Sets whether pages of the domains need no token.
    PublicAuth {
        /// The namespace.
        #[arg(value_name = "GAME/NAMESPACE")]
        namespace: NamespaceName,
        /// On or off.
        switch: Switch,
        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Switch {
    On,
    Off,
}

pub(crate) async fn run(action: Action, deployment: &Deployment) -> Reported {
    match action {
        Action::Auth { namespace, auth_type } => auth(namespace, auth_type, deployment).await,
        Action::User(UserAction::List(of)) => list_users(of, deployment).await,
        Action::User(UserAction::Set { namespace, user }) => set_user(namespace, user, deployment).await,
        Action::User(UserAction::Remove { namespace, user, consent }) => {
            remove_user(namespace, user, consent, deployment).await
        }
    }
}

/// Sets how visitors are authenticated.
async fn auth(namespace: NamespaceName, auth_type: AuthType, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let (_, right) = lookup::namespace(store, &namespace).await?;
    let auth_type = match auth_type {
        AuthType::None => CdnAuthType::None,
        AuthType::Basic => CdnAuthType::Basic,
    };
    store.set_cdn_auth_type(&right, auth_type).await?;
    Ok(Report::done())
}

async fn list_users(of: OfNamespace, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let (_, right) = lookup::namespace(store, &of.namespace).await?;
    let users = store.cdn_settings(&right).await?.users;
    Ok(Report::of_each("users", ["user"], users, |user| ([user.clone()], json!(user))))
}

/// Adds a user, or sets another password.
async fn set_user(namespace: NamespaceName, user: CdnUserName, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let (_, right) = lookup::namespace(store, &namespace).await?;
    let password = read_password(&user)?;
    let hash = bcrypt::hash(&password, BCRYPT_COST).map_err(|error| Error::Bug(error.to_string()))?;
    let hash = BcryptHash::parse(&hash, COST_MAX).map_err(|error| Error::Bug(error.to_string()))?;
    match store.set_cdn_user(&right, &user, &hash).await? {
        CdnUserOutcome::Set => Ok(Report::done()),
        CdnUserOutcome::TooMany => Err(Error::TooManyAuthUsers.into()),
    }
}

async fn remove_user(
    namespace: NamespaceName,
    user: CdnUserName,
    consent: Consent,
    deployment: &Deployment,
) -> Reported {
    let store = &deployment.store;
    let (_, right) = lookup::namespace(store, &namespace).await?;
    consent
        .to(&format!("removes the user {} of {namespace} with the password", user.as_str()), deployment)?;
    store.remove_cdn_user(&right, &user).await?;
    Ok(Report::done())
}

pub(crate) async fn run_on_domains(action: DomainAction, deployment: &Deployment) -> Reported {
    match action {
        DomainAction::List(of) => list_domains(of, deployment).await,
        DomainAction::Add { namespace, domain } => add_domain(namespace, domain, deployment).await,
        DomainAction::Remove { namespace, domain, consent } => {
            remove_domain(namespace, domain, consent, deployment).await
        }
        DomainAction::PublicAuth { namespace, switch, consent } => {
            public_auth(namespace, switch, consent, deployment).await
        }
    }
}

async fn list_domains(of: OfNamespace, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let (_, right) = lookup::namespace(store, &of.namespace).await?;
    let domains = store.cdn_settings(&right).await?.domains;
    Ok(Report::of_each("domains", ["domain", "added"], domains, |(domain, added)| {
        let json = json!({ "domain": domain, "create_ts": time(added) });
        ([domain, time(added)], json)
    }))
}

async fn add_domain(namespace: NamespaceName, domain: OriginHost, deployment: &Deployment) -> Reported {
    let store = &deployment.store;
    let (_, right) = lookup::namespace(store, &namespace).await?;
    match store.add_domain(&right, &domain, deployment.ambient.now()).await? {
        DomainOutcome::Added => {
            Ok(Report { text: format!("{domain} is added"), json: json!({ "domain": domain.as_str() }) })
        }
        DomainOutcome::Taken => Err(Error::DomainTaken.into()),
        DomainOutcome::TooMany => Err(Error::TooManyDomains.into()),
    }
}

async fn remove_domain(
    namespace: NamespaceName,
    domain: OriginHost,
    consent: Consent,
    deployment: &Deployment,
) -> Reported {
    let store = &deployment.store;
    let (_, right) = lookup::namespace(store, &namespace).await?;
    let loss = format!("removes {domain} from {namespace}, so that its pages need a token");
    consent.to(&loss, deployment)?;
    store.remove_domain(&right, &domain).await?;
    Ok(Report::done())
}

/// Sets whether pages of the domains need no token.
async fn public_auth(
    namespace: NamespaceName,
    switch: Switch,
    consent: Consent,
    deployment: &Deployment,
) -> Reported {
    let store = &deployment.store;
    let (_, right) = lookup::namespace(store, &namespace).await?;
    if matches!(switch, Switch::Off) {
        let domains = store.cdn_settings(&right).await?.domains.len();
        let loss =
            format!("pages of {} of {namespace} need a token from then on", counted(domains, "domain"));
        consent.to(&loss, deployment)?;
    }
    store.set_domain_public_auth(&right, matches!(switch, Switch::On)).await?;
    Ok(Report::done())
}

/// Prompts for a password without echo, twice, or reads the first line of the piped input.
fn read_password(user: &CdnUserName) -> Result<String, CommandError> {
    let refused = |problem: &str| CommandError::Refused(problem.to_owned());
    let unreadable =
        |error: std::io::Error| CommandError::Refused(format!("cannot read a password: {error}"));
    let password = if std::io::stdin().is_terminal() {
        let first =
            rpassword::prompt_password(format!("Password of {}: ", user.as_str())).map_err(unreadable)?;
        let second = rpassword::prompt_password("Again: ").map_err(unreadable)?;
        if first != second {
            return Err(refused("the passwords differ; nothing was changed"));
        }
        first
    } else {
        let mut text = String::new();
        std::io::stdin().take(1_024).read_to_string(&mut text).map_err(unreadable)?;
        text.lines().next().unwrap_or_default().to_owned()
    };
    if password.is_empty() {
        return Err(refused("a password is required, at the terminal or piped in"));
    }
    if password.len() > PASSWORD_BYTES_MAX {
        return Err(refused("bcrypt takes passwords of at most 72 bytes"));
    }
    Ok(password)
}
