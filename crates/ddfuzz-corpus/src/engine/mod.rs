//! The steps of a cleanup, one behind the other.

mod books;
mod check;
mod choose;
mod classes;
mod keeping;
mod names;
mod owners;
mod pool;
mod reserve;
mod ruler;
mod settings;
mod sick;
mod slips;
mod subset;
mod trimming;
mod watcher;
mod write;

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use self::books::Books;
use self::keeping::Kept;
use self::reserve::Reserve;
use super::lock::lock;
use super::measure::{Contents, Gathered, Progress, Runners, Settings, gather, journal_of};
use super::{CleanError, Place};
use ddfuzz_exec::Freshness;
use ddfuzz_store::Store;
use ddfuzz_store::report::clean::CleanResult;

pub use ruler::{Merged, Ruler};
pub use settings::{Cleaning, Trim, TrimBy};
pub use watcher::{Doing, Watcher};

/// What all steps share.
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

/// Cleans a corpus: what is kept stands in the folder `corpus` of the output directory then, and
/// has been run again. Where something that the corpus reaches is not reached by that, the result
/// says so in `missing`. What a killed call has found out is not run again.
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
        let mut books = Books::default();
        let mut kept = Kept {
            journal: journal_of(self.freshness),
            ..Kept::default()
        };
        let gathered = self.gather(&cleaning.corpus, watcher)?;
        if gathered.is_empty() {
            return Err(CleanError::unread());
        }
        let onto = match &cleaning.onto {
            Some(onto) => {
                let onto = self.gather(std::slice::from_ref(onto), watcher)?;
                let mut onto = self.measure(onto, watcher)?;
                books.runs_of(&onto);
                // Before the journal is written by others.
                self.look_at_onto(&mut onto, &mut kept, watcher)?;
                Some(onto)
            }
            None => None,
        };
        let mut contents = self.measure(gathered, watcher)?;
        books.begin(&contents);
        if contents.is_empty() {
            return Err(CleanError::unread());
        }
        let reserve = match contents.places() {
            Some(_) => {
                let healthy = self.cover(&mut contents, &mut kept, watcher, &mut books)?;
                let Some(healthy) = healthy else {
                    return Ok(None);
                };
                Some(Reserve::new(&contents, healthy))
            }
            None => {
                self.one_of_each_class(&contents, onto, &mut kept, watcher, &mut books)?;
                None
            }
        };
        self.finish(kept, reserve.as_ref(), watcher, books)
            .map(Some)
    }

    fn settings(&self) -> Settings<'_> {
        let cleaning = self.cleaning;
        Settings {
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

    /// Reads what is to be measured.
    fn gather(
        &self,
        roots: &[std::path::PathBuf],
        watcher: &mut dyn Watcher,
    ) -> Result<Gathered, CleanError> {
        let told = &mut |progress: &Progress| watcher.doing(reading(progress));
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
        let told = &mut |progress: &Progress| watcher.doing(reading(progress));
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

fn reading(progress: &Progress) -> Doing {
    Doing::Reading {
        files: progress.files,
        runs: progress.runs,
    }
}
