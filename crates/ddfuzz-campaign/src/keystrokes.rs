//! A generator of random keystrokes for programs at a terminal, with a weight for each kind of key.
//! The [classic generator](super::generator) makes uniform bytes.
//!
//! A seed and a length name an input, which can be rebuilt from them on any machine: the random
//! bytes are the output of blake3 in its extendable-output mode. One key is what a run types at one
//! time (`exec`): text, a control key, an escape sequence as xterm sends it, or a change of the
//! window's size.

use std::{fmt, io::Write, str::FromStr};

use crate::generator::NotAName;

/// The name of generated keystrokes: `keys:SEED:LENGTH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeystrokesName {
    /// Seed of the random bytes.
    pub seed: u64,
    /// Number of keys; a word or a pasted text is one key.
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
    /// Rebuilds the keystrokes into `buffer`.
    pub fn write_into(&self, buffer: &mut Vec<u8>) {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"ddfuzz-keys-1");
        hasher.update(&self.seed.to_le_bytes());
        let mut random = Random(hasher.finalize_xof());
        buffer.clear();
        for _ in 0..self.length {
            write_key(&mut random, buffer);
        }
    }
}

/// The kinds of keys.
#[derive(Clone, Copy)]
enum KeyKind {
    Letter,
    Sign,
    Digit,
    Control,
    /// A key that the terminal handles itself (^C), unless the program disables that.
    Signal,
    EndOfFile,
    Enter,
    Tab,
    Space,
    Backspace,
    Escape,
    /// A letter or sign with Alt.
    Alt,
    Cursor,
    Function,
    Word,
    /// A character of several bytes in UTF-8.
    Wide,
    EightBit,
    Mouse,
    Paste,
    Resize,
}

/// The weight of each kind of key. The commands of most programs are letters, signs and control
/// keys; keys that end a session are rare, so that sessions last.
const WEIGHTS: [(KeyKind, u64); 20] = [
    (KeyKind::Letter, 300),
    (KeyKind::Sign, 150),
    (KeyKind::Digit, 60),
    (KeyKind::Control, 110),
    (KeyKind::Signal, 4),
    (KeyKind::EndOfFile, 3),
    (KeyKind::Enter, 70),
    (KeyKind::Tab, 20),
    (KeyKind::Space, 30),
    (KeyKind::Backspace, 20),
    (KeyKind::Escape, 20),
    (KeyKind::Alt, 90),
    (KeyKind::Cursor, 50),
    (KeyKind::Function, 20),
    (KeyKind::Word, 20),
    (KeyKind::Wide, 10),
    (KeyKind::EightBit, 10),
    (KeyKind::Mouse, 4),
    (KeyKind::Paste, 4),
    (KeyKind::Resize, 10),
];

const SIGNS: &[u8] = b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
/// Control keys that no terminal handles itself: all from ^@ on, except ^C, ^D, ^I, ^M, ^Q, ^S, ^Z,
/// ^[ and ^\.
const CONTROLS: &[u8] =
    b"\x00\x01\x02\x05\x06\x07\x08\x0a\x0b\x0c\x0e\x0f\x10\x12\x14\x15\x16\x17\x18\x19\x1d\x1e\x1f";
const SIGNALS: &[u8] = b"\x03\x11\x13\x1a\x1c";
/// Escape sequences of cursor keys as xterm sends them, in both of its modes.
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
/// Sizes of a terminal window, in lines or characters.
const SIZES: [u64; 10] = [1, 2, 3, 5, 10, 24, 40, 80, 132, 500];

fn write_key(random: &mut Random, out: &mut Vec<u8>) {
    match random.kind() {
        KeyKind::Letter => out.push(random.letter()),
        KeyKind::Sign => out.push(random.one_of(SIGNS)),
        KeyKind::Digit => out.push(b'0' + random.below(10) as u8),
        KeyKind::Control => out.push(random.one_of(CONTROLS)),
        KeyKind::Signal => out.push(random.one_of(SIGNALS)),
        KeyKind::EndOfFile => out.push(0x04),
        KeyKind::Enter => out.push(b'\r'),
        KeyKind::Tab => out.push(b'\t'),
        KeyKind::Space => out.push(b' '),
        KeyKind::Backspace => out.push(random.one_of(b"\x7f\x08")),
        KeyKind::Escape => out.push(0x1b),
        KeyKind::Alt => {
            let key = match random.below(2) {
                0 => random.letter(),
                _ => random.one_of(SIGNS),
            };
            out.extend([0x1b, key]);
        }
        KeyKind::Cursor => escape(out, random.one_of(&CURSORS)),
        KeyKind::Function => escape(out, random.one_of(&FUNCTIONS)),
        KeyKind::Word => out.extend(random.one_of(&WORDS).bytes()),
        KeyKind::Wide => out.extend(random.one_of(&WIDE).bytes()),
        KeyKind::EightBit => out.push(0x80 + random.below(0x80) as u8),
        KeyKind::Mouse => {
            let (button, column, row) = (random.below(4), random.below(90), random.below(30));
            escape(out, "[M");
            out.extend([button, column, row].map(|number| 0x20 + number as u8));
        }
        KeyKind::Paste => {
            escape(out, "[200~");
            out.extend(random.one_of(&WORDS).bytes());
            escape(out, "[201~");
        }
        KeyKind::Resize => {
            let (rows, columns) = (random.one_of(&SIZES), random.one_of(&SIZES));
            // A vector takes all that is written to it.
            let _ = write!(out, "\x1b[8;{rows};{columns}t");
        }
    }
}

fn escape(out: &mut Vec<u8>, rest: &str) {
    out.push(0x1b);
    out.extend(rest.bytes());
}

/// A stream of random numbers.
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

    fn kind(&mut self) -> KeyKind {
        let mut left = self.below(WEIGHTS.iter().map(|(_, weight)| weight).sum());
        for (kind, weight) in WEIGHTS {
            match left.checked_sub(weight) {
                Some(rest) => left = rest,
                None => return kind,
            }
        }
        KeyKind::Letter // not reached: the weights add up
    }
}
