//! The operator's commands as the console's page runs them: the same words on a deployment that is at hand.

use std::sync::Arc;

use clap::Parser;
use muster_console::host::{Commands, Problem, Refusal, Words};
use shared::{auth::keys::TokenKeys, base::ambient::Ambient, store::client::Store};

use crate::{
    cdn,
    command::Topic,
    config_file::ConfigSource,
    deed::{Deed, noted},
    deployment::{Deployment, KeySource},
    error::{self, CommandError},
    game, lobby, namespace,
    operator::Operator,
    token, version,
};

/// A command without its first word and without the deployment.
#[derive(Debug, Parser)]
#[command(name = "muster", no_binary_name = true, disable_help_flag = true)]
struct Line {
    #[command(subcommand)]
    topic: Topic,
}

/// The commands on the deployment of `store`, for a process that holds its keys.
#[must_use]
pub fn commands(store: Store, keys: Arc<TokenKeys>, ambient: Ambient, name: String) -> Commands {
    let deployment = Deployment {
        store,
        ambient,
        name,
        key: KeySource::Held(keys),
        #[cfg(feature = "aws")]
        api_url: None,
        #[cfg(feature = "aws")]
        api_host: None,
        server_concurrency: None,
        operator: Operator::here(),
    };
    commands_on(deployment, true)
}

/// The commands on a deployment; only those that change nothing, unless it `may_change`.
pub(crate) fn commands_on(deployment: Deployment, may_change: bool) -> Commands {
    let operator = deployment.operator.clone().in_console();
    let deployment = Arc::new(Deployment { operator, ..deployment });
    Arc::new(move |words| {
        let deployment = Arc::clone(&deployment);
        Box::pin(async move {
            let topic = read(words)?;
            let deed = Deed::of(&topic);
            if !may_change && deed.is_some() {
                return Err("this console may only look".to_owned().into());
            }
            let done = noted(deed, &deployment, topic.run(&deployment)).await;
            Ok(done.map_err(refusal)?.json)
        })
    })
}

/// The command that `words` say, which touches nothing but the deployment: a page names no file of this
/// machine.
fn read(words: Words) -> Result<Topic, Refusal> {
    let line = Line::try_parse_from(words.words).map_err(|error| Refusal::from(error.to_string()))?;
    let mut topic = line.topic;
    let given = words.text.map(ConfigSource::Text);
    match (&mut topic, given) {
        (
            Topic::Version(version::Action::Create { file, .. } | version::Action::Validate { file, .. }),
            Some(text),
        ) => *file = text,
        (
            Topic::Version(
                version::Action::List(_)
                | version::Action::Show { .. }
                | version::Action::Set { .. }
                | version::Action::History { .. }
                | version::Action::Delete { .. },
            )
            | Topic::Game(game::Action::List | game::Action::Show(_))
            | Topic::Namespace(
                namespace::Action::Create { .. } | namespace::Action::List(_) | namespace::Action::Show(_),
            )
            | Topic::MmConfig(_)
            | Topic::Token(
                token::Action::Create(_)
                | token::Action::List(_)
                | token::Action::Revoke { .. }
                | token::Action::RevokeAll { .. },
            )
            | Topic::Domain(
                cdn::DomainAction::List(_) | cdn::DomainAction::Add { .. } | cdn::DomainAction::Remove { .. },
            )
            | Topic::Lobby(lobby::Action::Explain { .. } | lobby::Action::End { .. })
            | Topic::Doctor
            | Topic::History { .. }
            | Topic::Server(lobby::ServerAction::Remove { .. }),
            None,
        ) => {}
        _ => return Err("the console does not run this command; a terminal does".to_owned().into()),
    }
    Ok(topic)
}

fn refusal(error: CommandError) -> Refusal {
    let message = error.to_string();
    let problems = match error {
        CommandError::BrokenRules { problems, .. } => {
            let problem = |broken: error::Problem| Problem { line: broken.line, problem: broken.at };
            problems.into_iter().map(problem).collect()
        }
        _ => Vec::new(),
    };
    Refusal { message, problems }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(words: &[&str], text: Option<&str>) -> Result<Topic, Refusal> {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        read(Words { words, text: text.map(ToOwned::to_owned) })
    }

    #[test]
    fn a_page_names_no_file_and_begins_no_program() {
        for words in [
            &["version", "validate", "/etc/passwd"][..],
            &["version", "create", "demo", "/etc/passwd"],
            &["game", "import", "/etc/passwd"],
            &["game", "create", "x", "--region", "fra=F@1,2", "--config", "/etc/passwd"],
            &["cdn", "user", "set", "demo/prod", "somebody"],
            &["completions", "bash"],
        ] {
            assert!(says(words, None).is_err(), "{words:?}");
        }
        assert!(says(&["game", "import", "x"], Some("{}")).is_err());
        assert!(says(&["token", "list", "demo"], None).is_ok());
    }

    #[test]
    fn a_command_that_changes_something_is_none_of_those_that_only_read() {
        let only_reads = |words: &[&str], text| Deed::of(&says(words, text).unwrap()).is_none();
        for words in [
            &["version", "list", "demo"][..],
            &["version", "history", "demo/prod"],
            &["game", "show", "demo"],
            &["namespace", "show", "demo/prod"],
            &["token", "list", "demo"],
            &["domain", "list", "demo/prod"],
        ] {
            assert!(only_reads(words, None), "{words:?}");
        }
        for words in [
            &["version", "set", "demo/prod", "1"][..],
            &["version", "delete", "demo", "1"],
            &["namespace", "create", "demo/new", "--version", "1"],
            &["mm-config", "demo/prod", "--lobby-count-max", "1"],
            &["token", "create", "public", "demo/prod"],
            &["token", "revoke", "demo", "00000000-0000-4000-8000-000000000000"],
            &["token", "revoke-all", "demo/prod", "public"],
            &["domain", "add", "demo/prod", "game.example"],
            &["domain", "remove", "demo/prod", "game.example"],
            &["lobby", "end", "00000000-0000-4000-8000-000000000000"],
            &["server", "remove", "demo/prod", "one"],
        ] {
            assert!(!only_reads(words, None), "{words:?}");
        }
        assert!(!only_reads(&["version", "create", "demo", "-"], Some("{}")));
    }

    #[test]
    fn an_editors_text_stands_for_the_file() {
        let topic = says(&["version", "validate", "-", "--game", "demo"], Some("{ oops")).unwrap();
        let Topic::Version(version::Action::Validate { file, .. }) = topic else { panic!("{topic:?}") };
        let error = crate::config_file::read(&file).unwrap_err();
        assert_eq!(refusal(error).problems[0].line, Some(1));
    }
}
