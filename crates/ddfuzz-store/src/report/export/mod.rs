//! Exporting a reproducer as text: tests in Rust and C, dumps, and interestingness tests. All are
//! pure functions of a [`Reproducer`]; there is one file for each form.

mod c_tests;
mod dumps;
mod rust_tests;
mod script;

use std::{ops::RangeInclusive, time::Duration};

use super::text::printable;
use crate::Kind;
use crate::reproduce::data_limit;
use ddfuzz_exec::{Ended, Limits, RUST_PANIC, Sanitizer, facts::ASSERTIONS};
use ddfuzz_triage::{Class, Trap};

pub use crate::reproduce::channel::base64_lines as base64;
pub use c_tests::{EntryFunction, LinkedHarness, c_entry_test, c_program_test};
pub use dumps::{c_array, hexdump};
pub use rust_tests::{
    FuzzProject, Input, LITERAL_BYTES, ProgramCall, rust_call_test, rust_fuzz_test,
    rust_program_test,
};
pub use script::{InputSource, interestingness_test};

/// Minimum wall time limit that an exported test sets for a run that should end at once.
const MIN_RUN_LIMIT: Duration = Duration::from_secs(60);

/// Data of a group from which all exported tests, dumps and scripts are generated.
#[derive(Clone, Debug, PartialEq)]
pub struct Reproducer {
    /// Kind of failure that the group's inputs show: crash, flaky crash, hang or out of memory.
    pub kind: Kind,
    /// Major key, which identifies the bug; its first 12 hex digits.
    pub major: String,
    /// Class of the group's crashes, such as `segv`.
    pub class: Class,
    /// Location of the crash in the user's code; `None` if unknown.
    pub place: Option<String>,
    /// Content of the smallest known failing input of the group.
    pub input: Vec<u8>,
    /// How the recorded run of the group's input as found ended: signal, exit status or exceeded
    /// limit.
    pub ended: Ended,
    /// Whether the process that crashed was not the program itself, but one that it had started.
    pub of_descendant: bool,
    /// Time and memory limits under which the input as found was run.
    pub limits: Limits,
    /// Sanitizers that a program needs to show the crash, as in `-fsanitize=`.
    pub sanitizers: Vec<String>,
    /// Whether the crash shows only if the program is compiled with Rust's overflow checks or debug
    /// assertions.
    pub debug_assertions: bool,
    /// The trap instruction, inserted by a compiler for a failed check, at which the program
    /// stopped; `None` if the program ended in another way.
    pub trap: Option<Trap>,
    /// Whether the minimal runtime of UndefinedBehaviorSanitizer has ended the program.
    pub minimal_runtime: bool,
}

impl Reproducer {
    /// Returns a name for the group that is valid as an identifier in Rust and C:
    /// `group_0123456789ab_rustpanic`.
    pub fn identifier(&self) -> String {
        let mut name = format!("group_{}_", self.major);
        for character in self.class.0.chars() {
            match character {
                'a'..='z' | '0'..='9' => name.push(character),
                'A'..='Z' => name.push(character.to_ascii_lowercase()),
                _ if name.ends_with('_') => {}
                _ => name.push('_'),
            }
        }
        name.trim_end_matches('_').to_owned()
    }

    /// Returns one line that describes the group, for a comment in generated code; without a final
    /// backslash, because C would join the next line to it.
    fn title(&self) -> String {
        let place = match &self.place {
            Some(place) => format!(" in {}", printable(place)),
            None => String::new(),
        };
        let class = printable(&self.class.0);
        let title = format!(
            "Group {} of ddfuzz, a {}: {class}{place}",
            self.major,
            self.kind.noun()
        );
        // `??/` is also a backslash for compilers with trigraphs.
        let title = title.replace("??", "? ?");
        match title.ends_with('\\') {
            true => title + ".",
            false => title,
        }
    }

    /// Returns the wall time limit that an exported test sets for its run: twice the larger one of
    /// the recorded run's limits on wall and CPU time, plus one second; at least a minute unless
    /// the failure is a hang.
    fn run_limit(&self) -> Duration {
        let limit = self.limits.wall.max(self.limits.cpu) * 2 + Duration::from_secs(1);
        match self.kind.of_limits(&self.class) {
            Kind::Hang => limit,
            _ => limit.max(MIN_RUN_LIMIT),
        }
    }

    /// Returns the memory limit, in bytes, that an exported test sets: that of the recorded run for
    /// an out-of-memory group; `None` for other groups.
    fn memory(&self) -> Option<u64> {
        (self.kind.of_limits(&self.class) == Kind::Oom).then(|| self.limits.memory.max(1))
    }

