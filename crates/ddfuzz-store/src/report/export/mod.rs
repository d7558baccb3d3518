//! Reproducers in other forms: pure functions from the bytes and the record of a group to text,
//! one file a language.

mod c_tests;
mod dumps;
mod rust_tests;
mod script;

use std::time::Duration;

use super::text::printable;
use crate::Kind;
use ddfuzz_exec::facts::ASSERTIONS;
use ddfuzz_exec::{Ended, Limits, RUST_PANIC, Sanitizer};
use ddfuzz_triage::Class;

pub use c_tests::{EntryFunction, Linked, c_entry_test, c_program_test};
pub use dumps::{base64, c_array, hexdump};
pub use rust_tests::{
    Called, FuzzProject, Input, LITERAL_BYTES, rust_call_test, rust_fuzz_test, rust_program_test,
};
pub use script::{Taking, interestingness_test};

/// Least time that an exported test gives a run that should end at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// What exported forms say of a group, through one of its inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Reproducer {
    /// The kind of finding.
    pub kind: Kind,
    /// The first 12 hex digits of the major key.
    pub major: String,
    /// What kind of death.
    pub class: Class,
    /// Where in the user's code.
    pub place: Option<String>,
    /// The best input known.
    pub input: Vec<u8>,
    /// How the run on the input as found ended.
    pub ended: Ended,
    /// Limits of that run.
    pub limits: Limits,
    /// What a program has to be compiled with to show it, as `-fsanitize=` names it.
    pub sanitizers: Vec<String>,
    /// Whether it takes Rust's overflow checks or debug assertions to show it.
    pub debug_assertions: bool,
}

impl Reproducer {
    /// What names the group in a language: `group_0123456789ab_rustpanic`.
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

    /// One line on the group for a comment. It ends with no backslash, which would continue a
    /// comment of C.
    fn title(&self) -> String {
        let what = match self.kind {
            Kind::Crash => "crash",
            Kind::Flaky => "flaky crash",
            Kind::Hang => "hang",
            Kind::Oom => "out-of-memory failure",
        };
        let place = match &self.place {
            Some(place) => format!(" in {}", printable(place)),
            None => String::new(),
        };
        let class = printable(&self.class.0);
        let title = format!("Group {} of ddfuzz, a {what}: {class}{place}", self.major);
        // `??/` is a backslash, too, to compilers that know trigraphs.
        let title = title.replace("??", "? ?");
        match title.ends_with('\\') {
            true => title + ".",
            false => title,
        }
    }

    /// How long a run may take that is to pass: a hang's limit with room for a slow machine, and
    /// much more for anything else, whose time says nothing.
    fn patience(&self) -> Duration {
        let limit = self.limits.wall.max(self.limits.cpu) * 2 + Duration::from_secs(1);
        match self.kind {
            Kind::Hang => limit,
            _ => limit.max(PATIENCE),
        }
    }

    /// The limit on memory in bytes, of a group that runs over one.
    fn memory(&self) -> Option<u64> {
        (self.kind == Kind::Oom).then(|| self.limits.memory.max(1))
    }

    /// Whether it is a leak, which sanitizers look for only when they are told to.
    fn leaks(&self) -> bool {
        self.class.is_leak()
    }
}

/// The status of a Go program that panics.
const GO_PANIC: i32 = 2;

/// Processor time that a program may take to start with a sanitizer, and without, in milliseconds:
/// ddfuzz does not count it.
const START_MS: [u64; 2] = [20, 150];

/// The exit statuses that are failures. Signals are in any case, and those statuses by which a
/// shell says that a signal ended what it ran (129 to 159); so is a sanitizer's report.
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

/// Processor time in milliseconds beyond which a run of a program hangs; `None` of another group.
fn time_limit(of: &Reproducer, sanitized: bool) -> Option<u64> {
    let limit = u64::try_from(of.limits.cpu.as_millis()).unwrap_or(u64::MAX);
    (of.kind == Kind::Hang).then(|| limit.saturating_add(START_MS[usize::from(sanitized)]))
}

/// What stands in the file of a program that can show the group's crash, and how to make one that
/// has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Need {
    /// One of these texts has to be there.
    texts: Vec<&'static str>,
    /// One of the type names that only code has which UndefinedBehaviorSanitizer checks: the
    /// runtimes of others have its functions, too.
    checked: bool,
    /// What to compile it with.
    flag: String,
}

/// What a program needs to show the group's crash.
fn needs(of: &Reproducer) -> Vec<Need> {
    let sanitizers = of.sanitizers.iter().map(|flag| {
        let sanitizer = Sanitizer::of_flag(flag).unwrap_or(Sanitizer::Ubsan);
        let mut texts = vec![sanitizer.symbol()];
        if of.leaks() {
            texts = [Sanitizer::Lsan, Sanitizer::Asan, Sanitizer::Hwasan]
                .map(Sanitizer::symbol)
                .to_vec();
        }
        Need {
            texts,
            checked: sanitizer == Sanitizer::Ubsan,
            flag: format!("-fsanitize={flag}"),
        }
    });
    let assertions = of.debug_assertions.then(|| Need {
        texts: ASSERTIONS.to_vec(),
        checked: false,
        flag: "-C debug-assertions=on".to_owned(),
    });
    sanitizers.chain(assertions).collect()
}
