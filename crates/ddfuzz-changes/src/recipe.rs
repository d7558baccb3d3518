//! How a version of the program is built and tested, and when it fails.

use std::ffi::OsString;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ddfuzz_exec::Sandbox;
use ddfuzz_triage::{Crash, Key};

use crate::ChangesError;
use crate::tree::Tree;

/// The settings with which each version of the program is built and tested: commands, input,
/// environment and limits.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Shell command that builds the program, run in the directory with the version's files; `None`
    /// if there is no build, or the test builds the program itself.
    pub build: Option<String>,
    /// How a version is tested after it was built: by a shell command, or by whether the program
    /// crashes.
    pub test: TestKind,
    /// The input of each test, given on stdin or as the file that `@@` in the arguments stands for;
    /// empty if the test has none.
    pub input: Vec<u8>,
    /// Whether builds and tests run in a sandbox, in which they can write only to the version's
    /// directory.
    pub sandbox: Sandbox,
    /// Environment variables, names and values, that are set for builds and tests.
    pub env: Vec<(OsString, OsString)>,
    /// Limit on the wall time of a build of one version.
    pub build_time: Duration,
    /// Limit on the CPU time of a test of one version.
    pub test_time: Duration,
    /// Whether the user has set `build_time`, so that it stays. If false, a limit is learned from
    /// the builds of the old and the new version.
    pub keep_build_time: bool,
    /// Whether the user has set `test_time`, so that it stays. If false, a limit is learned from
    /// the tests of the old and the new version.
    pub keep_test_time: bool,
    /// Limit on the memory of each process of a build or test, in bytes.
    pub memory: u64,
}

/// How a version is tested: by a shell command or by a run of the program; and which results of the
/// test count as PASS, FAIL and UNRESOLVED.
#[derive(Clone, Debug)]
pub enum TestKind {
    /// The test is a shell command. Its exit status 0 is PASS, 125 is UNRESOLVED, and any other
    /// status below 128 is FAIL. Reaching a limit is UNRESOLVED; a status of 128 or more, or a
    /// signal, ends the search.
    Command {
        /// The shell command, which is run in the directory with the version's files.
        line: String,
        /// A regular expression that the output of a failing test must match; if it does not, the
        /// outcome is UNRESOLVED. `None`: each failing status is FAIL.
        expect: Option<regex::bytes::Regex>,
    },
    /// The test runs the program and looks at its crash: the crash `expected` is FAIL, no crash is
    /// PASS. A different crash, reaching a limit, and a build that does not make the program are
    /// UNRESOLVED.
    Program {
        /// The program to run: a path in the version's directory, an absolute path, or a name in
        /// PATH.
        program: OsString,
        /// Whether the program lies in the directory of the new version, known once this version is
        /// built; if so, it is looked for only in the directory of each version, never in PATH.
        is_inside: Arc<OnceLock<bool>>,
        /// Arguments of the program; `@@` stands for the path of a file with the input.
        args: Vec<OsString>,
        /// The crash that counts as FAIL: that of the new version. While `expected` is empty,
        /// because the new version has not been tested yet, each crash is FAIL.
        expected: Arc<OnceLock<CrashIdentity>>,
        /// The exit status of the program that counts as a crash; `None` if no status counts as a
        /// crash.
        crash_exit: Option<i32>,
    },
}

impl TestKind {
    /// Returns the regular expression `text`, compiled: the output of a failing test must match it.
    ///
    /// # Errors
    /// If the regular expression is invalid.
    pub fn pattern(text: &str) -> Result<regex::bytes::Regex, ChangesError> {
        regex::bytes::Regex::new(text).map_err(|error| ChangesError::Pattern {
            message: error.to_string(),
        })
    }
}

/// Returns the size of this machine's memory in bytes; 8 GiB if it cannot be read.
pub fn machine_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.map_or(8 << 30, |kib| kib << 10)
}

/// What identifies a crash: its class and keys (hashes). A version that shows the crash that the
/// search looks for counts as failing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrashIdentity {
    /// The class of the crash, such as `segv`.
    pub class: String,
    /// The major key of the crash, a hash that identifies the bug; comparable only with crashes of
    /// the same build.
    pub major: Key,
    /// The minor key of the crash, a hash that identifies the path into the bug; comparable only
    /// with crashes of the same build.
    pub minor: Key,
    /// The stable key of the crash, a hash of class and function names that is comparable across
    /// builds; `None` if the functions have no names.
    pub stable: Option<Key>,
}

impl From<&Crash> for CrashIdentity {
    fn from(crash: &Crash) -> CrashIdentity {
        CrashIdentity {
            class: crash.class.to_string(),
            major: crash.keys.major,
            minor: crash.keys.minor,
            stable: crash.keys.stable,
        }
    }
}

impl CrashIdentity {
    /// Checks whether `crash`, usually of another build, is the crash with this identity: true if
    /// class and stable key are equal. If one of the two has no stable key, the class alone
    /// decides.
    pub fn is(&self, crash: &Crash) -> bool {
        let same_names = match (self.stable, crash.keys.stable) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        self.class == crash.class.to_string() && same_names
    }
}

/// Returns the shell command that builds a version if the user gives none, chosen by the build
/// files in the version's top directory (`Cargo.toml`, `Makefile` …); `None` if no known build file
/// is there. The command makes the build tool go on after errors, so that one build names all that
/// is missing.
pub fn default_build(tree: &Tree) -> Option<&'static str> {
    let commands = [
        ("Cargo.toml", "cargo build --keep-going"),
        (
            "meson.build",
            "{ [ -f build/build.ninja ] || meson setup build; } && ninja -k 0 -C build",
        ),
        (
            "CMakeLists.txt",
            "{ [ -f build/CMakeCache.txt ] || cmake -S . -B build; } && cmake --build build -- -k",
        ),
        ("GNUmakefile", "make -k"),
        ("Makefile", "make -k"),
        ("makefile", "make -k"),
        (
            "configure",
            "{ [ -f Makefile ] || ./configure; } && make -k",
        ),
    ];
    let has = |name: &str| tree.get(name.as_bytes()).is_some();
    commands
        .into_iter()
        .find(|(name, _)| has(name))
        .map(|(_, command)| command)
}
