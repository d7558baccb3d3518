//! How a version of the program is built and tested, and when it fails.

use std::ffi::OsString;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ddfuzz_exec::Sandbox;
use ddfuzz_triage::{Crash, Key};

use crate::ChangesError;
use crate::tree::Tree;

/// How versions are built and tested.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Shell command that builds the program in its directory; `None` if the test does that.
    pub build: Option<String>,
    /// How a version is tested after the build.
    pub test: TestKind,
    /// The input, on stdin or as the file `@@`; empty without one.
    pub input: Vec<u8>,
    /// Whether builds and tests run in a sandbox, in which they can write to their directory only.
    pub sandbox: Sandbox,
    /// Variables that are set for builds and tests.
    pub env: Vec<(OsString, OsString)>,
    /// Limit on the wall time of a build.
    pub build_time: Duration,
    /// Limit on the CPU time of a test.
    pub test_time: Duration,
    /// Whether `build_time` is the user's and stays. If not, the limit is learned from the builds
    /// of both versions.
    pub keep_build_time: bool,
    /// Whether `test_time` is the user's and stays. If not, the limit is learned from the tests of
    /// both versions.
    pub keep_test_time: bool,
    /// Limit on the memory of a build or test, in bytes.
    pub memory: u64,
}

/// How a version is tested.
#[derive(Clone, Debug)]
pub enum TestKind {
    /// By a shell command: status 0 is PASS, 125 UNRESOLVED, any other below 128 FAIL. Reaching a
    /// limit is UNRESOLVED; a status from 128 or a signal ends the search.
    Command {
        /// The command, which is run in the directory of the version.
        line: String,
        /// What the output of a failing test must match; if it does not match, the outcome is
        /// UNRESOLVED. `None`: each failure is FAIL.
        expect: Option<regex::bytes::Regex>,
    },
    /// By the crash of a program: the crash `held` is FAIL, no crash PASS, another crash
    /// UNRESOLVED, and so is reaching a limit, or a build without the program.
    Program {
        /// The program: a path in the version, an absolute path, or a name in PATH.
        program: OsString,
        /// Arguments of the program; `@@` stands for a file with the input.
        args: Vec<OsString>,
        /// The crash to search for. While it is empty, because the new version has not been tested,
        /// each crash is FAIL.
        held: Arc<OnceLock<HeldFailure>>,
        /// The exit status that counts as a crash; `None` if none does.
        crash_exit: Option<i32>,
    },
}

impl TestKind {
    /// Compiles the regular expression of an expected failure.
    ///
    /// # Errors
    /// If it is invalid.
    pub fn pattern(text: &str) -> Result<regex::bytes::Regex, ChangesError> {
        regex::bytes::Regex::new(text).map_err(|error| ChangesError::Pattern {
            message: error.to_string(),
        })
    }
}

/// Returns the memory of this machine, in bytes; 8 GiB if it is not known.
pub fn machine_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.map_or(8 << 30, |kib| kib << 10)
}

/// The crash that a version must have to fail, by what holds across builds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldFailure {
    /// The class of the crash, such as `segv`.
    pub class: String,
    /// The major key of the crash, which holds for one build only.
    pub major: Key,
    /// The minor key of the crash, which holds for one build only.
    pub minor: Key,
    /// The stable key of the crash: its class and the names of its functions; `None` if they have
    /// no names.
    pub stable: Option<Key>,
}

impl From<&Crash> for HeldFailure {
    fn from(crash: &Crash) -> HeldFailure {
        HeldFailure {
            class: crash.class.to_string(),
            major: crash.keys.major,
            minor: crash.keys.minor,
            stable: crash.keys.stable,
        }
    }
}

impl HeldFailure {
    /// Checks whether a crash, probably of another build, is this one: it has the same class and
    /// stable key. If one of them has no names, the class alone decides.
    pub fn is(&self, crash: &Crash) -> bool {
        let same_names = match (self.stable, crash.keys.stable) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        self.class == crash.class.to_string() && same_names
    }
}

/// Returns the shell command that builds a version, chosen by the build files in its top directory;
/// `None` if there is none of the known ones. The tools go on after an error, so that one build
/// names all that is missing.
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
