//! Failures that a search looks for.

use ddfuzz::delta::Outcome;

/// The byte that matters.
const NEEDED: u8 = 0xff;

/// An input and what it takes to fail.
pub struct Failure {
    /// In words.
    pub name: &'static str,
    /// The failing input.
    pub input: Vec<u8>,
    fails: fn(&[u8]) -> bool,
}

impl Failure {
    /// The outcome of a candidate.
    pub fn test(&self, text: &[u8]) -> Outcome {
        match (self.fails)(text) {
            true => Outcome::Fail,
            false => Outcome::Pass,
        }
    }

    /// All failures that are measured, for inputs of `size` bytes.
    pub fn all(size: usize) -> [Failure; 3] {
        let run = size / 500;
        let with = |places: &mut dyn Iterator<Item = usize>| {
            let mut input = vec![b'.'; size];
            // Not all alike: equal neighbours would make the content cache do the work.
            for (at, byte) in input.iter_mut().enumerate() {
                *byte = b' ' + (at * at / 7 % 90) as u8;
            }
            places.for_each(|at| input[at] = NEEDED);
            input
        };
        [
            Failure {
                name: "two far bytes",
                input: with(&mut [size / 5, size - size / 7].into_iter()),
                fails: |text| count(text) >= 2,
            },
            Failure {
                name: "100 scattered bytes",
                input: with(&mut (0..100).map(|at| at * (size / 100) + at * at % (size / 100))),
                fails: |text| count(text) >= 100,
            },
            Failure {
                name: "a run",
                input: with(&mut (size / 3..size / 3 + run)),
                fails: |text| count(text) >= 20,
            },
        ]
    }
}

fn count(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == NEEDED).count()
}
