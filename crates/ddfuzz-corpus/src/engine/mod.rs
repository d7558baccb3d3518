//! The steps of a cleanup, in their order.

mod candidates;
mod check;
mod choose;
mod classes;
mod failing;
mod subset;
mod totals;
mod trimming;
mod write;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::health::Quarantining;
use crate::lock;
use crate::measure::{
    Contents, Gathered, MeasureProgress, MeasureSettings, Runners, gather, journal_of,
};
use crate::{CleanError, Place};
use ddfuzz_exec::{Freshness, Target, Way};
use ddfuzz_store::Store;
use ddfuzz_store::report::clean::CleanResult;
use subset::{KeptSet, Reserve};
use totals::CleanTotals;

pub use check::{Merged, Ruler};

/// The state that all steps share.
struct Engine<'a> {
    store: &'a Mutex<Store>,
    /// The campaign that crashes are counted for.
    campaign: &'a str,
    cleaning: &'a Cleaning,
    place: Place,
    /// Whether runs may share processes.
    freshness: Freshness,
    /// Started targets.
    runners: &'a Runners,
    stop: &'a AtomicBool,
}

/// Cleans a corpus: the kept files are in the folder `corpus` of the output directory then, and
/// have been run again. Features of the corpus that they do not reach are in `missing` of the
/// result. A call continues from the journal of a killed one.
///
/// # Errors
/// When the target cannot be run, something cannot be read or written, nothing would be left, or
/// `stop` has turned true. The corpus is only read, and what an earlier cleanup has written stays
/// as it was.
pub fn clean(
    store: &Mutex<Store>,
    campaign: &str,
    cleaning: &Cleaning,
    watcher: &mut dyn Watcher,
    stop: &AtomicBool,
) -> Result<CleanResult, CleanError> {
    let root = lock(store).reader().root().to_owned();
    let runners = Runners::default();
    let mut engine = Engine {
        store,
        campaign,
        cleaning,
        place: Place::of(&root),
        freshness: Freshness::Shared,
        runners: &runners,
        stop,
    };
    loop {
        if let Some(result) = engine.attempt(watcher)? {
            return Ok(result);
        }
        watcher.say(
            "what an input reaches depends on the inputs that ran before it in the same process: \
             each input is run in a separate process, which takes longer",
        );
        runners.clear();
        engine.freshness = Freshness::Fresh;
    }
}

impl Engine<'_> {
    /// All steps; `None` where runs may not share processes as they did.
    fn attempt(&self, watcher: &mut dyn Watcher) -> Result<Option<CleanResult>, CleanError> {
        let cleaning = self.cleaning;
        let mut totals = CleanTotals::default();
        let mut kept = KeptSet {
            journal: journal_of(self.freshness),
            ..KeptSet::default()
        };
        let gathered = self.gather(&cleaning.corpus, watcher)?;
        if gathered.is_empty() {
            return Err(CleanError::unread());
        }
        let onto = match &cleaning.onto {
            Some(onto) => {
                let onto = self.gather(std::slice::from_ref(onto), watcher)?;
                let mut onto = self.measure(onto, watcher)?;
                totals.runs_of(&onto);
                // Before the journal is written by others.
                self.look_at_onto(&mut onto, &mut kept, watcher)?;
                Some(onto)
            }
            None => None,
        };
        let mut contents = self.measure(gathered, watcher)?;
        totals.begin(&contents);
        if contents.is_empty() {
            return Err(CleanError::unread());
        }
        let reserve = match contents.places() {
            Some(_) => {
                let healthy = self.cover(&mut contents, &mut kept, watcher, &mut totals)?;
                let Some(healthy) = healthy else {
                    return Ok(None);
                };
                Some(Reserve::new(&contents, healthy))
            }
            None => {
                self.one_of_each_class(&contents, onto, &mut kept, watcher, &mut totals)?;
                None
            }
        };
        self.finish(kept, reserve.as_ref(), watcher, totals)
            .map(Some)
    }

    fn settings(&self) -> MeasureSettings<'_> {
        let cleaning = self.cleaning;
        MeasureSettings {
            target: &cleaning.target,
            way: cleaning.way,
            jobs: cleaning.jobs,
            max_len: cleaning.max_len,
            learn_limit: cleaning.learn_limit,
            freshness: self.freshness,
            runners: Some(self.runners),
            stop: self.stop,
        }
    }

    /// Reads the files of a corpus.
    fn gather(
        &self,
        roots: &[std::path::PathBuf],
        watcher: &mut dyn Watcher,
    ) -> Result<Gathered, CleanError> {
        let told = &mut |progress: &MeasureProgress| watcher.doing(reading(progress));
        let gathered = gather(roots, self.place.root(), &self.settings(), told)?;
        match self.settings().stopped() {
            true => Err(CleanError::Interrupted),
            false => Ok(gathered),
        }
    }

    /// Runs each content that is new to the journal.
    fn measure(
        &self,
        gathered: Gathered,
        watcher: &mut dyn Watcher,
    ) -> Result<Contents, CleanError> {
        let told = &mut |progress: &MeasureProgress| watcher.doing(reading(progress));
        let contents = gathered.run(&self.settings(), told)?;
        if contents.is_interrupted() {
            return Err(CleanError::Interrupted);
        }
        if contents.opened().cut > 0 {
            watcher.say("the end of the journal was damaged: its inputs are run again");
        }
        Ok(contents)
    }
}

