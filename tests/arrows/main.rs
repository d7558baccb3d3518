//! The arrows between the crates point one way, each dependency stays in its crates, and delta
//! debugging is pure. Cargo refuses cycles and dependencies that no manifest names; these tables
//! say which ones a manifest may name.

mod manifests;
mod paths;
mod pure;
mod records;
#[path = "../tree/mod.rs"]
mod tree;

use std::path::{Path, PathBuf};

use paths::Paths;

/// The source files of a crate, `ddfuzz-exec` for example, with the paths they use.
fn sources(name: &str) -> Vec<(PathBuf, Paths)> {
    let folder = Path::new("crates").join(name).join("src");
    let all = tree::rust_files().into_iter();
    let found: Vec<(PathBuf, Paths)> = all
        .filter(|(file, _)| file.starts_with(&folder))
        .map(|(file, text)| {
            let paths = Paths::of(&file, &text);
            (file, paths)
        })
        .collect();
    assert!(!found.is_empty(), "{name} has no sources");
    found
}

/// Fails with everything that was found, one finding a line.
fn assert_none(rule: &str, findings: &[String]) {
    assert!(findings.is_empty(), "{rule}:\n  {}", findings.join("\n  "));
}
