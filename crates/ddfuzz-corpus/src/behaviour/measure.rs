//! Measures how a target behaves on the inputs of a corpus: runs each several times, and records
//! the behaviours in a journal.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Behaviour, Observed, Output, Stacks, behaviour};
use ddfuzz_campaign::CampaignError;
use ddfuzz_exec::{ExecError, Target, TimeLimit, Traceable, Way, Written};
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_model::files::{FileError, Journal, Position, regular};
use ddfuzz_model::pool::{TaskPool, Worker, lock};
use ddfuzz_triage::input_reads::{ReadStacks, Reads};

/// Number of inputs whose behaviour is measured together as a batch: each of them is run once
/// before any of them is run a second time.
const TOGETHER: usize = 4096;
/// Least time between an input's first and second run, so that a program that prints the time in
/// seconds does not print the same time in both.
const APART: Duration = Duration::from_millis(1100);
/// Time between two checks of the user's stop flag while waiting for the next runs.
const GLANCE: Duration = Duration::from_millis(20);

/// The target whose behaviour is measured, and how it is run.
#[derive(Clone, Debug)]
pub struct BehaviourSettings {
    /// The program whose behaviour on the inputs of a corpus is measured, with its arguments and
    /// limits.
    pub target: Target,
    /// Way of execution: `harness` calls the target's entry function and records no reads; all
    /// others run `main`. Each run has a process of its own. For the first run of an input, the
    /// program is executed anew; for the traced runs, the process is forked from the loaded target
    /// by the ways `inject`, `snapshot` and `harness`, where the target permits that.
    pub way: Way,
    /// Number of threads that run inputs to measure the target's behaviour; it changes no result.
    pub jobs: usize,
}

/// An input of a corpus whose behaviour is measured: its file, hash and size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorpusInput {
    /// Path of the file from which the input is read when its behaviour is measured.
    pub path: PathBuf,
    /// Hash of the input's content.
    pub content: ContentHash,
    /// Length of the input, in bytes.
    pub size: u64,
}

/// Result of measuring how the target behaves on one input: its behaviour, or that the input's file
/// was removed or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measured {
    /// How the target behaves on the input over its runs, of which there are three, or fewer if a
    /// run fails, which is then the last one.
    Behaves(Box<Behaviour>),
    /// The target's behaviour on the input was not measured, since the input's file was removed or
    /// changed.
    Gone,
}

/// Measures how the target behaves on those of `subjects` (inputs) that are not in the journal, and
/// calls `told` with the result for each input of `subjects`, in order. Each run has a separate
/// process. Results depend on the content and the target only.
///
/// Returns true if all inputs were measured, and false if the user stopped the measuring.
///
/// # Errors
/// When the target cannot be run, or the journal cannot be written (it keeps earlier results), and
/// errors of `told`.
pub fn measure(
    subjects: impl IntoIterator<Item = CorpusInput>,
    settings: &BehaviourSettings,
    journal: &mut BehaviourJournal,
    stop: &AtomicBool,
    mut told: impl FnMut(&CorpusInput, Measured) -> Result<(), CampaignError>,
) -> Result<bool, CampaignError> {
    let mut runners: Vec<BehaviourRunner> = Vec::new();
    let mut subjects = subjects.into_iter();
    loop {
        let together: Vec<CorpusInput> = subjects.by_ref().take(TOGETHER).collect();
        if together.is_empty() {
            return Ok(true);
        }
        let unknown = together.iter().filter(|one| !journal.has(one.content));
        let batch = Batch::of(unknown.cloned().collect());
        if !batch.subjects.is_empty() {
            while runners.len() < settings.jobs.clamp(1, batch.subjects.len()) {
                runners.push(BehaviourRunner::new(&settings.target, settings.way)?);
            }
            batch.run_all(&mut runners, stop)?;
        }
        let stopped = stop.load(Ordering::Relaxed);
        let mut found = batch.finish().into_iter().peekable();
        for subject in &together {
            let own = found.next_if(|(one, _)| one.content == subject.content);
            let measured = match own {
                Some((_, measured)) => measured,
                None => journal
                    .get(subject.content)?
                    .map(Box::new)
                    .map(Measured::Behaves),
            };
            // The input was not measured before the user stopped.
            let Some(measured) = measured else { continue };
            if let (Measured::Behaves(of), false) = (&measured, journal.has(subject.content)) {
                journal.add(subject.content, of)?;
            }
            told(subject, measured)?;
        }
        journal.sync()?;
        if stopped {
            return Ok(false);
        }
    }
}

/// What is known of one input so far while the target's behaviour on it is measured: the runs made,
/// or that the input's file was removed or changed.
enum InputState {
    /// The runs of the input that were made so far, oldest first, at most three; each with what it
    /// showed.
    Runs(Vec<Observed>),
    /// The input cannot be run, since its file was removed or changed.
    Gone,
}

impl InputState {
    /// Returns true if the input needs no more runs: three were made, one failed, or the file is
    /// gone.
    fn is_done(&self) -> bool {
        match self {
            InputState::Gone => true,
            // A failing run decides, whatever else the target does.
            InputState::Runs(runs) => {
                runs.len() == Round::ALL.len()
                    || runs.last().is_some_and(|run| !run.ended.is_exit())
            }
        }
    }

