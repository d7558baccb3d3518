//! The steps of a cleanup in their order, its settings ([`CleanSettings`]) and its progress
//! ([`CleanPhase`]).

mod candidates;
mod check;
mod choose;
mod classes;
mod failing;
mod own_count;
mod result;
mod subset;
mod trimming;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::listing::Listing;
use crate::measure::{
    Contents, DIFFERS, Gathered, MeasureProgress, MeasureSettings, Runners, gather, journal_of,
};
use crate::quarantine::QuarantineSettings;
use crate::{CleanError, CleanPaths};
use ddfuzz_campaign::{Screen, program_hash};
use ddfuzz_exec::{Executor, Freshness, NotCovered, Target, Way};
use ddfuzz_model::pool::lock;
use ddfuzz_store::Store;
use ddfuzz_store::report::clean::CleanResult;
use ddfuzz_store::report::text::printable;
use result::CleanTotals;
use subset::{KeptSet, Reserve};

pub use own_count::{NewCoverage, OwnFuzzer};

/// State that all steps of one corpus cleanup share: its settings, output paths, pool of started
/// targets, and stop flag.
struct Engine<'a> {
    store: &'a Mutex<Store>,
    /// Id of the campaign to which the crashes that the cleanup finds are counted.
    campaign: &'a str,
    cleaning: &'a CleanSettings,
    paths: CleanPaths,
    /// Whether several runs of the target may share a process in this cleanup.
    freshness: Freshness,
    /// Whether the basic blocks that an uninstrumented program runs through are used as its
    /// coverage; false after some run did not report them.
    blocks: bool,
    /// Pool of started instances of the target, which all steps of the cleanup share.
    runners: &'a Runners,
    stop: &'a AtomicBool,
}

/// Cleans a corpus as `cleaning` says: writes the kept files into the folder `corpus` of the output
/// directory, and runs them again as a check. `missing` of the result lists features of the corpus
/// that the kept files do not reach. A call continues an interrupted one from its journal.
/// `campaign` is the id under which crashes are counted. `started` is an instance of the target
/// whose runs may share processes; the cleanup uses it first.
///
/// # Errors
/// When the target cannot be run, a file cannot be read or written, no file would be kept, or
/// `stop` turns true. The corpus is unchanged then. The kept files of an earlier cleanup are
/// unchanged, too, unless the error occurs in the final check, after they were replaced.
pub fn clean(
    store: &Mutex<Store>,
    campaign: &str,
    cleaning: &CleanSettings,
    started: Box<dyn Executor>,
    screen: &mut dyn Screen<CleanPhase>,
    stop: &AtomicBool,
) -> Result<CleanResult, CleanError> {
    let root = lock(store).reader().root().to_owned();
    // The groups are not checked with it.
    let build = program_hash(&cleaning.filed_for.program)?;
    lock(store).set_running_build(&build.to_string());
    let runners = Runners::with(started);
    let mut engine = Engine {
        store,
        campaign,
        cleaning,
        paths: CleanPaths::of(&root),
        freshness: Freshness::Shared,
        blocks: true,
        runners: &runners,
        stop,
    };
    loop {
        match engine.attempt(screen) {
            Ok(Attempt::Done(result)) => return Ok(*result),
            Ok(Attempt::DependsOnEarlierRuns) => {
                screen.note(
                    "what an input reaches depends on the inputs that ran before it in the same \
                     process: each input is run in a separate process, which takes longer",
                );
                engine.freshness = Freshness::Fresh;
            }
            Err(CleanError::LacksCoverage(why)) => {
                screen.note(&format!("{why}, so its coverage is not known"));
                engine.blocks = false;
            }
            Err(error) => return Err(error),
        }
        runners.clear();
    }
}

/// The outcome of performing all steps of a cleanup once: its result, or why the steps must be
/// repeated with other settings.
enum Attempt {
    Done(Box<CleanResult>),
    /// What an input reaches depends on earlier runs in the same process, so that the cleanup must
    /// be repeated with a process for each run.
    DependsOnEarlierRuns,
}

