//! What the runs of a program have shown about the way `snapshot` (one process runs many inputs and
//! undoes what each run has changed): shared by all executors of the program in this process
//! (docs/decisions/0195).

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::{path::Path, time::Duration};

use crate::{Ended, Run};

/// Number of runs, of all executors of a program together, that must be compared with runs of new
/// processes before the process that runs many inputs is trusted.
const PROBATION: u32 = 40;
/// Number of runs in its process for many inputs that each executor compares with runs of new
/// processes, before it trusts that process.
const OWN_PROBATION: u32 = 2;
/// Number of runs after which ddfuzz checks how many of them were refused by the process that runs
/// many inputs. It refuses a run whose changes to memory, files or other state it cannot undo.
const WINDOW: u64 = 128;
/// CPU time above which a run counts as slow: a fork costs next to nothing in comparison, so that
/// running many inputs in one process is not worth it.
const SLOW: Duration = Duration::from_millis(5);
/// Number of runs that must have been compared with those of new processes before ddfuzz judges
/// whether most of them were slow.
const SLOW_WINDOW: u32 = 8;
/// Number of inputs on which two new processes differ from each other, so that no other run can be
/// compared with theirs. If this many such inputs are found before [`PROBATION`] runs of the
/// program were compared, each of its inputs is run in a new process.
const MOST_UNSTABLE: u32 = 4;
/// CPU time that counts as saved by each run in the process that runs many inputs: at least as much
/// is saved, because the run needs no fork. The sum of these savings is compared with the time
/// wasted on refused runs.
const SAVED: Duration = Duration::from_micros(150);
/// CPU time that the runner (the process that makes many runs) may waste on runs that it refuses,
/// beyond the time that it saves because its runs need no fork; then it is not used any more.
const CREDIT: Duration = Duration::from_millis(500);

/// Maximum CPU time of a run in a process that runs many inputs of the program's `main`. A longer
/// run is stopped there, and made again in a forked process within the target's own limits; a fork
/// costs little compared with it.
pub(crate) const RUNNER_CPU: Duration = Duration::from_millis(100);
/// Maximum wall time of a run in a process that runs many inputs of the program's `main`; a longer
/// run is stopped, and made again in a forked process.
pub(crate) const RUNNER_WALL: Duration = Duration::from_secs(1);

/// Why the process that runs many inputs is not used any more: it differs from new processes,
/// refuses too much, saves no time, or the program behaves differently each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndReason {
    /// A run of the process that runs many inputs differed from that of a new process on the same
    /// input.
    Difference,
    /// The process that runs many inputs refused too many runs: more than half, or so many that
    /// they wasted more CPU time than the other runs saved.
    Refusals,
    /// Most runs take so long that the time of a fork does not matter, so that nothing is gained by
    /// running many inputs in one process.
    Slow,
    /// Two new processes ran the same input differently too often, so the runs of one process
    /// cannot be compared with them.
    Unstable,
}

impl EndReason {
    /// Returns, in a few words for users, why no process runs many inputs of the program.
    pub(crate) fn text(self) -> &'static str {
        match self {
            EndReason::Difference => "a run in one process differed from that of a new process",
            EndReason::Refusals => "most of its runs need a process each",
            EndReason::Slow => "a fork costs nothing beside its long runs",
            EndReason::Unstable => "its runs differ from one another in any case",
        }
    }
}

/// What differs between two runs on the same input: how they end, and what they write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Differing {
    /// Whether the two runs end in different ways.
    pub(crate) ended: bool,
    /// Whether the two runs write differently: first to stdout, then to stderr.
    pub(crate) written: [bool; 2],
}

impl Differing {
    /// Whether the two runs differ in how they end or in what they write. Differences in stdout or
    /// stderr do not count where `ignored` (for stdout, for stderr) is true.
    fn is_any(self, ignored: [bool; 2]) -> bool {
        let [stdout, stderr] = self.written;
        self.ended || (stdout && !ignored[0]) || (stderr && !ignored[1])
    }

    fn add(&mut self, other: Differing) {
        self.ended |= other.ended;
        self.written[0] |= other.written[0];
        self.written[1] |= other.written[1];
    }
}

/// What the runs of one program have shown so far about running many inputs in one process.
#[derive(Debug, Default)]
struct Record {
    /// Number of runs that were compared with those of new processes and were like them.
    compared: u32,
    /// Number of runs, among those compared with new processes, that took more CPU time than
    /// [`SLOW`].
    slow: u32,
    /// Number of inputs on which two new processes behaved differently, since the choice of ignored
    /// streams (`ignored`) was last changed.
    unstable: u32,
    /// Which of stdout and stderr are not compared, because two new processes write differently
    /// there.
    ignored: [bool; 2],
    /// What differed between two new processes, on the inputs that `unstable` counts.
    differing: Differing,
    /// Two numbers of runs since the share of refused runs was last checked: all runs, and those
    /// that the process that runs many inputs has refused.
    window: (u64, u64),
    /// CPU time that the runs of the process that runs many inputs have saved, because they need no
    /// fork.
    saved: Duration,
    /// CPU time that the process that runs many inputs has wasted on runs that it then refused.
    lost: Duration,
    /// Why the process that runs many inputs is no longer used; `None` while it is.
    end: Option<EndReason>,
}

