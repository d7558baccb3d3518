//! The two examples: a plain fuzzer of LibAFL's own parts, and the same with three lines of ours.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::state::crashes;
use crate::ddfuzz::Desk;
use crate::needs;

fn source(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    std::fs::read_to_string(path.join(name)).unwrap()
}

#[test]
fn the_shrinking_fuzzer_is_the_plain_one_and_three_lines() {
    let (plain, shrinking) = (source("plain_fuzzer.rs"), source("shrinking_fuzzer.rs"));
    let mut added = Vec::new();
    let mut rest = shrinking.lines();
    for line in plain.lines() {
        loop {
            let next = rest.next();
            let next = next.unwrap_or_else(|| panic!("{line:?} is missing, or out of order"));
            if next == line {
                break;
            }
            added.push(next.trim());
        }
    }
    added.extend(rest.map(str::trim));
    let aside = |line: &&str| line.is_empty() || line.starts_with("//") || line.starts_with("use ");
    added.retain(|line| !aside(line));
    assert_eq!(added.len(), 3, "{added:#?}");
}

/// An example, which cargo builds with all tests.
pub fn example(name: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().unwrap();
    let path = own.parent()?.parent()?.join("examples").join(name);
    if !path.is_file() {
        needs::missing("the examples", "`cargo build --examples` makes them");
        return None;
    }
    Some(path)
}

/// The three bugs with AFL++'s instrumentation, and seeds for them, on the desk; whether that
/// could be done.
pub fn instrumented(desk: &Desk) -> bool {
    let compiler = "afl-clang-fast";
    let source = "tests/campaign/programs/three_bugs.c";
    if needs::program(compiler).is_none() {
        return false;
    }
    let output = desk
        .command(compiler)
        .args(["-DRARE", "-g", "-O1", "-fno-inline", "-o", "three_bugs"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(source))
        .output()
        .unwrap();
    if !output.status.success() {
        needs::missing(compiler, "it cannot compile");
        return false;
    }
    std::fs::create_dir(desk.file("seeds")).unwrap();
    let letters = |count: u8| (0..count).map(|at| b'a' + at * 7 % 26);
    desk.write(
        "seeds/letters",
        letters(36).cycle().take(300).collect::<Vec<u8>>(),
    );
    let hashes = letters(15).flat_map(|letter| [vec![letter; 20], vec![b'#']].concat());
    desk.write("seeds/hashes", hashes.collect::<Vec<u8>>());
    true
}

/// The call of an example on it.
pub fn fuzzer(desk: &Desk, example: &Path, solutions: &str, runs: u64) -> Command {
    let mut command = desk.command(example);
    command
        .args(["three_bugs", "seeds", solutions, "--seed", "1", "--runs"])
        .arg(runs.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Solutions that LibAFL has stored, as their contents.
fn solutions(folder: &Path) -> Vec<Vec<u8>> {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap());
    files
        .filter(|file| !file.file_name().to_string_lossy().starts_with('.'))
        .map(|file| std::fs::read(file.path()).unwrap())
        .collect()
}

/// The shortest reproducer of each group that has any, sorted.
fn shortest(out: &Path) -> Vec<String> {
    let mut of: BTreeMap<String, String> = BTreeMap::new();
    for entry in crashes(out) {
        if entry.minimized.is_none() {
            continue;
        }
        let text = String::from_utf8(entry.reproducer_bytes().unwrap()).unwrap();
        let shortest = of
            .entry(entry.id.major().to_owned())
            .or_insert(text.clone());
        if (text.len(), &text) < (shortest.len(), shortest) {
            *shortest = text;
        }
    }
    let mut all: Vec<String> = of.into_values().collect();
    all.sort();
    all
}

/// Calls the shrinking fuzzer until it has minimized all groups: what is left when the fuzzing
/// ends, the next call goes on with.
fn shrink(desk: &Desk, example: &Path, runs: u64, out: &Path) {
    let groups_of = |out: &Path| {
        let groups: BTreeSet<_> = (crashes(out).iter())
            .map(|entry| entry.id.major().to_owned())
            .collect();
        groups.len()
    };
    for call in 0..50 {
        let solutions = format!("shrinking{call}");
        let all = out.exists() && groups_of(out) >= 3;
        let runs = if all { 500 } else { runs };
        let status = fuzzer(desk, example, &solutions, runs).status();
        assert!(status.unwrap().success());
        if groups_of(out) >= 3 && shortest(out).len() == groups_of(out) {
            return;
        }
    }
    panic!("it has not ended: {:?}", shortest(out));
}

#[test]
fn three_lines_turn_a_heap_of_crash_files_into_minimal_groups() {
    let desk = Desk::new();
    let (Some(plain), Some(shrinking)) = (example("plain_fuzzer"), example("shrinking_fuzzer"))
    else {
        return;
    };
    if !instrumented(&desk) {
        return;
    }
    let runs = 12_000;
    assert!(
        fuzzer(&desk, &plain, "plain", runs)
            .status()
            .unwrap()
            .success()
    );
    let heap = solutions(&desk.file("plain"));
    assert!(heap.len() > 20, "{} crashes", heap.len());
    let large = heap.iter().filter(|input| input.len() > 100).count();
    assert!(large * 2 > heap.len(), "{large} of {}", heap.len());

    let out = desk.file("ddfuzz-out");
    shrink(&desk, &shrinking, runs, &out);
    // It finds what the plain one finds, and nothing of the one meets the other.
    assert!(solutions(&desk.file("shrinking0")).len() > 20);
    let found = shortest(&out);
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(
        (found[0].len(), found[1].len(), found[2].len()),
        (3, 21, 2),
        "{found:?}"
    );
    let files = crashes(&out).len();
    assert!(files < heap.len(), "{files} of {}", heap.len());
    for entry in crashes(&out) {
        let Some(outcome) = &entry.minimized else {
            continue;
        };
        assert_eq!(outcome.claim, "1-minimal");
        let log = entry.log();
        desk.call(&format!("log replay {}", log.display())).exits(0);
        desk.call(&format!("log verify {}", log.display())).exits(0);
    }
    desk.is_left_clean();
}