impl Engine<'_> {
    /// Performs all steps of the cleanup once. Returns the result of the cleanup, or that all steps
    /// must be repeated with a process for each run.
    fn attempt(&self, screen: &mut dyn Screen<CleanPhase>) -> Result<Attempt, CleanError> {
        let cleaning = self.cleaning;
        let mut totals = CleanTotals::default();
        let mut kept = KeptSet {
            journal: journal_of(self.freshness),
            ..KeptSet::default()
        };
        let gathered = self.gather(&cleaning.corpus, screen)?;
        if gathered.is_empty() {
            let oversized = gathered.oversized();
            return Err(CleanError::unread(oversized, cleaning.max_len));
        }
        let onto = match &cleaning.onto {
            Some(onto) => {
                let onto = self.gather(std::slice::from_ref(onto), screen)?;
                let mut onto = self.measure(onto, screen)?;
                totals.runs_of(&onto);
                // Before the same journal is opened for the corpus itself.
                self.look_at_onto(&mut onto, &mut kept, screen)?;
                Some(onto)
            }
            None => None,
        };
        let mut contents = self.measure(gathered, screen)?;
        totals.begin(&contents);
        if contents.is_empty() {
            let oversized = totals.oversized.files;
            return Err(CleanError::unread(oversized, cleaning.max_len));
        }
        if self.runners.have_differed() {
            return Ok(Attempt::DependsOnEarlierRuns);
        }
        let reserve = match contents.places {
            Some(_) => {
                let healthy = self.cover(&mut contents, &mut kept, screen, &mut totals)?;
                let Some(healthy) = healthy else {
                    return Ok(Attempt::DependsOnEarlierRuns);
                };
                Some(Reserve::new(&contents, healthy))
            }
            None => {
                self.one_of_each_class(&contents, onto, &mut kept, screen, &mut totals)?;
                None
            }
        };
        let result = self.finish(kept, reserve.as_ref(), screen, totals)?;
        // Not before: what is attempted again would warn again.
        warn_of_unlisted(&contents, screen);
        Ok(Attempt::Done(Box::new(result)))
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
            blocks: self.blocks,
            runners: Some(self.runners),
            stop: self.stop,
        }
    }

    /// Lists, reads and hashes the files of the corpus at the paths `roots`; runs no input.
    fn gather(
        &self,
        roots: &[std::path::PathBuf],
        screen: &mut dyn Screen<CleanPhase>,
    ) -> Result<Gathered, CleanError> {
        let told = &mut |progress: &MeasureProgress| screen.progress(&reading(progress));
        let gathered = gather(roots, self.paths.root(), &self.settings(), told)?;
        match self.settings().stopped() {
            true => Err(CleanError::Interrupted),
            false => Ok(gathered),
        }
    }

    /// Runs each distinct content of a corpus once, except those whose result is in the journal,
    /// and returns all contents with their results. Fails with [`CleanError::LacksCoverage`] if the
    /// target is an uninstrumented program and it is unknown which basic blocks its runs reach.
    fn measure(
        &self,
        gathered: Gathered,
        screen: &mut dyn Screen<CleanPhase>,
    ) -> Result<Contents, CleanError> {
        let told = &mut |progress: &MeasureProgress| screen.progress(&reading(progress));
        let contents = gathered.run(&self.settings(), told)?;
        if contents.interrupted {
            return Err(CleanError::Interrupted);
        }
        if contents.opened.cut > 0 {
            screen.note("the end of the journal was damaged: its inputs are run again");
        }
        if self.settings().cover_by_blocks(contents.places) {
            check_blocks(&contents)?;
        }
        Ok(contents)
    }
}

/// Prints a warning for each unlisted directory of the corpus that is stored as an example, and one
/// with the number of the others.
fn warn_of_unlisted(contents: &Contents, screen: &mut dyn Screen<CleanPhase>) {
    let unlisted = &contents.file_counts.listing.unread;
    for (path, why) in unlisted.examples() {
        let path = printable(&path.to_string_lossy());
        screen.note(&format!("warning: the files in {path} are not read: {why}"));
    }
    let more = unlisted.amount().files - unlisted.examples().count() as u64;
    if more > 0 {
        let text = format!("warning: the files in {more} more of its directories are not read");
        screen.note(&text);
    }
}

/// Checks that the corpus at the paths `roots` has at least one input, before a cleanup creates its
/// output directory `out`. Does not check whether an input can be read.
///
/// # Errors
/// When a path cannot be listed, or there is no input.
pub fn check_any_input(roots: &[PathBuf], out: &Path, max_len: u64) -> Result<(), CleanError> {
    let mut listing = Listing::new(roots, Some(out)).map_err(CleanError::NotListed)?;
    match listing.next() {
        Some(_) => Ok(()),
        None => Err(CleanError::unread(0, max_len)),
    }
}

/// Reason, as a text for the user, why coverage is unknown: no run of the uninstrumented program
/// reached any basic block of the program's own code.
const NO_BLOCKS: NotCovered = "no run reaches any of the program's own code behind its start (does it \
                               start another program at once?)";

/// Fails if a run of an uninstrumented program that exited did not report the basic blocks that it
/// reached, or if every run reported that it reached none.
fn check_blocks(contents: &Contents) -> Result<(), CleanError> {
    let (mut has_exited, mut has_blocks) = (false, false);
    for number in 0..contents.len() {
        let seen = contents.first_run(number)?;
        if seen.ended.is_exit() {
            let features = seen.features.ok_or(CleanError::LacksCoverage(DIFFERS))?;
            has_exited = true;
            has_blocks |= !features.is_empty();
        }
    }
    match has_exited && !has_blocks {
        true => Err(CleanError::LacksCoverage(NO_BLOCKS)),
        false => Ok(()),
    }
}

