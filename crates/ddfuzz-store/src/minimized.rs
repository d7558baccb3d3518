//! How a minimization ended (`minimized.json`).

use serde::{Deserialize, Serialize};

use ddfuzz_minimize::Rate;
use ddfuzz_triage::Key;

/// How many of the proof's single-unit removals have an outcome that is not FAIL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proved {
    /// Removals proved.
    pub done: u64,
    /// Removals there are.
    pub of: u64,
}

/// How a minimization ended. Written last, so that where it stands the reproducer and the log
/// beside it are final.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Minimized {
    /// `1-minimal`, `2-minimal` or `best-so-far`.
    pub claim: String,
    /// Size of the input as found, in bytes.
    pub size_before: u64,
    /// Size of the reproducer, in bytes.
    pub size_after: u64,
    /// Tests by how they were answered, as in the JSON result of `min`.
    pub tests: serde_json::Value,
    /// What the claim rests on.
    pub proved: Proved,
    /// The minor key of the reproducer, which may differ from the input's.
    pub minor_after: Option<Key>,
    /// What a harness with structured input makes of the reproducer, as `Debug` writes it; `None`
    /// where it was not told. `debug.txt` holds the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debug: Option<String>,
    /// Whether the target crashes whatever the input is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_input: bool,
    /// Bytes of the reproducer that were not tried as `0`, where a budget ended before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub untried: u64,
    /// How often the reproducer failed, or else the input, where it did not each time; all of all
    /// where one text failed once and not again. `None` where all failed each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaky: Option<Rate>,
    /// Why it was given up; `None` where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_up: Option<String>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Minimized {
    /// Whether the claim is more than the best so far, and every part of it is proved.
    pub fn is_proved(&self) -> bool {
        self.claim != "best-so-far" && self.proved.done >= self.proved.of
    }

    /// Whether the failure was seen in none of many runs, neither of the reproducer nor of the input.
    pub fn never_fails(&self) -> bool {
        self.flaky.is_some_and(|rate| rate.hits == 0)
    }

    /// Whether more time would have come to more: a budget has ended it.
    pub fn is_unfinished(&self) -> bool {
        let is_settled = self.given_up.is_some() || self.flaky.is_some();
        self.claim == "best-so-far" && !is_settled
    }
}
