//! A program that is given without the `--` that stands before it.

use std::ffi::OsString;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::config::option::PROGRAM;
use crate::exec::find_program;

/// The words of a call, and what they miss.
pub struct Words {
    /// The words, with `--` before the program where only that can be meant.
    pub words: Vec<OsString>,
    /// What to type where `--` seems to be missing and more than one thing can be meant.
    pub hint: Option<String>,
}

/// Puts the `--` in that a user has forgotten: before a word that the command has no use for and
/// that is a program. Where an option of ddfuzz follows, the program's own may be meant, and there
/// is only a hint.
pub fn complete(words: Vec<OsString>, root: &Command) -> Words {
    let unchanged = |words, hint| Words { words, hint };
    if words.iter().any(|word| word == "--") {
        return unchanged(words, None);
    }
    let Some(stray) = stray_program(&words, root) else {
        return unchanged(words, None);
    };
    let mut root = root.clone();
    root.build();
    for at in (0..words.len()).filter(|at| words[*at] == stray.as_str()) {
        let mut completed = words.clone();
        completed.insert(at, "--".into());
        let Ok(matches) = root.clone().try_get_matches_from(&completed) else {
            continue;
        };
        let Some((name, leaf)) = matches.subcommand() else {
            continue;
        };
        let program = leaf.try_get_many::<OsString>(PROGRAM).ok().flatten();
        if program.is_none_or(|mut program| program.next() != words.get(at)) {
            continue;
        }
        let command = root.find_subcommand(name);
        let is_own = |word: &OsString| command.is_some_and(|command| is_option(word, command));
        if words[at..].iter().any(is_own) {
            let hint =
                format!("options of ddfuzz come first, then `--`, then the program: -- {stray} …");
            return unchanged(words, Some(hint));
        }
        return unchanged(completed, None);
    }
    unchanged(words, None)
}

/// A word that no argument of the command takes, where it is the name of a program.
fn stray_program(words: &[OsString], root: &Command) -> Option<String> {
    let error = root.clone().try_get_matches_from(words).err()?;
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(word)))
            if !word.starts_with('-') && find_program(word.as_ref()).is_ok() =>
        {
            Some(word.clone())
        }
        _ => None,
    }
}

/// Whether a word names an option of this command.
fn is_option(word: &OsString, command: &Command) -> bool {
    let word = word.to_string_lossy();
    command.get_arguments().any(|arg| {
        let long = arg.get_long().map(|name| format!("--{name}"));
        let short = arg.get_short().map(|name| format!("-{name}"));
        let name = word.split('=').next().unwrap_or_default();
        long.is_some_and(|long| long == name) || short.is_some_and(|short| short == word)
    })
}
