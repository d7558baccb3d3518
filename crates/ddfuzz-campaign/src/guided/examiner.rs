//! Finds out beside the fuzzing whether what workers hand in hangs, and where: each such run takes
//! the whole limit, and more.

use std::collections::{HashMap, VecDeque};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, Sender, TryRecvError, bounded, unbounded};

use super::engine::GuidedEngine;
use super::wire::{HangVerdict, JudgedHang};
use crate::Report;
use crate::ledger::lock;
use ddfuzz_exec::{Ended, ExecError, Signature, Target, Way};
use ddfuzz_store::{Kind, StoreError};
use ddfuzz_triage::{Crash, Key, Triager, Verdict};

/// The part of the fuzzing's time that examining may take, where it is not of the first hangs: one
/// of so many.
const SHARE: u32 = 32;
/// How many that hang at a new place are examined at any cost.
const FREE: u32 = 8;
/// How many wait at most; others are only counted, where their groups are known.
const MOST_WAITING: usize = 64;
/// The same where none has hung before.
const MOST_FIRST: usize = 1024;
/// Signatures that are remembered.
const MOST_KNOWN: usize = 1 << 20;

/// An input whose run took too long.
#[derive(Clone)]
pub(super) struct SuspectedHang {
    /// The worker that has handed it in, and the number that it has there.
    pub(super) from: (usize, u64),
    /// Whether it hung where none has before, as far as that worker knows.
    pub(super) first: bool,
    pub(super) signatures: Vec<Signature>,
    pub(super) run: u64,
    pub(super) name: String,
    pub(super) input: Vec<u8>,
}

/// A suspect that was examined; `None`: the target could not be run.
pub(super) struct ExaminedHang {
    suspect: SuspectedHang,
    verdict: Option<Verdict>,
}

/// The thread that examines, and what waits for it.
pub(super) struct HangExaminer {
    target: Target,
    way: Way,
    waiting: VecDeque<SuspectedHang>,
    /// Which group has hangs of this signature; `None` while that is being found out.
    known: HashMap<Signature, Option<(Kind, Key)>>,
    /// Runs of workers that have ended, to be counted when it is found out.
    uncounted: Vec<(Signature, u64)>,
    thread: Option<ExaminerThread>,
    /// What the thread is busy with, if it is, and since when.
    busy: Option<(SuspectedHang, Instant)>,
    /// How long it was busy, and how many hung where none had before.
    spent: Duration,
    first: u32,
}

struct ExaminerThread {
    tasks: Sender<SuspectedHang>,
    done: Receiver<ExaminedHang>,
    handle: JoinHandle<()>,
}

impl HangExaminer {
    /// An examiner for runs of `target` by `way`, which starts with the first suspect.
    pub(super) fn new(target: &Target, way: Way) -> HangExaminer {
        HangExaminer {
            target: target.clone(),
            way,
            waiting: VecDeque::new(),
            known: HashMap::new(),
            uncounted: Vec::new(),
            thread: None,
            busy: None,
            spent: Duration::ZERO,
            first: 0,
        }
    }

