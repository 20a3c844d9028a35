//! Two pages of `infra/docs`: of errors, which the errors of a local stack link, and of what a month costs.

use std::sync::LazyLock;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html::push_html};

/// Where the page is.
pub const PATH: &str = "/errors";
/// Where the page on cost is.
pub(crate) const COST_PATH: &str = "/_console/cost.html";

/// The page of errors.
pub(crate) static PAGE: LazyLock<String> =
    LazyLock::new(|| page("Muster errors", "errors", include_str!("../../docs/errors.md")));
/// The page on cost.
pub(crate) static COST_PAGE: LazyLock<String> =
    LazyLock::new(|| page("What a month costs", "document", include_str!("../../docs/cost.md")));

fn page(title: &str, class: &str, markdown: &str) -> String {
    include_str!("../page/document.html")
        .replace("{title}", title)
        .replace("{class}", class)
        .replace("{document}", &html(markdown))
}

/// `markdown` as HTML. Its links lead to other files of `infra/docs`, which nothing serves here: a link
/// becomes its words with the file's name.
fn html(markdown: &str) -> String {
    let mut file = String::new();
    let events = Parser::new_ext(markdown, Options::ENABLE_TABLES).map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. }) => {
            file = dest_url.split('#').next().unwrap_or_default().to_owned();
            Event::Text("".into())
        }
        Event::End(TagEnd::Link) => Event::Text(format!(" (infra/docs/{file})").into()),
        event => event,
    });
    let mut html = String::new();
    push_html(&mut html, events);
    // The empty corner of a table heads nothing.
    html.replace("<th></th>", "<td></td>")
}
