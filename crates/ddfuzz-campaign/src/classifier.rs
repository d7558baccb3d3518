//! Classification of runs that did not pass. [`RunClassifier`] is for workers that report their
//! findings in the order of the runs; [`SuspectClassifier`] is for fuzzers that submit each finding
//! to a [`CrashSink`].

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::verdict::SteadyHangs;
use crate::{CampaignError, CrashSink, Report, lock};
use ddfuzz_exec::{CrashSnapshots, Ended, ExecError, Executor, Target, Way};
use ddfuzz_model::files::Base64;
use ddfuzz_store::{EntryId, Kind};
use ddfuzz_triage::{Class, Crash, Key, Quick, Triager, Verdict};

/// Least time between two requests in which a [`SuspectClassifier`] asks the crash sink for the
/// keys of the stored inputs.
const KNOWN_EVERY: Duration = Duration::from_secs(1);

/// A triager of one target that is created when a run first needs it: most targets never fail.
struct LazyTriager {
    target: Target,
    way: Way,
    triager: Option<Triager>,
}

impl LazyTriager {
    /// Returns the triager, which the first call creates. Fails if the program is missing or cannot
    /// be executed.
    fn get(&mut self) -> Result<&mut Triager, ExecError> {
        match &mut self.triager {
            Some(triager) => Ok(triager),
            empty => Ok(empty.insert(Triager::of_target(&self.target, self.way)?)),
        }
    }
}

/// Classifies the runs of one worker by triage: passed, crash, hang, memory blow-up, flaky crash,
/// or a failure whose keys were reported before.
pub(crate) struct RunClassifier {
    triager: LazyTriager,
    crash_exit: Option<i32>,
    /// Minor keys (finer hashes of crashes) with which this worker has reported a full crash
    /// record. The worker reports its runs in ascending order, so a reader of its reports gets the
    /// full record before any later run with the same key.
    reported: HashSet<Key>,
    /// Size in bytes of the smallest input that was reported with a full crash record, by the major
    /// key (hash that identifies a bug) of its group of crashes.
    least: HashMap<Key, u64>,
    /// Whether every hang is reported with a full crash record; if false, only the first hang of
    /// each minor key (finer hash of crashes) is.
    hangs_in_full: bool,
    steady_hangs: SteadyHangs,
}

impl RunClassifier {
    /// Creates a classifier of runs of `target`, which is executed in the way `way`.
    pub(crate) fn of_target(target: &Target, way: Way) -> RunClassifier {
        RunClassifier {
            triager: LazyTriager {
                target: target.clone(),
                way,
                triager: None,
            },
            crash_exit: target.crash_exit,
            reported: HashSet::new(),
            least: HashMap::new(),
            hangs_in_full: false,
            steady_hangs: SteadyHangs::default(),
        }
    }

    /// Makes the classifier report every hang with a full crash record, even if its keys are known,
    /// for a caller that itself decides by the time of a run whether the run is a hang.
    pub(crate) fn with_hangs_in_full(self) -> RunClassifier {
        RunClassifier {
            hangs_in_full: true,
            ..self
        }
    }

    /// Classifies the last run of `executor`, which ran `input` and ended as `ended` says; returns
    /// `None` if the run passed. If the run may have failed, the input is run again under triage.
    /// If the repeated run crashes with new keys, its own crash record is reported; a third run
    /// might crash by another bug.
    pub(crate) fn judge(
        &mut self,
        ended: Ended,
        input: &[u8],
        executor: &dyn Executor,
    ) -> Result<Option<Classified>, ExecError> {
        let slow = matches!(ended, Ended::Timeout | Ended::OutOfMemory);
        let is_suspect = ended.is_suspect(self.crash_exit) && self.triager.get()?.suspects(ended);
        if !slow && !is_suspect {
            return Ok(None);
        }
        // To compute a hang's keys alone takes as long as to examine it.
        if ended == Ended::Timeout {
            return self.examine(ended, input, executor).map(Some);
        }
        let run = self.triager.get()?.key_run(input)?;
        match run.quick() {
            Quick::Crash {
                class,
                major,
                minor,
            } if !is_slow_crash(ended, &class) && self.is_known(major, minor, input) => {
                let kind = Kind::of_class(&class);
                return Ok(Some(Classified::Known { kind, major }));
            }
            Quick::Ended(_) if is_plain_exit(ended, self.crash_exit) => return Ok(None),
            _ => {}
        }
        match self.triager.get()?.record(run) {
            Some(crash) if !is_slow_crash(ended, &crash.class) => {
                Ok(Some(self.report(Box::new(crash), input)))
            }
            _ => self.examine(ended, input, executor).map(Some),
        }
    }

