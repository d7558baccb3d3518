//! Whether a program is called to fuzz.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::cli::cargo::libfuzzer::Flags;
use crate::exec::facts::TargetFacts;
use crate::exec::{Program, Target};

/// Flags by which libFuzzer does something else than fuzz.
const OTHER_JOBS: [&str; 11] = [
    "merge",
    "merge_inner",
    "minimize_crash",
    "minimize_crash_internal_step",
    "cleanse_crash",
    "set_cover_merge",
    "analyze_dict",
    "collect_data_flow",
    "data_flow_trace",
    "help",
    "ignore_remaining_args",
];

/// libfuzzer-sys writes what an input means into the file that this names, and ends.
const DEBUG: &str = "RUST_LIBFUZZER_DEBUG_PATH";

/// Whether this is a libFuzzer program that is called to fuzz: not to run single files, to merge,
/// to minimize or to show something.
pub fn to_fuzz(program: &OsStr, words: &[OsString]) -> bool {
    if std::env::var_os(DEBUG).is_some() || !asks_for_fuzzing(words) {
        return false;
    }
    let target = Target::new(Program::Path(program.into()));
    TargetFacts::of(&target).is_ok_and(|facts| facts.libfuzzer)
}

fn asks_for_fuzzing(words: &[OsString]) -> bool {
    let flags = Flags::of(words);
    let is_single = |path: &&std::path::PathBuf| Path::new(path).is_file();
    let other = OTHER_JOBS.iter().any(|name| flags.is_on(name));
    // `-seed_inputs` and the like are flags; whatever has two dashes is for the harness itself.
    let is_odd = words
        .iter()
        .any(|word| word.as_encoded_bytes().starts_with(b"--"));
    !other && !is_odd && flags.runs != Some(0) && !flags.corpora.iter().any(|path| is_single(&path))
}
