//! Which utilities are run, by which channel, with which options.
//!
//! A [`List`] is read from the configuration lines of the study of 2020 (`run.py` of
//! github.com/dyninst/fuzz), unchanged, and from our own directives that `run.py` takes for
//! comments ([`List::parse`]). [`List::debian`] comes along. What must not be run says
//! [`deny`]; what is installed says [`installed`], and how a utility that is in no list may be
//! fed [`extensions`].
//!
//! Localized here: `flate2`, in `extensions.rs` (man pages are compressed).

pub mod deny;
pub mod extensions;
pub mod installed;
mod line;

use std::collections::BTreeSet;
use std::ffi::OsString;

use line::{Directive, Pending};

/// Where the file with the input goes, among the arguments.
pub const FILE: &str = "@@";

/// A utility as one line of a list has it: one way to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The word of the command: a name, or a path.
    pub utility: String,
    /// The Debian package that it is in, where the list says so.
    pub package: Option<String>,
    /// The arguments of every run. [`FILE`] stands where the file goes, twice for two files; in
    /// the terminal channel it stands for a sample text to work on.
    pub args: Vec<OsString>,
    /// Options of one or more words, of which each is drawn with a probability of one half.
    pub pool: Vec<Vec<OsString>>,
    /// Before which of `args` the drawn options go; at most their number.
    pub pool_at: usize,
    /// How the input reaches it.
    pub channel: ListedChannel,
}

impl Listed {
    /// All words that a run of it may have: arguments, and options that may be drawn.
    pub fn words(&self) -> Vec<OsString> {
        let drawn = self.pool.iter().flatten();
        self.args.iter().chain(drawn).cloned().collect()
    }
}

/// How the input reaches a utility.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListedChannel {
    /// As stdin (`stdin`).
    Stdin,
    /// As a file of any name (`file`).
    File,
    /// As a file of this name (`cp NAME`).
    Copied(OsString),
    /// As a file, beside another input as a second file (`two_files`).
    TwoFiles,
    /// As keystrokes (`pty`).
    Terminal {
        /// Keystrokes that end it.
        ending: Vec<u8>,
    },
}

impl ListedChannel {
    /// The word for it: `stdin`, `file`, `cp NAME`, `two_files` or `pty`, as lists have it.
    pub fn name(&self) -> String {
        match self {
            ListedChannel::Stdin => "stdin".to_owned(),
            ListedChannel::File => "file".to_owned(),
            ListedChannel::Copied(name) => format!("cp {}", name.to_string_lossy()),
            ListedChannel::TwoFiles => "two_files".to_owned(),
            ListedChannel::Terminal { .. } => "pty".to_owned(),
        }
    }
}

/// A line that is not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The number of the line, from 1.
    pub line: usize,
    /// The line.
    pub text: String,
    /// Why not, and what to write instead.
    pub why: String,
    /// What it would run, where the line is right and only denied ([`deny`]).
    pub denied: Option<Listed>,
}

/// Utilities to be run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// What it is called: mostly a file's name.
    pub name: String,
    /// What is run, in the order of the lines.
    pub entries: Vec<Listed>,
    /// What is not, in the same order.
    pub skipped: Vec<Skipped>,
}

/// The list that comes along, for Debian 12.
const DEBIAN: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/corpora/miller/debian.list"
));

impl List {
    /// The list that comes along: utilities of Debian 12, each with its package.
    pub fn debian() -> List {
        List::parse("debian", DEBIAN)
    }

    /// Reads a list. A line is
    /// `stdin|file|cp NAME|two_files|pty UTILITY [OPTION …] ARGUMENT …`, a comment (`// …`), a
    /// directive for the lines after it (`//: …`), or empty. Wrong lines are
    /// [skipped](List::skipped), and so are those that [`deny`] refuses.
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
            match line::parse(line).map(|listed| pending.add_to(listed)) {
                Err(why) => list.skipped.push(skipped(why, None)),
                Ok(listed) => match deny::reason(&listed.utility, &listed.words()) {
                    Some(why) => list.skipped.push(skipped(why.to_owned(), Some(listed))),
                    None => list.entries.push(listed),
                },
            }
            pending.end_of_line();
        }
        list
    }

    /// The utilities that are run, each once, in alphabetical order.
    pub fn utilities(&self) -> BTreeSet<&str> {
        let entries = self.entries.iter();
        entries.map(|listed| listed.utility.as_str()).collect()
    }
}