    /// Forgets which crashes were reported with a full crash record, so that the next crash with
    /// the same keys is reported in full again. A caller needs this after it has dropped reports.
    pub(crate) fn forget_reported(&mut self) {
        self.reported.clear();
        self.least.clear();
    }

    /// Returns true if a crash of `input` needs no full record: this worker has reported a crash
    /// with the minor key `minor` (finer hash of crashes) in full before, and `input` is not
    /// smaller than all inputs of the group `major` that this worker has reported in full.
    fn is_known(&self, major: Key, minor: Key, input: &[u8]) -> bool {
        self.reported.contains(&minor) && !self.is_smaller(major, input)
    }

    /// Returns true if `input` is smaller than every input of the group `major` that this worker
    /// has reported with a full crash record, so that it may have to be stored; false if it is not,
    /// or if this worker has reported no input of the group.
    fn is_smaller(&self, major: Key, input: &[u8]) -> bool {
        let least = self.least.get(&major);
        least.is_some_and(|least| (input.len() as u64) < *least)
    }

    /// Returns how a crash of `input` is reported: with its full record if its minor key (finer
    /// hash of crashes) is new or the input is smaller than all reported inputs of its group;
    /// otherwise as [`Classified::Known`], which only names its group. Hangs always get the full
    /// record if `hangs_in_full` is set.
    fn report(&mut self, crash: Box<Crash>, input: &[u8]) -> Classified {
        let kind = Kind::of_class(&crash.class);
        let is_known = self.is_known(crash.keys.major, crash.keys.minor, input);
        if is_known && !(self.hangs_in_full && kind == Kind::Hang) {
            let major = crash.keys.major;
            return Classified::Known { kind, major };
        }
        if !self.hangs_in_full || kind != Kind::Hang {
            self.reported.insert(crash.keys.minor);
        }
        if kind == Kind::Crash {
            let size = input.len() as u64;
            let least = self.least.entry(crash.keys.major).or_insert(size);
            *least = size.min(*least);
        }
        Classified::Crash(crash)
    }

    fn examine(
        &mut self,
        ended: Ended,
        input: &[u8],
        executor: &dyn Executor,
    ) -> Result<Classified, ExecError> {
        let triager = self.triager.get()?;
        Ok(match triager.examine(input)? {
            Verdict::Crash(mut crash) if !is_slow_crash(ended, &crash.class) => {
                self.steady_hangs.settle(triager, input, &mut crash)?;
                self.report(crash, input)
            }
            Verdict::Crash(_) | Verdict::Flaky { .. } => {
                let preceding = executor.preceding().into_iter().map(Base64).collect();
                let copies = executor.crash_snapshots();
                Classified::Flaky(Box::new(flaky_record(
                    triager,
                    ended,
                    copies.as_deref(),
                    preceding,
                )))
            }
        })
    }
}

/// Returns true if the run ended by an exit that does not count as a crash: `ended` is an exit with
/// another status than `crash_exit`. Such a run is a crash only if its output has a sanitizer's
/// report. False for signals and all other ends.
fn is_plain_exit(ended: Ended, crash_exit: Option<i32>) -> bool {
    ended.is_exit() && !ended.is_crash(crash_exit)
}

