//! Minimizes one entry of an output directory: log, reproducer and slips go where they belong.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::error::CampaignError;
use super::ledger::lock;
use super::shelf::Shelf;
use crate::delta::Caching;
use crate::exec::{
    Ended, ExecError, Freshness, Limits, Target, TimeLimit, Way, debug_text, observe, start,
};
use crate::minimize::log::{KeyRecord, StartLine, TargetRecord};
use crate::minimize::{
    BoxedOracle, Claim, Counts, CrashOracle, Held, Journal, MinimizeError, Minimized, OnSlip,
    Options, OracleError, PATIENCE, Workers, hurried, minimize_by_workers,
};
use crate::store::{self, Entry, EntryId, Kind, StoreError};
use crate::triage::{Crash, Found, Quick, Subject, Triager};

/// What is minimized, and how.
#[derive(Clone, Debug)]
pub struct Minimizing {
    /// The target.
    pub target: Target,
    /// The way of execution.
    pub way: Way,
    /// Name of the search.
    pub search: String,
    /// Longest time for one entry.
    pub budget_time: Option<Duration>,
    /// Most executed tests for one entry.
    pub budget_tests: Option<u64>,
    /// Whether candidates are written into the log.
    pub log_inputs: bool,
    /// Whether a text is tested again that another configuration gave before.
    pub no_cache: bool,
    /// The campaign's seed, for the log.
    pub seed: Option<u64>,
    /// Whether the limit on the time of a run is learned from the runs of the input; not where
    /// the user has set one.
    pub learn_limit: bool,
    /// Whether hangs and memory blow-ups have only a part of the time that was fuzzed when the
    /// fuzzing is over, all of them together; not where the user has set a budget.
    pub hurried: bool,
    /// Workers of one minimization; no result depends on their number.
    pub jobs: usize,
}

/// How the minimization of one entry ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The first line of its log.
    pub start: StartLine,
    /// The result.
    pub minimized: Minimized,
}

impl Minimizing {
    /// Minimizing without budgets.
    pub fn of_target(target: Target, way: Way, search: &str) -> Minimizing {
        Minimizing {
            target,
            way,
            search: search.to_owned(),
            budget_time: None,
            budget_tests: None,
            log_inputs: false,
            no_cache: false,
            seed: None,
            learn_limit: true,
            hurried: false,
            jobs: 1,
        }
    }

    /// The same for the program of this crash, in a study of many.
    pub fn of(&self, crash: &Crash) -> Minimizing {
        let record = crash.of.as_ref().map(|subject| &subject.target);
        let own = record.and_then(|record| Some((record.target(crash.limits)?, record.way)));
        match own {
            Some((target, way)) => Minimizing {
                target,
                way,
                ..self.clone()
            },
            None => self.clone(),
        }
    }

