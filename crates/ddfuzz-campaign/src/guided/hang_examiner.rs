//! [`HangExaminer`]: examines on a separate thread whether the inputs that workers submit as hangs
//! do hang, and in which group they belong. Each examination takes several times the time limit.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, Sender, TryRecvError, bounded, unbounded};

use super::engine::GuidedEngine;
use super::messages::{HangVerdict, JudgedHang};
use crate::verdict::SteadyHangs;
use crate::{CampaignError, Phase, Report, lock};
use ddfuzz_exec::{Ended, ExecError, Signature, Target, Way};
use ddfuzz_store::{Kind, StoreError};
use ddfuzz_triage::{Crash, Key, Triager, Verdict};

/// Time for examining suspected hangs after fuzzing, if fuzzing has a time limit: the time limit
/// divided by the second value, but at least the first value.
const NAMING: (Duration, u32) = (Duration::from_secs(1), 5);
/// Time between two checks, after fuzzing, whether the examination of a suspected hang has ended.
const LOOK: Duration = Duration::from_millis(20);
/// Examinations of suspected hangs may take at most the fuzzing time of all workers together,
/// divided by this number; the first [`MAX_FREE`] hangs at new sites (places in the program) are
/// exempt.
const SHARE_DIVISOR: u32 = 32;
/// Limit on examinations of suspected hangs without a signature (hash of the looping code) after
/// fuzzing: a further examination begins only if all such examinations have taken less than the
/// fuzzing time of all workers divided by this number, or if there was none yet.
const INDISTINCT_DIVISOR: u32 = 8;
/// Number of suspected hangs at new sites in the program that are examined however long the
/// examinations take.
const MAX_FREE: u32 = 8;
/// When this many suspected hangs wait, a further one is queued only if it hangs at a new site in
/// the program. A hang at a known site is then not examined: it is counted as a run of the site's
/// group, or dropped if the group is not known yet.
const MAX_WAITING: usize = 64;
/// Greatest number of suspected hangs that wait to be examined. Further ones are not queued, even
/// if no run has hung at the same place in the program before.
const MAX_WAITING_FIRST: usize = 1024;
/// Greatest number of signatures (hashes of places in the program at which runs hang) that are
/// recorded; further ones are ignored.
const MAX_KNOWN: usize = 1 << 20;

/// An input whose run at a worker took too long; an examination is to show whether the input hangs.
#[derive(Clone)]
pub(super) struct SuspectedHang {
    /// Number of the worker that submitted the suspected hang, and the number that the worker gave
    /// the submission.
    pub(super) from: (usize, u64),
    /// Whether the suspected hang is at a new site in the program: no earlier hang had one of its
    /// signatures.
    pub(super) first: bool,
    pub(super) signatures: Vec<Signature>,
    pub(super) run: u64,
    pub(super) name: String,
    pub(super) input: Vec<u8>,
}

/// A suspected hang that was examined, with the result.
pub(super) struct ExaminedHang {
    suspect: SuspectedHang,
    /// Result of the examination of the suspected hang; `None` if the target could not be run, or
    /// the examining thread has panicked.
    verdict: Option<Verdict>,
}

/// Examines suspected hangs one after the other on a thread; holds the suspected hangs that wait,
/// and the signatures (hashes of the looping code) of known hangs.
pub(super) struct HangExaminer {
    target: Target,
    way: Way,
    /// Flag that ends the examinations: when the flag is true, runs of the current examination are
    /// abandoned.
    is_left: Arc<AtomicBool>,
    waiting: VecDeque<SuspectedHang>,
    /// The group of the hang with each known signature (hash of the looping code); `None` while a
    /// suspected hang with the signature waits or is being examined.
    known: HashMap<Signature, Option<(Kind, Key)>>,
    /// Runs that were stopped as hangs and wait to be counted, because the group of their hang is
    /// not known yet: each element is a signature (hash of the looping code) of the hang, and the
    /// number of runs.
    pending_counts: Vec<(Signature, u64)>,
    thread: Option<ExaminerThread>,
    /// The suspected hang that the examining thread works on, and since when; `None` if the thread
    /// is idle.
    busy: Option<(SuspectedHang, Instant)>,
    /// Wall time that all examinations of suspected hangs together have taken so far.
    spent: Duration,
    /// Number of suspected hangs so far at places in the program where none was seen before.
    first: u32,
    /// Wall time that examinations of suspected hangs without a signature (hash of the looping
    /// code) have taken so far; `None` before the first one.
    indistinct: Option<Duration>,
}

