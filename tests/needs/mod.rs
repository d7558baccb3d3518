//! What some tests need of the machine: the one place where it is decided that a test is skipped.
//!
//! A test that finds something missing asks here, and returns if it is told to. In a gate
//! (`DDFUZZ_REQUIRE_TOOLS=1`) a skipped test would look like a passed one, so it fails instead.
//! `DDFUZZ_MAY_LACK` names, separated by commas, what may be missing even there.
#![allow(
    dead_code,
    reason = "each test program that includes this uses a part of it"
)]

use std::path::PathBuf;

/// Says that the test is skipped because `what` is missing, or fails. `why`: what happened.
#[track_caller]
pub fn missing(what: &str, why: &str) {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| value == "1");
    let spared = std::env::var("DDFUZZ_MAY_LACK").unwrap_or_default();
    let spared = spared.split(',').any(|one| one.trim() == what);
    assert!(
        spared || !is_set("DDFUZZ_REQUIRE_TOOLS"),
        "this machine lacks {what} ({why}), and DDFUZZ_REQUIRE_TOOLS=1 lets no test be skipped"
    );
    eprintln!("skipped: this machine lacks {what} ({why})");
}

/// The installed program of this name; `None`, and said so, where there is none.
#[track_caller]
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    if found.is_none() {
        missing(name, "it is not installed");
    }
    found
}
