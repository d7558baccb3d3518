//! The programs of a case, compiled from one source for whoever runs them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::families::Case;

/// Who runs a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// An ordinary program, for ddfuzz.
    Program,
    /// The same with the instrumentation of AFL++.
    Afl,
    /// An interestingness test, for tools that run one.
    Judge,
    /// A harness of libFuzzer.
    Fuzzer,
}

impl Driver {
    /// The compiler, the source of `main`, and what this driver needs.
    fn build(self) -> (String, &'static str, &'static [&'static str]) {
        let compiler = std::env::var("CC").unwrap_or_else(|_| "gcc".to_owned());
        match self {
            Driver::Program => (compiler, "program.c", &[]),
            Driver::Judge => (compiler, "judge.c", &[]),
            Driver::Afl => ("afl-clang-fast".to_owned(), "program.c", &[]),
            Driver::Fuzzer => ("clang".to_owned(), "fuzzer.c", &["-fsanitize=fuzzer"]),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Driver::Program => "program",
            Driver::Afl => "afl",
            Driver::Judge => "judge",
            Driver::Fuzzer => "fuzzer",
        }
    }
}

/// Compiles a case into `folder`.
///
/// # Errors
/// What the compiler said, or that there is none.
pub fn compile(case: &Case, driver: Driver, folder: &Path) -> Result<PathBuf, String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/families");
    let (compiler, main, options) = driver.build();
    let file = folder.join(driver.name());
    let defines = case.defines.iter();
    let output = Command::new(&compiler)
        .args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra"])
        .args(defines.map(|(name, value)| format!("-D{name}={value}")))
        .args(options)
        .arg(sources.join(case.source))
        .arg(sources.join(main))
        .arg("-o")
        .arg(&file)
        .env("AFL_QUIET", "1")
        .output()
        .map_err(|error| format!("{compiler} cannot be started: {error}"))?;
    match output.status.success() {
        true => Ok(file),
        false => Err(format!(
            "{compiler} refuses {}: {}",
            case.source,
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}