    /// Returns the measured behaviour of the target on the input, or that the input's file is gone;
    /// `None` if the input needs more runs.
    fn measured(&self) -> Option<Measured> {
        match self {
            InputState::Gone => Some(Measured::Gone),
            InputState::Runs(runs) => {
                (self.is_done()).then(|| Measured::Behaves(Box::new(behaviour(runs))))
            }
        }
    }
}

/// A batch of inputs whose behaviour is measured: each of them is run once before any of them is
/// run a second time.
struct Batch {
    subjects: Vec<CorpusInput>,
    slots: Mutex<Vec<InputState>>,
}

impl Batch {
    fn of(subjects: Vec<CorpusInput>) -> Batch {
        let slots = subjects
            .iter()
            .map(|_| InputState::Runs(Vec::new()))
            .collect();
        Batch {
            slots: Mutex::new(slots),
            subjects,
        }
    }

    fn run_all(
        &self,
        runners: &mut [BehaviourRunner],
        stop: &AtomicBool,
    ) -> Result<(), CampaignError> {
        let began = Instant::now();
        for (at, round) in Round::ALL.into_iter().enumerate() {
            while at > 0 && began.elapsed() < APART && !stop.load(Ordering::Relaxed) {
                std::thread::sleep(GLANCE);
            }
            self.run_round(round, runners, stop)?;
        }
        Ok(())
    }

    /// Makes one of the three runs (`round`) of each input of the batch that needs more runs, and
    /// stores what the runs show. Each of `runners` works on a thread of its own.
    fn run_round(
        &self,
        round: Round,
        runners: &mut [BehaviourRunner],
        stop: &AtomicBool,
    ) -> Result<(), ExecError> {
        let goes_on = || !stop.load(Ordering::Relaxed);
        let pool = TaskPool::new(runners.len(), &goes_on);
        let runners = Mutex::new(runners.iter_mut());
        let work = |worker: &Worker<'_, _, (), ExecError>| {
            let Some(runner) = lock(&runners).next() else {
                return Ok(());
            };
            while let Some((at, subject)) = worker.next_task() {
                self.run(at, subject, round, runner, stop)?;
            }
            Ok(())
        };
        pool.run(self.subjects.iter().enumerate(), work, |failed| {
            failed.unwrap_or(Ok(()))
        })
    }

    fn run(
        &self,
        at: usize,
        subject: &CorpusInput,
        round: Round,
        runner: &mut BehaviourRunner,
        stop: &AtomicBool,
    ) -> Result<(), ExecError> {
        if lock(&self.slots)[at].is_done() {
            return Ok(());
        }
        let bytes = regular::read(&subject.path, subject.size).ok();
        let bytes = bytes.filter(|bytes| ContentHash::of(bytes) == subject.content);
        let observed = bytes.map(|bytes| runner.run(&bytes, round));
        // The user's Ctrl-C may have killed the target, too.
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let observed = observed.transpose()?;
        let slot = &mut lock(&self.slots)[at];
        match (slot, observed) {
            (InputState::Runs(runs), Some(observed)) => runs.push(observed),
            (slot, _) => *slot = InputState::Gone,
        }
        Ok(())
    }

    /// Returns each input of the batch with the measured behaviour of the target on it; `None` for
    /// an input that still needs runs, because the user stopped the measuring.
    fn finish(self) -> Vec<(CorpusInput, Option<Measured>)> {
        let slots = self.slots.into_inner();
        let slots = slots.unwrap_or_else(PoisonError::into_inner);
        let measured = slots.iter().map(InputState::measured);
        self.subjects.into_iter().zip(measured).collect()
    }
}

/// How one of the three runs of each input is made: without a tracer at random addresses, or under
/// a tracer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// The run has no tracer, and randomized addresses.
    Randomized,
    /// The run is traced: the call stacks of its reads are recorded, and its time limit is longer.
    Watched,
}

impl Round {
    /// The three runs of each input. The first has the normal time limit and finds hangs; its
    /// randomized addresses show output that depends on addresses. The traced runs record stacks
    /// relative to modules, which do not depend on addresses.
    pub(super) const ALL: [Round; 3] = [Round::Randomized, Round::Watched, Round::Watched];
}

/// Runs a target on single inputs, captures its output, and traces how it reads the input.
pub(super) struct BehaviourRunner {
    target: Traceable,
    /// Repeats a run under a tracer that records the call stack at each `read` of the input. `None`
    /// if the target gets its input in memory and does not read it.
    reads: Option<ReadStacks>,
    /// Time limit of the runs without a tracer. The field `patient` is the limit of the traced
    /// runs, which is longer, since tracing slows them down.
    time: TimeLimit,
    patient: TimeLimit,
}

/// CPU time that a run under a tracer gets in addition to twice the normal limit, because the
/// tracer stops and continues it often.
const MORE_CPU: Duration = Duration::from_secs(1);
const MORE_WALL: Duration = Duration::from_secs(5);

