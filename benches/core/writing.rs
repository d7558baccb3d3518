//! Writing and hashing a candidate, beside copying and hashing the same bytes.

use std::hint::black_box;
use std::time::{Duration, Instant};

use ddfuzz::delta::{Candidate, Config, Edit, Replacement, Rule};
use ddfuzz::minimize::log::ContentHash;

use crate::promise::verdict;

/// What is promised: this many times the floor.
const MOST: f64 = 2.0;

/// Prints the median of `rounds` for each kind of candidate of `size` bytes.
pub fn print(size: usize, rounds: usize) {
    println!("writing and hashing a candidate of {size} bytes, median of {rounds} rounds");
    println!(
        "{:<34}{:>12}{:>12}{:>10}  at most {MOST}",
        "candidate", "µs", "floor µs", "ratio"
    );
    let best: Vec<u8> = (0..size).map(|at| (at * at / 3) as u8).collect();
    for (name, candidate) in candidates(size) {
        let (cost, floor) = compare(&candidate, &best, rounds);
        let ratio = cost.as_secs_f64() / floor.as_secs_f64();
        println!(
            "{name:<34}{:>12.1}{:>12.1}{ratio:>10.2}  {}",
            cost.as_secs_f64() * 1e6,
            floor.as_secs_f64() * 1e6,
            verdict(ratio <= MOST)
        );
    }
}

/// Candidates of each kind.
fn candidates(size: usize) -> Vec<(&'static str, Candidate)> {
    let all = Config::all(size);
    let pieces = |count: usize| {
        let step = size / count;
        (0..count).map(move |piece| piece * step..piece * step + step / 2)
    };
    let cut = |cuts| Candidate::cut(Rule::Complement, &all, cuts);
    let half = size / 2;
    let replacements = pieces(1000).map(|at| Replacement {
        with: vec![b'0'; at.len()],
        at,
    });
    let set = Candidate {
        rule: Rule::Pass("normalize"),
        edit: Edit::Set(replacements.collect()),
        config: None,
        observed: false,
    };
    let kept = Config::from_ranges(pieces(1000)).expect("they ascend");
    vec![
        (
            "one byte cut",
            cut(std::iter::once(half..half + 1).collect()),
        ),
        ("1000 ranges cut", cut(pieces(1000).collect())),
        ("10000 ranges cut", cut(pieces(size.min(10_000)).collect())),
        (
            "1000 ranges of the original kept",
            Candidate::keep(Rule::Subset, kept),
        ),
        ("1000 ranges replaced", set),
    ]
}

/// Median time of making the candidate's text and its hash, and of the floor under it: each
/// measured in turn, so that a busy moment of the machine hits both alike.
fn compare(candidate: &Candidate, best: &[u8], rounds: usize) -> (Duration, Duration) {
    let mut text = Vec::new();
    candidate.write_into(best, best, &mut text);
    let source = text.clone();
    let mut copy = Vec::with_capacity(source.len());
    let (mut costs, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let began = Instant::now();
        candidate.write_into(black_box(best), black_box(best), &mut text);
        black_box(ContentHash::of(&text));
        costs.push(began.elapsed());
        let began = Instant::now();
        copy.clear();
        copy.extend_from_slice(black_box(&source));
        black_box(blake3::hash(&copy));
        floors.push(began.elapsed());
    }
    (median(costs), median(floors))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
