//! Lists of utilities: which utilities are run, by which channel, with which options.
//!
//! A [`List`] is read from the configuration lines of the fuzz study of 2020 (`run.py` of
//! github.com/dyninst/fuzz), unchanged, and from directives of ddfuzz, which `run.py` takes for
//! comments ([`List::parse`]). [`List::debian`] is the bundled list. [`deny`] holds what must not
//! be run, [`installed`] finds installed programs, and [`extensions`] finds file names for
//! utilities in no list.
//!
//! The directives are:
//!
//! - `//: package NAME`: the following lines are of this package; without a name, of no package.
//! - `//: option WORD WORD …`: adds this option of several words to the pool of the next line.
//! - `//: end KEYS`: these keys, written with C's escapes, end the program of the next line.

pub mod deny;
pub mod extensions;
pub mod installed;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::str::FromStr;

use super::utility::Invocation;
use crate::generator::unescape;
use ddfuzz_exec::{Channel, Terminal};
use ddfuzz_model::files::Base64;

/// Placeholder in the arguments of an invocation that stands for the path of the input file.
pub const FILE: &str = "@@";

/// One valid line of a list of utilities: one way to call a utility.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Name or path of the utility's program.
    pub utility: String,
    /// Debian package of the utility; `None` if the list names none.
    pub package: Option<String>,
    /// How this line of the list calls the utility: channel of the input, arguments and options.
    pub invocation: Invocation,
}

/// A line of a list of utilities that is not run, because it is invalid or denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Number of the skipped line in the list, from 1.
    pub line: usize,
    /// Text of the skipped line of the list.
    pub text: String,
    /// Why the line of the list is not run, and what to write instead.
    pub why: String,
    /// The parsed line, if it is valid and only denied because the utility could do harm
    /// ([`deny`]); otherwise `None`.
    pub denied: Option<Listed>,
}

/// A list of utilities (programs to fuzz in a study), with the ways to call them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// Name of the list of utilities, as reports show it; mostly the name of its file.
    pub name: String,
    /// The valid lines of the list whose utilities are run, in the order of the list.
    pub entries: Vec<Listed>,
    /// The invalid and denied lines of the list, in the order of the list.
    pub skipped: Vec<Skipped>,
}

/// Text of the bundled list of utilities, for Debian 12.
const DEBIAN: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/corpora/miller/debian.list"
));

impl List {
    /// Returns the bundled list of utilities: those of Debian 12, each with its package.
    pub fn debian() -> List {
        List::parse("debian", DEBIAN)
    }

    /// Parses the text of a list of utilities called `name`. A line is
    /// `stdin|file|cp NAME|two_files|pty UTILITY [OPTION …] ARGUMENT …`, a comment (`// …`), a
    /// directive for the lines after it (`//: …`), or empty. The square brackets are part of the
    /// line: they hold the options to choose from. They may be missing, and arguments may also
    /// precede them. Invalid lines, and lines that [`deny`] refuses, are in [`List::skipped`].
    pub fn parse(name: &str, text: &str) -> List {
        let mut list = List {
            name: name.to_owned(),
            ..List::default()
        };
        let mut pending = Pending::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            let skipped = |why: String, denied| Skipped {
                line: index + 1,
                text: line.to_owned(),
                why,
                denied,
            };
            if let Some(directive) = line.strip_prefix("//:") {
                match directive.parse::<Directive>() {
                    Ok(directive) => pending.take(directive),
                    Err(why) => list.skipped.push(skipped(why, None)),
                }
                continue;
            }
            if line.is_empty() || line.starts_with("//") {
                continue;
            }
            match parse_line(line).map(|listed| pending.add_to(listed)) {
                Err(why) => list.skipped.push(skipped(why, None)),
                Ok(listed) => match deny::reason(&listed.utility, &listed.invocation.words()) {
                    Some(why) => list.skipped.push(skipped(why.to_owned(), Some(listed))),
                    None => list.entries.push(listed),
                },
            }
            pending.end_of_line();
        }
        list
    }

    /// Returns the names of the utilities in the list that are run, each once, in alphabetical
    /// order.
    pub fn utilities(&self) -> BTreeSet<&str> {
        let entries = self.entries.iter();
        entries.map(|listed| listed.utility.as_str()).collect()
    }
}

/// Syntax of a line of a list of utilities, for error messages.
const FORM: &str = "stdin|file|cp NAME|two_files|pty UTILITY [OPTIONS] ARGUMENTS";

/// Terminal programs that always get a file as an argument, even if their line in the list has no
/// placeholder for it, as in the study's script `run.py`.
const ON_A_FILE: [&str; 2] = ["less", "more"];

