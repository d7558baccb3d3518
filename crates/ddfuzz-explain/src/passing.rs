//! Passing inputs close to a failing one.

use std::collections::HashSet;

use ddfuzz_delta::{Change, Config, Dd, Mode, Outcome, Search, apply, changes};
use ddfuzz_exec::Ended;

use crate::alignment::matched;
use crate::engine::{Criterion, Ending, Engine, EngineError, Side, Trace, if_supported};

/// Largest number of inputs that are run in the search for passing ones.
const MOST_RUNS: usize = 160;
/// Largest number of runs in the search for the largest passing part of the input.
const MOST_OF_PARTS: usize = 48;
/// Largest number of runs in the search for a passing input closer than a given one.
const MOST_OF_CLOSER: usize = 80;

/// Returns true if a run that ended as `ending` passes: it has exited by itself, and `criterion`
/// does not call its end the same failure as `failing`, the end of the failing run.
pub fn judge_candidate(criterion: &Criterion, ending: &Ending, failing: &Ending) -> bool {
    let ends_well = matches!(ending.ended, Ended::Exit(_)) && ending.crash.is_none();
    let fails = criterion.judge(ending, failing) == Outcome::Fail;
    ends_well && !fails
}

/// A passing input close to the failing one.
struct Candidate {
    input: Vec<u8>,
    /// Whether the run exits with status 0.
    is_good: bool,
    /// Whether the run executes the statement at which the failing run fails.
    reaches: bool,
}

/// Returns up to `most` inputs that pass and are close to the failing input `failing`. Tested are
/// the inputs `given`, and variants of `failing` with one byte changed, or one byte or line
/// removed. If none of the tested inputs exits with status 0, the largest passing part of `failing`
/// that is found is added or, if there is none, longer inputs that contain `failing`. Inputs whose
/// runs ddfuzz cannot explain, such as runs that start another process, are left out. The inputs
/// that exit with status 0 come first, of these the ones whose runs execute one of the statements
/// `places`, at which the failing run fails, and then those as long as `failing`. `criterion` decides
/// which runs are failures; `ending` is the end of the failing run.
///
/// # Errors
/// When the program cannot be run.
pub fn candidates(
    engine: &mut Engine,
    criterion: &Criterion,
    (ending, places): (&Ending, &[u64]),
    failing: &[u8],
    given: &[Vec<u8>],
    most: usize,
) -> Result<Vec<Vec<u8>>, EngineError> {
    let run = |engine: &mut Engine, input: Vec<u8>| {
        engine.set_input(Side::Passing, input.clone());
        let run = if_supported(engine.run_past(Side::Passing, places).map(Some))?;
        let passing = run.filter(|it| judge_candidate(criterion, &it.0, ending));
        Ok::<_, EngineError>(passing.map(|(it, reaches)| Candidate {
            input,
            is_good: it.ended == Ended::Exit(0),
            reaches,
        }))
    };
    let mut found: Vec<Candidate> = Vec::new();
    let tried = given.iter().cloned().chain(variants(failing));
    for input in tried.take(MOST_RUNS) {
        if input == failing || found.iter().any(|known| known.input == input) {
            continue;
        }
        found.extend(run(engine, input)?);
        if found.iter().filter(|it| it.is_good && it.reaches).count() >= most {
            break;
        }
    }
    let is_none_good = |found: &[Candidate]| !found.iter().any(|it| it.is_good);
    if is_none_good(&found) {
        let part = largest_part(engine, criterion, ending, failing)?;
        found.extend(part.map(|input| Candidate {
            input,
            is_good: true,
            reaches: false,
        }));
    }
    let mut longer = longer(failing).into_iter();
    while is_none_good(&found)
        && let Some(input) = longer.next()
    {
        found.extend(run(engine, input)?);
    }
    // Those that the program does not complain about first.
    let is_other_length = |it: &Candidate| it.input.len() != failing.len();
    found.sort_by_key(|it| (!it.is_good, !it.reaches, is_other_length(it)));
    Ok(found.into_iter().take(most).map(|it| it.input).collect())
}

/// Runs the program on an input; returns true if the run passes and ends with the status
/// `expected`.
fn passes(
    engine: &mut Engine,
    criterion: &Criterion,
    failing: &Ending,
    input: Vec<u8>,
    expected: Ended,
) -> Result<bool, EngineError> {
    engine.set_input(Side::Passing, input);
    let ending = if_supported(engine.run_to_end(Side::Passing).map(Some))?;
    let passing = ending.filter(|it| judge_candidate(criterion, it, failing));
    Ok(passing.is_some_and(|it| it.ended == expected))
}

/// Searches by `ddmax`, with at most `most` tests, for the largest subset of a number of deltas
/// (`units`) for which `passes` is true; returns the largest subset found. The empty subset is
/// taken to pass.
fn maximized(
    units: usize,
    most: usize,
    mut passes: impl FnMut(&Config) -> Result<bool, EngineError>,
) -> Result<Config, EngineError> {
    let mut search = Dd::new(units, Mode::Maximize);
    for _ in 0..most {
        let Some(candidate) = search.next() else {
            break;
        };
        let Some(config) = candidate.edit.apply(search.fail()) else {
            break;
        };
        search.tell(match passes(&config)? {
            true => Outcome::Pass,
            false => Outcome::Unresolved,
        });
    }
    Ok(search.pass().clone())
}

