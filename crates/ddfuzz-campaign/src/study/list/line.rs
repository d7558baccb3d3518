//! A configuration line of `run.py`, and our own directives in lines that `run.py` takes for
//! comments:
//!
//! - `//: package NAME`: the following lines are of this package; without a name, of none.
//! - `//: option WORD WORD …`: the next line's pool has this option of several words, too.
//! - `//: end KEYS`: the next line's program is ended by these keys, written with C's escapes.

use std::ffi::OsString;
use std::str::FromStr;

use crate::generator::unescape;
use crate::study::list::{FILE, Listed, ListedChannel};

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
            // The file would be appended after the `<`.
            (_, Some(_)) | ("stdin", _) => ListedChannel::Stdin,
            ("file", _) => ListedChannel::File,
            ("cp", _) => ListedChannel::Copied(name.into()),
            ("two_files", _) => ListedChannel::TwoFiles,
            _ => ListedChannel::Terminal {
                ending: ending_keys(&utility).to_vec(),
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
            0 => usize::from(ON_A_FILE.contains(&base(&listed.utility))),
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

/// The first word, and what follows it.
fn first(text: &str) -> (&str, &str) {
    let text = text.trim();
    text.split_once(char::is_whitespace)
        .map_or((text, ""), |(word, rest)| (word, rest.trim()))
}

/// What stands before, in and after the square brackets; without them, all stands after, so that
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

/// A directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directive {
    Package(Option<String>),
    Option(Vec<OsString>),
    End(Vec<u8>),
}

impl FromStr for Directive {
    type Err = String;

    fn from_str(text: &str) -> Result<Directive, String> {
        let text = text.trim();
        let (word, rest) = text
            .split_once(char::is_whitespace)
            .map_or((text, ""), |(word, rest)| (word, rest.trim()));
        match word {
            "package" => match rest.contains(char::is_whitespace) {
                true => Err("a package has one name; write //: package groff".to_owned()),
                false => Ok(Directive::Package(
                    Some(rest.to_owned()).filter(|name| !name.is_empty()),
                )),
            },
            "option" => match words(rest)? {
                words if words.is_empty() => {
                    Err("the option is missing; write //: option -w 40".to_owned())
                }
                words => Ok(Directive::Option(
                    words.into_iter().map(OsString::from).collect(),
                )),
            },
            "end" => unescape(rest.as_bytes())
                .map(Directive::End)
                .map_err(|error| error.to_string()),
            _ => Err(format!(
                "{word:?} is not a directive; there are package, option and end, and comments begin \
                 with // and a blank"
            )),
        }
    }
}

/// What directives have said for lines that are still to come.
#[derive(Debug, Default)]
pub struct Pending {
    package: Option<String>,
    options: Vec<Vec<OsString>>,
    ending: Option<Vec<u8>>,
}

impl Pending {
    /// Takes note of a directive.
    pub fn take(&mut self, directive: Directive) {
        match directive {
            Directive::Package(name) => self.package = name,
            Directive::Option(words) => self.options.push(words),
            Directive::End(keys) => self.ending = Some(keys),
        }
    }

    /// What a line comes to by them.
    pub fn add_to(&self, mut listed: Listed) -> Listed {
        listed.package.clone_from(&self.package);
        listed.pool.extend(self.options.iter().cloned());
        if let (ListedChannel::Terminal { ending }, Some(keys)) =
            (&mut listed.channel, &self.ending)
        {
            ending.clone_from(keys);
        }
        listed
    }

    /// Forgets what was for one line.
    pub fn end_of_line(&mut self) {
        self.options.clear();
        self.ending = None;
    }
}

/// What a shell does something with, outside of quotes.
const SHELL: &str = "|&;<>()$`*?!{}";
/// What a shell does something with between double quotes.
const EXPANDED: &str = "$`";

/// Splits a text at blanks; quotes and backslashes keep blanks and are taken away.
///
/// # Errors
/// Where a quote stays open, or a shell would do more than split.
pub fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    // `Some("")` is the empty word of '' or "".
    let mut word: Option<String> = None;
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => quoted(&mut rest, '\'', word.get_or_insert_default())?,
            '"' => quoted(&mut rest, '"', word.get_or_insert_default())?,
            '\\' => match rest.next() {
                Some(next) => word.get_or_insert_default().push(next),
                None => return Err("it ends with a backslash; write \\\\ for one".to_owned()),
            },
            '#' if word.is_none() => return Err(does_more('#')),
            other if SHELL.contains(other) => return Err(does_more(other)),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

