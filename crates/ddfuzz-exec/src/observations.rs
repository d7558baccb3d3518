//! Observations of runs in a process that runs many inputs: coverage, comparisons, and the inputs
//! that ran before in the same process.

use ddfuzz_delta::Comparison;
use std::{collections::VecDeque, fs::File, io, path::Path};

use crate::shared_page::{KeptCounters, Page, RunOutcome};
use crate::{observe::LoopObserver, protocol::flag};

/// Requests observations of a fork server's runs and collects them: coverage, comparisons,
/// preceding inputs.
#[derive(Default)]
pub(crate) struct RunObservations {
    pub(crate) reporting: CoverageReporting,
    comparing: Option<LoopObserver>,
    /// Whether each run of the target gets a new process, so that earlier runs cannot affect it.
    pub(crate) fresh: bool,
    /// Whether the target's process is to end after the runs of the next call of the executor, so
    /// that later runs get a new process.
    pub(crate) last: bool,
    covered: Vec<RunCoverage>,
    reached: ReachedRanges,
    pub(crate) recent: RecentInputs,
}

impl RunObservations {
    pub(crate) fn compares(&self) -> bool {
        self.comparing.is_some()
    }

    /// Sets whether runs of the program at `path` report their comparisons (`on`), from its next
    /// fork server on. Fails when the memory file for the comparisons cannot be created.
    pub(crate) fn compare(&mut self, on: bool, path: &Path) -> io::Result<()> {
        self.comparing = match on {
            true => Some(LoopObserver::new(path)?),
            false => None,
        };
        Ok(())
    }

    /// Returns how many of the program's comparison callbacks are observed in runs; 0 if
    /// comparisons are not reported.
    pub(crate) fn callbacks(&self) -> usize {
        self.comparing.as_ref().map_or(0, LoopObserver::callbacks)
    }

    /// Prepares `page`, the memory shared with a new fork server: writes into it which hit-count
    /// ranges earlier runs have reached. Forgets the inputs that the last process has run. Returns
    /// the file to which runs write comparisons; `None` if they report none.
    pub(crate) fn begin_server(&mut self, page: &Page) -> io::Result<Option<File>> {
        page.set_reached(&self.reached.ranges)?;
        self.recent.clear();
        self.comparing.as_mut().map(LoopObserver::file).transpose()
    }

    /// Returns what the next request asks the fork server to report, as flags
    /// ([`flag`](crate::protocol::flag)): coverage counters of all runs or of those with new
    /// coverage, and comparisons.
    pub(crate) fn begin_request(&mut self) -> u64 {
        let counters = match self.reporting {
            CoverageReporting::Nothing => 0,
            CoverageReporting::Every => flag::COUNTERS,
            CoverageReporting::Novel => flag::NOVEL,
        };
        let counters = match self.fresh || self.last {
            true => counters | flag::LAST,
            false => counters,
        };
        match &mut self.comparing {
            Some(comparing) => {
                comparing.begin();
                counters | flag::COMPARISONS
            }
            None => counters,
        }
    }

    /// Forgets the coverage of the runs that the last call of the executor made.
    pub(crate) fn forget(&mut self) {
        self.covered.clear();
    }

    /// Takes over the coverage of run number `run` of a request, a run that returned normally:
    /// reads its coverage counters from the slot of `kept` that `outcome` names, and adds them to
    /// what [`covered`](Self::covered) returns. Does nothing if the slot is empty.
    pub(crate) fn take(&mut self, run: usize, kept: &mut KeptCounters<'_>, outcome: &RunOutcome) {
        if let Some(counters) = kept.get(outcome.slot) {
            self.reached.add(counters);
            self.covered.push(RunCoverage {
                run,
                counters: counters.to_owned(),
                stack_depth: outcome.stack_depth,
            });
        }
    }

    /// Returns the coverage of the runs that the last call of the executor made.
    pub(crate) fn covered(&self) -> &[RunCoverage] {
        &self.covered
    }

    /// Sets the coverage of the runs that the last call of the executor made, as breakpoints at
    /// basic blocks have shown it.
    pub(crate) fn set_covered(&mut self, covered: Vec<RunCoverage>) {
        self.covered = covered;
    }

