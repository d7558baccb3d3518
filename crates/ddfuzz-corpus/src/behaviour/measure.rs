//! Measures how a target behaves on the inputs of a corpus: runs each several times.

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::journal::BehaviourJournal;
use super::record::{Behaviour, Observed, Output, Stacks, behaviour};
use crate::lock;
use ddfuzz_campaign::CampaignError;
use ddfuzz_exec::{ExecError, Target, TimeLimit, Traceable, Way, Written};
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_model::files::regular;
use ddfuzz_triage::input_reads::{ReadStacks, Reads};

/// Inputs of a batch: all of them are run once, then all again.
const TOGETHER: usize = 4096;
/// Least time between the first two rounds: a program that prints the time in seconds prints
/// another one then.
const APART: Duration = Duration::from_millis(1100);
/// How often `stop` is read meanwhile.
const GLANCE: Duration = Duration::from_millis(20);

/// The target to measure, and how.
#[derive(Clone, Debug)]
pub struct BehaviourSettings {
    /// The target.
    pub target: Target,
    /// The way of execution.
    pub way: Way,
    /// Threads that run inputs. No result depends on their number.
    pub jobs: usize,
}

/// One input of a corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorpusInput {
    /// Its file.
    pub path: PathBuf,
    /// Its content.
    pub content: ContentHash,
    /// Its length, in bytes.
    pub size: u64,
}

/// What became of one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measured {
    /// The target's behaviour. A run that did not exit is the last one.
    Behaves(Box<Behaviour>),
    /// Its file was removed or changed.
    Gone,
}

/// Measures how the target behaves on each of `subjects` that the journal does not have, and calls
/// `told` for all of them in their order. The result depends on the content and the target alone.
/// Each run has a separate process.
///
/// Returns whether all were measured: not where the user stopped.
///
/// # Errors
/// When the target cannot be run, or the journal cannot be written; what was measured until then
/// stands in it. Those of `told`.
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
            // What was not come to before the user stopped is not told.
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

/// The state of one input of a batch.
enum InputState {
    /// The runs so far.
    Runs(Vec<Observed>),
    /// Its file was removed or changed.
    Gone,
}

impl InputState {
    /// Whether it needs no more runs.
    fn is_done(&self) -> bool {
        match self {
            InputState::Gone => true,
            // What crashes or takes too long is not well, whatever else it does.
            InputState::Runs(runs) => {
                runs.len() == Round::ALL.len()
                    || runs.last().is_some_and(|run| !run.ended.is_exit())
            }
        }
    }

    /// What was measured, where it is done.
    fn measured(&self) -> Option<Measured> {
        match self {
            InputState::Gone => Some(Measured::Gone),
            InputState::Runs(runs) => {
                (self.is_done()).then(|| Measured::Behaves(Box::new(behaviour(runs))))
            }
        }
    }
}

/// Inputs that are measured together.
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

    /// Runs each input once that is not done.
    fn run_round(
        &self,
        round: Round,
        runners: &mut [BehaviourRunner],
        stop: &AtomicBool,
    ) -> Result<(), ExecError> {
        let next = AtomicUsize::new(0);
        let work = |runner: &mut BehaviourRunner| {
            while !stop.load(Ordering::Relaxed) {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(subject) = self.subjects.get(at) else {
                    break;
                };
                self.run(at, subject, round, runner, stop)
                    .inspect_err(|_| next.store(self.subjects.len(), Ordering::Relaxed))?;
            }
            Ok(())
        };
        let work = &work;
        std::thread::scope(|scope| {
            let workers: Vec<_> = runners
                .iter_mut()
                .map(|runner| scope.spawn(move || work(runner)))
                .collect();
            for worker in workers {
                worker.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            }
            Ok(())
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
        // The user's Ctrl-C may have reached the target, too.
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

    /// What was measured of each input; `None` where it was not measured to the end.
    fn finish(self) -> Vec<(CorpusInput, Option<Measured>)> {
        let slots = self.slots.into_inner();
        let slots = slots.unwrap_or_else(PoisonError::into_inner);
        let measured = slots.iter().map(InputState::measured);
        self.subjects.into_iter().zip(measured).collect()
    }
}

/// How an input is run in one of its rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// Without a tracer, with randomized addresses.
    Randomized,
    /// With its reads traced, and more time.
    Watched,
}

impl Round {
    /// The runs of each input. What takes too long shows it in the first one, within its own
    /// limits; what hangs on addresses is another thing in the others. Stacks are told relative to
    /// modules, so that addresses are nothing to them.
    pub(super) const ALL: [Round; 3] = [Round::Randomized, Round::Watched, Round::Watched];
}

/// A target whose output is captured and whose reads are traced.
pub(super) struct BehaviourRunner {
    target: Traceable,
    /// The tracer of its reads; `None` where it gets its input in memory.
    reads: Option<ReadStacks>,
    /// The limits on its time by itself, and watched.
    time: TimeLimit,
    patient: TimeLimit,
}

/// A run that is stopped again and again uses more time than it would alone.
const MORE_CPU: Duration = Duration::from_secs(1);
const MORE_WALL: Duration = Duration::from_secs(5);

impl BehaviourRunner {
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

    /// Runs an input once.
    ///
    /// # Errors
    /// When the target cannot be run.
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

/// The hash of the stacks, in their order.
fn hash(reads: &Reads) -> ContentHash {
    let mut text = Vec::new();
    for stack in &reads.stacks {
        for (module, offset) in stack {
            text.extend((module.len() as u64).to_le_bytes());
            text.extend(module.as_bytes());
            text.extend(offset.to_le_bytes());
        }
        // No module's name is so long.
        text.extend(u64::MAX.to_le_bytes());
    }
    ContentHash::of(&text)
}