fn reading(progress: &MeasureProgress) -> CleanPhase {
    CleanPhase::Reading {
        files: progress.files,
        runs: progress.runs,
    }
}

/// Settings of a cleanup: the corpus, the target, limits, and which steps are done.
#[derive(Clone, Debug)]
pub struct CleanSettings {
    /// The target that the cleanup runs, if possible a build that reports coverage.
    pub target: Target,
    /// The target whose crashes are stored. It is the build without coverage of a bundled target,
    /// and else the same target as the one that the cleanup runs.
    pub filed_for: Target,
    /// Way in which the cleanup executes the target: a new process per run, a fork server, or calls
    /// of the target's entry function.
    pub way: Way,
    /// Directories and files of the corpus; they are only read.
    pub corpus: Vec<PathBuf>,
    /// Path of another corpus to which the kept files are to be added (`--onto`): only inputs with
    /// features that this other corpus does not reach are kept. `None` without the option.
    pub onto: Option<PathBuf>,
    /// Number of worker threads of the cleanup, which run inputs in parallel; it changes no result.
    pub jobs: usize,
    /// Greatest length of an input of the corpus, in bytes; the cleanup does not use longer files.
    pub max_len: u64,
    /// Whether the time limit of the cleanup's runs is adapted to the times of earlier runs.
    pub learn_limit: bool,
    /// Number of times that each kept input is run, including the first, to find flaky features.
    pub repeats: u32,
    /// Settings for storing and minimizing the failing inputs of the corpus; `None` if the cleanup
    /// only leaves these inputs out.
    pub groups: Option<QuarantineSettings>,
    /// Whether the cleanup keeps only a subset that reaches all features of the corpus; otherwise
    /// it keeps every distinct content that does not fail.
    pub subset: bool,
    /// The target's own fuzzer, such as libFuzzer, which also counts coverage: files are added
    /// until the kept files have, by this count, as much coverage as the corpus. `None` if the
    /// fuzzer is not asked to count.
    pub own_fuzzer: Option<Arc<dyn OwnFuzzer>>,
    /// Settings for trimming the kept files (making them smaller with the same coverage); `None` if
    /// they are not trimmed.
    pub trim: Option<Trim>,
    /// Whether kept files have their path in the corpus as a name, instead of their content hash.
    pub keep_names: bool,
}

/// Settings for trimming the kept files (making them smaller by delta debugging).
#[derive(Clone, Debug)]
pub struct Trim {
    /// Which features a trimmed file must keep.
    pub by: TrimBy,
    /// Name of the search algorithm of delta debugging by which files are trimmed; `None` chooses
    /// one for each file by its content.
    pub search: Option<String>,
    /// Maximum number of tests (runs of candidates) for one file in one round of trimming; there
    /// are several rounds.
    pub tests: u64,
    /// Longest time for one file in one round of trimming; `None` is no limit.
    pub time: Option<Duration>,
}

/// Which features a trimmed file must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimBy {
    /// The trimmed file must keep those features that no smaller kept file reaches. It may lose all
    /// others, and reach new ones.
    Worth,
    /// The trimmed file must keep all features that the file reaches in every run. It may reach no
    /// others, except flaky ones of the corpus.
    Signature,
}

/// The step that a cleanup is in, for the progress line: reading and running, filing failing
/// inputs, choosing, repeating, trimming, counting, or checking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanPhase {
    /// The cleanup reads the files of the corpus, and runs contents that were not run before.
    Reading {
        /// Number of files that were read so far.
        files: u64,
        /// Number of inputs that were run so far.
        runs: u64,
    },
    /// The step in which the cleanup triages inputs that fail, and stores and minimizes them.
    Filing {
        /// Number of failing inputs that are triaged in this step.
        inputs: u64,
    },
    /// The cleanup chooses the subset of inputs to keep.
    Choosing {
        /// Number of distinct file contents to choose from.
        contents: u64,
    },
    /// The cleanup runs inputs again, to find which features every run of them reaches.
    Repeating {
        /// Number of inputs that are run again.
        contents: u64,
    },
    /// The cleanup trims the kept files by delta debugging.
    Trimming {
        /// Number of the trimming round, from 1.
        round: u32,
        /// Number of files trimmed so far in this round.
        done: u64,
        /// Number of files to trim in this round.
        of: u64,
    },
    /// The target's own fuzzer counts the coverage of the corpus and of the kept files.
    Counting {
        /// Number of files that the target's own fuzzer runs.
        files: u64,
    },
    /// The cleanup runs the written files again, as the final check.
    Checking {
        /// Number of files that are run again.
        files: u64,
    },
}
