//! Who works with the command, and their consent to what ends something for players or cannot be undone.

use std::{
    env,
    io::{self, BufRead, IsTerminal as _, Write},
};

use clap::Args;

use crate::{CommandError, deployment::Deployment};

/// Variables with the name of the user, in the order in which they count.
const USER_VARIABLES: [&str; 3] = ["USER", "LOGNAME", "USERNAME"];
/// The most characters of a name that are kept.
const NAME_CHARS_MAX: usize = 128;

/// Who works in a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operator {
    /// The user of this machine, with the AWS profile if one is chosen.
    pub name: String,
    /// Whether they can answer a question.
    pub can_answer: bool,
}

impl Operator {
    /// The user of this process.
    pub fn here() -> Self {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.trim().is_empty());
        let user = USER_VARIABLES.iter().find_map(|name| variable(name));
        let profile = variable("AWS_PROFILE").map(|profile| format!(" (AWS profile {profile})"));
        let name = format!("{}{}", user.unwrap_or_else(|| "unknown".to_owned()), profile.unwrap_or_default());
        let name = name.chars().filter(|character| !character.is_control()).take(NAME_CHARS_MAX).collect();
        Self { name, can_answer: io::stdin().is_terminal() && io::stderr().is_terminal() }
    }

    /// The same user in the console, whose page asks its own questions.
    pub fn in_console(self) -> Self {
        Self { name: format!("{}, in the console", self.name), can_answer: false }
    }
}

/// Consent on the command line. Every verb that ends something for players or cannot be undone takes it.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Consent {
    /// Do it without asking. Needed where nobody can answer, as in scripts.
    #[arg(long)]
    pub yes: bool,
}

impl Consent {
    /// Returns once somebody agrees to `loss`, which says what the command is about to do and what is lost.
    ///
    /// # Errors
    /// [`CommandError::NotConfirmed`].
    pub fn to(self, loss: &str, Deployment { name, operator, .. }: &Deployment) -> Result<(), CommandError> {
        let what = format!("{name}: {loss}");
        if self.yes {
            return Ok(());
        }
        if !operator.can_answer {
            return Err(CommandError::NotConfirmed(format!(
                "{what}. Nothing was done: add --yes, or run it on a terminal, which asks"
            )));
        }
        if is_agreed(&what, &mut io::stdin().lock(), &mut io::stderr()) {
            return Ok(());
        }
        Err(CommandError::NotConfirmed("nothing was done".to_owned()))
    }
}

/// Asks, and returns whether the answer is yes.
fn is_agreed(what: &str, answers: &mut impl BufRead, questions: &mut impl Write) -> bool {
    let mut answer = String::new();
    let is_asked = write!(questions, "{what}. Go on? [y/N] ").and_then(|()| questions.flush()).is_ok();
    is_asked
        && answers.read_line(&mut answer).is_ok()
        && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_consent() {
        for (answer, is_consent) in
            [("y\n", true), ("YES\n", true), (" yes \n", true), ("\n", false), ("", false), ("no\n", false)]
        {
            let mut asked = Vec::new();
            assert_eq!(
                is_agreed("prod: ends a lobby", &mut answer.as_bytes(), &mut asked),
                is_consent,
                "{answer}"
            );
            assert_eq!(String::from_utf8(asked).unwrap(), "prod: ends a lobby. Go on? [y/N] ");
        }
    }
}