/// Returns true if a run died of a signal (`ended`), but exceeded its time limit when it was
/// repeated under a tracer, which gave it the class `class`. Such a run counts as a crash that did
/// not happen again, and not as a hang.
fn is_slow_crash(ended: Ended, class: &Class) -> bool {
    matches!(ended, Ended::Signal(_)) && Kind::of_class(class) == Kind::Hang
}

/// Builds the record of a crash that did not happen again; `ended` is how its run ended. `copies`:
/// the registers, memory maps and stack that the dying process copied; `None` if it copied none.
/// `preceding`: the inputs that the same process had run before, since the crash may come from
/// state that they left.
fn flaky_record(
    triager: &mut Triager,
    ended: Ended,
    copies: Option<&CrashSnapshots>,
    preceding: Vec<Base64>,
) -> Crash {
    Crash {
        preceding,
        ..triager.record_from_copies(ended, copies)
    }
}

/// What a run that did not pass is classified as: a crash record, or only the group if the worker
/// has reported the same keys before.
pub(crate) enum Classified {
    /// The complete record of a crash, hang or memory blow-up. A worker reports the complete record
    /// for the first run with a minor key (finer hash of crashes), and for a crash by an input
    /// smaller than all reported inputs of its group; for hangs, it can be set to do so each time.
    Crash(Box<Crash>),
    /// A failure with a minor key (finer hash of crashes) that the worker has reported before; only
    /// its group is given, so that the run is counted.
    Known {
        /// Kind of the group to which the failure belongs: crashes, hangs, memory blow-ups or flaky
        /// crashes.
        kind: Kind,
        /// Major key (hash that identifies the group) of the group to which the failure belongs.
        major: Key,
    },
    /// The record of a crash, hang or memory blow-up that did not happen again when its input was
    /// run again.
    Flaky(Box<Crash>),
}

impl Classified {
    /// Returns true if the classified run has its complete crash record, because its crash was not
    /// reported before, so that the input may have to be stored. False for a crash with known keys.
    pub(crate) fn has_full_record(&self) -> bool {
        !matches!(self, Classified::Known { .. })
    }
}

/// A classified run that did not pass, as a worker reports it.
pub(crate) struct Finding {
    /// Number of the campaign's run that did not pass, from 0.
    pub(crate) run: u64,
    /// Name of the input whose run did not pass, from which the input can be rebuilt.
    pub(crate) name: String,
    /// Bytes of the input whose run did not pass; empty if its keys were reported before
    /// ([`Classified::Known`]), since such an input is not stored.
    pub(crate) input: Vec<u8>,
    pub(crate) what: Classified,
}

/// An input whose run in some fuzzer did not pass, and which is not classified yet.
pub(crate) struct Suspect<'a> {
    pub(crate) input: &'a [u8],
    /// Number of the fuzzer's run that did not pass, from 0.
    pub(crate) run: u64,
    /// Name that the fuzzer has given the input whose run did not pass.
    pub(crate) name: &'a str,
    /// How the suspect's run ended; `None` if the fuzzer does not tell. A suspect whose end is
    /// unknown is dropped if it does not fail when it is run again.
    pub(crate) ended: Option<Ended>,
    /// What the fuzzer's executor has observed of the failed run; it goes into the record of a
    /// crash that does not happen again.
    pub(crate) observed: FailedRun,
}

/// The result of submitting a [`Suspect`] (a run that did not pass) to a crash sink: its input was
/// stored, only its run was counted, or neither.
pub(crate) enum Submission {
    /// The input was stored, since its minor key (finer hash of crashes) is new in its group or it
    /// is smaller than the stored inputs: the new entry, and its crash record.
    Stored(EntryId, Box<Crash>),
    /// The run was counted in its group of crashes, but the input was not stored.
    Counted,
    /// Nothing was counted or stored: the run is no crash, or it did not crash again and the fuzzer
    /// did not tell how it had ended.
    Dropped,
}