impl BehaviourRunner {
    /// Prepares a target for runs whose output is captured, and whose reads can be traced.
    ///
    /// # Errors
    /// When the program is missing or cannot be executed.
    pub(super) fn new(target: &Target, way: Way) -> Result<BehaviourRunner, ExecError> {
        let time = TimeLimit::from(target.limits);
        let double = time.times(2);
        Ok(BehaviourRunner {
            time,
            patient: TimeLimit {
                cpu: double.cpu.saturating_add(MORE_CPU),
                wall: double.wall.saturating_add(MORE_WALL),
            },
            target: Traceable::listening(target, way)?,
            reads: (way != Way::Harness).then(ReadStacks::default),
        })
    }

    /// Runs the target once on an input, traced or not as `round` says, and returns what it did.
    pub(super) fn run(&mut self, input: &[u8], round: Round) -> Result<Observed, ExecError> {
        let asks = round == Round::Watched;
        (self.target).limit_time(if asks { self.patient } else { self.time });
        let mut run = self.target.start(input, !asks)?;
        let (ended, reads) = match self.reads.as_mut().filter(|_| asks) {
            Some(watched) => watched.follow(&mut run)?,
            None => {
                run.release()?;
                (run.wait_for_run()?, None)
            }
        };
        let stacks = match asks {
            true => Stacks::Asked(reads.map(|reads| hash(&reads))),
            false => Stacks::NotAsked,
        };
        let written = run.written();
        Ok(Observed {
            ended: ended.ended,
            stdout: written.map(|(stdout, _)| output(stdout)),
            stderr: written.map(|(_, stderr)| output(stderr)),
            read: ended.read,
            stacks,
        })
    }
}

fn output(written: Written) -> Output {
    Output {
        bytes: written.bytes,
        hash: ContentHash::from_bytes(written.hash),
    }
}

/// Returns one hash of all call stacks from which a run read its input, in the order of the reads.
fn hash(reads: &Reads) -> ContentHash {
    let mut text = Vec::new();
    for stack in &reads.stacks {
        for (module, offset) in stack {
            text.extend((module.len() as u64).to_le_bytes());
            text.extend(module.as_bytes());
            text.extend(offset.to_le_bytes());
        }
        // Separates stacks: no module's name is so long.
        text.extend(u64::MAX.to_le_bytes());
    }
    ContentHash::of(&text)
}

/// A line of the journal of behaviours: how a target behaves on one content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    /// Version of the format of the journal's lines.
    v: u32,
    /// Identity of the target: program, arguments, environment and limits.
    target: ContentHash,
    /// Hash of the input content on which the target was run.
    input: ContentHash,
    /// How the target behaves on the input content.
    behaviour: Behaviour,
}

const VERSION: u32 = 2;

/// The journal of a target's behaviours (`clean.classes`): an append-only file with one line per
/// content. A torn last line is dropped; lines of other targets are ignored. Memory holds the
/// positions of lines only.
pub struct BehaviourJournal {
    journal: Journal<Line>,
    target: ContentHash,
    known: HashMap<ContentHash, Position>,
}

impl BehaviourJournal {
    /// Opens or creates the journal of a target's behaviours at `path`. `target` is the target's
    /// [identity](ddfuzz_campaign::identity).
    pub fn open(path: &Path, target: ContentHash) -> Result<BehaviourJournal, FileError> {
        let mut known = HashMap::new();
        // The input of a damaged line is run again.
        let journal = Journal::open(path, |position, line: Line| {
            if line.is_of(target) {
                known.insert(line.input, position);
            }
        })?;
        Ok(BehaviourJournal {
            journal,
            target,
            known,
        })
    }

    /// Returns true if the journal contains the target's behaviour on a content.
    pub fn has(&self, content: ContentHash) -> bool {
        self.known.contains_key(&content)
    }

    /// Reads the target's behaviour on a content; `None` if the journal does not contain it.
    pub fn get(&self, content: ContentHash) -> Result<Option<Behaviour>, FileError> {
        let Some(position) = self.known.get(&content) else {
            return Ok(None);
        };
        let line = self.journal.read(*position)?;
        let line = line.filter(|line| line.is_of(self.target));
        Ok(line.map(|line| line.behaviour))
    }

    /// Appends the target's behaviour on a content; it survives the death of the process at once.
    pub fn add(&mut self, content: ContentHash, behaviour: &Behaviour) -> Result<(), FileError> {
        let position = self.journal.add(&Line {
            v: VERSION,
            target: self.target,
            input: content,
            behaviour: behaviour.clone(),
        })?;
        self.known.insert(content, position);
        Ok(())
    }

    /// Writes all lines of the journal through to the device, so that they survive a power failure.
    pub fn sync(&self) -> Result<(), FileError> {
        self.journal.sync()
    }
}

impl Line {
    /// Returns true if a journal line has the present format version, and records the behaviour of
    /// the target with the identity `target`; else false.
    fn is_of(&self, target: ContentHash) -> bool {
        self.v == VERSION && self.target == target
    }
}
