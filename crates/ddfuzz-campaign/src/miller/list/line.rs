//! A configuration line of `run.py`.

use std::ffi::OsString;

use super::words::words;
use super::{FILE, Listed, ListedChannel, endings};

/// What a line looks like.
const FORM: &str = "stdin|file|cp NAME|two_files|pty UTILITY [OPTIONS] ARGUMENTS";

/// Programs whose keystrokes work on a file, which `run.py` gives to these two.
const ON_A_FILE: [&str; 2] = ["less", "more"];

/// Reads a line that is neither empty nor a comment.
///
/// # Errors
/// What is wrong with it, and what to write instead.
pub fn parse(line: &str) -> Result<Listed, String> {
    let (channel, rest) = first(line);
    let (name, rest) = match channel {
        "cp" => first(rest),
        _ => ("", rest),
    };
    let (utility, rest) = first(rest);
    if !["stdin", "file", "cp", "two_files", "pty"].contains(&channel) {
        return Err(format!(
            "it begins with {channel:?}, which is not a channel; write {FORM}"
        ));
    }
    if channel == "cp" && (name.is_empty() || name.contains('/') || name == "." || name == "..") {
        return Err(format!(
            "{name:?} is not the name of a file in the current directory; write cp t.c UTILITY …"
        ));
    }
    let utility = match &words(utility)?[..] {
        [word] if !word.starts_with('[') => word.clone(),
        _ => return Err(format!("the utility is missing; write {FORM}")),
    };
    let (before, pool, behind) = around_pool(rest)?;
    let reads_stdin = matches!(channel, "stdin" | "file");
    let from_stdin = behind.trim_end().strip_suffix('<').filter(|_| reads_stdin);
    let before = words(before)?;
    let behind = words(from_stdin.unwrap_or(behind))?;
    let pool_at = before.len();
    let mut listed = Listed {
        channel: match (channel, from_stdin) {
            // The file would be appended behind the `<`.
            (_, Some(_)) | ("stdin", _) => ListedChannel::Stdin,
            ("file", _) => ListedChannel::File,
            ("cp", _) => ListedChannel::Copied(name.into()),
            ("two_files", _) => ListedChannel::TwoFiles,
            _ => ListedChannel::Terminal {
                ending: endings::of(&utility).to_vec(),
            },
        },
        utility,
        package: None,
        args: before
            .into_iter()
            .chain(behind)
            .map(OsString::from)
            .collect(),
        pool: pool
            .split_whitespace()
            .map(|option| vec![option.into()])
            .collect(),
        pool_at,
    };
    place_files(&mut listed)?;
    Ok(listed)
}

/// Puts the file where `run.py` puts it, at the end, unless the line says where.
fn place_files(listed: &mut Listed) -> Result<(), String> {
    let placed = listed.args.iter().filter(|word| *word == FILE).count();
    let wanted = match &listed.channel {
        ListedChannel::Stdin => 0,
        ListedChannel::File | ListedChannel::Copied(_) => 1,
        ListedChannel::TwoFiles => 2,
        ListedChannel::Terminal { .. } => match placed {
            0 => usize::from(ON_A_FILE.contains(&endings::base(&listed.utility))),
            placed => placed.min(1),
        },
    };
    match placed {
        0 => listed.args.extend(std::iter::repeat_n(FILE.into(), wanted)),
        placed if placed == wanted => {}
        placed => {
            return Err(format!(
                "{FILE} occurs {placed} times; write it {wanted} times, or omit it to have the file \
             as the last argument"
            ));
        }
    }
    Ok(())
}

/// The first word, and what stands behind it.
fn first(text: &str) -> (&str, &str) {
    let text = text.trim();
    text.split_once(char::is_whitespace)
        .map_or((text, ""), |(word, rest)| (word, rest.trim()))
}

/// What stands before, in and behind the square brackets; without them, all stands behind, so that
/// an option of a directive does not come between the last argument and the file.
fn around_pool(text: &str) -> Result<(&str, &str, &str), String> {
    let counts = (text.matches('[').count(), text.matches(']').count());
    if counts == (0, 0) {
        return Ok(("", "", text));
    }
    let split = text
        .split_once('[')
        .and_then(|(before, rest)| Some((before, rest.split_once(']')?)));
    match (counts, split) {
        ((1, 1), Some((before, (pool, behind)))) => Ok((before, pool, behind)),
        _ => Err(
            "write the options to choose from in one pair of square brackets: [-a -b]".to_owned(),
        ),
    }
}