/// Searches by `ddmax`, with a few runs, for the largest part of the failing input that passes, and
/// returns it; `None` if the empty input does not pass, or no larger part that passes is found.
fn largest_part(
    engine: &mut Engine,
    criterion: &Criterion,
    failing_ending: &Ending,
    failing: &[u8],
) -> Result<Option<Vec<u8>>, EngineError> {
    let mut ends_well = |input| passes(engine, criterion, failing_ending, input, Ended::Exit(0));
    if !ends_well(Vec::new())? {
        return Ok(None);
    }
    let part_of = |config: &Config| {
        let mut part = Vec::new();
        config.write_into(failing, &mut part);
        part
    };
    let found = maximized(failing.len(), MOST_OF_PARTS, |config| {
        ends_well(part_of(config))
    })?;
    Ok(Some(part_of(&found)).filter(|part| !part.is_empty()))
}

/// Searches for a passing input that is closer to the failing input than the input `given`, which
/// comes with the trace of its run. Returns the trace and the input of the closer one, or else
/// `given`. The new run must have at least 90 % as many points in common with the failing run as
/// the given run has.
///
/// # Errors
/// When the program cannot be run.
pub fn closest(
    engine: &mut Engine,
    criterion: &Criterion,
    failing: (&[u8], &Trace),
    given: (Trace, Vec<u8>),
) -> Result<(Trace, Vec<u8>), EngineError> {
    let of_failing = (failing.0, &failing.1.ending);
    if let Some(input) = closer(engine, criterion, of_failing, (&given.1, &given.0.ending))? {
        engine.set_input(Side::Passing, input.clone());
        let Some(trace) = if_supported(engine.trace(Side::Passing).map(Some))? else {
            engine.set_input(Side::Passing, given.1.clone());
            return Ok(given);
        };
        let matching = |trace: &Trace| matched(&trace.points, &failing.1.points).len();
        if matching(&trace) * 10 >= matching(&given.0) * 9 {
            return Ok((trace, input));
        }
    }
    engine.set_input(Side::Passing, given.1.clone());
    Ok(given)
}

/// Returns a passing input that differs less from the failing one than `passing` does: `passing`
/// with some of the differences applied, as many as a few runs of `ddmax` find, so that the input
/// still passes with the same exit status. `None` if no difference can be applied.
///
/// # Errors
/// When the program cannot be run.
pub fn closer(
    engine: &mut Engine,
    criterion: &Criterion,
    failing: (&[u8], &Ending),
    passing: (&[u8], &Ending),
) -> Result<Option<Vec<u8>>, EngineError> {
    let deltas = deltas(passing.0, failing.0);
    if deltas.len() < 2 {
        return Ok(None);
    }
    let with = |taken: &Config| changed(passing.0, failing.0, &deltas, taken);
    let found = maximized(deltas.len(), MOST_OF_CLOSER, |taken| {
        passes(engine, criterion, failing.1, with(taken), passing.1.ended)
    })?;
    Ok((!found.is_empty()).then(|| with(&found)))
}

/// Returns the changes that turn the text `from` into `to`. In texts of the same length, each
/// differing byte is one change. In other texts, each added and each removed byte is one change,
/// and so is each range of bytes that is replaced as a whole.
fn deltas(from: &[u8], to: &[u8]) -> Vec<Change> {
    if from.len() == to.len() {
        let differs = (0..to.len()).filter(|at| from[*at] != to[*at]);
        let replaced = differs.map(|at| Change {
            at: at..at + 1,
            with: at..at + 1,
        });
        return replaced.collect();
    }
    let split = |change: Change| match change.at.is_empty() || change.with.is_empty() {
        true => change.bytes().collect(),
        false => vec![change],
    };
    changes(from, to).into_iter().flat_map(split).collect()
}

/// Returns the text `from` with those of the changes `deltas` applied whose indices are in `taken`.
/// All changes together turn `from` into `to`.
fn changed(from: &[u8], to: &[u8], deltas: &[Change], taken: &Config) -> Vec<u8> {
    let mut text = Vec::new();
    let taken = taken.ranges().flat_map(|range| &deltas[range]);
    apply(from, to, taken, &mut text);
    text
}

/// Returns inputs close to a given one: with another byte at one place, or one byte removed, for
/// places spread over the whole input; and with one line removed.
fn variants(input: &[u8]) -> Vec<Vec<u8>> {
    let mut all = at_one_place(input);
    all.extend(without_a_line(input));
    all
}

/// Returns variants of an input that differ from it at one place: with another byte at the place,
/// or without its byte. The places are spread over the whole input.
fn at_one_place(input: &[u8]) -> Vec<Vec<u8>> {
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
    all
}

/// Largest number of variants of an input that are made by removing one of its lines.
const LINES: usize = 64;

