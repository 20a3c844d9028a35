//! Checks that common parsers read a JSON text; shares no code with Muster's own check.

use std::path::Path;

use serde_json::Value;

use crate::node::run;

/// The nesting depth that common parsers read: .NET's stop at 64 by default.
const DEPTH_MAX: usize = 64;

/// What keeps some parser from reading the text, if anything does.
#[must_use]
pub fn problem(text: &str) -> Option<String> {
    // It refuses numbers that no double holds and lone surrogates, and whatever is nested more than 127 deep.
    if let Err(error) = serde_json::from_str::<Value>(text) {
        return Some(format!("{error}: {text:.200}"));
    }
    let depth = depth(text);
    (depth > DEPTH_MAX).then(|| format!("{depth} deep: {text:.200}"))
}

/// How deep arrays and objects nest in JSON text, also where a later field replaces them.
#[must_use]
pub fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut is_in_string, mut is_escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_in_string = !is_in_string,
            b'[' | b'{' if !is_in_string => depth += 1,
            b']' | b'}' if !is_in_string => depth -= 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// A parser in another language: a program that fails if one of its arguments is not a complete JSON text.
#[derive(Clone, Copy, Debug)]
pub struct Parser {
    /// The command.
    pub command: &'static str,
    arguments: [&'static str; 2],
}

/// Parsers that servers and clients are likely to have.
pub const PARSERS: [Parser; 2] = [
    Parser {
        command: "python3",
        // Its parser takes `1e999` for infinity, and a lone surrogate for text that it cannot write any more.
        arguments: [
            "-c",
            "import json, sys\n\
             for text in sys.argv[1:]:\n    \
                 json.dumps(json.loads(text), allow_nan=False, ensure_ascii=False).encode()",
        ],
    },
    Parser {
        command: "node",
        arguments: [
            "-e",
            "const whole = (name, value) => {\n\
                 if (value === Infinity || value === -Infinity) throw new Error(`${name} is infinite`);\n\
                 encodeURIComponent(name);\n\
                 if (typeof value === 'string') encodeURIComponent(value);\n\
                 return value;\n\
             };\n\
             process.argv.slice(1).forEach((text) => JSON.parse(text, whole));",
        ],
    },
];

impl Parser {
    /// The command, when it is not installed on this machine.
    pub async fn missing(&self) -> Option<&'static str> {
        run(Path::new("."), self.command, &["--version"]).await.is_none().then_some(self.command)
    }

    /// The parser's error for texts that it cannot read.
    ///
    /// # Panics
    /// When it is not installed.
    pub async fn problem(&self, texts: &[String]) -> Option<String> {
        let arguments: Vec<_> = self.arguments.into_iter().chain(texts.iter().map(String::as_str)).collect();
        let output = run(Path::new("."), self.command, &arguments).await.expect("it is installed");
        (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
