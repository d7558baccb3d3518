//! `ddfuzz-delta` is pure: no file, clock, thread, process or random number, and no `unsafe`.

use std::path::Path;

use crate::paths::Paths;
use crate::{assert_none, sources};

/// What of the standard library reaches outside, or differs from run to run.
const OUTSIDE: [&str; 11] = [
    "env", "fs", "io", "net", "os", "path", "process", "random", "sync", "thread", "time",
];
/// Shared ownership of what never changes, and what passes between a search and its script: both
/// live in one thread, so that nobody ever waits at the lock.
const HARMLESS: [&str; 4] = [
    "std::sync::Arc",
    "std::sync::Mutex",
    "std::sync::MutexGuard",
    "std::sync::PoisonError",
];
/// Their order of iteration differs from run to run.
const UNORDERED: [&str; 2] = ["HashMap", "HashSet"];

fn impure(file: &Path, paths: &Paths) -> Vec<String> {
    let at = |line: usize, what: String| format!("{}:{line}: {what}", file.display());
    let outside = paths
        .found
        .iter()
        .filter_map(|found| match &found.parts[..] {
            [root, module, ..] if root == "std" && OUTSIDE.contains(&module.as_str()) => {
                let path = found.parts.join("::");
                (!HARMLESS.contains(&path.as_str())).then(|| at(found.line, path))
            }
            _ => None,
        });
    let unsafe_words = paths.words.iter().filter(|(word, _)| word == "unsafe");
    outside
        .chain(unsafe_words.map(|(word, line)| at(*line, word.clone())))
        .collect()
}

/// Walks over a hash map, which have no order.
fn unordered(file: &Path, text: &str) -> Vec<String> {
    let is_walk = |line: &str| {
        [".keys()", ".values()", ".drain("]
            .iter()
            .any(|walk| line.contains(walk))
    };
    let has_maps = UNORDERED.iter().any(|name| text.contains(name));
    let walks = text
        .lines()
        .enumerate()
        .filter(|(_, line)| has_maps && is_walk(line));
    walks
        .map(|(index, line)| format!("{}:{}: {line}", file.display(), index + 1))
        .collect()
}

#[test]
fn delta_touches_nothing_outside() {
    let mut found = Vec::new();
    for (file, paths) in sources("ddfuzz-delta") {
        found.extend(impure(&file, &paths));
    }
    assert_none("delta is not pure", &found);
}

#[test]
fn delta_walks_over_no_hash_map() {
    let mut found = Vec::new();
    for (file, text) in crate::tree::rust_files() {
        if file.starts_with("crates/ddfuzz-delta/src") {
            found.extend(unordered(&file, &text));
        }
    }
    assert_none("orders that differ from run to run", &found);
}

#[test]
fn impurities_are_found_out() {
    let file = Path::new("crates/ddfuzz-delta/src/ddmin.rs");
    let source =
        "use std::{ops::Range, time::Instant};\nfn a() { unsafe { std::thread::yield_now() } }";
    let expected = [
        "crates/ddfuzz-delta/src/ddmin.rs:1: std::time::Instant",
        "crates/ddfuzz-delta/src/ddmin.rs:2: std::thread::yield_now",
        "crates/ddfuzz-delta/src/ddmin.rs:2: unsafe",
    ];
    assert_eq!(impure(file, &Paths::of(file, source)), expected);
    let walk = "let map: HashMap<u8, u8>;\nfor key in map.keys() {}";
    assert_eq!(unordered(file, walk).len(), 1);
}
