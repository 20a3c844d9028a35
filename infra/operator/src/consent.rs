//! Consent to what ends something for players or cannot be undone.

use std::io::{self, BufRead, Write};

use clap::Args;

use crate::{deployment::Deployment, error::CommandError};

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
