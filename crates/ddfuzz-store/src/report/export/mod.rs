//! Reproducers in other forms: pure functions from the bytes and the record of a group to text,
//! one file a form.

mod base64_lines;
mod c_array;
mod c_entry;
mod c_judge;
mod c_literal;
mod c_program;
mod fails;
mod hexdump;
mod rust_call;
mod rust_fuzz;
mod rust_literal;
mod rust_program;
mod rust_run;
mod script;

pub use base64_lines::base64;
pub use c_array::c_array;
pub use c_entry::{EntryFunction, Linked, c_entry_test};
pub use c_program::c_program_test;
pub use hexdump::hexdump;
pub use rust_call::rust_call_test;
pub use rust_fuzz::{FuzzProject, rust_fuzz_test};
pub use rust_literal::{Input, LITERAL_BYTES};
pub use rust_program::{Called, rust_program_test};
pub use script::{Taking, interestingness_test};

use std::time::Duration;

use super::text::printable;
use crate::Kind;
use ddfuzz_exec::{Ended, Limits, Sanitizer};
use ddfuzz_triage::Class;

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
        self.class.sanitizer() == Some(Sanitizer::Lsan)
    }
}