/// The thread that examines suspected hangs, with the channels to and from it.
struct ExaminerThread {
    tasks: Sender<SuspectedHang>,
    done: Receiver<ExaminedHang>,
    handle: JoinHandle<()>,
}

impl HangExaminer {
    /// Creates an examiner of suspected hangs of `target`, which is executed in the way `way`. Its
    /// thread starts with the first examination.
    pub(super) fn new(target: &Target, way: Way) -> HangExaminer {
        let is_left = Arc::new(AtomicBool::new(false));
        let left = Arc::clone(&is_left);
        let stopped = target.abandon_when.clone();
        HangExaminer {
            target: Target {
                abandon_when: stopped.or(move || left.load(Ordering::Relaxed)),
                ..target.clone()
            },
            is_left,
            way,
            waiting: VecDeque::new(),
            known: HashMap::new(),
            pending_counts: Vec::new(),
            thread: None,
            busy: None,
            spent: Duration::ZERO,
            first: 0,
            indistinct: None,
        }
    }

    /// Queues a suspected hang to be examined, and returns `None`. If too many wait already, drops
    /// the hang and returns its group, in which the caller counts the run; if the group is not
    /// known, returns `None`, and the run is not counted.
    pub(super) fn take(&mut self, mut suspect: SuspectedHang) -> Option<(Kind, Key)> {
        let known = self.known(&suspect.signatures);
        // Another worker may have submitted the same hang.
        suspect.first &= known.is_none();
        if self.waiting.len() >= MAX_WAITING && !suspect.first
            || self.waiting.len() >= MAX_WAITING_FIRST
        {
            return known.flatten();
        }
        if suspect.first && self.known.len() < MAX_KNOWN {
            self.first += 1;
            for signature in &suspect.signatures {
                self.known.insert(*signature, None);
            }
        }
        match suspect.first {
            true => self.waiting.push_front(suspect),
            false => self.waiting.push_back(suspect),
        }
        None
    }

    /// Looks for a known hang that has one of the given signatures (hashes of the code in which
    /// runs loop). Returns `None` if there is none, `Some(None)` if the hang still waits or is
    /// being examined, and otherwise its group: kind and major key.
    fn known(&self, signatures: &[Signature]) -> Option<Option<(Kind, Key)>> {
        let mut known = signatures.iter().filter_map(|one| self.known.get(one));
        known.next().copied()
    }

    /// Returns the group of the hang with these `signatures` (hashes of the looping code); the
    /// caller then counts `runs` runs in it. If the group is not known yet, returns `None`, and
    /// stores the number of runs in the examiner, to be counted when the group is known.
    pub(super) fn count(&mut self, signatures: &[Signature], runs: u64) -> Option<(Kind, Key)> {
        let group = self.known(signatures).flatten();
        if let (None, Some(signature)) = (group, signatures.first()) {
            self.pending_counts.push((*signature, runs));
        }
        group
    }

    /// Removes the stored counts of runs that were stopped as hangs with one of the `signatures`
    /// (hashes of the looping code), because the group of the hang is now known; returns the number
    /// of these runs.
    fn take_pending_counts(&mut self, signatures: &[Signature]) -> u64 {
        let of_it = |(signature, _): &mut (Signature, u64)| signatures.contains(signature);
        let taken = self.pending_counts.extract_if(.., of_it);
        taken.map(|(_, runs)| runs).sum()
    }

    /// Returns how many suspected hangs would still be examined if fuzzing ended now: the hang
    /// under examination, each waiting hang that is the first at its site (place in the program),
    /// and at most one waiting hang without a signature (hash of the looping code), if examinations
    /// of hangs without a signature have taken less than an eighth of `fuzzed`, the time that all
    /// workers together have fuzzed.
    pub(super) fn pending(&self, fuzzed: Duration) -> usize {
        let first = self.waiting.iter().filter(|suspect| suspect.first);
        let next = self.next_indistinct(fuzzed);
        first.count() + usize::from(self.busy.is_some()) + usize::from(next.is_some())
    }