    /// The budgets as options, without callbacks.
    pub fn options<'a>(&self, stop: &'a AtomicBool) -> Options<'a> {
        Options {
            budget_tests: self.budget_tests,
            budget_time: self.budget_time,
            stop: Some(stop),
            log_inputs: self.log_inputs,
            ..Options::default()
        }
    }

    /// The oracle that holds a crash, given by its record or by the keys of a log. It searches as
    /// fast as the way of execution allows, where that is in a process that runs many inputs; what
    /// a claim rests on runs in fresh ones.
    ///
    /// # Errors
    /// When the target cannot be started.
    pub fn oracle(&self, held: impl Into<Held>) -> Result<CrashOracle, ExecError> {
        self.oracle_within(self.target.limits, held.into())
    }

    /// The same with these limits on the runs of the search.
    fn oracle_within(&self, limits: Limits, held: Held) -> Result<CrashOracle, ExecError> {
        let (mut target, way) = (self.target.clone(), self.way);
        target.limits = limits;
        let executor = start(&target, Some(way), Freshness::Shared)?.executor;
        let triager = Triager::of_target(&target, way)?;
        let crash_exit = target.crash_exit;
        let observed = target.clone();
        let mut patient = target.clone();
        patient.limits = self.target.limits;
        // A hang is one by the limit that it was found with.
        let patience = if held.ended == Ended::Timeout {
            1
        } else {
            PATIENCE
        };
        let fresh = Box::new(move || {
            let mut patient = patient.clone();
            let time = TimeLimit::from(patient.limits).times(patience);
            patient.limits = time.within(patient.limits);
            start(&patient, Some(way), Freshness::Fresh).map(|started| started.executor)
        });
        let keyer = Box::new(triager);
        let oracle = CrashOracle::new(executor, fresh, keyer, held.clone(), crash_exit)
            .observed_by(Box::new(move || observe::start(&observed, way)));
        Ok(match self.learn_limit && held.ended != Ended::Timeout {
            true => oracle,
            false => oracle.with_fixed_time(),
        })
    }

    /// The limits on the runs of the search: for a hang shorter ones than those that it was found
    /// with, where the input shows it within them, or each run that fails would take all that time
    /// (docs/decisions/0050).
    fn pace(&self, input: &[u8], held: &Held) -> Result<Limits, ExecError> {
        let whole = self.target.limits;
        let hurried = hurried(TimeLimit::from(whole)).within(whole);
        if held.ended != Ended::Timeout || !self.learn_limit || hurried == whole {
            return Ok(whole);
        }
        let mut target = self.target.clone();
        target.limits = hurried;
        let shown = Triager::of_target(&target, self.way)?.key(input)?;
        let shows = matches!(shown, Quick::Crash { class, major, .. }
            if class == held.class && major == held.major);
        Ok(if shows { hurried } else { whole })
    }

    /// Minimizes `input`, which crashes as `held` says, by as many workers as there shall be.
    ///
    /// # Errors
    /// As [`minimize_by_workers`]; when the target cannot be started.
    pub fn minimize(
        &self,
        input: &[u8],
        held: impl Into<Held>,
        journal: &mut Journal,
        options: &mut Options<'_>,
    ) -> Result<Minimized, MinimizeError> {
        let held = held.into();
        let limits = self.pace(input, &held).map_err(OracleError::from)?;
        let oracle = || self.oracle_within(limits, held.clone());
        let first = oracle().map_err(OracleError::from)?;
        let make = || Ok(Box::new(oracle()?) as BoxedOracle<'_>);
        let workers = Workers::new(Box::new(first), &make, self.jobs);
        minimize_by_workers(input, workers, journal, options)
    }

    /// The first line of the log of `input`, which crashes as `crash` says.
    pub fn start_line(&self, input: &[u8], crash: &Crash) -> StartLine {
        let target = TargetRecord::new(&self.target, self.way);
        let key = KeyRecord {
            class: crash.class.clone(),
            major: crash.keys.major,
            minor: crash.keys.minor,
        };
        let mut start = StartLine::new(input, &self.search, target, Some(key), self.target.limits);
        start.seed = self.seed;
        // A hang is one only by the limit that it was found with.
        let by_limit = matches!(crash.ended, Ended::Timeout | Ended::OutOfMemory);
        start.learn_limit = self.learn_limit && !by_limit;
        start.doubtful = crash.hits < crash.tries;
        if self.no_cache {
            start.cache = Caching::Configuration;
        }
        start
    }

    /// Minimizes the entry `id`, or goes on with a minimization that was cut off. The store is
    /// locked only for moments.
    ///
    /// # Errors
    /// [`MinimizeError::Interrupted`] when `stop` turned true: calling again goes on. Else when
    /// the target cannot be run or something cannot be written.
    pub fn entry<S: Shelf>(
        &self,
        store: &Mutex<S>,
        id: &EntryId,
        stop: &AtomicBool,
    ) -> Result<Finished, CampaignError> {
        self.entry_with(store, id, self.options(stop))
    }

    /// The same with other options, whose results and slips go to the store all the same.
    ///
    /// # Errors
    /// As [`Minimizing::entry`].
    pub fn entry_with<S: Shelf>(
        &self,
        store: &Mutex<S>,
        id: &EntryId,
        options: Options<'_>,
    ) -> Result<Finished, CampaignError> {
        let entry = entry_of(&*lock(store), id)?;
        let minimizing = &self.of(&entry.crash);
        let input = entry.original_bytes()?;
        let start = minimizing.start_line(&input, &entry.crash);
        let mut journal = Journal::resume(&entry.log(), start).map_err(MinimizeError::from)?;
        let start = journal.start().clone();
        let mut options = Options {
            on_reduce: Box::new(|best| lock(store).write_minimized(id, best).map_err(Into::into)),
            on_slip: Minimizing::file_slips(store, id, entry.crash.of.clone()),
            ..options
        };
        let minimized = minimizing.minimize(&input, &entry.crash, &mut journal, &mut options)?;
        drop(options);
        minimizing.keep(store, id, &minimized)?;
        Ok(Finished { start, minimized })
    }

    /// Files what a minimization slips into: every new (major, minor) of it, whatever the store
    /// holds by then, so that what is stored does not depend on when.
    /// `of` is what they are slips of, in a study of many programs.
    pub fn file_slips<'a, S: Shelf>(
        store: &'a Mutex<S>,
        id: &'a EntryId,
        of: Option<Box<Subject>>,
    ) -> OnSlip<'a> {
        Box::new(move |slip, test| {
            let Some(crash) = &slip.crash else {
                return Ok(());
            };
            let found = Found::Slip {
                of: id.hash().to_owned(),
                test,
            };
            let crash = Crash {
                found: Some(found),
                of: of.clone(),
                ..(**crash).clone()
            };
            lock(store).file(Kind::of_class(&crash.class), &crash, &slip.input)?;
            Ok(())
        })
    }

    /// Ends the minimization of an entry whose crash is not seen again, with what there is, and
    /// with the reason.
    ///
    /// # Errors
    /// When something cannot be written.
    pub fn give_up<S: Shelf>(&self, store: &Mutex<S>, id: &EntryId) -> Result<(), CampaignError> {
        let mut store = lock(store);
        let entry = entry_of(&*store, id)?;
        let size = entry.original_bytes()?.len() as u64;
        store.write_reproduce(id, &self.of(&entry.crash).target.by_main())?;
        let campaign = store.reader().campaigns()?.current;
        let rebuilt = campaign.is_some_and(|campaign| campaign.builds.len() > 1);
        let why = match rebuilt {
            true => "the crash is not seen again since the program was built anew",
            false => "the crash is not seen again",
        };
        let unchanged = store::Minimized {
            claim: Claim::BestSoFar.to_string(),
            size_before: size,
            size_after: size,
            tests: serde_json::to_value(Counts::default()).unwrap_or_default(),
            proved: store::Proved { done: 0, of: 0 },
            minor_after: None,
            debug: None,
            given_up: Some(why.to_owned()),
        };
        store.write_outcome(id, &unchanged)?;
        Ok(())
    }

    /// Writes the result, the script that shows it, and last the record that it is final.
    fn keep<S: Shelf>(
        &self,
        store: &Mutex<S>,
        id: &EntryId,
        minimized: &Minimized,
    ) -> Result<(), CampaignError> {
        // Without it the reproducer is shown in bytes alone.
        let debug = debug_text(&self.target, &minimized.text).unwrap_or_default();
        let mut store = lock(store);
        store.write_minimized(id, &minimized.text)?;
        store.write_reproduce(id, &self.target.by_main())?;
        store.write_outcome(id, &outcome(minimized, debug))?;
        Ok(())
    }
}

/// The entry, which must be complete.
fn entry_of(store: &impl Shelf, id: &EntryId) -> Result<Entry, StoreError> {
    let missing = || StoreError::NoSuch {
        path: id.folder(store.reader().root()),
    };
    store.reader().entry(id)?.ok_or_else(missing)
}

/// The record of how a minimization ended.
fn outcome(minimized: &Minimized, debug: Option<String>) -> store::Minimized {
    store::Minimized {
        claim: minimized.claim.to_string(),
        size_before: minimized.size_before,
        size_after: minimized.text.len() as u64,
        tests: serde_json::to_value(minimized.counts).unwrap_or_default(),
        proved: store::Proved {
            done: minimized.proved.done,
            of: minimized.proved.of,
        },
        minor_after: minimized.minor_after,
        debug,
        given_up: None,
    }
}