    /// Takes a suspect; gives the group that it is to be counted in, where it is not examined.
    pub(super) fn take(&mut self, mut suspect: SuspectedHang) -> Option<(Kind, Key)> {
        let known = self.known(&suspect.signatures);
        // Another worker may have met the same.
        suspect.first &= known.is_none();
        if self.waiting.len() >= MOST_WAITING && !suspect.first || self.waiting.len() >= MOST_FIRST
        {
            return known.flatten();
        }
        if suspect.first && self.known.len() < MOST_KNOWN {
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

    /// What is known of one of these signatures.
    fn known(&self, signatures: &[Signature]) -> Option<Option<(Kind, Key)>> {
        let mut known = signatures.iter().filter_map(|one| self.known.get(one));
        known.next().copied()
    }

    /// The group in which runs with these signatures are to be counted; where that is being found
    /// out, they are counted with it.
    pub(super) fn count(&mut self, signatures: &[Signature], runs: u64) -> Option<(Kind, Key)> {
        let group = self.known(signatures).flatten();
        if let (None, Some(signature)) = (group, signatures.first()) {
            self.uncounted.push((*signature, runs));
        }
        group
    }

    /// Takes the runs that are to be counted in the group of these signatures.
    fn take_uncounted(&mut self, signatures: &[Signature]) -> u64 {
        let of_it = |(signature, _): &mut (Signature, u64)| signatures.contains(signature);
        let taken = self.uncounted.extract_if(.., of_it);
        taken.map(|(_, runs)| runs).sum()
    }

    /// How many hang where none has before, and are not examined yet.
    pub(super) fn pending(&self) -> usize {
        let waiting = self.waiting.iter().filter(|suspect| suspect.first);
        let busy = self.busy.iter().filter(|(suspect, _)| suspect.first);
        waiting.count() + busy.count()
    }

    /// Goes on, where there is time for that; gives what is done. `fuzzed`: how long all workers
    /// together have fuzzed; `None` after the fuzzing: only hangs are examined then
    /// that are the first of theirs.
    pub(super) fn go_on(&mut self, fuzzed: Option<Duration>) -> Option<ExaminedHang> {
        if let Some(done) = self.take_done() {
            self.learn(&done);
            return Some(done);
        }
        let first = self.waiting.front().is_some_and(|next| next.first);
        let goes_on = match fuzzed {
            Some(fuzzed) => first && self.first <= FREE || self.spent < fuzzed / SHARE,
            None => first,
        };
        if self.busy.is_none() && goes_on {
            self.begin_next();
        }
        None
    }

    /// Takes away what is not examined, each with the group that it is to be counted in: all
    /// but those that are the first of theirs, or of whom nothing is known, hang where others do.
    pub(super) fn take_rest(&mut self) -> Vec<(SuspectedHang, Option<(Kind, Key)>)> {
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

    /// Ends the thread, and forgets what another build of the program makes wrong. What waits is
    /// examined on that build.
    pub(super) fn reset(&mut self) -> Option<ExaminedHang> {
        let thread = self.thread.take();
        self.known.clear();
        self.uncounted.clear();
        self.busy = None;
        let ExaminerThread {
            tasks,
            done,
            handle,
        } = thread?;
        drop(tasks);
        // A thread that has panicked has nothing to say.
        let _ = handle.join();
        done.try_recv().ok()
    }

    /// What the thread has done, if it has.
    fn take_done(&mut self) -> Option<ExaminedHang> {
        let done = match self.thread.as_ref()?.done.try_recv() {
            Ok(done) => Some(done),
            Err(TryRecvError::Empty) => return None,
            // It has panicked.
            Err(TryRecvError::Disconnected) => {
                self.thread = None;
                None
            }
        };
        let (suspect, began) = self.busy.take()?;
        self.spent += began.elapsed();
        let verdict = None;
        Some(done.unwrap_or(ExaminedHang { suspect, verdict }))
    }

    fn learn(&mut self, done: &ExaminedHang) {
        let group = match &done.verdict {
            Some(Verdict::Crash(crash)) => Some((Kind::of_class(&crash.class), crash.keys.major)),
            _ => None,
        };
        for signature in &done.suspect.signatures {
            match (group, self.known.get(signature)) {
                (Some(_), _) => drop(self.known.insert(*signature, group)),
                // It is not known what hangs there: the next one is examined, too.
                (None, Some(None)) => drop(self.known.remove(signature)),
                (None, _) => {}
            }
        }
    }

    fn begin_next(&mut self) {
        let Some(suspect) = self.waiting.pop_front() else {
            return;
        };
        let (target, way) = (&self.target, self.way);
        let thread = self
            .thread
            .get_or_insert_with(|| ExaminerThread::begin(target.clone(), way));
        match thread.tasks.send(suspect.clone()) {
            Ok(()) => self.busy = Some((suspect, Instant::now())),
            // It has panicked: another one takes what comes next.
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
            let mut triager = None;
            for suspect in taken {
                let verdict = examine(&mut triager, &target, way, &suspect.input).ok();
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

fn examine(
    triager: &mut Option<Triager>,
    target: &Target,
    way: Way,
    input: &[u8],
) -> Result<Verdict, ExecError> {
    let triager = match triager {
        Some(triager) => triager,
        none => none.insert(Triager::of_target(target, way)?),
    };
    triager.examine(input)
}

impl GuidedEngine<'_> {
    /// Goes on with examining, and files what was found.
    pub(super) fn examine(&mut self) -> Result<(), StoreError> {
        let workers = u32::try_from(self.settings.jobs.max(1)).unwrap_or(u32::MAX);
        let fuzzed = self.fuzzed().saturating_mul(workers);
        match self.examiner.go_on(self.ended.is_none().then_some(fuzzed)) {
            Some(examined) => self.take_examined(examined),
            None => Ok(()),
        }
    }

    /// Files what was found out about a suspect, and lets the workers know.
    pub(super) fn take_examined(&mut self, examined: ExaminedHang) -> Result<(), StoreError> {
        let ExaminedHang { suspect, verdict } = examined;
        let verdict = match verdict {
            Some(Verdict::Crash(crash)) => {
                let kind = Kind::of_class(&crash.class);
                self.file(kind, &crash, &suspect)?;
                let uncounted = self.examiner.take_uncounted(&suspect.signatures);
                if uncounted > 0 {
                    self.count(kind, crash.keys.major, uncounted)?;
                }
                HangVerdict::Of(kind, crash.keys.major)
            }
            Some(Verdict::Flaky { .. }) => {
                self.keep(&suspect)?;
                HangVerdict::Ends
            }
            None => {
                self.file_unexamined(&suspect)?;
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

    /// Keeps in the corpus what ends by itself after all, where no worker receives the verdict any
    /// more: the next call sees what it reaches.
    fn keep(&mut self, suspect: &SuspectedHang) -> Result<(), StoreError> {
        match suspect.first && self.is_over() {
            true => lock(self.session.store)
                .add_to_corpus(&suspect.input)
                .map(drop),
            false => Ok(()),
        }
    }

    /// Counts, or stores, a suspect that was not examined.
    pub(super) fn leave(
        &mut self,
        suspect: &SuspectedHang,
        group: Option<(Kind, Key)>,
    ) -> Result<(), StoreError> {
        match group {
            Some((kind, major)) => self.count(kind, major, 1),
            None => self.file_unexamined(suspect),
        }
    }

    /// Files a suspect that there was no time to examine, or that could not be: as what was seen
    /// once, so that nothing is lost.
    fn file_unexamined(&mut self, suspect: &SuspectedHang) -> Result<(), StoreError> {
        let minimizing = &self.settings.minimizing;
        // Without the program there is no record of the run.
        match Triager::of_target(&minimizing.target, minimizing.way) {
            Ok(triager) => self.file(
                Kind::Flaky,
                &triager.untraced_record(Ended::Timeout),
                suspect,
            ),
            Err(_) => Ok(()),
        }
    }

    fn file(
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
            let taken = self.take_in(&report);
            if !self.session.waits_for_room(&taken) {
                return taken.map(drop);
            }
        }
    }
}
