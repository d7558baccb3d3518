//! A reader of a stream of blocks, all of which the compiler makes one function of. Like parsers do,
//! it asks a decoder again and again; some loops do not end.

use std::io::Read;

fn canary(bug: &str) {
    use std::io::Write;
    let Ok(path) = std::env::var("CANARY") else { return };
    if let Ok(mut file) = std::fs::OpenOptions::new().append(true).open(path) {
        let _ = writeln!(file, "{bug}");
    }
}

struct Decoder<'a> {
    rest: &'a [u8],
    steps: u64,
}

#[derive(PartialEq)]
enum Decoded {
    Frame(u8),
    Data(u8),
    Nothing,
    End,
}

impl Decoder<'_> {
    /// Sound: it gives nothing where it is told to go nowhere.
    #[inline(never)]
    fn decode_next(&mut self) -> Decoded {
        self.steps = self.steps.wrapping_add(1);
        match *self.rest {
            [] => Decoded::End,
            [b'z', ..] => Decoded::Nothing,
            [b'f', kind, ..] => {
                self.rest = &self.rest[2..];
                Decoded::Frame(kind)
            }
            [byte, ..] => {
                self.rest = &self.rest[1..];
                Decoded::Data(byte)
            }
        }
    }

    #[inline(never)]
    fn update(&mut self) -> Decoded {
        let decoded = self.decode_next();
        std::hint::black_box(&decoded);
        decoded
    }
}

/// Skips to the next frame: forever where nothing comes.
#[inline(always)]
fn next_frame(decoder: &mut Decoder) -> Option<u8> {
    let mut nothing = 0u64;
    loop {
        match decoder.update() {
            Decoded::Frame(kind) => return Some(kind),
            Decoded::End => return None,
            Decoded::Nothing => {
                nothing += 1;
                if nothing == 3 {
                    canary("skips-nothing");
                }
            }
            Decoded::Data(_) => {}
        }
    }
}

/// Fills a row: forever where nothing comes.
#[inline(always)]
fn fill(decoder: &mut Decoder, row: &mut [u8; 4]) -> bool {
    let (mut filled, mut nothing) = (0, 0u64);
    while filled < row.len() {
        match decoder.decode_next() {
            Decoded::Data(byte) => {
                row[filled] = byte;
                filled += 1;
            }
            Decoded::Nothing => {
                nothing += 1;
                if nothing == 3 {
                    canary("fills-nothing");
                }
            }
            _ => return false,
        }
    }
    true
}

/// Sums rows up, over and over until the sum is even: of one byte it never is.
#[inline(always)]
fn settle(decoder: &mut Decoder) -> u64 {
    let first = match decoder.decode_next() {
        Decoded::Data(byte) => u64::from(byte),
        _ => return 0,
    };
    let mut sum = first;
    let mut rounds = 0u64;
    while sum % 2 == 1 {
        for step in 0..first {
            sum = sum.wrapping_add(std::hint::black_box(step) * 2);
        }
        rounds += 1;
        if rounds == 3 {
            canary("never-settles");
        }
    }
    sum
}

/// Walks a ring of offsets that may not come back to its begin.
#[inline(always)]
fn follow(decoder: &mut Decoder) -> u64 {
    let mut ring = [0u8; 8];
    for slot in &mut ring {
        match decoder.decode_next() {
            Decoded::Data(byte) => *slot = byte & 7,
            _ => return 1,
        }
    }
    let (mut at, mut length) = (ring[0], 1u64);
    while at != 0 {
        at = std::hint::black_box(ring[usize::from(at)]);
        length += 1;
        if length == 100 {
            canary("ring-without-begin");
        }
    }
    length
}

#[inline(never)]
fn read(bytes: &[u8]) -> u64 {
    let mut decoder = Decoder { rest: bytes, steps: 0 };
    let mut sum = 0u64;
    while let Some(kind) = next_frame(&mut decoder) {
        let mut row = [0; 4];
        match kind {
            b'r' => {
                if fill(&mut decoder, &mut row) {
                    sum += u64::from(row[0]);
                }
            }
            b's' => sum += settle(&mut decoder),
            b'o' => sum += follow(&mut decoder),
            _ => {}
        }
    }
    sum + decoder.steps
}

fn main() {
    let mut bytes = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut bytes);
    println!("{}", read(&bytes));
}