impl Record {
    /// Records the reason why the runner (the process that runs many inputs) is not used any more,
    /// if there is one: it refuses too many runs, saves too little time, or cannot be compared with
    /// new processes. Keeps a reason that was recorded before.
    fn judge(&mut self) {
        let (runs, refused) = self.window;
        if runs >= WINDOW {
            self.window = (0, 0);
        }
        let found = if runs >= WINDOW && refused * 2 > runs || self.lost > self.saved + CREDIT {
            EndReason::Refusals
        } else if self.compared >= SLOW_WINDOW && self.slow * 2 > self.compared {
            EndReason::Slow
        } else if self.unstable >= MOST_UNSTABLE && self.compared < PROBATION {
            if self.ignore_one() {
                return;
            }
            EndReason::Unstable
        } else {
            return;
        };
        self.end.get_or_insert(found);
    }
}

impl Record {
    /// Stops comparing the stream, stdout or stderr, in which new processes differ from each other.
    /// Returns false if they also differ in the other stream or in how they end, or if a stream is
    /// ignored already: too little would be left to compare.
    fn ignore_one(&mut self) -> bool {
        let seen = std::mem::take(&mut self.differing);
        let is_first = self.ignored == [false; 2];
        if seen.ended || !is_first || seen.written == [true; 2] {
            return false;
        }
        self.ignored = seen.written;
        self.unstable = 0;
        true
    }
}

/// What the runs of one program have shown about running many of its inputs in one process. All
/// executors of the program share the record, which decides whether they may still run many inputs
/// in one process.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProgramTrust(Arc<Mutex<Record>>);

/// A program's file: device, inode, size, and time of its last change.
type ProgramFile = (u64, u64, u64, i64, i64);

