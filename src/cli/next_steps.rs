//! What the user may type next, in lines after a result.

use std::path::Path;

use super::Output;
use crate::exec::facts::{Kind, TargetFacts};
use crate::exec::{Channel, Target};
use crate::minimize::Warning;
use crate::report::text::shell_word;

/// The output directory unless the user gives one.
const DEFAULT_OUT: &str = "ddfuzz-out";

/// Digits of a major key that name a group in a command.
const DIGITS: usize = 6;

/// After a result with groups in `out`: how to look at the group `major`, how to make a test of it
/// that fits the `target`, and how to find out whether a change has fixed it.
pub fn after_groups(output: &Output, out: &Path, major: &str, target: Option<&Target>) {
    let word = shell_word(out);
    let option = match out == Path::new(DEFAULT_OUT) {
        true => String::new(),
        false => format!(" -o {word}"),
    };
    let digits = &major[..DIGITS.min(major.len())];
    say(output, &format!("ddfuzz show {word} {digits}"));
    if let Some(form) = target.and_then(test_form) {
        let command = format!("ddfuzz export {digits}{option} --as {form}");
        say(output, &format!("{command}  # a regression test"));
    }
    say(output, &format!("ddfuzz check {word}  # after a fix"));
}

/// The form of a regression test in the language of the target; `None` where no test of either
/// language fits: it is written in another one, or gets its input at a terminal and the like.
fn test_form(target: &Target) -> Option<&'static str> {
    if target.channel != Channel::Plain {
        return None;
    }
    let facts = TargetFacts::of(target).ok()?;
    match facts.kind {
        Kind::Elf if facts.rust => Some("rust-test"),
        Kind::Elf if !facts.go => Some("c-test"),
        _ => None,
    }
}

/// After a result with groups in `out` that are not minimized.
pub fn before_minimizing(output: &Output, out: &Path) {
    let word = shell_word(out);
    say(
        output,
        &format!("ddfuzz min {word}  # minimizes its groups"),
    );
}

/// Warns that a group crashes whatever its input is.
pub fn warn_of_any_input(major: &str, output: &Output) {
    let what = Warning::AnyInputFails;
    output.say(&format!("warning: group {major} {what}"));
}

/// After a merge.
pub fn after_merging(output: &Output, out: &Path) {
    say(output, &format!("ddfuzz show {}", shell_word(out)));
}

/// After a triage that stored nothing.
pub fn after_triage(output: &Output) {
    say(
        output,
        "add -o DIR to store the groups, for ddfuzz export and ddfuzz check",
    );
}

/// After the cleanup of a corpus whose kept files were not trimmed.
pub fn after_cleaning(output: &Output) {
    say(
        output,
        "add --trim worth to shorten each kept file, which may take minutes",
    );
}

/// After a minimization into a file with its log.
pub fn after_minimizing(output: &Output, log: &Path) {
    say(output, &format!("ddfuzz log verify {}", shell_word(log)));
}

fn say(output: &Output, command: &str) {
    if !output.json {
        output.say(&format!("next: {command}"));
    }
}
