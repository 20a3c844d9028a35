//! The page's files, as they are in `page/`.

/// A file of the page.
pub struct File {
    /// Its name below `/_console/`.
    pub name: &'static str,
    /// Its type.
    pub content_type: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! files {
    ($($name:literal $content_type:ident)*) => {
        &[$(File { name: $name, content_type: $content_type, text: include_str!(concat!("../page/", $name)) }),*]
    };
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

/// What `/` is.
pub const PAGE: &str = include_str!("../page/index.html");

/// Everything else.
pub const FILES: &[File] = files! {
    "bars.js" SCRIPT
    "console.css" STYLE
    "cost.js" SCRIPT
    "curves.js" SCRIPT
    "difference.js" SCRIPT
    "elements.js" SCRIPT
    "faults.js" SCRIPT
    "feed.js" SCRIPT
    "game.js" SCRIPT
    "host.js" SCRIPT
    "icon.svg" IMAGE
    "live.js" SCRIPT
    "lobby.js" SCRIPT
    "main.js" SCRIPT
    "play.js" SCRIPT
    "refusals.js" SCRIPT
    "request.js" SCRIPT
    "search.js" SCRIPT
    "server.js" SCRIPT
    "tape.js" SCRIPT
    "versions.js" SCRIPT
};
