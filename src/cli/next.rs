//! What to type next, in a line behind a result.

use std::path::Path;

use super::Output;
use crate::report::text::shell_word;

/// The output directory where nobody names one.
const DEFAULT_OUT: &str = "ddfuzz-out";

/// Digits of a major key that name a group in a command.
const DIGITS: usize = 6;

/// Behind groups that stand in `out`: how to make a test of the group `major`, and how to ask
/// whether a change has fixed it.
pub fn after_groups(output: &Output, out: &Path, major: &str) {
    let word = shell_word(out);
    let option = match out == Path::new(DEFAULT_OUT) {
        true => String::new(),
        false => format!(" -o {word}"),
    };
    let digits = &major[..DIGITS.min(major.len())];
    say(
        output,
        &format!("ddfuzz export {digits}{option} --as rust-test"),
    );
    say(output, &format!("ddfuzz check {word}  # after a fix"));
}

/// Behind a directory that others were merged into.
pub fn after_merging(output: &Output, out: &Path) {
    say(output, &format!("ddfuzz show {}", shell_word(out)));
}

/// Behind groups that stand nowhere yet.
pub fn after_triage(output: &Output) {
    say(
        output,
        "the same with -o DIR keeps the groups, for ddfuzz export and check",
    );
}

/// Behind a corpus whose kept files were not trimmed.
pub fn after_cleaning(output: &Output) {
    say(
        output,
        "the same with --trim worth shortens each kept file, which may take minutes",
    );
}

/// Behind a result file with its log.
pub fn after_minimizing(output: &Output, log: &Path) {
    say(output, &format!("ddfuzz log verify {}", shell_word(log)));
}

fn say(output: &Output, command: &str) {
    if !output.json {
        output.say(&format!("next: {command}"));
    }
}
