//! The classic generator of the fuzz studies: random characters, printable or all, with or without
//! NUL, with or without line ends (Miller, Fredriksen and So, 1990; ISSTA, section 5).
//!
//! The name of an input (kind, seed, length) determines its bytes, on any machine: the random bytes
//! are the extendable output of blake3. [`Stream`] produces them, also for
//! [`InputName::write_into`].
//!
//! [`Preset`]s are the inputs of the published studies. [`unescape`] decodes the backslash escapes
//! of C, which are used to write keys and epilogs.

mod preset;

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

pub use preset::{DataSet, Preset, UnknownPreset, Variant};

/// The name of an input of the classic generator, `KIND:SEED:LENGTH`, from which its bytes can be
/// rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InputName {
    /// Which characters the named input consists of, and where its lines end.
    pub kind: Kind,
    /// Seed of the random bytes of the generated input.
    pub seed: u64,
    /// Length of the generated input in bytes; with [`Lines::Strings`], its number of lines.
    pub length: u64,
}

impl fmt::Display for InputName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:016x}:{}", self.kind, self.seed, self.length)
    }
}

/// The error of parsing a text that is not the name of a generated input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not the name of a generated input; write it like all+nul+lines:00000000000000ff:1000"
)]
pub struct NotAName(String);

impl NotAName {
    pub(crate) fn new(text: &str) -> NotAName {
        NotAName(text.to_owned())
    }
}

impl FromStr for InputName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<InputName, NotAName> {
        let wrong = || NotAName(text.to_owned());
        let [kind, seed, length] = text.split(':').collect::<Vec<_>>()[..] else {
            return Err(wrong());
        };
        Ok(InputName {
            kind: kind.parse().map_err(|_| wrong())?,
            seed: u64::from_str_radix(seed, 16).map_err(|_| wrong())?,
            length: length.parse().map_err(|_| wrong())?,
        })
    }
}

impl InputName {
    /// Returns a reader that produces the bytes of the named input piece by piece, for inputs that
    /// are too long for memory.
    pub fn stream(&self) -> Stream {
        Stream::new(self)
    }

    /// Returns the length, in bytes, of the generated input that this name stands for; `None` for
    /// inputs of lines ([`Lines::Strings`]), whose length is a number of lines.
    pub fn bytes(&self) -> Option<u64> {
        match self.kind.lines {
            Lines::None | Lines::Scaled => Some(self.length),
            Lines::Strings { .. } => None,
        }
    }

    /// Rebuilds the input that this name describes: replaces the content of `buffer` with its
    /// bytes.
    pub fn write_into(&self, buffer: &mut Vec<u8>) {
        buffer.clear();
        // Reading to the end writes into unused capacity, which nothing has to fill with zeros.
        let bytes = self.bytes().unwrap_or(0);
        buffer.reserve(usize::try_from(bytes).unwrap_or(usize::MAX));
        let read = self.stream().read_to_end(buffer);
        read.expect("reading a stream never fails");
    }
}

/// Which characters a generated input is drawn from; NUL is chosen separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Characters {
    /// The printable ASCII characters, 0x20 to 0x7e (option `-p` of the `fuzz` program).
    Printable,
    /// All 8-bit characters but the newline, so that lines of the generated input end only where
    /// [`Lines`] says.
    All,
    /// All 8-bit characters, newlines as likely as any other (option `-a` of the `fuzz` program).
    Bytes,
}

impl Characters {
    const ALL: [Characters; 3] = [Characters::Printable, Characters::All, Characters::Bytes];

    fn name(self) -> &'static str {
        match self {
            Characters::Printable => "printable",
            Characters::All => "all",
            Characters::Bytes => "bytes",
        }
    }

    fn range(self) -> std::ops::RangeInclusive<u8> {
        match self {
            Characters::Printable => 0x20..=0x7e,
            Characters::All | Characters::Bytes => 0x01..=0xff,
        }
    }
}

