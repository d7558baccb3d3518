//! Passing inputs close to a failing one.

use ddfuzz_delta::{Dd, Mode, Outcome, Search};
use ddfuzz_exec::Ended;

use crate::engine::{Criterion, Ending, Engine, EngineError, Side};

/// Largest number of inputs that are run in the search for passing ones.
const MOST_RUNS: usize = 160;
/// Largest number of runs in the search for the largest passing part of the input.
const MOST_OF_PARTS: usize = 48;

/// Checks whether a run passes: it does not fail, and ends by itself without a crash.
pub fn judge_candidate(criterion: &Criterion, ending: &Ending, failing: &Ending) -> bool {
    let ends_well = matches!(ending.ended, Ended::Exit(_)) && ending.crash.is_none();
    let fails = criterion.judge(ending, failing) == Outcome::Fail;
    ends_well && !fails
}

/// Returns up to `most` inputs that pass and are close to the failing one: given ones, and variants
/// of it with another byte, or without a byte or a line; where none of these ends well, its largest
/// passing part. Those of the same length come first.
///
/// # Errors
/// When the program cannot be run.
pub fn candidates(
    engine: &mut Engine,
    criterion: &Criterion,
    failing_ending: &Ending,
    failing: &[u8],
    given: &[Vec<u8>],
    most: usize,
) -> Result<Vec<Vec<u8>>, EngineError> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    let mut of_status: Vec<(bool, Vec<u8>)> = Vec::new();
    let tried = given.iter().cloned().chain(variants(failing));
    for input in tried.take(MOST_RUNS) {
        if input == failing || of_status.iter().any(|(_, known)| *known == input) {
            continue;
        }
        engine.set_input(Side::Passing, input.clone());
        let ending = engine.run_to_end(Side::Passing)?;
        if judge_candidate(criterion, &ending, failing_ending) {
            of_status.push((ending.ended == Ended::Exit(0), input));
        }
        if of_status.iter().filter(|(is_good, _)| *is_good).count() >= most {
            break;
        }
    }
    if of_status.iter().all(|(is_good, _)| !is_good) {
        let part = largest_part(engine, criterion, failing_ending, failing)?;
        of_status.extend(part.map(|part| (true, part)));
    }
    // Those that the program does not complain about first, and those of the same length.
    of_status.sort_by_key(|(is_good, input)| (!is_good, input.len() != failing.len()));
    found.extend(of_status.into_iter().take(most).map(|(_, input)| input));
    Ok(found)
}

/// Returns the largest part of an input that passes and that few runs find (`ddmax`), if even
/// nothing passes.
fn largest_part(
    engine: &mut Engine,
    criterion: &Criterion,
    failing_ending: &Ending,
    failing: &[u8],
) -> Result<Option<Vec<u8>>, EngineError> {
    let mut passes = |input: Vec<u8>| -> Result<Outcome, EngineError> {
        engine.set_input(Side::Passing, input);
        let ending = engine.run_to_end(Side::Passing)?;
        let passes = judge_candidate(criterion, &ending, failing_ending);
        Ok(match passes && ending.ended == Ended::Exit(0) {
            true => Outcome::Pass,
            false => Outcome::Unresolved,
        })
    };
    if passes(Vec::new())? != Outcome::Pass {
        return Ok(None);
    }
    let mut search = Dd::new(failing.len(), Mode::Maximize);
    let mut part = Vec::new();
    for _ in 0..MOST_OF_PARTS {
        let Some(candidate) = search.next() else {
            break;
        };
        let Some(config) = candidate.edit.apply(search.fail()) else {
            break;
        };
        config.write_into(failing, &mut part);
        search.tell(passes(part.clone())?);
    }
    search.pass().write_into(failing, &mut part);
    Ok(Some(part).filter(|part| !part.is_empty()))
}

/// Returns inputs close to one: with another byte of the input, or a similar one, in one place,
/// spread over the whole input; then without one byte; then without one line.
fn variants(input: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let places = spread(input.len());
    let mut own: Vec<u8> = input.to_vec();
    own.sort_unstable();
    own.dedup();
    for round in 0..5 {
        for at in &places {
            let byte = input[*at];
            let others = own[usize::from(byte) % own.len()];
            let other = [similar(byte), b'a', b' ', b'0', others][round];
            if other != byte {
                let mut changed = input.to_vec();
                changed[*at] = other;
                all.push(changed);
            }
        }
        if round == 2 {
            all.extend(
                places
                    .iter()
                    .map(|at| [&input[..*at], &input[at + 1..]].concat()),
            );
        }
    }
    let lines: Vec<&[u8]> = ddfuzz_delta::lines(input);
    if lines.len() > 1 {
        let without = |skipped: usize| {
            let kept = lines.iter().enumerate().filter(|(at, _)| *at != skipped);
            kept.flat_map(|(_, line)| line.iter().copied())
                .collect::<Vec<u8>>()
        };
        all.extend((0..lines.len().min(64)).map(without));
    }
    all
}

/// Largest number of places that are changed in an input.
const PLACES: usize = 48;

fn spread(length: usize) -> Vec<usize> {
    match length <= PLACES {
        true => (0..length).rev().collect(),
        false => (0..PLACES)
            .rev()
            .map(|index| index * (length - 1) / (PLACES - 1))
            .collect(),
    }
}

/// Returns another byte of the same kind: a digit for a digit, a letter for a letter.
fn similar(byte: u8) -> u8 {
    match byte {
        b'0' => b'1',
        b'1'..=b'9' | b'b'..=b'z' | b'B'..=b'Z' => byte - 1,
        b'a' => b'b',
        b'A' => b'B',
        b'-' => b'+',
        b'+' => b'-',
        other => other ^ 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_differ_and_are_close() {
        let all = variants(b"ab\ncd\n");
        assert!(all.contains(&b"ab\ncc\n".to_vec()));
        assert!(all.contains(&b"a\ncd\n".to_vec()));
        assert!(all.contains(&b"ab\n".to_vec()));
        assert!(all.iter().all(|one| one != b"ab\ncd\n"));
        assert!(variants(b"").is_empty());
    }
}
