//! Which options and which input each run of a study has: a function of the study's seed, the
//! utility's name and the number of the run.

use std::fmt;
use std::sync::Arc;

use super::utility::Utility;
use crate::KeystrokesName;
use crate::generator::{Draw, InputName, Kind};
use ddfuzz_exec::{Channel, SEPARATOR};

/// Number of runs in a chunk: successive runs of a utility with the same invocation and options. A
/// server process of the utility is started for each chunk.
const CHUNK: u64 = 64;
/// Number of runs in a chunk of a terminal program (successive runs with the same invocation and
/// options). Chunks are small because a run takes longer than starting the program does.
const CHUNK_OF_KEYS: u64 = 16;

/// Ranges of lengths for generated inputs: each has a least and a greatest length in bytes, and a
/// bound. A random byte chooses the first range whose bound is not less than the byte. Most lengths
/// are those of the small data sets of the fuzz study of 2020, which take little time.
const LENGTHS: [(u64, u64, u8); 4] = [
    (0, 1_000, 176),
    (1_000, 10_000, 236),
    (10_000, 100_000, 252),
    (100_000, 1_000_000, 255),
];
/// Ranges for the number of keys in an input of keystrokes: each has a least number, a greatest
/// number, and a bound. A random byte chooses the first range whose bound is not less than the
/// byte. Many crashes need few keys.
const KEYS: [(u64, u64, u8); 3] = [(1, 16, 96), (16, 100, 192), (100, 300, 255)];

/// The rule by which each run of a study gets its input and options: drawn at random from a seed,
/// or inputs of a data set in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudyPlan {
    /// Seed of the random numbers from which inputs and options are drawn.
    pub seed: u64,
    /// Greatest length of the inputs that are drawn at random, in bytes.
    pub max_len: u64,
    /// Inputs of a data set, which are run in order, again and again; empty if inputs are drawn at
    /// random.
    pub set: Arc<[InputName]>,
}

/// How a utility is called in a chunk of successive runs: with which invocation, and with which
/// options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which invocation is used: index into [`Utility::invocations`].
    pub invocation: usize,
    /// Indices, in the invocation's pool of options, of those options that were drawn for the call.
    pub drawn: Vec<usize>,
}

/// The name of the input of a run in a study, from which the input is rebuilt: the empty input, one
/// or two generated inputs, or keystrokes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StudyInput {
    /// The empty input, with which each invocation of a utility is run first.
    Empty,
    /// The name of an input of the classic generator.
    Classic(InputName),
    /// The names of two inputs of the classic generator, for a utility that reads two files. Each
    /// [`SEPARATOR`] in the first input is replaced by the next byte value.
    Two(InputName, InputName),
    /// The name of an input of random keystrokes, for a terminal program.
    Keys(KeystrokesName),
}

impl StudyInput {
    /// Returns the name that reports use for this kind of inputs, such as `empty` or `keys`.
    pub fn kind(&self) -> String {
        match self {
            StudyInput::Empty => "empty".to_owned(),
            StudyInput::Classic(name) | StudyInput::Two(name, _) => name.kind.to_string(),
            StudyInput::Keys(_) => "keys".to_owned(),
        }
    }

    /// Builds the input that this name describes, and returns its bytes.
    pub fn build(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            StudyInput::Empty => {}
            StudyInput::Classic(name) => name.write_into(&mut bytes),
            StudyInput::Keys(name) => name.write_into(&mut bytes),
            StudyInput::Two(first, second) => {
                first.write_into(&mut bytes);
                for byte in bytes.iter_mut().filter(|byte| **byte == SEPARATOR) {
                    *byte += 1;
                }
                let mut rest = Vec::new();
                second.write_into(&mut rest);
                bytes.push(SEPARATOR);
                bytes.extend(rest);
            }
        }
        bytes
    }
}

impl fmt::Display for StudyInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StudyInput::Empty => f.write_str("empty"),
            StudyInput::Classic(name) => name.fmt(f),
            StudyInput::Two(first, second) => write!(f, "{first} {second}"),
            StudyInput::Keys(name) => name.fmt(f),
        }
    }
}