    /// Returns the index, among the waiting suspected hangs, of the first one without a signature
    /// (hash of the looping code). Returns `None` if there is none, or if examinations of hangs
    /// without a signature have taken an eighth or more of `fuzzed`, the time that all workers
    /// together have fuzzed.
    fn next_indistinct(&self, fuzzed: Duration) -> Option<usize> {
        let has_time = (self.indistinct).is_none_or(|spent| spent < fuzzed / INDISTINCT_DIVISOR);
        let mut waiting = self.waiting.iter();
        let next = waiting.position(|suspect| !suspect.first && suspect.signatures.is_empty());
        next.filter(|_| has_time)
    }

    /// Returns the result of examining a suspected hang (an input whose run was stopped because it
    /// took too long), if an examination has finished. Otherwise returns `None`, and begins the
    /// next examination if there is time for it. `fuzzed`: time that all workers together have
    /// fuzzed. `is_over`: whether fuzzing has ended; then only hangs at new places in the program,
    /// and some without a signature (hash of the code in which a run loops), are examined.
    pub(super) fn poll(&mut self, fuzzed: Duration, is_over: bool) -> Option<ExaminedHang> {
        if let Some(done) = self.take_done() {
            self.learn(&done);
            return Some(done);
        }
        let first = self.waiting.front().is_some_and(|next| next.first);
        let next = match is_over {
            _ if self.busy.is_some() => None,
            true if first => Some(0),
            true => self.next_indistinct(fuzzed),
            false => {
                let is_free = first && self.first <= MAX_FREE;
                (is_free || self.spent < fuzzed / SHARE_DIVISOR).then_some(0)
            }
        };
        if let Some(suspect) = next.and_then(|at| self.waiting.remove(at)) {
            self.begin(suspect);
        }
        None
    }

    /// Ends the examinations: abandons the current one, and removes and returns the suspected hangs
    /// that have no verdict, each with its group if the group is known. Of several hangs at one
    /// site (place in the program) whose group is unknown, returns only one.
    pub(super) fn take_rest(&mut self) -> Vec<(SuspectedHang, Option<(Kind, Key)>)> {
        self.is_left.store(true, Ordering::Relaxed);
        let busy = self.busy.take().map(|(suspect, _)| suspect);
        let rest: Vec<SuspectedHang> = busy.into_iter().chain(self.waiting.drain(..)).collect();
        let with_group = rest.into_iter().map(|suspect| {
            let group = self.known(&suspect.signatures).flatten();
            (suspect, group)
        });
        with_group
            .filter(|(suspect, group)| {
                group.is_some() || suspect.first || suspect.signatures.is_empty()
            })
            .collect()
    }

    /// Ends the examining thread and drops the signatures (hashes of the looping code) of all known
    /// hangs, since the program was rebuilt. Suspected hangs that wait stay in the queue, and are
    /// examined with the new build. Returns the last examination if the thread has finished it;
    /// otherwise `None`.
    pub(super) fn reset(&mut self) -> Option<ExaminedHang> {
        let thread = self.thread.take();
        self.known.clear();
        self.pending_counts.clear();
        self.busy = None;
        let ExaminerThread {
            tasks,
            done,
            handle,
        } = thread?;
        drop(tasks);
        // A panic of the thread was printed already.
        let _ = handle.join();
        done.try_recv().ok()
    }

    /// Takes the examination that the thread has finished, or, if the thread has panicked, the
    /// examination without a verdict; `None` if the thread is idle or still examines.
    fn take_done(&mut self) -> Option<ExaminedHang> {
        let done = match self.thread.as_ref()?.done.try_recv() {
            Ok(done) => Some(done),
            Err(TryRecvError::Empty) => return None,
            // The thread has panicked.
            Err(TryRecvError::Disconnected) => {
                self.thread = None;
                None
            }
        };
        let (suspect, began) = self.busy.take()?;
        self.spent += began.elapsed();
        if suspect.signatures.is_empty() {
            *self.indistinct.get_or_insert_default() += began.elapsed();
        }
        let verdict = None;
        Some(done.unwrap_or(ExaminedHang { suspect, verdict }))
    }

    /// Records the group of the examined hang `done` for each of its signatures (hashes of the
    /// looping code). If the examination found no group, the signatures are forgotten instead, so
    /// that the next suspected hang that has one of them is examined.
    fn learn(&mut self, done: &ExaminedHang) {
        let group = match &done.verdict {
            Some(Verdict::Crash(crash)) => Some((Kind::of_class(&crash.class), crash.keys.major)),
            _ => None,
        };
        for signature in &done.suspect.signatures {
            match (group, self.known.get(signature)) {
                (Some(_), _) => drop(self.known.insert(*signature, group)),
                // The group stays unknown, so the next suspect with it is examined.
                (None, Some(None)) => drop(self.known.remove(signature)),
                (None, _) => {}
            }
        }
    }

