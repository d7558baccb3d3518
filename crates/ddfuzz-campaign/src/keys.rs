//! A generator of keystrokes, for programs at a terminal: weighted keys besides the uniform bytes
//! of the [classic](super::generator) one.
//!
//! An input is named by (seed, length) and is rebuilt from that name alone, on any machine: the
//! stream of random bytes is that of blake3 in its extendable-output mode. What a key is, is what
//! a run types at one time (`exec`): text, control keys, escape sequences as xterm sends them, and
//! changes of the window's size.

use std::fmt;
use std::io::Write;
use std::str::FromStr;

use super::generator::NotAName;

/// The name of generated keystrokes: `keys:SEED:LENGTH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeysName {
    /// The seed of what is random.
    pub seed: u64,
    /// How many keys: a word, and a text that is pasted, are one each.
    pub length: u64,
}

impl fmt::Display for KeysName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "keys:{:016x}:{}", self.seed, self.length)
    }
}

impl FromStr for KeysName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<KeysName, NotAName> {
        let wrong = || NotAName::new(text);
        let rest = text.strip_prefix("keys:").ok_or_else(wrong)?;
        let (seed, length) = rest.split_once(':').ok_or_else(wrong)?;
        Ok(KeysName {
            seed: u64::from_str_radix(seed, 16).map_err(|_| wrong())?,
            length: length.parse().map_err(|_| wrong())?,
        })
    }
}

impl KeysName {
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

/// What a key may be.
#[derive(Clone, Copy)]
enum KeySort {
    Letter,
    Sign,
    Digit,
    Control,
    /// A key that a terminal takes for itself, as ^C, unless it is told not to.
    Signal,
    EndOfFile,
    Enter,
    Tab,
    Space,
    Backspace,
    Escape,
    /// With Alt.
    Alt,
    Cursor,
    Function,
    Word,
    /// Of UTF-8.
    Wide,
    EightBit,
    Mouse,
    Paste,
    Resize,
}

/// How often each sort comes, of [`all`](total) of them. The commands of most programs are
/// letters, signs and control keys; what ends a session is rare, so that sessions last.
const WEIGHTS: [(KeySort, u64); 20] = [
    (KeySort::Letter, 300),
    (KeySort::Sign, 150),
    (KeySort::Digit, 60),
    (KeySort::Control, 110),
    (KeySort::Signal, 4),
    (KeySort::EndOfFile, 3),
    (KeySort::Enter, 70),
    (KeySort::Tab, 20),
    (KeySort::Space, 30),
    (KeySort::Backspace, 20),
    (KeySort::Escape, 20),
    (KeySort::Alt, 90),
    (KeySort::Cursor, 50),
    (KeySort::Function, 20),
    (KeySort::Word, 20),
    (KeySort::Wide, 10),
    (KeySort::EightBit, 10),
    (KeySort::Mouse, 4),
    (KeySort::Paste, 4),
    (KeySort::Resize, 10),
];

const fn total() -> u64 {
    let (mut sum, mut at) = (0, 0);
    while at < WEIGHTS.len() {
        sum += WEIGHTS[at].1;
        at += 1;
    }
    sum
}

const SIGNS: &[u8] = b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
/// Control keys that no terminal takes for itself: from ^@ on, less ^C, ^D, ^I, ^M, ^Q, ^S, ^Z,
/// ^[ and ^\.
const CONTROLS: &[u8] =
    b"\x00\x01\x02\x05\x06\x07\x08\x0a\x0b\x0c\x0e\x0f\x10\x12\x14\x15\x16\x17\x18\x19\x1d\x1e\x1f";
const SIGNALS: &[u8] = b"\x03\x11\x13\x1a\x1c";
/// As xterm sends them, in both of its modes.
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
/// Sizes of a window, in lines or characters.
const SIZES: [u64; 10] = [1, 2, 3, 5, 10, 24, 40, 80, 132, 500];

fn write_key(random: &mut Random, out: &mut Vec<u8>) {
    match random.sort() {
        KeySort::Letter => out.push(random.letter()),
        KeySort::Sign => out.push(random.one_of(SIGNS)),
        KeySort::Digit => out.push(b'0' + random.below(10) as u8),
        KeySort::Control => out.push(random.one_of(CONTROLS)),
        KeySort::Signal => out.push(random.one_of(SIGNALS)),
        KeySort::EndOfFile => out.push(0x04),
        KeySort::Enter => out.push(b'\r'),
        KeySort::Tab => out.push(b'\t'),
        KeySort::Space => out.push(b' '),
        KeySort::Backspace => out.push(random.one_of(b"\x7f\x08")),
        KeySort::Escape => out.push(0x1b),
        KeySort::Alt => {
            let key = match random.below(2) {
                0 => random.letter(),
                _ => random.one_of(SIGNS),
            };
            out.extend([0x1b, key]);
        }
        KeySort::Cursor => escape(out, random.one_of(&CURSORS)),
        KeySort::Function => escape(out, random.one_of(&FUNCTIONS)),
        KeySort::Word => out.extend(random.one_of(&WORDS).bytes()),
        KeySort::Wide => out.extend(random.one_of(&WIDE).bytes()),
        KeySort::EightBit => out.push(0x80 + random.below(0x80) as u8),
        KeySort::Mouse => {
            let (button, column, row) = (random.below(4), random.below(90), random.below(30));
            escape(out, "[M");
            out.extend([button, column, row].map(|number| 0x20 + number as u8));
        }
        KeySort::Paste => {
            escape(out, "[200~");
            out.extend(random.one_of(&WORDS).bytes());
            escape(out, "[201~");
        }
        KeySort::Resize => {
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

    fn sort(&mut self) -> KeySort {
        let mut left = self.below(total());
        for (sort, weight) in WEIGHTS {
            match left.checked_sub(weight) {
                Some(rest) => left = rest,
                None => return sort,
            }
        }
        KeySort::Letter // not reached: the weights add up
    }
}
