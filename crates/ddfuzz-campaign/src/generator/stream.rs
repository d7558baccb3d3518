//! The bytes of a named input, one after another, in constant memory.

use std::io::{self, Read};

use super::{InputName, Lines};

/// Distances between line ends are drawn up to a scale between these powers of two, in bytes:
/// real programs have buffers for lines of 80 as well as of 8000 characters.
const LINE_SCALES: std::ops::Range<u32> = 4..14;

/// The bytes of an input, as [`InputName::stream`] gives them. Reading never fails; the end comes
/// after the named length.
#[derive(Debug)]
pub struct Stream {
    /// Random bytes, and the characters that they stand for.
    random: blake3::OutputReader,
    alphabet: [u8; 256],
    rest: Rest,
}

/// What is still to come.
#[derive(Debug)]
enum Rest {
    /// So many bytes.
    Bytes { left: u64 },
    /// So many bytes, with newlines at random distances.
    Scaled {
        left: u64,
        /// Bytes before the next newline.
        to_end: u64,
        scale: u64,
        distances: Distances,
    },
    /// So many whole lines.
    Strings {
        left: u64,
        /// Characters before the newline of the line under way, if one is.
        to_end: Option<u64>,
        below: u64,
        distances: Distances,
    },
}

/// Random numbers, from a stream of their own.
#[derive(Debug)]
struct Distances(blake3::OutputReader);

impl Distances {
    fn draw(&mut self, below: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_le_bytes(bytes) % below
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

    fn characters(random: &mut blake3::OutputReader, alphabet: &[u8; 256], buffer: &mut [u8]) {
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

/// The smaller of the two.
fn part(left: u64, room: usize) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(room)
}

fn random(name: &InputName, purpose: &[u8]) -> blake3::OutputReader {
    let mut hasher = blake3::Hasher::new();
    hasher.update(purpose);
    hasher.update(name.kind.to_string().as_bytes());
    hasher.update(&name.seed.to_le_bytes());
    hasher.finalize_xof()
}