/// Draws a length with nine bytes of `draw`, from the index `at` on. The first byte chooses a row
/// of `table` (least length, greatest length, bound): the first row whose bound is not less than
/// the byte. The other eight bytes choose a length in the row's range.
fn length(draw: &Draw<64>, at: usize, table: &[(u64, u64, u8)]) -> u64 {
    let row = table.iter().find(|(_, _, up_to)| draw.0[at] <= *up_to);
    let (shortest, longest, _) = *row.unwrap_or(&table[0]);
    shortest + draw.number(at + 1) % (longest - shortest + 1)
}

impl StudyPlan {
    /// Returns the number of runs in a chunk (successive runs of a utility with the same invocation
    /// and options).
    pub fn chunk(&self, utility: &Utility) -> u64 {
        match utility
            .invocations
            .iter()
            .any(|invocation| invocation.is_terminal())
        {
            true => CHUNK_OF_KEYS,
            false => CHUNK,
        }
    }

    /// Returns how the utility is called (invocation and options) in the chunk of runs with the
    /// number `chunk`, from 0: the invocations take turns, and each option of the pool is drawn
    /// with probability 1/2. The first chunk of each invocation has no drawn options.
    pub fn call(&self, utility: &Utility, chunk: u64) -> Call {
        let invocations = utility.invocations.len().max(1) as u64;
        let invocation = (chunk % invocations) as usize;
        let pool = utility
            .invocations
            .get(invocation)
            .map_or(0, |it| it.pool.len());
        let mut bits = self.stream(b"ddfuzz-study-options-1", utility, chunk);
        let mut drawn = Vec::new();
        if chunk >= invocations {
            let mut byte = [0];
            for option in 0..pool {
                bits.fill(&mut byte);
                if byte[0] & 1 == 1 {
                    drawn.push(option);
                }
            }
        }
        Call { invocation, drawn }
    }

    /// Returns the name of the input of the run of a utility with the number `run`, from 0. The
    /// first input of each invocation is empty.
    pub fn input(&self, utility: &Utility, run: u64) -> StudyInput {
        let chunk = run / self.chunk(utility);
        if run.is_multiple_of(self.chunk(utility)) && chunk < utility.invocations.len() as u64 {
            return StudyInput::Empty;
        }
        let mut draw = Draw([0; 64]);
        self.stream(b"ddfuzz-study-1", utility, run)
            .fill(&mut draw.0);
        let Call { invocation, .. } = self.call(utility, chunk);
        let channel = utility
            .invocations
            .get(invocation)
            .map(|invocation| &invocation.channel);
        let of_set = |number: u64| match self.set.len() as u64 {
            0 => None,
            many => self.set.get((number % many) as usize).copied(),
        };
        if let Some(first) = of_set(run) {
            return match (channel, of_set(draw.number(0))) {
                (Some(Channel::TwoFiles), Some(second)) => StudyInput::Two(first, second),
                _ => StudyInput::Classic(first),
            };
        }
        match channel {
            // One input of four consists of uniformly random bytes.
            Some(Channel::Terminal(_)) if draw.0[0] >= 64 => StudyInput::Keys(KeystrokesName {
                seed: draw.number(8),
                length: length(&draw, 16, &KEYS),
            }),
            Some(Channel::Terminal(_)) => StudyInput::Classic(InputName {
                length: length(&draw, 16, &KEYS),
                ..self.classic(&draw, 0)
            }),
            Some(Channel::TwoFiles) => {
                StudyInput::Two(self.classic(&draw, 0), self.classic(&draw, 32))
            }
            _ => StudyInput::Classic(self.classic(&draw, 0)),
        }
    }

    /// Returns the name of an input of the classic generator, drawn from the 26 random bytes from
    /// index `at` on.
    fn classic(&self, draw: &Draw<64>, at: usize) -> InputName {
        InputName {
            kind: Kind::ALL[usize::from(draw.0[at + 25]) % Kind::ALL.len()],
            seed: draw.number(at + 8),
            length: length(draw, at + 16, &LENGTHS).min(self.max_len),
        }
    }

    fn stream(&self, purpose: &[u8], utility: &Utility, number: u64) -> blake3::OutputReader {
        let mut hasher = blake3::Hasher::new();
        hasher.update(purpose);
        hasher.update(&self.seed.to_le_bytes());
        hasher.update(&(utility.name.len() as u64).to_le_bytes());
        hasher.update(utility.name.as_bytes());
        hasher.update(&number.to_le_bytes());
        hasher.finalize_xof()
    }
}
