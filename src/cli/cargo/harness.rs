//! Whether a harness can be fuzzed: it comes back from some inputs, and does something with them.

use std::path::Path;

use crate::cli::{Exit, Failure, Output};
use crate::exec::{Ended, Executor, Telling};
use crate::files::regular;

/// Lengths of the inputs that are tried, in bytes.
const LENGTHS: [usize; 7] = [0, 1, 4, 16, 64, 256, 1024];
/// Inputs of the corpus that are tried, and the longest of them.
const OF_CORPUS: usize = 8;
const LONGEST: u64 = 1 << 20;

/// Runs the harness on a few inputs, and says what is wrong with it.
///
/// # Errors
/// When it comes back from none of them.
pub fn check(
    executor: &mut dyn Executor,
    name: &str,
    corpus: &Path,
    output: &Output,
) -> Result<(), Failure> {
    executor.tell_coverage(Telling::Every);
    let mut deaths = Vec::new();
    let (mut tried, mut reached) = (0_usize, Vec::new());
    for input in inputs(corpus) {
        let run = executor.run(&input)?;
        tried += 1;
        match run.ended {
            // What wraps a harness may treat an empty input apart.
            Ended::Exit(0) if input.is_empty() => tried -= 1,
            Ended::Exit(0) => reached.extend(executor.coverage().map(<[u8]>::to_vec)),
            ended => deaths.push(ended),
        }
    }
    executor.tell_coverage(Telling::Nothing);
    if let (Some(first), true) = (deaths.first(), deaths.len() == tried) {
        let message = format!(
            "the harness {name} fails on every input ({first} on an empty one), so no other failure \
             could be found"
        );
        return Err(
            Failure::new(Exit::Baseline, "harness", message).hint(format!(
                "look at its message, and fix it: cargo fuzz run {name} -- -runs=1"
            )),
        );
    }
    let same = reached.windows(2).all(|pair| pair[0] == pair[1]);
    if deaths.is_empty() && reached.len() == tried && same {
        output.say(&format!(
            "warning: the harness {name} does the same on {tried} different inputs; does it use its \
             input? (`cargo fuzz fmt {name} INPUT` shows what it makes of an input; its source is \
             fuzz_targets/{name}.rs)"
        ));
    }
    Ok(())
}

/// Some inputs of all decades and kinds, and some of the corpus.
fn inputs(corpus: &Path) -> Vec<Vec<u8>> {
    let mut inputs: Vec<Vec<u8>> = Vec::new();
    for length in LENGTHS {
        let letters = (0..length).map(|at| b"(a1, \"b\": {2}) <c>\n"[at % 19]);
        inputs.push(letters.collect());
        // Bytes of all values, in no order that a parser expects.
        inputs.push(
            (0..length)
                .map(|at| (at * 167 + at / 256 * 13 + 5) as u8)
                .collect(),
        );
        inputs.push(vec![0; length]);
    }
    inputs.dedup();
    let entries = std::fs::read_dir(corpus).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let read = paths.iter().take(OF_CORPUS);
    inputs.extend(read.filter_map(|path| regular::read(path, LONGEST).ok()));
    inputs
}