/// Parses a line of a list of utilities that is neither empty nor a comment. The error says what is
/// wrong with the line and what to write instead.
fn parse_line(line: &str) -> Result<Listed, String> {
    let (channel, rest) = first(line);
    let (name, rest) = match channel {
        "cp" => first_word(rest),
        _ => ("", rest),
    };
    let (utility, rest) = first_word(rest);
    if !["stdin", "file", "cp", "two_files", "pty"].contains(&channel) {
        return Err(format!(
            "it begins with {channel:?}, which is not a channel; write {FORM}"
        ));
    }
    let name = &words(name)?.concat();
    if channel == "cp" && (name.is_empty() || name.contains('/') || name == "." || name == "..") {
        return Err(format!(
            "{name:?} is not the name of a file in the current directory; write cp t.c UTILITY …"
        ));
    }
    let utility = match &words(utility)?[..] {
        [word] if !word.starts_with('[') => word.clone(),
        _ => return Err(format!("the utility is missing; write {FORM}")),
    };
    let (before, pool, after) = split_pool(rest)?;
    let reads_stdin = matches!(channel, "stdin" | "file");
    let from_stdin = after.trim_end().strip_suffix('<').filter(|_| reads_stdin);
    let before = words(before)?;
    let pool_at = before.len();
    let after = words(from_stdin.unwrap_or(after))?;
    let mut args: Vec<OsString> = before
        .into_iter()
        .chain(after)
        .map(OsString::from)
        .collect();
    // `run.py` would append the file after the `<`.
    let channel = from_stdin.map_or(channel, |_| "stdin");
    place_files(channel, &utility, &mut args)?;
    let pool = pool.split_whitespace();
    Ok(Listed {
        invocation: Invocation {
            channel: match channel {
                "cp" => Channel::named(name),
                "two_files" => Channel::TwoFiles,
                "pty" => Channel::Terminal(Terminal {
                    ending: Base64(ending_keys(&utility).to_vec()),
                    ..Terminal::default()
                }),
                _ => Channel::Plain,
            },
            args,
            pool: pool.map(|option| vec![option.into()]).collect(),
            pool_at,
        },
        utility,
        package: None,
    })
}

/// Adds placeholders for the input files that the `channel` needs to the end of `args`, as the
/// study's script `run.py` does, unless `args` has all of them. Fails if `args` has the wrong
/// number of placeholders.
fn place_files(channel: &str, utility: &str, args: &mut Vec<OsString>) -> Result<(), String> {
    let placed = args.iter().filter(|word| *word == FILE).count();
    let expected = match (channel, placed) {
        ("stdin", _) => 0,
        ("two_files", _) => 2,
        ("pty", 0) => usize::from(ON_A_FILE.contains(&base(utility))),
        _ => 1,
    };
    match placed {
        0 => args.extend(std::iter::repeat_n(FILE.into(), expected)),
        placed if placed == expected => {}
        placed => {
            return Err(format!(
                "{FILE} occurs {placed} times; write it {expected} times, or omit it to have the file \
             as the last argument"
            ));
        }
    }
    Ok(())
}

/// Splits a text after its first word; returns the word and the rest of the text, both without
/// surrounding blanks.
fn first(text: &str) -> (&str, &str) {
    let text = text.trim();
    text.split_once(char::is_whitespace)
        .map_or((text, ""), |(word, rest)| (word, rest.trim()))
}

/// Splits a text after its first word in the sense of a shell: the word may have blanks inside
/// quotes or after backslashes. Returns the word, still quoted, and the rest of the text, both
/// without surrounding blanks.
fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim();
    let (mut quote, mut is_escaped) = (None, false);
    let end = text.find(|character: char| {
        match (character, quote) {
            _ if is_escaped => is_escaped = false,
            ('\\', None | Some('"')) => is_escaped = true,
            ('\'' | '"', None) => quote = Some(character),
            (end, Some(mark)) if end == mark => quote = None,
            (blank, None) => return blank.is_whitespace(),
            _ => {}
        }
        false
    });
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    (word, rest.trim())
}

/// Splits a line of a list at the square brackets that hold the options to choose from; returns the
/// text before, between and behind the brackets. Without brackets, the whole line is the text
/// behind them, so that options added by a directive come before all arguments. Fails if the line
/// has brackets, but not exactly one pair.
fn split_pool(text: &str) -> Result<(&str, &str, &str), String> {
    let counts = (text.matches('[').count(), text.matches(']').count());
    if counts == (0, 0) {
        return Ok(("", "", text));
    }
    let split = text
        .split_once('[')
        .and_then(|(before, rest)| Some((before, rest.split_once(']')?)));
    match (counts, split) {
        ((1, 1), Some((before, (pool, after)))) => Ok((before, pool, after)),
        _ => Err(
            "write the options to choose from in one pair of square brackets: [-a -b]".to_owned(),
        ),
    }
}

