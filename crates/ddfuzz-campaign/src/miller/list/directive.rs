//! Directives of our own, in lines that `run.py` takes for comments:
//!
//! - `//: package NAME`: the lines behind it are of this package; without a name, of none.
//! - `//: option WORD WORD …`: the next line's pool has this option of several words, too.
//! - `//: end KEYS`: the next line's program is ended by these keys, written with C's escapes.

use std::ffi::OsString;
use std::str::FromStr;

use super::words::words;
use super::{Listed, ListedChannel};
use crate::generator::escapes::unescape;

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