/// Classifies suspects (runs that did not pass) and submits them to one crash sink. It remembers
/// which keys are stored, so that most suspects cost one run of the target and no request.
pub(crate) struct SuspectClassifier {
    triager: Triager,
    crash_exit: Option<i32>,
    /// Size limits in bytes, by kind, major key (hash that identifies a bug) and minor key (finer
    /// hash of crashes): an input with these keys is stored only if it is smaller than the limit.
    known: HashMap<(Kind, Key, Key), u64>,
    /// When the crash sink was last asked for the keys of the stored inputs; `None` before the
    /// first request.
    asked: Option<Instant>,
    steady_hangs: SteadyHangs,
}

impl SuspectClassifier {
    /// Creates a classifier of suspects (inputs whose runs did not pass), which runs them again on
    /// `target`, with the way of execution `way`.
    pub(crate) fn new(target: &Target, way: Way) -> Result<SuspectClassifier, CampaignError> {
        Ok(SuspectClassifier {
            triager: Triager::of_target(target, way)?,
            crash_exit: target.crash_exit,
            known: HashMap::new(),
            asked: None,
            steady_hangs: SteadyHangs::default(),
        })
    }

    /// Classifies a suspect (a run that did not pass) and submits it to the crash sink, unless its
    /// run is no failure. Locks the sink only for moments.
    pub(crate) fn submit<D: CrashSink>(
        &mut self,
        sink: &Mutex<D>,
        suspect: &Suspect<'_>,
    ) -> Result<Submission, CampaignError> {
        let size = suspect.input.len() as u64;
        let is_slow = |class: &Class| suspect.ended.is_some_and(|it| is_slow_crash(it, class));
        let run = self.triager.key_run(suspect.input)?;
        match run.quick() {
            Quick::Crash { class, .. } if is_slow(&class) => {}
            Quick::Crash {
                class,
                major,
                minor,
            } => {
                let kind = Kind::of_class(&class);
                if self.is_known(sink, (kind, major, minor), size)? {
                    lock(sink).count(kind, major, 1)?;
                    return Ok(Submission::Counted);
                }
            }
            Quick::Ended(_) => {
                let plain = |ended| is_plain_exit(ended, self.crash_exit);
                if suspect.ended.is_some_and(plain) {
                    return Ok(Submission::Dropped);
                }
            }
        }
        // The record of the run that had the new keys: another one may crash by another bug.
        let recorded = self.triager.record(run).map(Box::new);
        let recorded = match recorded.filter(|crash| !is_slow(&crash.class)) {
            Some(crash) => Some(crash),
            None => match self.triager.examine(suspect.input)? {
                Verdict::Crash(crash) if !is_slow(&crash.class) => Some(crash),
                Verdict::Crash(_) | Verdict::Flaky { .. } => None,
            },
        };
        let Some(mut crash) = recorded else {
            return self.submit_unclassified(sink, suspect);
        };
        let steady = &mut self.steady_hangs;
        steady.settle(&mut self.triager, suspect.input, &mut crash)?;
        self.submit_as(sink, Kind::of_class(&crash.class), crash, suspect)
    }

    /// Submits a suspect that did not fail again, or cannot be classified, to the crash sink as a
    /// flaky crash. Drops the suspect if the fuzzer does not tell how its run ended. Returns
    /// whether it was stored, only counted, or dropped.
    pub(crate) fn submit_unclassified<D: CrashSink>(
        &mut self,
        sink: &Mutex<D>,
        suspect: &Suspect<'_>,
    ) -> Result<Submission, CampaignError> {
        let Some(ended) = suspect.ended else {
            return Ok(Submission::Dropped);
        };
        let FailedRun {
            copies, preceding, ..
        } = &suspect.observed;
        let crash = flaky_record(
            &mut self.triager,
            ended,
            copies.as_deref(),
            preceding.clone(),
        );
        self.submit_as(sink, Kind::Flaky, Box::new(crash), suspect)
    }