    /// Sends the suspected hang `suspect` to the examining thread, which is started if it does not
    /// run.
    fn begin(&mut self, suspect: SuspectedHang) {
        let (target, way) = (&self.target, self.way);
        let thread = self
            .thread
            .get_or_insert_with(|| ExaminerThread::begin(target.clone(), way));
        match thread.tasks.send(suspect.clone()) {
            Ok(()) => self.busy = Some((suspect, Instant::now())),
            // The thread has panicked; the next call starts another one.
            Err(_) => {
                self.waiting.push_front(suspect);
                self.thread = None;
            }
        }
    }
}

impl ExaminerThread {
    fn begin(target: Target, way: Way) -> ExaminerThread {
        let (tasks, taken) = bounded::<SuspectedHang>(1);
        let (tell, done) = unbounded();
        let handle = std::thread::spawn(move || {
            let (mut triager, mut steady) = (None, SteadyHangs::default());
            for suspect in taken {
                let verdict = examine((&mut triager, &mut steady), &target, way, &suspect.input);
                let verdict = verdict.ok();
                if tell.send(ExaminedHang { suspect, verdict }).is_err() {
                    return;
                }
            }
        });
        ExaminerThread {
            tasks,
            done,
            handle,
        }
    }
}

/// Examines, on the examining thread, whether `input` hangs and where in the program, and returns
/// the verdict. The first call creates `triager`. A hang is run a second time unless its group is
/// in `steady` (groups of hangs whose second run hung at the same place).
fn examine(
    (triager, steady): (&mut Option<Triager>, &mut SteadyHangs),
    target: &Target,
    way: Way,
    input: &[u8],
) -> Result<Verdict, ExecError> {
    let triager = match triager {
        Some(triager) => triager,
        none => none.insert(Triager::of_target(target, way)?),
    };
    let mut verdict = triager.examine(input)?;
    if let Verdict::Crash(crash) = &mut verdict {
        steady.settle(triager, input, crash)?;
    }
    Ok(verdict)
}