/// Where the classic generator adds newlines to an input, apart from newlines drawn as its
/// characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lines {
    /// The generator adds no newlines to the input.
    None,
    /// The generator adds newlines at random distances, whose scale differs from input to input.
    Scaled,
    /// The input consists of lines of 0 to `below - 1` characters, uniformly distributed (option
    /// `-l below` of the `fuzz` program). The length of such an input is a number of lines.
    Strings {
        /// Exclusive upper limit of the number of characters in a line; never 0. With 1, all lines
        /// are empty.
        below: u32,
    },
}

/// The kind of a generated input: which characters it consists of, and where its lines end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// The set from which the characters of the input are drawn, apart from NUL.
    pub characters: Characters,
    /// Whether the input may contain NUL characters (option `-0` of the `fuzz` program).
    pub nul: bool,
    /// Where newlines are added to the input, apart from newlines drawn as its characters.
    pub lines: Lines,
}

impl Kind {
    /// The eight kinds of inputs that campaigns generate, in a fixed order: printable or all
    /// characters, with or without NUL, without added newlines or with newlines at random
    /// distances.
    pub const ALL: [Kind; 8] = {
        const fn kind(index: u8) -> Kind {
            Kind {
                characters: [Characters::Printable, Characters::All][(index & 1) as usize],
                nul: index & 2 != 0,
                lines: [Lines::None, Lines::Scaled][(index >> 2) as usize],
            }
        }
        [
            kind(0),
            kind(1),
            kind(2),
            kind(3),
            kind(4),
            kind(5),
            kind(6),
            kind(7),
        ]
    };

    /// Returns a table that maps each value of a random byte to a character of this kind of inputs,
    /// each character for nearly the same number of values.
    pub(super) fn alphabet(self) -> [u8; 256] {
        let with_newline = self.characters != Characters::All;
        let mut characters: Vec<u8> = self
            .characters
            .range()
            .filter(|&byte| with_newline || byte != b'\n')
            .collect();
        if self.nul {
            characters.push(0);
        }
        let mut table = [0; 256];
        for (value, character) in table.iter_mut().enumerate() {
            *character = characters[value * characters.len() / 256];
        }
        table
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.characters.name())?;
        f.write_str(if self.nul { "+nul" } else { "" })?;
        match self.lines {
            Lines::None => Ok(()),
            Lines::Scaled => f.write_str("+lines"),
            Lines::Strings { below } => write!(f, "+strings{below}"),
        }
    }
}

impl FromStr for Kind {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Kind, NotAName> {
        let mut parts = text.split('+');
        let first = parts.next();
        let characters = Characters::ALL
            .into_iter()
            .find(|known| Some(known.name()) == first);
        let mut kind = Kind {
            characters: characters.ok_or_else(|| NotAName::new(text))?,
            nul: false,
            lines: Lines::None,
        };
        for part in parts {
            match part {
                "nul" => kind.nul = true,
                "lines" => kind.lines = Lines::Scaled,
                part => {
                    let below = part.strip_prefix("strings").map(str::parse);
                    let Some(Ok(below @ 1..)) = below else {
                        return Err(NotAName::new(text));
                    };
                    kind.lines = Lines::Strings { below };
                }
            }
        }
        // Each kind has one spelling: repeated parts and other orders are invalid.
        match kind.to_string() == text {
            true => Ok(kind),
            false => Err(NotAName::new(text)),
        }
    }
}

/// Range of the exponent e that determines the lengths of an input's lines: distances between
/// newlines are below 2^e bytes. The range is wide because programs have line buffers of 80 to 8000
/// characters.
const LINE_SCALES: std::ops::Range<u32> = 4..14;

/// A reader that produces the bytes of a generated input ([`InputName::stream`]). Reading never
/// fails and ends after the input's length.
#[derive(Debug)]
pub struct Stream {
    /// Source of the random bytes from which the characters of the generated input are made.
    random: RandomBytes,
    alphabet: [u8; 256],
    rest: Rest,
}

