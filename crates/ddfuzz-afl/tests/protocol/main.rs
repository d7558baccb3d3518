//! Tests the trimming protocol, with closures in place of AFL++.

mod ffi;
mod hostile;
mod questions;
mod settings;
mod steps;

use ddfuzz_afl::{Settings, TrimSearch, Trimmer};
use ddfuzz_delta::Outcome;

/// Makes settings with the search of this name and this largest number of steps (executions).
fn settings(search: &str, steps: u32) -> Settings {
    Settings {
        search: TrimSearch::by_name(search).expect("a search that trims"),
        steps: Some(steps),
    }
}

/// The candidates that trimming an entry asked for, and its result.
struct Trimmed {
    /// All candidates, in order; the first one is the entry.
    asked: Vec<Vec<u8>>,
    /// The entry that AFL++ would store: the last candidate that kept the coverage.
    stored: Vec<u8>,
}

/// Trims an entry like AFL++: one step after another, until the step's number reaches the number of
/// steps.
fn trim(trimmer: &mut Trimmer, entry: &[u8], keeps: impl Fn(&[u8]) -> bool) -> Trimmed {
    let steps = trimmer.begin(entry);
    let mut done = Trimmed {
        asked: Vec::new(),
        stored: entry.to_vec(),
    };
    let mut step = 0;
    while step < steps {
        let candidate = trimmer.candidate().to_vec();
        let outcome = outcome(keeps(&candidate));
        if outcome == Outcome::Fail {
            done.stored.clone_from(&candidate);
        }
        done.asked.push(candidate);
        let next = trimmer.tell(outcome);
        assert!(next == steps || next == step + 1, "{step} {next}");
        step = next;
    }
    done
}

fn outcome(keeps: bool) -> Outcome {
    match keeps {
        true => Outcome::Fail,
        false => Outcome::Pass,
    }
}

/// Imitates coverage of a target that reads `text`: which brackets occur, how often a word occurs
/// (in AFL's classes of counts), and whether there are several lines.
fn coverage(text: &[u8]) -> [usize; 5] {
    let count = |byte| text.iter().filter(|&&one| one == byte).count();
    let words = text.windows(3).filter(|word| word == b"let").count();
    [
        count(b'<').min(1),
        count(b'>').min(2),
        usize::BITS as usize - words.leading_zeros() as usize,
        count(b'\n').min(2),
        count(b'=') % 2,
    ]
}

/// Generates a text with this number of lines; each seed gives another text.
fn text(lines: u64, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = Vec::new();
    for _ in 0..lines {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let line = match state % 4 {
            0 => format!("let a{} = {};\n", state % 77, state % 9973),
            1 => format!("  print <{}>;\n", state % 101),
            2 => "\n\n".to_owned(),
            _ => format!("# {state:x} > {}\n", state % 13),
        };
        text.extend_from_slice(line.as_bytes());
    }
    text
}