    pub(crate) fn compared(&mut self) -> Vec<Comparison> {
        let comparing = self.comparing.as_mut();
        comparing.map_or(Vec::new(), LoopObserver::comparisons)
    }
}

/// Which runs report their coverage: none, each one, or only those that reach something new. To
/// report it, all counters of the target are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CoverageReporting {
    /// No run reports coverage.
    #[default]
    Nothing,
    /// Every run that returns normally reports its coverage.
    Every,
    /// Only runs report coverage that reach something new for the executor: a counter that was 0 in
    /// all earlier runs, or a known counter in another range of values (1, 2, 3, 4 to 7, 8 to 15,
    /// 16 to 31, 32 to 127, and more). With the method `harness`, a run with a deeper stack than
    /// all earlier ones also reports, if the program records the depth of its stack.
    Novel,
}

/// The coverage of one run: its coverage counters, and which run it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunCoverage {
    /// Index of the run whose coverage this is, among the runs of the executor's last call, from 0.
    pub run: usize,
    /// For each instrumented code location, how often the run passed it, modulo 256.
    pub counters: Vec<u8>,
    /// Depth of the run's stack in bytes, from a place that is the same for all runs of the
    /// program, as the program records it for libFuzzer (`-fsanitize-coverage=stack-depth`). `None`
    /// if it records none, or if it also has counters that only libFuzzer reads.
    pub stack_depth: Option<u64>,
}

/// The hit-count ranges of each coverage counter that the runs of an executor have reached.
#[derive(Default)]
pub(crate) struct ReachedRanges {
    /// For each coverage counter, the hit-count ranges that runs have reached: one bit for each
    /// range.
    ranges: Vec<u8>,
}

impl ReachedRanges {
    /// Adds the coverage of a run to what is reached: for each of its coverage `counters`, the
    /// range of hit counts that the counter is in.
    pub(crate) fn add(&mut self, counters: &[u8]) {
        if self.ranges.len() < counters.len() {
            self.ranges.resize(counters.len(), 0);
        }
        for (known, eight) in self.ranges.chunks_mut(8).zip(counters.chunks(8)) {
            // Most runs pass few of the places.
            if eight.iter().all(|count| *count == 0) {
                continue;
            }
            for (known, count) in known.iter_mut().zip(eight) {
                *known |= range_of(*count);
            }
        }
    }

    /// Adds what a run has reached, given by its coverage `counters`. Returns true if the run
    /// reached an instrumented place for the first time, or hit it in a new range of counts.
    pub(crate) fn add_novel(&mut self, counters: &[u8]) -> bool {
        if self.ranges.len() < counters.len() {
            self.ranges.resize(counters.len(), 0);
        }
        let mut novel = false;
        for (known, eight) in self.ranges.chunks_mut(8).zip(counters.chunks(8)) {
            // Most runs pass few of the places.
            if eight.iter().all(|count| *count == 0) {
                continue;
            }
            for (known, count) in known.iter_mut().zip(eight) {
                let range = range_of(*count);
                novel |= *known & range != range;
                *known |= range;
            }
        }
        novel
    }
}

/// Returns the hit-count range of a coverage counter's value as a byte with one bit set, 0 for the
/// value 0, as `range_of` of `runtime/counters.c` computes it.
fn range_of(count: u8) -> u8 {
    match count {
        0 => 0,
        1 => 1,
        2 => 2,
        3 => 4,
        4..=7 => 8,
        8..=15 => 16,
        16..=31 => 32,
        32..=127 => 64,
        128..=255 => 128,
    }
}

/// Maximum number of inputs that are remembered of one process of the target, which may have led to
/// its crash.
const MOST: usize = 32;
/// Maximum size, in bytes, of an input that is remembered because it may have led to a later crash
/// of the same process. A longer input is not remembered, and those before it are forgotten.
const LONGEST: usize = 64 << 10;

/// The last inputs that a target's process has run, oldest first. A crash may depend on them.
#[derive(Default)]
pub(crate) struct RecentInputs {
    inputs: VecDeque<Vec<u8>>,
    /// Whether the target's process has died of its last input, which is not in `inputs`.
    died: bool,
    /// Whether the target's process has exited by itself after its last input, which is in
    /// `inputs`.
    ended: bool,
    /// Whether the target's process has run an input and still lives.
    lives: bool,
}

