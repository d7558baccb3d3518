//! Dictionaries in the format of AFL's and libFuzzer's `-x`: one word a line, `name="value"`.
//!
//! The name is left out at will, may end in `@level` (AFL's; words of every level are taken), and
//! is ignored. In the value `\\`, `\"` and `\xHH` stand for a backslash, a quote and any byte, and
//! `\n`, `\r` and `\t` for what they are in C, as libFuzzer has it since version 16. Lines that are
//! empty or begin with `#` are comments. LibAFL's own reader (`Tokens::add_from_file`) panics at a
//! byte that is no UTF-8, and takes broken escapes for something else.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ddfuzz_model::files::regular::{self, Unread};

/// Largest dictionary that is read, in bytes.
const MOST_BYTES: u64 = 16 << 20;
/// Longest word, in bytes: AFL++ refuses longer ones (`MAX_DICT_FILE`), for they are inputs.
const LONGEST: usize = 128;

/// Why a dictionary cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DictionaryError {
    /// The file cannot be read.
    #[error("the dictionary {} cannot be read: {why}", path.display())]
    Unread {
        /// Which.
        path: PathBuf,
        /// What keeps it away.
        why: Unread,
    },
    /// A line is not of the format.
    #[error("the dictionary {}, line {line}: {why}", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        why: Malformed,
    },
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// No value.
    #[error("there is no value in quotes; a line looks like name=\"value\"")]
    NoValue,
    /// The value does not end.
    #[error("the value has no closing quote")]
    Open,
    /// Something follows it.
    #[error("there is text after the value; write a quote inside of it as \\\"")]
    Behind,
    /// Something precedes it that is not a name.
    #[error("expected a name and `=` before the value; a line looks like name=\"value\"")]
    Name,
    /// An escape that there is not.
    #[error("an unknown escape; known are \\\\, \\\", \\n, \\r, \\t and \\xHH")]
    Escape,
    /// Nothing in the quotes.
    #[error("the value is empty")]
    Empty,
    /// A word that is too long.
    #[error("the value is longer than {LONGEST} bytes; use it as a seed instead (--seeds)")]
    TooLong,
}

/// Reads the words of the dictionary at `path`, in the order of its lines.
///
/// # Errors
/// When it cannot be read, or one of its lines is not of the format.
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

/// The words of a dictionary's text, in the order of its lines.
///
/// # Errors
/// The number of the first line (from 1) that is not of the format, and what is wrong with it.
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

/// The word of a line without blanks around it.
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
            [b'"', ..] => return Err(Malformed::Behind),
            [] => return Err(Malformed::Open),
            [b'\\', escape @ ..] => {
                let (byte, behind) = escaped(escape).ok_or(Malformed::Escape)?;
                word.push(byte);
                behind
            }
            [byte, behind @ ..] => {
                word.push(*byte);
                behind
            }
        };
    }
    match word.len() {
        0 => Err(Malformed::Empty),
        length if length > LONGEST => Err(Malformed::TooLong),
        _ => Ok(word),
    }
}

/// The byte that an escape stands for, without its backslash, and what follows it.
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

/// Where a word comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// A dictionary of the user's, or of a bundled target.
    Dictionary,
    /// The target's program: its texts and the constants that it compares with.
    Program,
}

/// One word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// Its bytes; there is at least one.
    pub bytes: Vec<u8>,
    /// Where it comes from.
    pub source: Source,
}

/// The words of a campaign in the order in which they came, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    all: Vec<Word>,
    known: HashSet<Vec<u8>>,
}

impl Words {
    /// Adds words; an empty one, and one that is there already, is passed over.
    pub fn add<B: Into<Vec<u8>>>(&mut self, source: Source, words: impl IntoIterator<Item = B>) {
        for bytes in words {
            let bytes = bytes.into();
            if !bytes.is_empty() && self.known.insert(bytes.clone()) {
                self.all.push(Word { bytes, source });
            }
        }
    }

    /// The words, in order.
    pub fn all(&self) -> &[Word] {
        &self.all
    }

    /// Those of one source, in order.
    pub fn of(&self, source: Source) -> impl Iterator<Item = &[u8]> {
        let all = self.all.iter().filter(move |word| word.source == source);
        all.map(|word| &word.bytes[..])
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The name of the words of a source: a blake3, in hex, over all of them in order.
    pub fn digest(&self, source: Source) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"ddfuzz-words-1");
        for word in self.of(source) {
            hasher.update(&(word.len() as u64).to_le_bytes());
            hasher.update(word);
        }
        hasher.finalize().to_hex().to_string()
    }
}
