//! Dictionaries in the format of AFL's and libFuzzer's `-x`: one word in each line, `name="value"`.
//!
//! The name is optional and ignored; it may end in `@level` (AFL's), and words of every level are
//! used. In the value, `\\`, `\"` and `\xHH` stand for a backslash, a quote and any byte, and `\n`,
//! `\r` and `\t` mean the same as in C, as in libFuzzer since version 16. Empty lines and lines
//! that begin with `#` are comments. LibAFL's own reader (`Tokens::add_from_file`) is not used: it
//! panics at bytes that are not UTF-8, and misreads invalid escapes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::seeds::hash_all;
use ddfuzz_model::files::regular::{self, Unread};

/// Greatest size of a dictionary file, in bytes; a larger file is refused.
const MOST_BYTES: u64 = 16 << 20;
/// Greatest length of a word of a dictionary, in bytes, as in AFL++ (`MAX_DICT_FILE`); a longer
/// word is an error.
const LONGEST: usize = 128;

/// Why a dictionary cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DictionaryError {
    /// The dictionary file cannot be read.
    #[error("the dictionary {} cannot be read: {why}", path.display())]
    Unread {
        /// Path of the dictionary that cannot be read.
        path: PathBuf,
        /// Why the dictionary cannot be read.
        why: Unread,
    },
    /// A line of the dictionary is invalid: it does not look like `name="value"`.
    #[error("the dictionary {}, line {line}: {why}", path.display())]
    Line {
        /// Path of the dictionary that has the invalid line.
        path: PathBuf,
        /// Number of the invalid line of the dictionary, from 1.
        line: usize,
        /// What is wrong with the invalid line of the dictionary.
        why: Malformed,
    },
}

/// What is wrong with a line of a dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The line of the dictionary has no double quote that would begin a value.
    #[error("there is no value in quotes; a line looks like name=\"value\"")]
    NoValue,
    /// The quoted value in the line of the dictionary has no closing quote.
    #[error("the value has no closing quote")]
    Open,
    /// Text follows the closing quote of the value in the line of the dictionary.
    #[error("there is text after the value; write a quote inside of it as \\\"")]
    TrailingText,
    /// Text before the value in the line of the dictionary is not a name and `=`.
    #[error("expected a name and `=` before the value; a line looks like name=\"value\"")]
    Name,
    /// The value in the line of the dictionary contains an unknown escape.
    #[error("an unknown escape; known are \\\\, \\\", \\n, \\r, \\t and \\xHH")]
    Escape,
    /// The value in the line of the dictionary is empty.
    #[error("the value is empty")]
    Empty,
    /// The value in the line of the dictionary is longer than 128 bytes.
    #[error("the value is longer than {LONGEST} bytes; use it as a seed instead (--seeds)")]
    TooLong,
}

/// Returns the words of the dictionary at `path`, in the order of its lines.
///
/// # Errors
/// When the file cannot be read, or a line does not look like `name="value"`.
pub fn read(path: &Path) -> Result<Vec<Vec<u8>>, DictionaryError> {
    let text = regular::read(path, MOST_BYTES).map_err(|why| DictionaryError::Unread {
        path: path.to_owned(),
        why,
    })?;
    parse(&text).map_err(|(line, why)| DictionaryError::Line {
        path: path.to_owned(),
        line,
        why,
    })
}

/// Parses the text of a dictionary into its words, in the order of its lines.
///
/// # Errors
/// The number of the first invalid line, from 1, and what is wrong with the line.
pub fn parse(text: &[u8]) -> Result<Vec<Vec<u8>>, (usize, Malformed)> {
    let mut words = Vec::new();
    for (line, number) in text.split(|byte| *byte == b'\n').zip(1..) {
        let line = line.trim_ascii();
        if !line.is_empty() && line[0] != b'#' {
            words.push(word(line).map_err(|why| (number, why))?);
        }
    }
    Ok(words)
}

/// Parses one line of a dictionary, such as `name="value"`, and returns the bytes of its word. The
/// line has no surrounding blanks.
fn word(line: &[u8]) -> Result<Vec<u8>, Malformed> {
    let quote = line.iter().position(|byte| *byte == b'"');
    let (name, value) = line.split_at(quote.ok_or(Malformed::NoValue)?);
    let name = name.trim_ascii();
    if !name.is_empty() && name.strip_suffix(b"=").is_none_or(<[u8]>::is_empty) {
        return Err(Malformed::Name);
    }
    let mut word = Vec::new();
    let mut rest = &value[1..];
    loop {
        rest = match rest {
            [b'"'] => break,
            [b'"', ..] => return Err(Malformed::TrailingText),
            [] => return Err(Malformed::Open),
            [b'\\', escape @ ..] => {
                let (byte, after) = escaped(escape).ok_or(Malformed::Escape)?;
                word.push(byte);
                after
            }
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
        };
    }
    match word.len() {
        0 => Err(Malformed::Empty),
        length if length > LONGEST => Err(Malformed::TooLong),
        _ => Ok(word),
    }
}

/// Parses an escape in the value of a word. `text` begins after the backslash. Returns the byte
/// that the escape stands for, and the text after the escape; `None` if there is no such escape.
fn escaped(text: &[u8]) -> Option<(u8, &[u8])> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    match text {
        [byte @ (b'\\' | b'"'), rest @ ..] => Some((*byte, rest)),
        [b'n', rest @ ..] => Some((b'\n', rest)),
        [b'r', rest @ ..] => Some((b'\r', rest)),
        [b't', rest @ ..] => Some((b'\t', rest)),
        [b'x' | b'X', high, low, rest @ ..] => Some((digit(*high)? << 4 | digit(*low)?, rest)),
        _ => None,
    }
}

/// Where a word that mutations write into inputs comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// The word comes from a dictionary file of the user or of a bundled target.
    Dictionary,
    /// The word was found in the target's program: among its strings or the constants that it
    /// compares with.
    Program,
}

/// A word that mutations write into inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// Bytes of the word that mutations write into inputs; never empty.
    pub bytes: Vec<u8>,
    /// Whether the word comes from a dictionary or from the target's program.
    pub source: Source,
}

/// The set of words that a campaign's mutations write into inputs, each once, in the order in which
/// they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    all: Vec<Word>,
    known: HashSet<Vec<u8>>,
}

impl Words {
    /// Adds `words`, which come from `source`, to the set; ignores empty words and words that are
    /// in the set already.
    pub fn add<B: Into<Vec<u8>>>(&mut self, source: Source, words: impl IntoIterator<Item = B>) {
        for bytes in words {
            let bytes = bytes.into();
            if !bytes.is_empty() && self.known.insert(bytes.clone()) {
                self.all.push(Word { bytes, source });
            }
        }
    }

    /// Returns all words, in the order in which they were added.
    pub fn all(&self) -> &[Word] {
        &self.all
    }

    /// Returns the words that come from one source (dictionary or program), in the order in which
    /// they were added.
    pub fn of(&self, source: Source) -> impl Iterator<Item = &[u8]> {
        let all = self.all.iter().filter(move |word| word.source == source);
        all.map(|word| &word.bytes[..])
    }

    /// Returns the number of words that mutations write into inputs, of all sources together.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns true if there are no words that mutations could write into inputs.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns a hash of the words that come from one source (dictionary or program): the blake3,
    /// in hex, of all of them in order.
    pub fn digest(&self, source: Source) -> String {
        hash_all(b"ddfuzz-words-1", self.of(source))
    }
}