impl ProgramTrust {
    /// Returns what runs of the program at `path` have shown about running many inputs in one
    /// process, a record that all executors of this process share. A program that was built again
    /// has a new record. Runs whose start is frozen (`is_frozen`: they share random numbers, times
    /// and process id) have a separate one: they begin later, and may be fast where the others are
    /// slow. If the file cannot be read, returns an empty record that is not shared.
    pub(crate) fn of(path: &Path, is_frozen: bool) -> ProgramTrust {
        static KNOWN: LazyLock<Mutex<HashMap<(ProgramFile, bool), ProgramTrust>>> =
            LazyLock::new(Mutex::default);
        let Ok(facts) = path.metadata() else {
            return ProgramTrust::default();
        };
        let file = (
            facts.dev(),
            facts.ino(),
            facts.size(),
            facts.ctime(),
            facts.ctime_nsec(),
        );
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry((file, is_frozen)).or_default().clone()
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns why the process that runs many inputs must not be used for this program; `None` if
    /// it may be used.
    pub(crate) fn end_reason(&self) -> Option<EndReason> {
        self.record().end
    }

    /// Records that a run of the process that runs many inputs differed from that of a new process.
    /// From then on, all executors run each input of the program in a new process.
    pub(crate) fn record_difference(&self) {
        self.record().end = Some(EndReason::Difference);
    }

    /// Returns true if an executor must also make its next run in a new process, and compare it
    /// with the same run in the process that runs many inputs. That is so until this executor has
    /// compared [`OWN_PROBATION`] runs, and all executors of the program together [`PROBATION`].
    /// `own`: how many this executor has compared.
    pub(crate) fn is_on_probation(&self, own: u32) -> bool {
        own < OWN_PROBATION || self.record().compared < PROBATION
    }

    /// Records that a run of the process that runs many inputs behaved like `forked`, the run of a
    /// new process on the same input. Ends the use of the process that runs many inputs if most
    /// compared runs are slow.
    pub(crate) fn record_match(&self, forked: &Run) {
        let mut record = self.record();
        record.compared += 1;
        record.slow += u32::from(forked.cpu > SLOW);
        record.judge();
    }

    /// Records what differed between two new processes on one input, so that this input cannot show
    /// whether the process that runs many inputs works. After too many such inputs, that one of
    /// stdout and stderr in which they differ is not compared any more; if they differ in more,
    /// that process is no longer used.
    pub(crate) fn unstable(&self, differing: Differing) {
        let mut record = self.record();
        record.unstable += 1;
        record.differing.add(differing);
        record.judge();
    }

    /// Returns whether two runs on the same input count as alike, given what differs between them.
    pub(crate) fn are_alike(&self, differing: Differing) -> bool {
        !differing.is_any(self.record().ignored)
    }

    /// Counts `runs`, which the process that runs many inputs was asked for. If `refused`, it could
    /// not make the last of them, which a new process made instead. That process is no longer used
    /// if it refuses most runs, or if this costs more CPU time than it saves.
    pub(crate) fn count(&self, runs: &[Run], refused: bool) {
        let mut record = self.record();
        let restored = runs.len() - usize::from(refused);
        record.window.0 += runs.len() as u64;
        record.window.1 += u64::from(refused);
        record.saved += SAVED * u32::try_from(restored).unwrap_or(u32::MAX);
        if let Some(last) = runs.last().filter(|_| refused) {
            record.lost += lost(last);
        }
        record.judge();
    }
}

/// Returns how much CPU time was wasted at most because the process that runs many inputs began a
/// run and refused it. `run` is the run that a new process then made on the same input. The result
/// is its CPU time, but at most [`RUNNER_CPU`], which is also taken after a timeout; zero for a run
/// of at most [`SLOW`].
fn lost(run: &Run) -> Duration {
    match run.ended {
        Ended::Timeout => RUNNER_CPU,
        _ if run.cpu > SLOW => run.cpu.min(RUNNER_CPU),
        _ => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(micros: u64) -> Run {
        Run {
            cpu: Duration::from_micros(micros),
            ..Run::ended(Ended::Exit(0))
        }
    }

    #[test]
    fn probation_is_that_of_the_program_and_short_for_later_executors() {
        let trust = ProgramTrust::default();
        (0..PROBATION - 1).for_each(|_| trust.record_match(&run(300)));
        assert!(trust.is_on_probation(PROBATION - 1));
        trust.record_match(&run(300));
        assert!(!trust.is_on_probation(PROBATION));
        assert!(trust.clone().is_on_probation(OWN_PROBATION - 1));
        assert!(!trust.clone().is_on_probation(OWN_PROBATION));
        assert_eq!(trust.end_reason(), None);
    }

    #[test]
    fn what_costs_more_than_it_saves_is_ended() {
        let refusing = ProgramTrust::default();
        for number in 0..WINDOW {
            assert_eq!(refusing.end_reason(), None);
            refusing.count(&[run(300)], number % 2 == 0 || number == 1);
        }
        assert_eq!(refusing.end_reason(), Some(EndReason::Refusals));

        let hanging = ProgramTrust::default();
        hanging.count(&[run(300); 64], false);
        for _ in 0..5 {
            assert_eq!(hanging.end_reason(), None);
            hanging.count(&[Run::ended(Ended::Timeout)], true);
        }
        hanging.count(&[run(300); 64], false);
        hanging.count(&[Run::ended(Ended::Timeout)], true);
        assert_eq!(hanging.end_reason(), Some(EndReason::Refusals));

        let slow = ProgramTrust::default();
        (0..SLOW_WINDOW).for_each(|_| slow.record_match(&run(20_000)));
        assert_eq!(slow.end_reason(), Some(EndReason::Slow));
    }

    #[test]
    fn runs_that_are_never_alike_end_probation_only() {
        let trust = ProgramTrust::default();
        let ended = Differing {
            ended: true,
            written: [false; 2],
        };
        (0..MOST_UNSTABLE).for_each(|_| trust.unstable(ended));
        assert_eq!(trust.end_reason(), Some(EndReason::Unstable));
        let trusted = ProgramTrust::default();
        (0..PROBATION).for_each(|_| trusted.record_match(&run(300)));
        (0..MOST_UNSTABLE).for_each(|_| trusted.unstable(ended));
        assert_eq!(trusted.end_reason(), None);
    }

    #[test]
    fn one_output_that_is_never_the_same_is_not_compared_and_two_end_the_use() {
        let in_outputs = |written| Differing {
            ended: false,
            written,
        };
        let (stdout, stderr) = (in_outputs([true, false]), in_outputs([false, true]));
        let trust = ProgramTrust::default();
        (1..MOST_UNSTABLE).for_each(|_| trust.unstable(stdout));
        assert!(!trust.are_alike(stdout));
        trust.unstable(stdout);
        assert!(trust.are_alike(stdout));
        assert!(!trust.are_alike(stderr));
        assert_eq!(trust.end_reason(), None);
        (0..MOST_UNSTABLE).for_each(|_| trust.unstable(stderr));
        assert_eq!(trust.end_reason(), Some(EndReason::Unstable));

        let mixed = ProgramTrust::default();
        mixed.unstable(stderr);
        (1..MOST_UNSTABLE).for_each(|_| mixed.unstable(stdout));
        assert_eq!(mixed.end_reason(), Some(EndReason::Unstable));
    }

    #[test]
    fn a_program_has_one_record_for_each_kind_of_start() {
        let own = std::env::current_exe().unwrap();
        let one = ProgramTrust::of(&own, false);
        one.record_difference();
        let again = ProgramTrust::of(&own, false);
        assert_eq!(again.end_reason(), Some(EndReason::Difference));
        assert_eq!(ProgramTrust::of(&own, true).end_reason(), None);
        let missing = ProgramTrust::of(Path::new("/does/not/exist"), false);
        assert_eq!(missing.end_reason(), None);
    }
}