/// The part of a generated input that a [`Stream`] still has to produce.
#[derive(Debug)]
enum Rest {
    /// `left` bytes of the generated input are still to be produced; no newlines are added to them.
    Bytes { left: u64 },
    /// `left` bytes of the generated input are still to be produced, with newlines at random
    /// distances.
    Scaled {
        left: u64,
        /// Number of bytes of the generated input still to be produced before the next added
        /// newline.
        to_end: u64,
        scale: u64,
        distances: Distances,
    },
    /// `left` lines of the generated input are still to be produced, each of fewer than `below`
    /// characters and a newline.
    Strings {
        left: u64,
        /// Number of characters still to be produced before the newline of the present line of the
        /// generated input; `None` between two lines.
        to_end: Option<u64>,
        below: u64,
        distances: Distances,
    },
}

/// Reads the next 64-bit random number from a source of random bytes.
fn number_from(random: &mut blake3::OutputReader) -> u64 {
    let mut bytes = [0; 8];
    random.fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// Number of random bytes that blake3 computes at once.
const BLOCK: usize = 64;

/// Source of random bytes that computes each block of them only once, even if the block is read in
/// short pieces.
#[derive(Debug)]
struct RandomBytes {
    /// The blake3 output that the random bytes are read from, in whole blocks only.
    blocks: blake3::OutputReader,
    block: [u8; BLOCK],
    /// Number of bytes at the end of `block` that are still to be read.
    left: usize,
}

impl RandomBytes {
    fn new(blocks: blake3::OutputReader) -> RandomBytes {
        RandomBytes {
            blocks,
            block: [0; BLOCK],
            left: 0,
        }
    }

    /// Fills `buffer` with the next random bytes.
    fn fill(&mut self, buffer: &mut [u8]) {
        let (begun, rest) = buffer.split_at_mut(self.left.min(buffer.len()));
        self.take(begun);
        let (whole, end) = rest.split_at_mut(rest.len() / BLOCK * BLOCK);
        self.blocks.fill(whole);
        if !end.is_empty() {
            self.blocks.fill(&mut self.block);
            self.left = BLOCK;
            self.take(end);
        }
    }

    /// Copies the next unused random bytes to `buffer` until it is full. The caller makes sure that
    /// the present block has enough unused random bytes.
    fn take(&mut self, buffer: &mut [u8]) {
        let at = BLOCK - self.left;
        buffer.copy_from_slice(&self.block[at..at + buffer.len()]);
        self.left -= buffer.len();
    }
}

/// Source of the random distances between newlines of a generated input. It is separate from the
/// source of the characters, so that each source does not depend on how much of the other was read.
#[derive(Debug)]
struct Distances(RandomBytes);

impl Distances {
    fn draw(&mut self, below: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_le_bytes(bytes) % below
    }
}

/// `N` random bytes from which the kind, seed and length of an input are read.
pub(crate) struct Draw<const N: usize>(pub(crate) [u8; N]);

impl<const N: usize> Draw<N> {
    /// Returns the number that eight of the random bytes, from index `at` on, encode in
    /// little-endian order.
    pub(crate) fn number(&self, at: usize) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.0[at..at + 8]);
        u64::from_le_bytes(word)
    }
}

impl Stream {
    pub(super) fn new(name: &InputName) -> Stream {
        let mut distances = Distances(random(name, b"ddfuzz-classic-lines-1"));
        let left = name.length;
        let rest = match name.kind.lines {
            Lines::None => Rest::Bytes { left },
            Lines::Scaled => {
                let scales = u64::from(LINE_SCALES.end - LINE_SCALES.start);
                let scale = 1 << (u64::from(LINE_SCALES.start) + distances.draw(scales));
                Rest::Scaled {
                    left,
                    to_end: distances.draw(scale),
                    scale,
                    distances,
                }
            }
            Lines::Strings { below } => Rest::Strings {
                left,
                to_end: None,
                // Zero is no kind (`FromStr`), but a public field may hold it.
                below: u64::from(below.max(1)),
                distances,
            },
        };
        Stream {
            random: random(name, b"ddfuzz-classic-1"),
            alphabet: name.kind.alphabet(),
            rest,
        }
    }

