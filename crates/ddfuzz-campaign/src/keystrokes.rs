//! A generator of random keystrokes for programs at a terminal, with a weight for each kind of key.
//! The [classic generator](super::generator) makes uniform bytes.
//!
//! An input is named by a seed and a length, from which it can be rebuilt on any machine: the
//! random bytes are the output of blake3 in its extendable-output mode. One key is what a run types
//! at one time (`exec`): text, a control key, an escape sequence as xterm sends it, or a change of
//! the window's size.

use std::{fmt, io::Write, str::FromStr};

use crate::generator::NotAName;

/// The name of a generated input of random keystrokes, `keys:SEED:LENGTH`, from which its bytes can
/// be rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeystrokesName {
    /// Seed of the random numbers from which the keystrokes are drawn.
    pub seed: u64,
    /// Number of random keys in the input; a word or a pasted text counts as one key.
    pub length: u64,
}

impl fmt::Display for KeystrokesName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "keys:{:016x}:{}", self.seed, self.length)
    }
}

impl FromStr for KeystrokesName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<KeystrokesName, NotAName> {
        let wrong = || NotAName::new(text);
        let rest = text.strip_prefix("keys:").ok_or_else(wrong)?;
        let (seed, length) = rest.split_once(':').ok_or_else(wrong)?;
        Ok(KeystrokesName {
            seed: u64::from_str_radix(seed, 16).map_err(|_| wrong())?,
            length: length.parse().map_err(|_| wrong())?,
        })
    }
}

impl KeystrokesName {
    /// Rebuilds the keystrokes that this name describes: replaces the content of `buffer` with
    /// their bytes.
    pub fn write_into(&self, buffer: &mut Vec<u8>) {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"ddfuzz-keys-1");
        hasher.update(&self.seed.to_le_bytes());
        let mut random = Random(hasher.finalize_xof());
        buffer.clear();
        for _ in 0..self.length {
            random.kind()(&mut random, buffer);
        }
    }
}

const SIGNS: &[u8] = b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
/// Control keys that have no kind of their own in [`KINDS`]: all from ^@ to ^_ except those of
/// [`SIGNALS`], and ^D, ^I, ^M and ^[. In its usual mode a terminal handles some of them itself,
/// such as ^U and ^W.
const CONTROLS: &[u8] =
    b"\x00\x01\x02\x05\x06\x07\x08\x0a\x0b\x0c\x0e\x0f\x10\x12\x14\x15\x16\x17\x18\x19\x1d\x1e\x1f";
/// Control keys that make a terminal send a signal or stop or restart its output: ^C, ^Q, ^S, ^Z
/// and ^\.
const SIGNALS: &[u8] = b"\x03\x11\x13\x1a\x1c";
/// Escape sequences (without ESC) of cursor keys as xterm sends them, in both of its cursor key
/// modes.
const CURSORS: [&str; 14] = [
    "[A", "[B", "[C", "[D", "OA", "OB", "OC", "OD", "[H", "[F", "[2~", "[3~", "[5~", "[6~",
];
const FUNCTIONS: [&str; 14] = [
    "OP", "OQ", "OR", "OS", "[15~", "[17~", "[18~", "[19~", "[20~", "[21~", "[23~", "[24~",
    "[1;5C", "[Z",
];
const WORDS: [&str; 12] = [
    "help", "set", "quick", "fox", "the", "yes", "no", "/tmp", "a*b", "[a-z]", "s/a/b/g", "1,$d",
];
const WIDE: [&str; 8] = ["é", "ß", "Ж", "€", "漢", "あ", "🦀", "\u{301}"];
/// Sizes of a terminal window that random resizes choose from, in lines or columns.
const SIZES: [u64; 10] = [1, 2, 3, 5, 10, 24, 40, 80, 132, 500];

/// A function that writes one random key of a certain kind.
type WriteKey = fn(&mut Random, &mut Vec<u8>);

/// The kinds of random keys, each with its weight and the function that writes such a key. The
/// commands of most programs are letters, signs and control keys; keys that end a session are rare,
/// so that sessions last.
const KINDS: [(u64, WriteKey); 20] = [
    (300, |random, out| out.push(random.letter())),
    (150, |random, out| out.push(random.one_of(SIGNS))),
    (60, |random, out| out.push(b'0' + random.below(10) as u8)),
    (110, |random, out| out.push(random.one_of(CONTROLS))),
    (4, |random, out| out.push(random.one_of(SIGNALS))),
    // End of file.
    (3, |_, out| out.push(0x04)),
    (70, |_, out| out.push(b'\r')),
    (20, |_, out| out.push(b'\t')),
    (30, |_, out| out.push(b' ')),
    // Backspace.
    (20, |random, out| out.push(random.one_of(b"\x7f\x08"))),
    // Escape.
    (20, |_, out| out.push(0x1b)),
    (90, write_alt),
    (50, |random, out| escape(out, random.one_of(&CURSORS))),
    (20, |random, out| escape(out, random.one_of(&FUNCTIONS))),
    (20, |random, out| out.extend(random.one_of(&WORDS).bytes())),
    (10, |random, out| out.extend(random.one_of(&WIDE).bytes())),
    // A byte above ASCII.
    (10, |random, out| out.push(0x80 + random.below(0x80) as u8)),
    (4, write_mouse),
    (4, write_paste),
    (10, write_resize),
];

/// Appends a random letter or sign, typed with the Alt key, to `out`: ESC and the character.
fn write_alt(random: &mut Random, out: &mut Vec<u8>) {
    let key = match random.below(2) {
        0 => random.letter(),
        _ => random.one_of(SIGNS),
    };
    out.extend([0x1b, key]);
}

/// Appends the escape sequence of a random mouse click, as xterm sends it, to `out`.
fn write_mouse(random: &mut Random, out: &mut Vec<u8>) {
    let (button, column, row) = (random.below(4), random.below(90), random.below(30));
    escape(out, "[M");
    out.extend([button, column, row].map(|number| 0x20 + number as u8));
}

/// Appends a bracketed paste, as xterm sends it, of a word drawn at random from [`WORDS`] to `out`.
fn write_paste(random: &mut Random, out: &mut Vec<u8>) {
    escape(out, "[200~");
    out.extend(random.one_of(&WORDS).bytes());
    escape(out, "[201~");
}

/// Appends an escape sequence that sets the terminal window to random numbers of rows and columns
/// from [`SIZES`].
fn write_resize(random: &mut Random, out: &mut Vec<u8>) {
    let (rows, columns) = (random.one_of(&SIZES), random.one_of(&SIZES));
    // A vector takes all that is written to it.
    let _ = write!(out, "\x1b[8;{rows};{columns}t");
}

/// Appends an escape sequence to `out`: the byte ESC, followed by the text `rest`.
fn escape(out: &mut Vec<u8>, rest: &str) {
    out.push(0x1b);
    out.extend(rest.bytes());
}

/// A stream of random numbers, read from the output of blake3.
struct Random(blake3::OutputReader);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_le_bytes(bytes) % bound
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    fn letter(&mut self) -> u8 {
        let letter = self.below(52) as u8;
        match letter {
            0..26 => b'a' + letter,
            _ => b'A' + letter - 26,
        }
    }

    /// Draws a kind of key by the weights; returns the function that writes such a key.
    fn kind(&mut self) -> WriteKey {
        let mut left = self.below(KINDS.iter().map(|(weight, _)| weight).sum());
        for (weight, write) in KINDS {
            match left.checked_sub(weight) {
                Some(rest) => left = rest,
                None => return write,
            }
        }
        KINDS[0].1 // not reached: the weights add up
    }
}
