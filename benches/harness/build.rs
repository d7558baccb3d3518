//! The binaries that are measured, built by clang as a user of libFuzzer would.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A libFuzzer binary, with the bug and without.
pub struct Binary {
    /// What it is called in the tables.
    pub name: &'static str,
    /// Without the bug.
    pub fixed: PathBuf,
    /// With it.
    pub faulty: PathBuf,
}

const VARIANTS: [(&str, &str); 2] = [
    ("fuzzer", "-fsanitize=fuzzer"),
    ("fuzzer,address", "-fsanitize=fuzzer,address"),
];

/// Builds them all into `folder`.
///
/// # Errors
/// Where there is no clang, or it has no libFuzzer.
pub fn all(folder: &Path) -> Result<Vec<Binary>, String> {
    VARIANTS
        .iter()
        .map(|(name, flag)| {
            let file = |kind: &str| folder.join(format!("{kind}-{}", name.replace(',', "-")));
            let binary = Binary {
                name,
                fixed: file("fixed"),
                faulty: file("faulty"),
            };
            compile(&binary.fixed, &[flag])?;
            compile(&binary.faulty, &[flag, "-DPLANTED"])?;
            Ok(binary)
        })
        .collect()
}

fn compile(output: &Path, flags: &[&str]) -> Result<(), String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/harness/small_parser.c");
    let done = Command::new("clang")
        .args(["-O1", "-g"])
        .args(flags)
        .arg(source)
        .arg("-o")
        .arg(output)
        .output()
        .map_err(|error| format!("clang cannot be started: {error}"))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
    }
}
