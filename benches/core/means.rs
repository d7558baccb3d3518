//! Tests that the search `full` needs on inputs of which a few bytes are needed: means over seeds.
//!
//! The inputs are those of `benches/minimizers`, with seeds that neither of its sets has. Their
//! failures are judged in this process, so that a search gets outcomes and no observations.

use std::collections::HashSet;

use ddfuzz::delta::{Edit, Outcome, Rule};
use ddfuzz::minimize::log::ContentHash;
use ddfuzz::minimize::search_by_name;

use crate::families::{Case, Set, few_bytes};
use crate::promise::{Goal, compare};

/// The mean that is promised of each family, in tests.
const GOALS: [(&str, f64); 4] = [
    ("one-byte", 24.0),
    ("two-bytes", 50.0),
    ("two-bugs", 100.0),
    ("scattered", 116.0),
];

/// Prints the mean of each family over so many seeds.
pub fn print(seeds: u64) {
    println!("tests of `full` to a proved result, mean over {seeds} seeds");
    for (family, goal) in GOALS {
        let counts: Vec<usize> = (0..seeds)
            .flat_map(|seed| few_bytes(family, Set::Seed(seed)))
            .map(|case| tests(&case))
            .collect();
        let mean = counts.iter().sum::<usize>() as f64 / counts.len().max(1) as f64;
        let figure = format!("tests, {family}, mean over {seeds} seeds");
        println!(
            "{family:<12}{mean:>8.1}  {}",
            compare(&figure, mean, "tests", Goal::AtMost(goal))
        );
    }
}

/// Tests until the search has proved its result; its last pass, which makes values smaller, aside.
fn tests(case: &Case) -> usize {
    let original = &case.input;
    let mut search = search_by_name("full", original).expect("the search is of the list");
    let (mut best, mut text) = (original.clone(), Vec::new());
    let mut tested = HashSet::from([ContentHash::of(original)]);
    while let Some(candidate) = search.next() {
        if candidate.rule == Rule::Pass("values") {
            break;
        }
        candidate.write_into(original, &best, &mut text);
        tested.insert(ContentHash::of(&text));
        let outcome = judge(case, &text);
        search.tell(outcome);
        let is_smaller = !matches!(candidate.edit, Edit::Keep(_)) || text.len() < best.len();
        if outcome == Outcome::Fail && is_smaller {
            std::mem::swap(&mut best, &mut text);
        }
    }
    assert_eq!(best.len(), case.minimum.len(), "{}", case.name());
    tested.len() - 1
}

/// The outcome of a candidate, as the program of its family has it.
fn judge(case: &Case, text: &[u8]) -> Outcome {
    let needed = &case.minimum;
    let place = |byte: u8, from: usize| {
        let found = text[from..].iter().position(|other| *other == byte);
        found.map(|at| from + at)
    };
    let complete = match case.variant {
        "any order" | "length" => needed.iter().all(|byte| text.contains(byte)),
        _ => {
            let mut found = 0;
            for byte in text {
                found += usize::from(needed.get(found) == Some(byte));
            }
            found == needed.len()
        }
    };
    // The bug that is looked for: at an even length, or at an odd place of the second byte.
    let is_other = match case.variant {
        "length" => text.len() % 2 == 1,
        "place" => {
            let second = place(needed[0], 0).and_then(|at| place(needed[1], at + 1));
            second.is_some_and(|at| at % 2 == 0)
        }
        _ => false,
    };
    match (complete, is_other) {
        (true, false) => Outcome::Fail,
        (true, true) => Outcome::Unresolved,
        (false, _) => Outcome::Pass,
    }
}
