//! Who works with the command.

use std::{
    env,
    io::{self, IsTerminal as _},
};

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
    /// Whether they work in the console, whose page has no standard input.
    pub is_in_console: bool,
}

impl Operator {
    /// The user of this process.
    pub fn here() -> Self {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.trim().is_empty());
        let user = USER_VARIABLES.iter().find_map(|name| variable(name));
        let profile = variable("AWS_PROFILE").map(|profile| format!(" (AWS profile {profile})"));
        let name = format!("{}{}", user.unwrap_or_else(|| "unknown".to_owned()), profile.unwrap_or_default());
        let name = name.chars().filter(|character| !character.is_control()).take(NAME_CHARS_MAX).collect();
        Self {
            name,
            can_answer: io::stdin().is_terminal() && io::stderr().is_terminal(),
            is_in_console: false,
        }
    }

    /// The same user in the console, whose page asks its own questions.
    pub fn in_console(self) -> Self {
        Self { name: format!("{}, in the console", self.name), can_answer: false, is_in_console: true }
    }
}