impl GuidedEngine<'_> {
    /// Stores the result of an examination of a suspected hang that has finished; if none has,
    /// begins the next examination if there is time for it.
    pub(super) fn examine(&mut self) -> Result<(), StoreError> {
        match (self.examiner).poll(self.fuzzed_by_all(), self.ended.is_some()) {
            Some(examined) => self.take_examined(examined),
            None => Ok(()),
        }
    }

    /// Examines, after fuzzing, the suspected hangs at new sites in the program and some of those
    /// without a signature, until none is left or the user stops; if fuzzing has a time limit, for
    /// a fifth of that time at most, but for up to 1 s in any case ([`NAMING`]). Then counts the
    /// remaining hangs in their groups, and stores those without a known group as flaky crashes.
    pub(super) fn examine_rest(&mut self) -> Result<(), CampaignError> {
        let (fuzzed, began) = (self.fuzzed_by_all(), Instant::now());
        let time = self.settings.time.map(|time| NAMING.0.max(time / NAMING.1));
        let in_time = || time.is_none_or(|time| began.elapsed() < time);
        while self.examiner.pending(fuzzed) > 0 && !self.session.stopped() && in_time() {
            match self.examine().map_err(CampaignError::from) {
                Err(error) if self.session.gives_up(&error) => self.unstored += 1,
                examined => examined?,
            }
            self.phase = Phase::Naming {
                left: self.examiner.pending(fuzzed) as u64,
            };
            self.session.screen.progress(&self.progress());
            std::thread::sleep(LOOK);
        }
        for (suspect, group) in self.examiner.take_rest() {
            match self
                .count_or_store(&suspect, group)
                .map_err(CampaignError::from)
            {
                Err(error) if self.session.gives_up(&error) => self.unstored += 1,
                filed => {
                    filed?;
                    self.unnamed += u64::from(group.is_none());
                }
            }
        }
        Ok(())
    }

    /// Returns the time that all workers together have fuzzed in this call of ddfuzz.
    pub(super) fn fuzzed_by_all(&self) -> Duration {
        let workers = u32::try_from(self.settings.jobs.max(1)).unwrap_or(u32::MAX);
        self.fuzzed().saturating_mul(workers)
    }

    /// Stores an examined hang in its group, counts the runs that waited for the group to be known,
    /// and records the verdict, which the workers get with their next heartbeats.
    pub(super) fn take_examined(&mut self, examined: ExaminedHang) -> Result<(), StoreError> {
        let ExaminedHang { suspect, verdict } = examined;
        let verdict = match verdict {
            Some(Verdict::Crash(crash)) => {
                let kind = Kind::of_class(&crash.class);
                self.store_suspect(kind, &crash, &suspect)?;
                let pending_counts = self.examiner.take_pending_counts(&suspect.signatures);
                if pending_counts > 0 {
                    self.count(kind, crash.keys.major, pending_counts)?;
                }
                HangVerdict::Of(kind, crash.keys.major)
            }
            Some(Verdict::Flaky { .. }) => {
                self.add_to_corpus(&suspect)?;
                HangVerdict::Ends
            }
            None => {
                self.store_unexamined(&suspect)?;
                HangVerdict::Unknown
            }
        };
        self.judged.push(JudgedHang {
            from: suspect.from,
            signatures: suspect.signatures,
            size: suspect.input.len(),
            verdict,
        });
        Ok(())
    }

    /// Adds a suspected hang whose run has ended by itself to the corpus of the output directory,
    /// if it was the first at its site (place in the program) and fuzzing is over. During fuzzing,
    /// the worker that submitted it gets the verdict and runs it again.
    fn add_to_corpus(&mut self, suspect: &SuspectedHang) -> Result<(), StoreError> {
        match suspect.first && self.is_over() {
            true => lock(self.session.store)
                .add_to_corpus(&suspect.input)
                .map(drop),
            false => Ok(()),
        }
    }

    /// Ends the work on a suspected hang that is not examined: counts its run in `group`, or stores
    /// its input as a flaky crash if its group is not known.
    pub(super) fn count_or_store(
        &mut self,
        suspect: &SuspectedHang,
        group: Option<(Kind, Key)>,
    ) -> Result<(), StoreError> {
        match group {
            Some((kind, major)) => self.count(kind, major, 1),
            None => self.store_unexamined(suspect),
        }
    }

    /// Stores a suspected hang that was not examined as a flaky crash, so that it is not lost; does
    /// nothing if the program cannot be found any more.
    fn store_unexamined(&mut self, suspect: &SuspectedHang) -> Result<(), StoreError> {
        let minimizing = &self.settings.minimizing;
        // Without the program no record of the run can be made.
        match Triager::of_target(&minimizing.target, minimizing.way) {
            Ok(triager) => self.store_suspect(
                Kind::Flaky,
                &triager.untraced_record(Ended::Timeout),
                suspect,
            ),
            Err(error) => {
                self.tell(format!("a suspected hang is not stored: {error}"));
                Ok(())
            }
        }
    }

    fn store_suspect(
        &mut self,
        kind: Kind,
        crash: &Crash,
        suspect: &SuspectedHang,
    ) -> Result<(), StoreError> {
        let report = Report {
            kind,
            crash,
            input: &suspect.input,
            run: suspect.run,
            name: &suspect.name,
        };
        loop {
            let taken = self.store(&report);
            if !self.session.waits_for_space(&taken) {
                return taken.map(drop);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ddfuzz_exec::Program;

    #[test]
    fn a_hang_without_a_signature_is_examined_after_fuzzing_too() {
        let target = Target::new(Program::Path("loops".into()));
        let mut examiner = HangExaminer::new(&target, Way::Inject);
        let suspect = SuspectedHang {
            from: (1, 1),
            first: false,
            signatures: Vec::new(),
            run: 7,
            name: String::new(),
            input: b"l".to_vec(),
        };
        assert_eq!(examiner.take(suspect.clone()), None);
        assert_eq!(examiner.pending(Duration::ZERO), 1);
        // What is being examined is waited for.
        examiner.busy = Some((suspect, Instant::now()));
        assert_eq!(examiner.pending(Duration::ZERO), 2);
        examiner.busy = None;
        // Further ones only while they take a small part of the time.
        examiner.indistinct = Some(Duration::from_secs(3));
        assert_eq!(examiner.pending(Duration::from_secs(8)), 0);
        assert_eq!(examiner.pending(Duration::from_secs(60)), 1);
    }
}