fn reading(progress: &MeasureProgress) -> Doing {
    Doing::Reading {
        files: progress.files,
        runs: progress.runs,
    }
}

/// What is cleaned, and how.
#[derive(Clone, Debug)]
pub struct Cleaning {
    /// The target whose coverage counts.
    pub target: Target,
    /// What crashes are filed for: the same, but for a bundled target the variant that counts
    /// nothing.
    pub filed_for: Target,
    /// The way of execution.
    pub way: Way,
    /// The corpus: directories and files, which are only read.
    pub corpus: Vec<PathBuf>,
    /// A corpus to add to: only what it does not reach is kept.
    pub onto: Option<PathBuf>,
    /// Workers. No result depends on their number.
    pub jobs: usize,
    /// Longer files are left out, in bytes.
    pub max_len: u64,
    /// Whether the limit on the time of a run is learned.
    pub learn_limit: bool,
    /// Runs of each kept content, the first one included.
    pub repeats: u32,
    /// How failing inputs are filed and minimized; `None` where they are only left out.
    pub groups: Option<Quarantining>,
    /// Whether a subset is chosen; else every content that does not fail is kept.
    pub subset: bool,
    /// The target's own fuzzer, which has to count as much coverage for the kept files as for the
    /// corpus.
    pub ruler: Option<Arc<dyn Ruler>>,
    /// How kept files are trimmed; not at all where `None`.
    pub trim: Option<Trim>,
    /// Whether files keep their names, instead of being named by their content.
    pub keep_names: bool,
}

/// How kept files are trimmed.
#[derive(Clone, Debug)]
pub struct Trim {
    /// Which features a file has to keep.
    pub by: TrimBy,
    /// Name of the search.
    pub search: String,
    /// Most tests for one file, in one round.
    pub tests: u64,
    /// Longest time for one file, in one round.
    pub time: Option<Duration>,
}

/// What a trimmed file has to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimBy {
    /// The features that no smaller kept file reaches.
    Worth,
    /// Exactly the features that it reaches.
    Signature,
}

/// What a cleanup is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Files are read, and new contents run.
    Reading {
        /// Files so far.
        files: u64,
        /// Runs so far.
        runs: u64,
    },
    /// Failing inputs are triaged, filed and minimized.
    Filing {
        /// So many contents.
        inputs: u64,
    },
    /// The subset is chosen.
    Choosing {
        /// Of so many contents.
        contents: u64,
    },
    /// Contents are run again.
    Repeating {
        /// So many.
        contents: u64,
    },
    /// Kept files are trimmed.
    Trimming {
        /// Which round, from 1.
        round: u32,
        /// Files that are done.
        done: u64,
        /// Of so many.
        of: u64,
    },
    /// The target's own fuzzer counts what the corpus and the kept files reach.
    Counting {
        /// So many files of the corpus.
        files: u64,
    },
    /// What was written is run again.
    Checking {
        /// So many files.
        files: u64,
    },
}

/// Watches a cleanup. Called from one thread.
pub trait Watcher: Send {
    /// Called now and then with the current step.
    fn doing(&mut self, doing: Doing);

    /// A message for the user.
    fn say(&mut self, text: &str);
}
