//! What was seen of a content.

use std::time::Duration;

use crate::Features;
use ddfuzz_exec::Ended;

/// What a content did when it was run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// How the run ended. Of one that went over its limit on time or memory this is how it ended
    /// when it was asked again, alone in a new process and within the full limit.
    pub ended: Ended,
    /// How it ended alone in a new process, where the run had died in a process that it shared
    /// with others; `None` where it was not asked again.
    pub alone: Option<Ended>,
    /// Whether it did not end well, so that it is for triage to say what it is: by a signal or a
    /// limit, with the status that counts as a crash, or with one that may be that of a panic.
    pub suspicious: bool,
    /// CPU time, where the way tells it of each run, else its part of the wall time of the request
    /// that it was run in. It differs from call to call: good to be shown, not to decide by.
    pub time: Duration,
    /// How much it does, whatever the machine: the sum of the counters of all places, each modulo
    /// 256. A steady program does the same each time. 0 where no coverage was told.
    pub work: u64,
    /// Bytes of the input that the target read, where the way can tell.
    pub read: Option<u64>,
    /// What it has reached; `None` where that was not told: by a way or a target without
    /// coverage, or because the run did not come back.
    pub features: Option<Features>,
}
