//! What running an input again tells: a crash record, only class and keys, or that it does not crash.

use crate::{Class, Crash, Key};
use ddfuzz_exec::Ended;

/// The result of running one input up to three times (`Triager::examine`): a crash record, or no
/// crash.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// A run of the input crashed, or exceeded its time or memory limit; the field is the crash
    /// record.
    Crash(Box<Crash>),
    /// The input counts as flaky, or as not crashing: none of its runs crashed or exceeded a limit.
    Flaky {
        /// Number of runs of the input, none of which crashed; a run that looks for leaks is not
        /// counted.
        tries: u32,
        /// How the last run of the input, which did not crash, ended: exit status or signal.
        ended: Ended,
        /// Number of bytes of the input that the program has read in the last run; `None` if
        /// unknown.
        read: Option<u64>,
    },
}

/// The result of a single run of an input: class and keys of its crash, by which the minimizer
/// decides whether a smaller input still shows the same bug; or no crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quick {
    /// The run of the input crashed or exceeded a limit.
    Crash {
        /// Class of the crash, such as `segv` or `hang`.
        class: Class,
        /// Major key of the crash: a hash that identifies the bug.
        major: Key,
        /// Minor key of the crash: a hash that identifies the path into the bug.
        minor: Key,
    },
    /// The run ended without a crash and within its limits; the field is its exit status or signal.
    Ended(Ended),
}
