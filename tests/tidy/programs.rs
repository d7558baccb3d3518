//! What the tests need of the system is what `./test` installs.

use crate::assert_none;
use crate::tree::{root, rust_files};

/// Programs that each system, Rust or `cargo install` brings.
const ALWAYS_THERE: [&str; 8] = [
    "cargo-fuzz",
    "cut",
    "gcc",
    "grep",
    "od",
    "rustc",
    "tee",
    "wc",
];

/// Programs that come with another one of the same package.
const PACKED_WITH: [(&str, &str); 2] = [
    ("afl-fuzz", "afl-clang-fast"),
    ("afl-showmap", "afl-clang-fast"),
];

#[test]
fn each_program_that_a_test_needs_is_installed_before() {
    let script = std::fs::read_to_string(root().join("test")).unwrap();
    let mut missing = Vec::new();
    for (file, source) in rust_files() {
        for call in source.split("needs::program(\"").skip(1) {
            let Some((name, _)) = call.split_once('"') else {
                continue;
            };
            let with = PACKED_WITH.iter().find(|(packed, _)| *packed == name);
            let sought = with.map_or(name, |(_, with)| with);
            let is_installed = script.contains(&format!("command -v {sought} "));
            if !is_installed && !ALWAYS_THERE.contains(&name) {
                missing.push(format!("{}: {name}", file.display()));
            }
        }
    }
    assert_none("./test installs each program that tests need", &missing);
}
