//! What every text file must keep, in whatever language.

use std::path::Path;

use crate::assert_none;
use crate::tree::{files, root};

/// Top-level folders of the machines that this was written on. Spelled without their slashes, for
/// this file is searched as well.
const PRIVATE: [&str; 3] = ["work", "root", "farm"];

/// Whether spaces in this file are data.
fn is_data(file: &Path) -> bool {
    let is_example = file.starts_with("targets") && file.iter().any(|part| part == "examples");
    let folders = [
        "corpora",
        "tests/golden",
        "tests/cargo_fuzz/artifacts",
        "tests/cli/older",
        "benches/campaigns/inputs",
        "benches/cleanup/seeds",
    ];
    is_example || folders.iter().any(|folder| file.starts_with(folder))
}

/// The files that are UTF-8, with their text.
fn texts() -> impl Iterator<Item = (std::path::PathBuf, String)> {
    files().into_iter().filter_map(|file| {
        let bytes = std::fs::read(root().join(&file)).expect("committed files can be read");
        Some((file, String::from_utf8(bytes).ok()?))
    })
}

/// Whether `line` names a path below one of the private folders.
fn is_private(line: &str) -> bool {
    PRIVATE.iter().any(|folder| {
        let path = format!("/{folder}/");
        line.match_indices(&path).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            // Behind these it is the middle of another path.
            !before.is_some_and(|one| one.is_alphanumeric() || "_-.})".contains(one))
        })
    })
}

#[test]
fn no_line_ends_in_white_space() {
    let mut found = Vec::new();
    for (file, text) in texts().filter(|(file, _)| !is_data(file)) {
        for (index, line) in text.split('\n').enumerate() {
            if line.ends_with([' ', '\t', '\r']) {
                found.push(format!("{}:{}", file.display(), index + 1));
            }
        }
        if !text.is_empty() && !text.ends_with('\n') {
            found.push(format!("{}: its last line has no end", file.display()));
        }
    }
    assert_none("white space at the end of lines", &found);
}

#[test]
fn no_path_of_a_private_machine_is_mentioned() {
    let mut found = Vec::new();
    for (file, text) in texts() {
        for (index, line) in text.lines().enumerate() {
            if is_private(line) {
                found.push(format!("{}:{}: {line}", file.display(), index + 1));
            }
        }
    }
    assert_none("paths that exist on one machine only", &found);
}

#[test]
fn each_dependency_comes_from_the_public_registry() {
    let of_tests = |name| format!("tests/cargo_fuzz/projects/{name}/fuzz/Cargo.lock");
    let own = ["Cargo.lock", "fuzz/Cargo.lock"].map(str::to_owned);
    let others = ["two_panics", "arbitrary", "cpp_asan"].map(of_tests);
    for lock in own.into_iter().chain(others) {
        let text = std::fs::read_to_string(root().join(&lock)).expect("the lock file is committed");
        let strange: Vec<String> = text
            .lines()
            .filter(|line| line.starts_with("source = "))
            .filter(|line| {
                !line.contains("\"registry+https://github.com/rust-lang/crates.io-index\"")
            })
            .map(|line| format!("{lock}: {line}"))
            .collect();
        assert_none("dependencies from elsewhere", &strange);
    }
}

#[test]
fn private_paths_are_told_from_the_middles_of_others() {
    let [work, root, _] = PRIVATE;
    assert!(is_private(&format!("see /{work}/main")));
    assert!(is_private(&format!("\"/{root}/x\"")));
    assert!(!is_private(&format!(
        "target/{work}/main and $here/{work}s/"
    )));
    assert!(!is_private(&format!("\"{{}}/{root}/x\"")));
}