impl RecentInputs {
    /// Remembers `inputs`, which the target's process has run in this order. `lives`: the process
    /// survived all of them; otherwise it died of the last one, which is not remembered.
    pub(crate) fn ran(&mut self, inputs: &[&[u8]], lives: bool) {
        if self.died || self.ended {
            self.inputs.clear();
        }
        (self.died, self.ended, self.lives) = (!lives, false, lives);
        let kept = inputs.len().saturating_sub(usize::from(self.died));
        for input in &inputs[kept.saturating_sub(MOST)..kept] {
            self.push(input);
        }
    }

    fn push(&mut self, input: &[u8]) {
        if input.len() > LONGEST {
            self.inputs.clear();
            return;
        }
        let mut oldest = match self.inputs.len() {
            MOST => self.inputs.pop_front().unwrap_or_default(),
            _ => Vec::new(),
        };
        oldest.clear();
        oldest.extend_from_slice(input);
        self.inputs.push_back(oldest);
    }

    /// Records that the target's process is gone. Unless it died of its last input, it has exited
    /// after this input. The remembered inputs stay until the next process runs one.
    pub(crate) fn end(&mut self) {
        if !self.died {
            self.ended = true;
        }
        self.lives = false;
    }

    /// Returns true if the target's process has run an input and still lives.
    pub(crate) fn lives(&self) -> bool {
        self.lives
    }

    /// Forgets the remembered inputs, because a new process of the target has run none.
    pub(crate) fn clear(&mut self) {
        self.inputs.clear();
        (self.died, self.ended, self.lives) = (false, false, false);
    }

    /// Returns the remembered inputs that the target's process ran before its last one, oldest
    /// first.
    pub(crate) fn before_the_last(&self) -> Vec<Vec<u8>> {
        let count = self.inputs.len().saturating_sub(usize::from(!self.died));
        self.inputs.iter().take(count).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_range_that_no_run_has_reached_is_novel() {
        let mut reached = ReachedRanges::default();
        let mut counters = vec![0; 19];
        assert!(!reached.add_novel(&counters));
        counters[18] = 1;
        assert!(reached.add_novel(&counters));
        assert!(!reached.add_novel(&counters));
        counters[18] = 9;
        assert!(reached.add_novel(&counters));
        counters[18] = 15;
        assert!(!reached.add_novel(&counters));
    }

    #[test]
    fn each_range_of_a_counter_is_reached_for_itself() {
        let mut reached = ReachedRanges::default();
        reached.add(&[0, 1, 200]);
        reached.add(&[0, 5, 255]);
        assert_eq!(reached.ranges, [0, 1 | 8, 128]);
    }

    #[test]
    fn the_last_inputs_are_kept_in_order() {
        let mut recent = RecentInputs::default();
        let all: Vec<[u8; 1]> = (0..MOST as u8 + 5).map(|byte| [byte]).collect();
        let slices: Vec<&[u8]> = all.iter().map(|input| &input[..]).collect();
        recent.ran(&slices[..3], true);
        recent.ran(&slices[3..], true);
        let kept = recent.before_the_last();
        assert_eq!((kept.len(), kept[0][0]), (MOST - 1, 5));
        recent.ran(&[&[0; LONGEST + 1], b"next", b"last"], true);
        assert_eq!(recent.before_the_last(), [b"next"]);
    }

    #[test]
    fn a_process_that_died_is_forgotten_with_the_next_run() {
        let mut recent = RecentInputs::default();
        recent.ran(&[b"one", b"deadly"], false);
        assert_eq!(recent.before_the_last(), [b"one"]);
        recent.ran(&[b"other", b"last"], true);
        assert_eq!(recent.before_the_last(), [b"other"]);
    }

    #[test]
    fn a_process_that_ended_is_forgotten_with_the_next_run() {
        let mut recent = RecentInputs::default();
        recent.ran(&[b"one", b"two"], true);
        recent.end();
        assert_eq!(recent.before_the_last(), [b"one"]);
        recent.ran(&[b"other", b"last"], true);
        assert_eq!(recent.before_the_last(), [b"other"]);
    }
}