fn quoted(rest: &mut std::str::Chars, mark: char, word: &mut String) -> Result<(), String> {
    while let Some(character) = rest.next() {
        match character {
            end if end == mark => return Ok(()),
            '\\' if mark == '"' => {
                let next = rest.next().unwrap_or('\\');
                if !"\"\\$`".contains(next) {
                    word.push('\\');
                }
                word.push(next);
            }
            other if mark == '"' && EXPANDED.contains(other) => return Err(does_more(other)),
            other => word.push(other),
        }
    }
    Err(format!("a quote is not closed; close it with {mark}"))
}

fn does_more(character: char) -> String {
    format!(
        "{character:?} is special for a shell, but no shell is used; quote it with single \
             quotes to pass it to the utility"
    )
}

/// Shells: what is open is abandoned (quotes, here-documents), and the shell is left.
const SHELL_EXIT: &[u8] = b"\x03\n\x03\nexit\n\x03\nexit\n";
/// Editors like vi: out of insertion and half-typed commands, then away without saving.
const VI: &[u8] = b"\x1b\x1b\x1b:q!\n\x1b\x1b:qa!\n";
/// Line editors like ed: out of insertion, then away twice (the first is warned of changes).
const LINE: &[u8] = b"\n.\nQ\nQ\n";
/// Pagers: what is asked for is answered, as somebody would who reads on, then away.
const PAGER: &[u8] = b"\r\rq\x03\r\rqq\n";
/// Monitors and browsers: out of prompts, then away.
const QUIT: &[u8] = b"\x03\n\x1b\x1bqq\nq\n";
/// Editors like emacs: abandon, then away without saving.
const EMACS: &[u8] = b"\x07\x07\x07\x18\x03y\nyes\n";
/// Calculators and other readers of commands.
const COMMANDS: &[u8] = b"\x03\nquit\nexit\n";

/// Base names, separated by spaces, and their keys.
const ENDINGS: &[(&str, &[u8])] = &[
    (
        "bash csh dash ksh mksh posh rbash rc sh tcsh yash zsh fish",
        SHELL_EXIT,
    ),
    (
        "ex nex nvi nview rview rvim vi view vim vim.basic vim.tiny vimdiff bvi hexer elvis vis",
        VI,
    ),
    ("ed red", LINE),
    (
        "htop info ncdu top tig w3m watch vlock hexedit slabtop atop",
        QUIT,
    ),
    ("less man more most zless zmore", PAGER),
    ("emacs jmacs jed mg zile", EMACS),
    // Nano asks whether to save: no.
    ("nano rnano pico", b"\x03\x03\x18n\n\x18n\n"),
    // Joe asks whether to lose changes: yes.
    ("joe jpico rjoe", b"\x03\x03\x03y\x0b\x11y\n\x03y"),
    // Midnight Commander: out of dialogues, then F10 and yes.
    ("mc", b"\x1b\x1b\x1b\x1b\x1b0\n\x1b0y\n"),
    ("mcedit mcview mcdiff", b"\x1b\x1b\x1b\x1b\x1b0n\x1b0n"),
    ("bc calc dc gdb gnuplot maxima qalc sqlite3 units", COMMANDS),
    ("dialog whiptail", b"\x1b\x1b\x1b\n"),
    ("ftp telnet tnftp", b"\n\x1d\nquit\nbye\n"),
    (
        "lua lua5.4 perl python3 tclsh guile ocaml irb",
        b"\x03\n\x04\nexit()\nexit\n",
    ),
];

/// The keys that end a terminal program, a name or a path, from whatever state random keys have
/// brought it to; none where nothing is known. What ends every terminal (end of file, hang-up,
/// kill) comes after them. Keys that have no meaning where the program is are mostly harmless, so
/// that one text serves many states.
fn ending_keys(utility: &str) -> &'static [u8] {
    let name = base(utility);
    let found = ENDINGS
        .iter()
        .find(|(names, _)| names.split(' ').any(|one| one == name));
    found.map_or(b"", |(_, keys)| keys)
}

/// The last part of a path.
pub(super) fn base(utility: &str) -> &str {
    utility.rsplit('/').next().unwrap_or(utility)
}