    fn characters(random: &mut RandomBytes, alphabet: &[u8; 256], buffer: &mut [u8]) {
        random.fill(buffer);
        for byte in buffer {
            *byte = alphabet[usize::from(*byte)];
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (random, alphabet) = (&mut self.random, &self.alphabet);
        match &mut self.rest {
            Rest::Bytes { left } => {
                let length = part(*left, buffer.len());
                Stream::characters(random, alphabet, &mut buffer[..length]);
                *left -= length as u64;
                Ok(length)
            }
            Rest::Scaled {
                left,
                to_end,
                scale,
                distances,
            } => {
                let length = part(*left, buffer.len());
                let buffer = &mut buffer[..length];
                Stream::characters(random, alphabet, buffer);
                let mut at = *to_end;
                while let Some(byte) = usize::try_from(at).ok().and_then(|at| buffer.get_mut(at)) {
                    *byte = b'\n';
                    at += 1 + distances.draw(*scale);
                }
                *to_end = at - length as u64;
                *left -= length as u64;
                Ok(length)
            }
            Rest::Strings {
                left,
                to_end,
                below,
                distances,
            } => {
                let mut filled = 0;
                while filled < buffer.len() && *left > 0 {
                    let length = to_end.get_or_insert_with(|| distances.draw(*below));
                    let now = part(*length, buffer.len() - filled);
                    Stream::characters(random, alphabet, &mut buffer[filled..filled + now]);
                    filled += now;
                    *length -= now as u64;
                    if *length == 0 && filled < buffer.len() {
                        buffer[filled] = b'\n';
                        filled += 1;
                        *left -= 1;
                        *to_end = None;
                    }
                }
                Ok(filled)
            }
        }
    }
}

/// Returns how many bytes of a generated input are to be written next: the smaller of `left`, the
/// bytes still to be produced, and `free`, the bytes free in the buffer.
fn part(left: u64, free: usize) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(free)
}

fn random(name: &InputName, purpose: &[u8]) -> RandomBytes {
    let mut hasher = blake3::Hasher::new();
    hasher.update(purpose);
    hasher.update(name.kind.to_string().as_bytes());
    hasher.update(&name.seed.to_le_bytes());
    RandomBytes::new(hasher.finalize_xof())
}

/// The error of decoding a text with a backslash escape that C does not have; holds the escape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not an escape of C; write \\\\ for a backslash")]
pub struct WrongEscape(String);

/// Decodes a text with C's backslash escapes: `\a \b \e \f \n \r \t \v \\ \' \" \?`, one to three
/// octal digits, or `\x` with one or two hexadecimal digits.
///
/// # Errors
/// When any other character, or nothing, follows a backslash, and for octal numbers over 377.
pub fn unescape(text: &[u8]) -> Result<Vec<u8>, WrongEscape> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        if *first != b'\\' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let (byte, length) = escape(after).ok_or_else(|| {
            WrongEscape(String::from_utf8_lossy(&rest[..rest.len().min(4)]).into())
        })?;
        bytes.push(byte);
        rest = &after[length..];
    }
    Ok(bytes)
}

/// Decodes one backslash escape of C. `after`: the text behind the backslash. Returns the byte that
/// the escape stands for, and the number of characters of the escape behind the backslash; `None`
/// if C has no such escape.
fn escape(after: &[u8]) -> Option<(u8, usize)> {
    let simple = |byte| Some((byte, 1));
    match after.first()? {
        b'a' => simple(0x07),
        b'b' => simple(0x08),
        b'e' => simple(0x1b),
        b'f' => simple(0x0c),
        b'n' => simple(b'\n'),
        b'r' => simple(b'\r'),
        b't' => simple(b'\t'),
        b'v' => simple(0x0b),
        &byte @ (b'\\' | b'\'' | b'"' | b'?') => simple(byte),
        b'x' => {
            let (byte, digits) = number(&after[1..], 2, 16)?;
            Some((byte, 1 + digits))
        }
        _ => number(after, 3, 8),
    }
}

/// Parses the leading digits of `text` in base `radix`, at most `most` of them. Returns the number
/// and the count of its digits; `None` without digits, or if the number is over 255.
fn number(text: &[u8], most: usize, radix: u32) -> Option<(u8, usize)> {
    let digits = text
        .iter()
        .take(most)
        .take_while(|byte| char::from(**byte).is_digit(radix))
        .count();
    let text = std::str::from_utf8(&text[..digits]).ok()?;
    Some((u8::from_str_radix(text, radix).ok()?, digits))
}