    /// Returns the limit on writable private memory, in bytes, that an exported test sets. For an
    /// out-of-memory group, and for a crash by a signal, it is twice the memory limit of the
    /// recorded run, as in that run: an allocation that failed may have caused the crash. `None`
    /// for other groups, and if a sanitizer maps terabytes of memory (`shadowed`).
    fn data(&self, shadowed: bool) -> Option<u64> {
        let limit = data_limit(self.kind, &self.class, self.limits.memory, shadowed);
        limit.map(|_| self.limits.memory.max(1).saturating_mul(2))
    }

    /// Returns the line that the minimal runtime of UndefinedBehaviorSanitizer prints when the
    /// crash's check fails, whether or not the program goes on afterwards; `None` for other
    /// crashes. Some versions of the runtime print more in the same line.
    fn message(&self) -> Option<String> {
        let check = self.class.0.strip_prefix("ubsan:")?;
        self.minimal_runtime.then(|| format!("ubsan: {check}"))
    }

    /// Returns whether the group's crash is a memory leak, which sanitizers report only on request.
    fn leaks(&self) -> bool {
        self.class.is_leak()
    }
}

/// Exit status with which a Go program ends after a panic.
const GO_PANIC: i32 = 2;

/// CPU times in ms that a program takes to start: without a sanitizer, and with one. An exported
/// test adds the fitting one to its limit, because ddfuzz does not count the time of the start.
const START_MS: [u64; 2] = [20, 150];

/// Exit statuses by which a shell reports that a signal ended what it ran.
const OF_SIGNALS: RangeInclusive<i32> = 129..=159;

/// Returns the exit statuses that an exported test counts as failures of the program: that of the
/// recorded run, unless it is 0, and for a Rust or Go panic the status of such a panic. The test
/// also counts all signals and sanitizer reports; if a process that the program had started crashed
/// instead of the program itself, also the statuses in [`OF_SIGNALS`].
fn statuses(of: &Reproducer) -> Vec<i32> {
    let mut all = match of.class.0.as_str() {
        "rustpanic" => vec![RUST_PANIC],
        "gopanic" => vec![GO_PANIC],
        _ => Vec::new(),
    };
    match of.ended {
        Ended::Exit(status) if status != 0 && !all.contains(&status) => all.push(status),
        _ => {}
    }
    all
}

/// Returns the CPU time limit in ms that an exported test of a hang sets: the limit of the recorded
/// run plus the time that the program takes to start, which is longer with a sanitizer
/// (`sanitized`). `None` for groups of other failures.
fn time_limit(of: &Reproducer, sanitized: bool) -> Option<u64> {
    let limit = u64::try_from(of.limits.cpu.as_millis()).unwrap_or(u64::MAX);
    (of.kind.of_limits(&of.class) == Kind::Hang)
        .then(|| limit.saturating_add(START_MS[usize::from(sanitized)]))
}

/// A compiler flag (sanitizer or debug assertions) without which a program cannot show the crash,
/// and how the program's file is checked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Need {
    /// Texts, such as names of sanitizer functions, at least one of which is in the program's file
    /// if it was compiled with the flag.
    texts: Vec<&'static [u8]>,
    /// Whether one of `texts` in the program's file is not enough to tell that it was compiled with
    /// the flag: the file must also contain the name of a type, as checks of
    /// UndefinedBehaviorSanitizer (UBSan) store it. Runtimes of other sanitizers contain UBSan's
    /// functions, too, but no such name.
    needs_type_name: bool,
    /// The compiler flag without which the program cannot show the crash, such as
    /// `-fsanitize=address`.
    flag: String,
}

/// Returns the compiler flags (sanitizers, debug assertions, checks that trap) without which a
/// program cannot show the group's crash.
fn needs(of: &Reproducer) -> Vec<Need> {
    let sanitizers = of.sanitizers.iter().map(|flag| {
        if of.minimal_runtime {
            // It is told no names of types.
            return Need {
                texts: vec![b"_minimal_abort"],
                needs_type_name: false,
                flag: format!(
                    "-fsanitize={flag} -fsanitize-minimal-runtime -fno-sanitize-recover=all"
                ),
            };
        }
        let sanitizer = Sanitizer::of_flag(flag).unwrap_or(Sanitizer::Ubsan);
        let mut texts = vec![sanitizer.symbol().as_bytes()];
        if of.leaks() {
            texts = [Sanitizer::Lsan, Sanitizer::Asan, Sanitizer::Hwasan]
                .map(|one| one.symbol().as_bytes())
                .to_vec();
        }
        Need {
            texts,
            needs_type_name: sanitizer == Sanitizer::Ubsan,
            flag: format!("-fsanitize={flag}"),
        }
    });
    let assertions = of.debug_assertions.then(|| Need {
        texts: ASSERTIONS.iter().map(|text| text.as_bytes()).collect(),
        needs_type_name: false,
        flag: "-C debug-assertions=on".to_owned(),
    });
    let trap = of.trap.map(|trap| Need {
        texts: vec![trap.code()],
        needs_type_name: false,
        flag: trap.flag().to_owned(),
    });
    sanitizers.chain(assertions).chain(trap).collect()
}
