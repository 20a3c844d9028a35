//! Prints which tests were left out for want of a program, and why.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "what it is for")]

use std::{env, fs};

fn main() {
    // <target>/<profile>/deps/<this>
    let this = env::current_exe().expect("a running program is a file");
    let folder = this.ancestors().nth(2).expect("a profile's folder").join("left-out");
    let Ok(notes) = fs::read_dir(folder) else { return };
    let mut lines: Vec<String> = notes
        .map(|note| {
            let path = note.expect("a note").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            format!("left out: {name} ({})", fs::read_to_string(&path).expect("a note"))
        })
        .collect();
    lines.sort();
    lines.iter().for_each(|line| println!("{line}"));
}
