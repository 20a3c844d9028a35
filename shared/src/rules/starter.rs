//! Which starters a region may have.

use url::{Host, Url};

use crate::{
    models::starter::{EcsSettings, StarterSettings},
    rules::public_url::{self, URL_BYTES_MAX},
};

/// Longest name of something in AWS, in bytes.
const NAME_BYTES_MAX: usize = 512;
/// The most subnets, and security groups less, that ECS takes.
const SUBNETS_MAX: usize = 16;
const SECURITY_GROUPS_MAX: usize = 5;

/// What is wrong with a starter, and what to do; `None` when it may be a region's. `is_local` is whether the
/// deployment is one machine, which alone starts processes, and calls itself.
#[must_use]
pub fn mistake(settings: &StarterSettings, is_local: bool) -> Option<String> {
    match settings {
        StarterSettings::Process { .. } if !is_local => Some(
            "functions in AWS start no processes: name a webhook or ECS, or run the command with --local or --data"
                .to_owned(),
        ),
        StarterSettings::Process { command } => {
            command.first().is_none_or(String::is_empty).then(|| "name the program to start".to_owned())
        }
        StarterSettings::Webhook { url, secrets } => {
            let problem = if is_local && is_on_this_machine(url) {
                None
            } else {
                public_url::parse(url).err().map(|problem| match problem {
                    "not-https" => "must begin with https://",
                    "has-credentials" => "must not hold a password: its requests are signed",
                    "not-public" => "must be on the public Internet",
                    "too-long" => "is too long",
                    _ => "is not valid",
                })
            };
            match problem {
                Some(problem) => Some(format!("the webhook's URL {problem}")),
                None => secrets
                    .iter()
                    .any(|secret| secret.key().is_none())
                    .then(|| "the webhook's secret is not valid".to_owned()),
            }
        }
        StarterSettings::Ecs(_) if is_local => {
            Some("one machine starts no tasks: name a process or a webhook".to_owned())
        }
        StarterSettings::Ecs(ecs) => ecs_mistake(ecs),
        StarterSettings::Unknown => Some("this release does not know the starter".to_owned()),
    }
}

fn ecs_mistake(ecs: &EcsSettings) -> Option<String> {
    let EcsSettings { cluster, task_definition, container, subnets, security_groups, spot: _ } = ecs;
    let is_name = |text: &String| {
        (1..=NAME_BYTES_MAX).contains(&text.len())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_:/.".contains(c))
    };
    if ![cluster, task_definition, container].into_iter().all(is_name) {
        return Some("name cluster, task definition and container as ECS does".to_owned());
    }
    let are = |names: &[String], prefix: &str, most| {
        names.len() <= most && names.iter().all(|name| name.starts_with(prefix) && is_name(name))
    };
    if subnets.is_empty() || !are(subnets, "subnet-", SUBNETS_MAX) {
        return Some(format!("name one to {SUBNETS_MAX} subnets, such as subnet-0a1b2c3d"));
    }
    if !are(security_groups, "sg-", SECURITY_GROUPS_MAX) {
        return Some(format!("name at most {SECURITY_GROUPS_MAX} security groups, such as sg-0a1b2c3d"));
    }
    None
}

/// Whether `text` is a URL of http on the loopback interface.
fn is_on_this_machine(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else { return false };
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    is_loopback
        && matches!(url.scheme(), "http" | "https")
        && url.username().is_empty()
        && url.password().is_none()
        && text.len() <= URL_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{base::ambient::Ambient, models::starter::SigningSecret};

    fn webhook(url: &str) -> StarterSettings {
        let secrets = vec![SigningSecret::random(&Ambient::system())];
        StarterSettings::Webhook { url: url.to_owned(), secrets }
    }

    fn ecs(change: impl FnOnce(&mut EcsSettings)) -> StarterSettings {
        let mut settings = EcsSettings {
            cluster: "arn:aws:ecs:eu-central-1:123456789012:cluster/games".to_owned(),
            task_definition: "game:7".to_owned(),
            container: "game".to_owned(),
            subnets: vec!["subnet-0a".to_owned()],
            security_groups: vec!["sg-0a".to_owned()],
            spot: false,
        };
        change(&mut settings);
        StarterSettings::Ecs(settings)
    }

    #[test]
    fn a_webhook_is_public_unless_it_stays_on_the_machine_of_a_local_stack() {
        assert_eq!(mistake(&webhook("https://start.example/muster"), false), None);
        assert_eq!(mistake(&webhook("https://start.example/muster"), true), None);
        for url in ["http://127.0.0.1:9/", "http://localhost:9/start", "http://[::1]:9/"] {
            assert_eq!(mistake(&webhook(url), true), None, "{url}");
            assert!(mistake(&webhook(url), false).unwrap().contains("https://"), "{url}");
        }
        for (url, part) in [
            ("http://10.0.0.1/", "https://"),
            ("https://10.0.0.1/", "public Internet"),
            ("https://a:b@start.example/", "password"),
            ("start.example", "not valid"),
        ] {
            assert!(mistake(&webhook(url), true).unwrap().contains(part), "{url}");
        }
    }

    #[test]
    fn processes_are_of_local_stacks_and_tasks_of_aws() {
        let process = |command: &[&str]| StarterSettings::Process {
            command: command.iter().map(|&part| part.to_owned()).collect(),
        };
        assert_eq!(mistake(&process(&["./server"]), true), None);
        assert!(mistake(&process(&["./server"]), false).is_some());
        assert!(mistake(&process(&[]), true).is_some());
        assert!(mistake(&ecs(|_| ()), true).is_some());
        assert_eq!(mistake(&ecs(|_| ()), false), None);
        assert_eq!(mistake(&ecs(|ecs| ecs.security_groups.clear()), false), None);
        for wrong in [
            ecs(|ecs| ecs.cluster.clear()),
            ecs(|ecs| ecs.task_definition = "game 7".to_owned()),
            ecs(|ecs| ecs.subnets.clear()),
            ecs(|ecs| ecs.subnets = vec!["sg-0a".to_owned()]),
            ecs(|ecs| ecs.security_groups = vec!["subnet-0a".to_owned()]),
        ] {
            assert!(mistake(&wrong, false).is_some(), "{wrong:?}");
        }
        assert!(mistake(&StarterSettings::Unknown, false).is_some());
    }
}