/// Returns variants of an input of several lines, each without one of the first [`LINES`] lines.
fn without_a_line(input: &[u8]) -> Vec<Vec<u8>> {
    let lines: Vec<&[u8]> = ddfuzz_delta::lines(input);
    let without = |skipped: usize| [&lines[..skipped], &lines[skipped + 1..]].concat().concat();
    match lines.len() {
        0 | 1 => Vec::new(),
        count => (0..count.min(LINES)).map(without).collect(),
    }
}

/// Numbers of copies of a byte that are appended to an input, each number to make one longer input.
const ADDED: [usize; 6] = [1, 2, 4, 8, 16, 64];

/// Returns longer inputs that contain a given one, without duplicates: with copies of one byte
/// appended, the fewest first, and the input written twice.
fn longer(input: &[u8]) -> Vec<Vec<u8>> {
    let last = input.last().copied().unwrap_or(b'a');
    let of_count = |count: usize| {
        [last, b'\n', b'a', b'0', b' ', 0].map(|byte| [input, &vec![byte; count]].concat())
    };
    let mut all: Vec<Vec<u8>> = ADDED.into_iter().flat_map(of_count).collect();
    all.push([input, input].concat());
    let mut known = HashSet::new();
    all.retain(|one| one != input && known.insert(one.clone()));
    all
}

/// Approximate number of variants that are made of the passing and the failing input together.
const SIMILAR: usize = 48;

/// An input whose run is compared with the failing run: the passing input, or a variant that
/// differs little from the passing or the failing input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimilarInput {
    /// The bytes of the input.
    pub bytes: Vec<u8>,
    /// Whether the input was made of the failing one.
    pub is_of_failing: bool,
}

impl SimilarInput {
    /// Makes a [`SimilarInput`] of the passing input `input`, unchanged.
    pub fn passing(input: &[u8]) -> SimilarInput {
        SimilarInput {
            bytes: input.to_vec(),
            is_of_failing: false,
        }
    }
}

/// Returns the passing input, and about [`SIMILAR`] inputs that differ little from it or from the
/// failing one: without one line, or with one byte changed or removed.
pub fn similar_inputs(failing: &[u8], passing: &[u8]) -> Vec<SimilarInput> {
    let mut kinds = [Vec::new(), Vec::new()];
    for (input, is_of_failing) in [(passing, false), (failing, true)] {
        let made = |bytes| SimilarInput {
            bytes,
            is_of_failing,
        };
        kinds[0].extend(without_a_line(input).into_iter().map(made));
        kinds[1].extend(at_one_place(input).into_iter().map(made));
    }
    let mut found = vec![SimilarInput::passing(passing)];
    for kind in kinds {
        let left = (SIMILAR - 1) / 2;
        let step = kind.len().div_ceil(left).max(1);
        found.extend(kind.into_iter().step_by(step));
    }
    let mut known = HashSet::from([failing.to_vec()]);
    found.retain(|it| known.insert(it.bytes.clone()));
    found
}

/// Largest number of positions of an input at which variants of it are made.
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

    #[test]
    fn longer_inputs_contain_the_given_one() {
        for input in [&b""[..], b"k", b"ab\n"] {
            let all = longer(input);
            assert!(
                all.iter()
                    .all(|it| it.len() > input.len() && it.starts_with(input))
            );
            assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
            assert!(all.contains(&[input, b"\n"].concat()));
        }
        assert!(longer(b"ab").contains(&b"abab".to_vec()));
    }

    #[test]
    fn similar_inputs_differ_and_begin_with_the_passing_one() {
        let (failing, passing) = (b"one 1\ntwo 2\nthree\n", b"one 1\ntwo 3\nfour\n");
        let all = similar_inputs(failing, passing);
        assert_eq!(all[0], SimilarInput::passing(passing));
        let of_failing = all.iter().find(|it| it.bytes == b"two 2\nthree\n");
        assert!(of_failing.is_some_and(|it| it.is_of_failing), "{all:?}");
        let all: Vec<&[u8]> = all.iter().map(|it| it.bytes.as_slice()).collect();
        assert!(all.len() <= SIMILAR && all.iter().all(|it| it != failing));
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    }

    #[test]
    fn changes_lead_from_one_text_to_another() {
        for (from, to, count) in [
            (&b"a 100 b 150"[..], &b"a 900 b 950"[..], 2),
            (b"one two three", b"one twice three", 1),
            (b"x", b"", 1),
            (b"start, middle, end", b"starting, the middle", 12),
            (b"one\n", b"one\ntwo\n", 4),
        ] {
            let deltas = deltas(from, to);
            assert_eq!(deltas.len(), count, "{deltas:?}");
            let all = changed(from, to, &deltas, &Config::all(count));
            assert_eq!(all, to);
            assert_eq!(changed(from, to, &deltas, &Config::empty()), from);
        }
        let (from, to) = (b"a 100 b 150", b"a 900 b 950");
        let second = Config::all(2).minus(&Config::all(1));
        let only = changed(from, to, &deltas(from, to), &second);
        assert_eq!(only, b"a 100 b 950");
    }
}
