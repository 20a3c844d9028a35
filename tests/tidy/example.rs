//! How much of the example in the browser is matchmaking: what stands between its marks.

use crate::repository::files;

/// The most lines, as many as a reader takes in at once.
const LINES_MAX: usize = 35;

const BEGIN: &str = "// muster";
const END: &str = "// muster end";

/// The lines of code between marks, without blank lines and comments. A mark that lacks its other half is
/// counted to the end.
fn marked(text: &str) -> usize {
    let (mut count, mut is_marked) = (0, false);
    for line in text.lines().map(str::trim) {
        match line {
            BEGIN => is_marked = true,
            END => is_marked = false,
            _ if line.is_empty() || line.starts_with("//") || line.starts_with("/**") => {}
            _ => count += usize::from(is_marked),
        }
    }
    count
}

#[test]
fn the_matchmaking_of_the_example_in_the_browser_stays_short() {
    let sources = files(&["js", "mjs"]);
    let sources: Vec<_> =
        sources.into_iter().filter(|(path, _)| path.starts_with("infra/example-web")).collect();
    for (path, text) in &sources {
        let outside = text.contains("muster-client") && marked(text) == 0;
        assert!(!outside, "{} uses the client outside of its marks", path.display());
    }
    let lines: usize = sources.iter().map(|(_, text)| marked(text)).sum();
    println!("lines of matchmaking: {lines}");
    assert!((1..=LINES_MAX).contains(&lines), "{lines} lines are more than {LINES_MAX}");
}

#[test]
fn lines_between_marks_are_counted() {
    let text = "a\n// muster\nb\n\n  // c\n/** d */\n  e\n// muster end\nf\n  // muster\ng";
    assert_eq!(marked(text), 3);
}
