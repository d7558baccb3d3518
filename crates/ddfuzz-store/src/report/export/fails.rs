//! By what an exported test knows that a program still fails, and when it cannot know.

use super::Reproducer;
use crate::Kind;
use ddfuzz_exec::facts::ASSERTIONS;
use ddfuzz_exec::{Ended, RUST_PANIC, Sanitizer};

/// The status of a Go program that panics.
const GO_PANIC: i32 = 2;

/// Processor time that a program may take to start with a sanitizer, and without, in milliseconds:
/// ddfuzz does not count it.
const START_MS: [u64; 2] = [20, 150];

/// The exit statuses that are failures. Signals are in any case, and those statuses by which a
/// shell says that a signal ended what it ran (129 to 159); so is a sanitizer's report.
pub(super) fn statuses(of: &Reproducer) -> Vec<i32> {
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
pub(super) fn time_limit(of: &Reproducer, sanitized: bool) -> Option<u64> {
    let limit = u64::try_from(of.limits.cpu.as_millis()).unwrap_or(u64::MAX);
    (of.kind == Kind::Hang).then(|| limit.saturating_add(START_MS[usize::from(sanitized)]))
}

/// What stands in the file of a program that can show the group's crash, and how to make one that
/// has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Need {
    /// One of these texts has to be there.
    pub(super) texts: Vec<&'static str>,
    /// One of the type names that only code has which UndefinedBehaviorSanitizer checks: the
    /// runtimes of others have its functions, too.
    pub(super) checked: bool,
    /// What to compile it with.
    pub(super) flag: String,
}

/// What a program needs to show the group's crash.
pub(super) fn needs(of: &Reproducer) -> Vec<Need> {
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