/// A directive in a list of utilities, which applies to the lines after it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Directive {
    Package(Option<String>),
    Option(Vec<OsString>),
    End(Vec<u8>),
}

impl FromStr for Directive {
    type Err = String;

    fn from_str(text: &str) -> Result<Directive, String> {
        let (word, rest) = first(text);
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

/// What the directives read so far say about the next line of a list: its package, which applies to
/// all later lines, too, additional options, and the keys that end the program.
#[derive(Debug, Default)]
struct Pending {
    package: Option<String>,
    options: Vec<Vec<OsString>>,
    ending: Option<Vec<u8>>,
}

impl Pending {
    fn take(&mut self, directive: Directive) {
        match directive {
            Directive::Package(name) => self.package = name,
            Directive::Option(words) => self.options.push(words),
            Directive::End(keys) => self.ending = Some(keys),
        }
    }

    /// Adds to `listed`, a parsed line of the list, what the directives in the lines before it say
    /// (package, options, ending keys), and returns it.
    fn add_to(&self, mut listed: Listed) -> Listed {
        listed.package.clone_from(&self.package);
        listed.invocation.pool.extend(self.options.iter().cloned());
        if let (Channel::Terminal(terminal), Some(keys)) =
            (&mut listed.invocation.channel, &self.ending)
        {
            terminal.ending = Base64(keys.clone());
        }
        listed
    }

    /// Drops the options and ending keys of the directives read so far, since they apply to one
    /// line only.
    fn end_of_line(&mut self) {
        self.options.clear();
        self.ending = None;
    }
}

/// Characters that have a special meaning for a shell outside of quotes.
const SHELL: &str = "|&;<>()$`*?!{}";
/// Characters that have a special meaning for a shell between double quotes.
const EXPANDED: &str = "$`";

/// Splits a text into words like a shell: at blanks, with quotes and backslashes. Fails if a quote
/// is not closed, or a shell would do more than split the text.
fn words(text: &str) -> Result<Vec<String>, String> {
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
            '#' if word.is_none() => return Err(special_character('#')),
            other if SHELL.contains(other) => return Err(special_character(other)),
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
            other if mark == '"' && EXPANDED.contains(other) => {
                return Err(special_character(other));
            }
            other => word.push(other),
        }
    }
    Err(format!("a quote is not closed; close it with {mark}"))
}

fn special_character(character: char) -> String {
    format!(
        "{character:?} is special for a shell, but no shell is used; quote it with single \
             quotes to pass it to the utility"
    )
}

/// Keys typed to leave a shell: they close open quotes and here-documents first.
const SHELL_EXIT: &[u8] = b"\x03\n\x03\nexit\n\x03\nexit\n";
/// Keys typed to leave editors like vi: they end insertion and half-typed commands, then quit
/// without saving.
const VI: &[u8] = b"\x1b\x1b\x1b:q!\n\x1b\x1b:qa!\n";
/// Keys typed to leave line editors like ed: they end insertion, then quit twice (the first time,
/// the editor warns of changes).
const LINE: &[u8] = b"\n.\nQ\nQ\n";
/// Keys typed to leave pagers: they answer prompts, then quit.
const PAGER: &[u8] = b"\r\rq\x03\r\rqq\n";
/// Keys typed to leave monitors and browsers: they cancel prompts, then quit.
const QUIT: &[u8] = b"\x03\n\x1b\x1bqq\nq\n";
/// Keys typed to leave editors like emacs: they cancel, then quit without saving.
const EMACS: &[u8] = b"\x07\x07\x07\x18\x03y\nyes\n";
/// Keys typed to leave calculators and other programs that read commands.
const COMMANDS: &[u8] = b"\x03\nquit\nexit\n";

/// Keys typed to end terminal programs, as pairs: base names of programs, separated by spaces, and
/// the keys that end these programs.
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
    // Nano asks whether to save; the answer is no.
    ("nano rnano pico", b"\x03\x03\x18n\n\x18n\n"),
    // Joe asks whether to lose changes; the answer is yes.
    ("joe jpico rjoe", b"\x03\x03\x03y\x0b\x11y\n\x03y"),
    // Midnight Commander: cancels dialogs, then F10 and yes.
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

/// Returns the keys that end a terminal program, given by name or path, from most of its states;
/// empty if none are known. Keys without a meaning in a state are mostly harmless, so the same keys
/// serve many states. After these keys, every terminal gets an end of file, a hang-up and SIGKILL.
fn ending_keys(utility: &str) -> &'static [u8] {
    let name = base(utility);
    let found = ENDINGS
        .iter()
        .find(|(names, _)| names.split(' ').any(|one| one == name));
    found.map_or(b"", |(_, keys)| keys)
}

fn base(utility: &str) -> &str {
    utility.rsplit('/').next().unwrap_or(utility)
}
