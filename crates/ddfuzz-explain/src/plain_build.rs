//! The command that builds a program so that it can be explained: with debug information, hardly
//! optimized, without sanitizers.

use std::path::{Path, PathBuf};

use crate::dwarf::DebugInfo;

/// Largest number of source files that a suggested build command names.
const SOURCES: usize = 4;
/// Number of folders above a program in which the manifest of its cargo-fuzz project is looked for.
const ABOVE: usize = 7;

/// Returns the command that builds a program so that it can be explained; `None` where it is not known.
/// `is_fuzzer` is true if the program has the `main` of libFuzzer.
pub(crate) fn plain_build(program: &Path, is_fuzzer: bool) -> Option<String> {
    let name = program.file_name()?.to_str()?;
    if is_of_cargo_fuzz(program, name) {
        return Some(format!("cargo fuzz build --dev --sanitizer none {name}"));
    }
    let info = DebugInfo::read(program).ok()?;
    let mut sources: Vec<&str> = info.sources.iter().map(String::as_str).collect();
    sources.sort_unstable();
    sources.dedup();
    if sources.is_empty() || sources.len() > SOURCES {
        return None;
    }
    let has = |it: &&str, extensions: &[&str]| {
        let own = Path::new(*it).extension();
        own.is_some_and(|own| extensions.iter().any(|it| own == *it))
    };
    let is_cxx = |it: &&str| has(it, &["cc", "cpp", "cxx", "C"]);
    if !sources.iter().all(|it| is_cxx(it) || has(it, &["c"])) {
        return None;
    }
    let by = |name: &str| info.producers.iter().any(|it| it.contains(name));
    let compiler = match (by("clang"), sources.iter().any(is_cxx)) {
        (true, true) => "clang++",
        (true, false) => "clang",
        (false, true) => "g++",
        (false, false) => "gcc",
    };
    let level = level(&info).unwrap_or("-Og");
    let fuzzer = if is_fuzzer { " -fsanitize=fuzzer" } else { "" };
    let sources = sources.join(" ");
    Some(format!(
        "{compiler} -g {level}{fuzzer} {sources} -o {name}-plain"
    ))
}

/// Returns the optimization option with which more of the program's variables would be visible:
/// `-Og` or `-O0`; `None` if it was compiled without optimization already.
pub(crate) fn level(info: &DebugInfo) -> Option<&'static str> {
    let is_of_gcc = info.producers.iter().all(|it| it.starts_with("GNU "));
    // Clang does not say how it optimizes, and forgets variables at `-Og`.
    match (info.is_optimized(), info.is_debuggable()) {
        (false, _) => None,
        (true, true) => Some("-O0"),
        (true, false) if is_of_gcc => Some("-Og"),
        (true, false) => Some("-O0"),
    }
}

/// Returns true if a cargo-fuzz project builds the program `name` at the path `program`: a manifest
/// (`Cargo.toml`) of such a project names it. The manifest is searched in the first [`ABOVE`]
/// folders above the program, and in a folder `fuzz` in each of these.
fn is_of_cargo_fuzz(program: &Path, name: &str) -> bool {
    let Ok(program) = std::path::absolute(program) else {
        return false;
    };
    let named = format!("\"{name}\"");
    let is_it = |folder: PathBuf| {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        let mut lines = manifest.lines().map(str::trim);
        lines.any(|line| line.replace(' ', "") == "cargo-fuzz=true") && manifest.contains(&named)
    };
    let folders = program.ancestors().skip(1).take(ABOVE);
    folders
        .flat_map(|it| [it.to_owned(), it.join("fuzz")])
        .any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_harness_of_cargo_fuzz_is_built_by_cargo_fuzz() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("fuzz");
        let built = folder
            .path()
            .join("target/x86_64-unknown-linux-gnu/release");
        std::fs::create_dir_all(&project).unwrap();
        std::fs::create_dir_all(&built).unwrap();
        let manifest = "[package.metadata]\ncargo-fuzz = true\n[[bin]]\nname = \"parse\"\n";
        std::fs::write(project.join("Cargo.toml"), manifest).unwrap();
        let found = plain_build(&built.join("parse"), true);
        let command = "cargo fuzz build --dev --sanitizer none parse";
        assert_eq!(found.as_deref(), Some(command));
        assert_eq!(plain_build(&built.join("other"), true), None);
    }
}