    fn submit_as<D: CrashSink>(
        &mut self,
        sink: &Mutex<D>,
        kind: Kind,
        crash: Box<Crash>,
        suspect: &Suspect<'_>,
    ) -> Result<Submission, CampaignError> {
        let report = Report {
            kind,
            crash: &crash,
            input: suspect.input,
            run: suspect.run,
            name: suspect.name,
        };
        let stored = lock(sink).submit(&report)?;
        // Stored or not, no further input of this size is stored.
        let size = suspect.input.len() as u64;
        let key = (kind, crash.keys.major, crash.keys.minor);
        let least = self.known.entry(key).or_insert(size);
        *least = size.min(*least);
        Ok(match stored {
            Some(id) => Submission::Stored(id, crash),
            None => Submission::Counted,
        })
    }

    /// Checks whether a run that ended as `ended` says may be a crash, a hang or a memory blow-up,
    /// so that it is to be classified.
    pub(crate) fn suspects(&self, ended: Ended) -> bool {
        matches!(ended, Ended::Timeout | Ended::OutOfMemory) || self.triager.suspects(ended)
    }

    /// Returns true if an input of `size` bytes with the keys `key` is too large to be stored, so
    /// that its run is only counted. If the last request to the crash sink is more than a second
    /// old, first asks the sink for the present size limits of stored inputs, since a minimization
    /// may have changed them.
    fn is_known<D: CrashSink>(
        &mut self,
        sink: &Mutex<D>,
        key: (Kind, Key, Key),
        size: u64,
    ) -> Result<bool, CampaignError> {
        let recent = |asked: Instant| asked.elapsed() < KNOWN_EVERY;
        if !self.asked.is_some_and(recent) {
            for known in lock(sink).known()? {
                let key = (known.kind, known.major, known.minor);
                self.known.insert(key, known.least);
            }
            self.asked = Some(Instant::now());
        }
        let least = self.known.get(&key);
        Ok(least.is_some_and(|least| size >= *least))
    }
}

/// What an executor has observed of a run that crashed, hung or used too much memory.
#[derive(Clone, Default)]
pub struct FailedRun {
    /// How the failed run ended; `None` if no failed run is recorded.
    pub ended: Option<Ended>,
    /// Copies of registers, memory maps and stacks that the dying process has taken of itself;
    /// `None` if there are none.
    pub copies: Option<Arc<CrashSnapshots>>,
    /// Inputs that the process of the failed run had run before, oldest first.
    pub preceding: Vec<Base64>,
}

/// A slot that passes what was observed of a failed run from an executor to an objective. The
/// executor stores the last run that did not pass in the slot. The objective takes it from the slot
/// for the record of a crash that does not happen again. Clones share the slot.
#[derive(Clone, Default)]
pub struct FailedRunSlot(Arc<Mutex<FailedRun>>);

impl FailedRunSlot {
    /// Stores the observations of a failed run in this slot, in place of the observations of an
    /// earlier run.
    pub fn put(&self, run: FailedRun) {
        *lock(&self.0) = run;
    }

    /// Returns how the failed run in the slot ended; `None` if the slot is empty.
    pub(crate) fn ended(&self) -> Option<Ended> {
        lock(&self.0).ended
    }

    /// Replaces the crash snapshots of the failed run in the slot, which are valid only until the
    /// executor's next run, with copies that stay valid. Fails when there is no memory for the
    /// copies.
    pub(crate) fn keep_copies(&self) -> std::io::Result<()> {
        let mut failed = lock(&self.0);
        if let Some(copies) = &failed.copies {
            failed.copies = Some(Arc::new(copies.copy()?));
        }
        Ok(())
    }

    /// Removes the observations of the failed run from the slot, and returns them.
    pub(crate) fn take(&self) -> FailedRun {
        std::mem::take(&mut *lock(&self.0))
    }
}
