//! A studio's own game in a file, applied again whenever the file changes.

use std::{path::PathBuf, sync::Arc, time::Duration};

use muster::{Applied, CommandError, OwnGame};
use shared::{
    base::{ambient::Ambient, log::LINES},
    models::namespace::Namespace,
    store::client::Store,
};

use crate::{demo::CurrentDemo, requests::clock};

/// The namespace that the stack shows, where the file has it; else the file's first one.
const MAIN: &str = "prod";

/// A file with a game.
#[derive(Debug)]
pub struct FollowedFile {
    path: PathBuf,
    name_id: String,
    /// Its last text or why it could not be read, and whether that was applied or refused.
    last: Result<String, String>,
    is_settled: bool,
}

impl FollowedFile {
    /// Reads a file and the game in it.
    ///
    /// # Errors
    /// [`CommandError`], when it cannot be read or breaks a rule.
    pub fn read(path: PathBuf) -> Result<(Self, OwnGame), CommandError> {
        let text = OwnGame::text_of(&path)?;
        let game = OwnGame::parse(&path, &text)?;
        let name_id = game.name_id().to_owned();
        Ok((Self { path, name_id, last: Ok(text), is_settled: true }, game))
    }

    /// Where it is, for people.
    #[must_use]
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Applies the file whenever it changes, for as long as the process runs. Reads it once a `period`.
    pub async fn follow(
        mut self,
        period: Duration,
        store: Store,
        ambient: Ambient,
        current: Arc<CurrentDemo>,
    ) {
        loop {
            ambient.sleep(period).await;
            let text = OwnGame::text_of(&self.path).map_err(|error| error.to_string());
            let Some(news) = self.news(text) else { continue };
            let outcome = match news {
                Ok(text) => self.apply(&text, &store, &ambient).await,
                Err(problem) => Err(problem),
            };
            let (at, name) = (clock(ambient.now()), self.name());
            match outcome {
                Ok(changes) if changes.is_empty() => {
                    tracing::info!(target: LINES, "{at} {name}: nothing to change");
                }
                Ok(changes) => {
                    current.renew(&store).await;
                    for change in changes {
                        tracing::info!(target: LINES, "{at} {name}: {change}");
                    }
                }
                Err(problem) => {
                    tracing::error!(target: LINES, "{at} not applied, all stays as it was: {problem}");
                }
            }
        }
    }

    /// Reads the file again and applies it. Returns what changed.
    ///
    /// # Errors
    /// Why it changed nothing, in words.
    pub async fn apply_again(&self, store: &Store, ambient: &Ambient) -> Result<Vec<String>, String> {
        let text = OwnGame::text_of(&self.path).map_err(|error| error.to_string())?;
        self.apply(&text, store, ambient).await
    }

    /// Returns a new text or problem once, as soon as two consecutive reads agree: an editor may still be
    /// writing.
    fn news(&mut self, text: Result<String, String>) -> Option<Result<String, String>> {
        if text != self.last {
            self.last = text;
            self.is_settled = false;
            return None;
        }
        let is_new = !self.is_settled;
        self.is_settled = true;
        is_new.then(|| self.last.clone())
    }

    async fn apply(&self, text: &str, store: &Store, ambient: &Ambient) -> Result<Vec<String>, String> {
        let game = OwnGame::parse(&self.path, text).map_err(|error| error.to_string())?;
        if game.name_id() != self.name_id {
            return Err(format!(
                "the game is `{}` now, no longer `{}`; restart for another game",
                game.name_id(),
                self.name_id
            ));
        }
        let applied = game.apply(store, ambient).await.map_err(|error| error.to_string())?;
        Ok(applied.changes)
    }
}

/// The namespaces of a game that the stack shows: the main one first.
#[must_use]
pub fn shown(applied: &Applied) -> Option<[&Namespace; 2]> {
    let all = &applied.namespaces;
    let main = all.iter().find(|namespace| namespace.name_id == MAIN).or_else(|| all.first())?;
    let other = all.iter().find(|namespace| namespace.namespace_id != main.namespace_id);
    Some([main, other.unwrap_or(main)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_news_once_and_only_after_two_equal_reads() {
        let is = |text: &str| Ok(text.to_owned());
        let (path, name_id) = (PathBuf::from("game.json"), "mine".to_owned());
        let mut file = FollowedFile { path, name_id, last: is("one"), is_settled: true };
        assert_eq!(file.news(is("one")), None, "it was read at the start");
        assert_eq!(file.news(is("tw")), None, "an editor writes it");
        assert_eq!(file.news(is("two")), None);
        assert_eq!(file.news(is("two")), Some(is("two")));
        assert_eq!(file.news(is("two")), None, "it is no news any more");
        let gone = || Err("cannot read".to_owned());
        assert_eq!(file.news(gone()), None, "an editor replaces it");
        assert_eq!(file.news(is("three")), None);
        assert_eq!(file.news(is("three")), Some(is("three")));
        assert_eq!((file.news(gone()), file.news(gone())), (None, Some(gone())));
        assert_eq!((file.news(is("three")), file.news(is("three"))), (None, Some(is("three"))));
    }
}
