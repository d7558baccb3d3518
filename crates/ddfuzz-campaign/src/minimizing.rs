//! [`Minimizing`]: minimizes one entry of an output directory, and writes its log, its reproducer
//! and its slips (other crashes that the search meets).

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::{
    CampaignError, ProgramWatch, StoreWriter, fails_on_anything,
    failures_of_target::{FailuresOfTarget, is_of_last_build, record_of},
    lock,
    minimization_order::is_variant,
    verdict::program_hash,
};
use ddfuzz_delta::{Caching, Outcome};
use ddfuzz_exec::{
    Ended, ExecError, Executor, Freshness, Limits, Target, TimeLimit, Way, debug_text, observe,
    start,
};
use ddfuzz_minimize as minimize;
use ddfuzz_minimize::{
    BoxedOracle, Claim, Counts, CrashOracle, HeldCrash, Journal, MinimizeError, Minimized, OnSlip,
    Options, Oracle, OracleError, PROOF_TIME_FACTOR, Rate, Warning, Workers, hang_search_limit,
    log::{KeyRecord, Log, StartLine, TargetRecord},
    minimize_by_workers, search_by_name,
};
use ddfuzz_store as store;
use ddfuzz_store::{Entry, EntryId, Kind, StoreError};
use ddfuzz_triage::{Class, Crash, Key, Quick, Triager, Verdict};

/// Greatest number of candidates run to find an input with the original minor key (finer hash).
const MAX_CANDIDATES: u64 = 256;

/// Before a minimization replaces the files of an earlier one, its input is run up to this many
/// times; if none of these runs fails, the minimization ends with an error.
const CONFIRMING_TRIES: u64 = 12;

/// The target and the settings for the minimization of entries of an output directory.
#[derive(Clone, Debug)]
pub struct Minimizing {
    /// The target: program, arguments, limits.
    pub target: Target,
    /// The way in which the target is executed, such as by a fork server or from snapshots.
    pub way: Way,
    /// Name of the search (algorithm of delta debugging) that makes the candidates.
    pub search: String,
    /// Name of the structure (file format or language) with which the search `full` parses inputs,
    /// or `none`; `None` chooses by the content of each input.
    pub structure: Option<String>,
    /// Whether the user has named `structure`; a log made with a different structure is then not
    /// continued, and the minimization begins anew.
    pub structure_is_named: bool,
    /// Name of the grammar that fits most seeds of the target. Text inputs that fit no grammar are
    /// nevertheless parsed with this grammar. `None` if there is none.
    pub usual_language: Option<String>,
    /// Greatest wall time for the minimization of one entry; `None` sets no limit.
    pub budget_time: Option<Duration>,
    /// Greatest number of executed tests (runs of candidates) for the minimization of one entry;
    /// `None` sets no limit.
    pub budget_tests: Option<u64>,
    /// Whether the log of a minimization contains the bytes of each candidate, which makes it
    /// large.
    pub log_inputs: bool,
    /// Whether a candidate is run again although the same bytes were tested before.
    pub no_cache: bool,
    /// Random seed of the campaign, which is only recorded in the logs; `None` without a campaign.
    pub seed: Option<u64>,
    /// Whether the time limit of a test is learned from the first runs of the minimized input;
    /// false if the user has set a limit.
    pub learn_limit: bool,
    /// Whether time is short after fuzzing, so that all hangs and memory blow-ups together get only
    /// a part of the time that fuzzing took. False if the user has set a time limit for each entry.
    pub hurried: bool,
    /// Number of worker threads of one minimization; the result does not depend on it.
    pub jobs: usize,
    /// How many inputs with further minor keys (finer hashes of crashes) are minimized in a group,
    /// after it has a result.
    pub variants: Variants,
}

/// How many minor keys (finer crash hashes) of a group are minimized in addition to its first one:
/// two bugs behind one helper function share a group, and differ by the minor key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variants {
    /// Only the group's first minor key (finer crash hash) is minimized.
    #[default]
    None,
    /// At most [`Variants::MOST`] further minor keys (finer crash hashes) in each group; none for
    /// reports of sanitizers, since these already put such bugs into different groups.
    Plain,
    /// At most this number of further minor keys (finer crash hashes) are minimized in each group.
    Most(usize),
}

impl Variants {
    /// Default number of further minor keys (finer crash hashes) of a group that are minimized.
    pub const MOST: usize = 3;

    /// Returns how many further minor keys (finer hashes of crashes), in addition to the first one,
    /// are minimized at most in a group whose crashes have the class `class`.
    pub fn most(self, class: &Class) -> usize {
        match self {
            Variants::None => 0,
            Variants::Plain if class.sanitizer().is_some() => 0,
            Variants::Plain => Variants::MOST,
            Variants::Most(most) => most,
        }
    }
}

/// A target that was already started for a minimization: its executor, and a triager that
/// classifies its crashes.
pub struct StartedTarget {
    /// The executor that runs the candidates of a search; it may run many inputs in one process.
    pub executor: Box<dyn Executor>,
    /// Classifies crashes of the target, and computes their keys.
    pub triager: Triager,
}

/// The result of the minimization of one entry.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The first line of the log of the minimization, which says what was minimized and how.
    pub start: StartLine,
    /// The minimized input, with the counts of tests, and how minimal it is claimed to be.
    pub minimized: Minimized,
    /// A note for the user about an earlier minimization of the entry: that this minimization
    /// continued it within its limits, that its smaller result was kept, or that its damaged log
    /// was set aside. `None` if there is nothing to say.
    pub note: Option<String>,
    /// A further entry, made from the result of an earlier minimization because this result was
    /// smaller; `None` if there is none.
    pub smaller: Option<EntryId>,
}

impl Minimizing {
    /// Creates settings for minimizing crashes of `target`, executed in the way `way`, with the
    /// search named `search`, without budgets and variants.
    pub fn of_target(target: Target, way: Way, search: &str) -> Minimizing {
        Minimizing {
            target,
            way,
            search: search.to_owned(),
            structure: None,
            structure_is_named: false,
            usual_language: None,
            budget_time: None,
            budget_tests: None,
            log_inputs: false,
            no_cache: false,
            seed: None,
            learn_limit: true,
            hurried: false,
            jobs: 1,
            variants: Variants::None,
        }
    }

    /// Returns these settings for minimizing `crash`, with the target and way of execution that
    /// `crash` records if a study of many programs has found it.
    pub fn of(&self, crash: &Crash) -> Minimizing {
        let record = crash.of.as_ref().map(|subject| &subject.target);
        let own = record.and_then(|record| Some((record.target(crash.limits)?, record.way)));
        match own {
            Some((target, way)) => Minimizing {
                target: target.abandoned_when(self.target.abandon_when.clone()),
                way,
                ..self.clone()
            },
            None => self.clone(),
        }
    }

    /// Returns the options of one minimization, without callbacks: the budgets of these settings,
    /// and `stop`, which ends the minimization when it turns true.
    pub fn options<'a>(&self, stop: &'a AtomicBool) -> Options<'a> {
        Options {
            budget_tests: self.budget_tests,
            budget_time: self.budget_time,
            stop: Some(stop),
            log_inputs: self.log_inputs,
            ..Options::default()
        }
    }

    /// Starts the target and creates the oracle (interestingness test) that tells whether an input
    /// shows the crash `held`, which is given by its record or by the keys of a log. The search may
    /// run many inputs in one process; runs that are to prove that the result is minimal use fresh
    /// processes.
    ///
    /// # Errors
    /// When the target cannot be started.
    pub fn oracle(&self, held: impl Into<HeldCrash>) -> Result<CrashOracle, ExecError> {
        self.oracle_within(self.target.limits, held.into())
    }

    /// Starts the target, with `limits` on each run, and creates the oracle for the crash `held`,
    /// as [`Minimizing::oracle`] does.
    fn oracle_within(&self, limits: Limits, held: HeldCrash) -> Result<CrashOracle, ExecError> {
        let (mut target, way) = (self.target.clone(), self.way);
        target.limits = limits;
        let started = match Triager::with_executor(&target, Some(way))? {
            Some((triager, executor)) => StartedTarget { executor, triager },
            None => StartedTarget {
                executor: start(&target, Some(way), Freshness::Shared)?.executor,
                triager: Triager::of_target(&target, way)?,
            },
        };
        Ok(self.oracle_of(started, limits, held))
    }

    /// Creates the oracle (interestingness test) for the crash `held`, as [`Minimizing::oracle`]
    /// does, from a target that was already started and whose runs have the limits `limits`.
    fn oracle_of(&self, started: StartedTarget, limits: Limits, held: HeldCrash) -> CrashOracle {
        let (mut observed, way) = (self.target.clone(), self.way);
        observed.limits = limits;
        let crash_exit = observed.crash_exit;
        let patient = self.target.clone();
        // A run is a hang only by the limit that it was found with.
        let patience = if held.ended == Ended::Timeout {
            1
        } else {
            PROOF_TIME_FACTOR
        };
        let time = TimeLimit::from(patient.limits).times(patience);
        let fresh = Box::new(move || {
            let mut patient = patient.clone();
            patient.limits = time.within(patient.limits);
            start(&patient, Some(way), Freshness::Fresh).map(|started| started.executor)
        });
        let learns = self.learn_limit && held.ended != Ended::Timeout;
        let StartedTarget {
            executor,
            mut triager,
        } = started;
        // What hangs within shorter limits is no hang by that.
        if TimeLimit::from(limits) != TimeLimit::from(self.target.limits) {
            triager.examine_within(TimeLimit::from(self.target.limits));
        }
        let observer = move || observe::start(&observed, way, Freshness::Fresh);
        let oracle = CrashOracle::new(executor, fresh, Box::new(triager), held, crash_exit)
            .with_one_executor(TimeLimit::from(limits), time)
            .observed_by(Box::new(observer));
        match learns {
            true => oracle,
            false => oracle.with_fixed_time(),
        }
    }

    /// Returns the limits of each run in the search that minimizes `input`. They are the target's,
    /// but for a hang, whose failing runs each take the whole time limit, the time limit is shorter
    /// if a run shows that the input also hangs within the shorter limit (docs/decisions/0050).
    fn search_limits(&self, input: &[u8], held: &HeldCrash) -> Result<Limits, ExecError> {
        let whole = self.target.limits;
        let hurried = hang_search_limit(TimeLimit::from(whole)).within(whole);
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

    /// Minimizes `input`, which shows the crash `held`, with as many worker threads as the settings
    /// say, and writes all tests to `journal`.
    ///
    /// # Errors
    /// As [`minimize_by_workers`]; when the target cannot be started.
    pub fn minimize(
        &self,
        input: &[u8],
        held: impl Into<HeldCrash>,
        journal: &mut Journal,
        options: &mut Options<'_>,
    ) -> Result<Minimized, MinimizeError> {
        self.minimize_started(None, input, held, journal, options)
    }

    /// Minimizes `input`, and returns the result, as [`Minimizing::minimize`] does, but uses the
    /// target `started`, if given, instead of starting a new one. If its limits differ from the
    /// limits of the search, `started` is dropped, and a new target is started.
    ///
    /// # Errors
    /// As [`Minimizing::minimize`].
    pub fn minimize_started(
        &self,
        started: Option<StartedTarget>,
        input: &[u8],
        held: impl Into<HeldCrash>,
        journal: &mut Journal,
        options: &mut Options<'_>,
    ) -> Result<Minimized, MinimizeError> {
        let held = held.into();
        let limits = self
            .search_limits(input, &held)
            .map_err(OracleError::from)?;
        let oracle = || self.oracle_within(limits, held.clone());
        let first = match started.filter(|_| limits == self.target.limits) {
            Some(started) => self.oracle_of(started, limits, held.clone()),
            None => oracle().map_err(OracleError::from)?,
        };
        let make = || Ok(Box::new(oracle()?) as BoxedOracle<'_>);
        let workers = Workers::new(Box::new(first), &make, self.jobs);
        let mut minimized = minimize_by_workers(input, workers, journal, options)?;
        for warning in &mut minimized.warnings {
            if *warning == Warning::EmptyInputFails && self.fails_on_anything(held.major)? {
                *warning = Warning::AnyInputFails;
            }
        }
        Ok(minimized)
    }

    /// Returns true if the target crashes with the major key `major` (hash that identifies a bug)
    /// on any input, which a few very different inputs show; otherwise false.
    fn fails_on_anything(&self, major: Key) -> Result<bool, MinimizeError> {
        let triager = Triager::of_target(&self.target, self.way);
        let fails = triager.and_then(|mut triager| fails_on_anything(&mut triager, major));
        Ok(fails.map_err(OracleError::from)?)
    }

    /// Returns the first line of the log for minimizing `input`, which shows `crash`.
    pub fn start_line(&self, input: &[u8], crash: &Crash) -> StartLine {
        let target = TargetRecord::new(&self.target, self.way);
        let key = KeyRecord {
            class: crash.class.clone(),
            major: crash.keys.major,
            minor: crash.keys.minor,
        };
        let mut start = StartLine::new(input, &self.search, target, Some(key), self.target.limits);
        start.build = program_hash(&self.target.program).ok();
        start.use_language(self.usual_language.as_deref());
        let named = self.structure.as_deref();
        match named.filter(|_| self.structure_is_named) {
            Some(name) => start.name_structure(name),
            None => start.use_structure(self.structure.as_deref()),
        }
        start.seed = self.seed;
        // A run is a hang only by the limit that it was found with.
        let by_limit = matches!(crash.ended, Ended::Timeout | Ended::OutOfMemory);
        start.learn_limit = self.learn_limit && !by_limit;
        start.doubtful = crash.hits < crash.tries;
        start.repeat_claims();
        if self.no_cache {
            start.cache = Caching::Configuration;
        }
        start
    }

    /// Minimizes the entry `id`, or continues its interrupted minimization. The store is locked
    /// only for moments.
    ///
    /// # Errors
    /// [`MinimizeError::Interrupted`] when `stop` turned true: the next call continues. Other
    /// errors when the target cannot be run or a file cannot be written.
    pub fn entry<S: StoreWriter>(
        &self,
        store: &Mutex<S>,
        id: &EntryId,
        stop: &AtomicBool,
    ) -> Result<Finished, CampaignError> {
        self.entry_with(store, id, self.options(stop))
    }

    /// Minimizes an entry and records the result, as [`Minimizing::entry`] does, with `options`,
    /// but with its own callbacks for reductions and slips (candidates with another crash).
    ///
    /// # Errors
    /// As [`Minimizing::entry`].
    pub fn entry_with<S: StoreWriter>(
        &self,
        store: &Mutex<S>,
        id: &EntryId,
        options: Options<'_>,
    ) -> Result<Finished, CampaignError> {
        let stop = options.stop;
        let mut finished = self.search_entry(store, id, options)?;
        self.record_result(store, id, &mut finished, stop)?;
        Ok(finished)
    }

    /// Minimizes the entry `id`, or continues its interrupted minimization, with `options`. Returns
    /// the result without recording it for the entry.
    pub(crate) fn search_entry<S: StoreWriter>(
        &self,
        store: &Mutex<S>,
        id: &EntryId,
        options: Options<'_>,
    ) -> Result<Finished, CampaignError> {
        let entry = entry_of(&*lock(store), id)?;
        let mut minimizing = self.of(&entry.crash);
        let input = entry.original_bytes()?;
        let mut start = minimizing.start_line(&input, &entry.crash);
        let begun = Log::read_start(&entry.log());
        let reader = lock(store).reader().clone();
        let failures = FailuresOfTarget::of_target(&reader, &minimizing.target)?;
        start.hold_minor = match &begun {
            Some(begun) => begun.hold_minor,
            None => is_variant(&reader, &failures, &entry, self.variants)?,
        };
        let mut note = minimizing.keep_limits(&entry, &mut start);
        let minimizing = &minimizing;
        let continues = Journal::continues(&entry.log(), &start);
        if !continues || !failures.can_refute(&entry) {
            minimizing.confirm(&input, &entry.crash)?;
        }
        if !continues {
            let build = begun.and_then(|begun| begun.build);
            let build = build.map_or("earlier".to_owned(), |build| build.to_string());
            entry.archive_minimization(&build)?;
        }
        let mut options = Options {
            on_reduce: Box::new(|best| lock(store).write_minimized(id, best).map_err(Into::into)),
            on_slip: Minimizing::file_slips(store, id, &entry.crash),
            ..options
        };
        let mut search = || {
            let mut journal = Journal::resume(&entry.log(), start.clone())?;
            let start = journal.start().clone();
            let minimized = minimizing.minimize(&input, &entry.crash, &mut journal, &mut options);
            Ok((start, minimized?))
        };
        let (start, minimized) = match search() {
            Err(MinimizeError::Log(error)) if error.is_damage() => {
                let (log, aside) = (entry.log(), entry.archive_minimization("damaged")?);
                let (log, aside) = (log.display(), aside.display());
                note = Some(format!(
                    "{log}: {error}; it is set aside as {aside}, and the minimization begins anew"
                ));
                search()?
            }
            done => done?,
        };
        Ok(Finished {
            note,
            ..Finished::new(start, minimized)
        })
    }

    /// Checks by several runs that `input` shows `crash`, before a minimization replaces files of
    /// an earlier one, or writes files for an entry that was found on another target.
    ///
    /// # Errors
    /// [`MinimizeError::NotFailing`] if none of several runs shows the crash; when the target
    /// cannot be run.
    fn confirm(&self, input: &[u8], crash: &Crash) -> Result<(), MinimizeError> {
        let mut oracle = self.oracle(crash).map_err(OracleError::from)?;
        let mut last = Outcome::Unresolved;
        for _ in 0..CONFIRMING_TRIES {
            last = oracle.ask(input, minimize::Kind::Deleting)?.outcome;
            if last == Outcome::Fail {
                return Ok(());
            }
        }
        let tries = CONFIRMING_TRIES;
        Err(MinimizeError::NotFailing { last, tries })
    }

    /// Records the result of minimizing the entry `id`: writes the reproducer, the script and the
    /// outcome. Before this, stores the result as a further entry if its minor key (finer hash)
    /// differs from the input's, and also the result of an earlier minimization if it is smaller.
    pub(crate) fn record_result<S: StoreWriter>(
        &self,
        store: &Mutex<S>,
        id: &EntryId,
        finished: &mut Finished,
        stop: Option<&AtomicBool>,
    ) -> Result<(), CampaignError> {
        let entry = entry_of(&*lock(store), id)?;
        let minimizing = self.of(&entry.crash);
        minimizing.file_moved(store, &entry, &finished.minimized, stop)?;
        let size = finished.minimized.text.len();
        if let Some(smaller) = minimizing.file_smaller_archived(store, &entry, size)? {
            finished.note = Some(format!(
                "an earlier minimization has a smaller result, which is kept: {}",
                smaller.original(lock(store).reader().root()).display()
            ));
            finished.smaller = Some(smaller);
        }
        minimizing.store_result(store, id, &finished.minimized)
    }

    /// Returns true if the program is another build than the last one that the output directory
    /// records, or is missing; runs then say nothing of the recorded crash. False if the build is
    /// the same, or if no build is recorded, as in a study of many programs.
    pub(crate) fn is_rebuilt<S: StoreWriter>(
        &self,
        store: &Mutex<S>,
    ) -> Result<bool, CampaignError> {
        let reader = lock(store).reader().clone();
        let campaigns = reader.campaigns()?;
        let builds = campaigns.builds(&record_of(&self.target));
        let recorded = builds.and_then(|mut all| all.pop());
        Ok(recorded.is_some_and(|recorded| {
            let now = ProgramWatch::of(&self.target);
            !now.is_ok_and(|now| now.build() == recorded.blake3)
        }))
    }

    /// Stores further entries if the result of minimizing `entry` has another minor key (finer
    /// hash) than its input: the result, and an input with the original minor key, if one is found.
    /// Does nothing for hangs and memory blow-ups, or if no variants are wanted.
    fn file_moved<S: StoreWriter>(
        &self,
        store: &Mutex<S>,
        entry: &Entry,
        minimized: &Minimized,
        stop: Option<&AtomicBool>,
    ) -> Result<(), CampaignError> {
        let minor = entry.crash.keys.minor;
        let moved = minimized.minor_after.is_some_and(|after| after != minor);
        let varies = self.variants.most(&entry.crash.class) > 0;
        if !moved || !varies || entry.id.kind() != Kind::Crash {
            return Ok(());
        }
        let input = entry.original_bytes()?;
        let kept = self.first_with_same_minor(&input, &entry.crash, stop)?;
        let mut triager = Triager::of_target(&self.target, self.way)?;
        for text in kept.iter().chain([&minimized.text]) {
            let Verdict::Crash(crash) = triager.examine(text)? else {
                continue;
            };
            if crash.keys.major != entry.crash.keys.major || *text == input {
                continue;
            }
            let crash = crash.into_slip(entry.id.hash(), &entry.crash, None);
            lock(store).file(entry.id.kind(), &crash, text)?;
        }
        Ok(())
    }

    /// Runs candidates of the search for `input` until one crashes with the minor key (finer hash
    /// of crashes) of `crash`, and returns this candidate, which is never `input` itself. `None` if
    /// the first `MAX_CANDIDATES` candidates do not crash so. Fails if `stop` turns true.
    fn first_with_same_minor(
        &self,
        input: &[u8],
        crash: &Crash,
        stop: Option<&AtomicBool>,
    ) -> Result<Option<Vec<u8>>, CampaignError> {
        let search = search_by_name(&self.search, input).map_err(MinimizeError::from);
        let (mut search, mut oracle) = (search?, self.oracle(crash)?);
        let mut text = Vec::new();
        for executed in 0..MAX_CANDIDATES {
            let Some(candidate) = search.next() else {
                return Ok(None);
            };
            if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                let size = input.len() as u64;
                return Err(MinimizeError::interrupted(size, executed).into());
            }
            candidate.write_into(input, input, &mut text);
            let answer = oracle.ask(&text, minimize::Kind::Deleting);
            let answer = answer.map_err(MinimizeError::from)?;
            if answer.minor == Some(crash.keys.minor) && text != input {
                return Ok(Some(text));
            }
            search.tell(match answer.outcome {
                Outcome::Fail => Outcome::Unresolved,
                other => other,
            });
        }
        Ok(None)
    }

    /// Makes the callback that stores the slips of a minimization (candidates that show another
    /// crash): one for each major and minor key (coarse and fine hash), even if the output
    /// directory already has the crash, so that the stored slips do not depend on the time. Slips
    /// get the campaign and program of `minimized`, the crash that is minimized.
    pub fn file_slips<'a, S: StoreWriter>(
        store: &'a Mutex<S>,
        id: &'a EntryId,
        minimized: &'a Crash,
    ) -> OnSlip<'a> {
        Box::new(move |slip, test| {
            let Some(crash) = &slip.crash else {
                return Ok(());
            };
            let crash = (**crash).clone().into_slip(id.hash(), minimized, test);
            lock(store).file(Kind::of_class(&crash.class), &crash, &slip.input)?;
            Ok(())
        })
    }

    /// Stores the outcome of an entry whose crash did not happen again in `tries` runs, so that it
    /// cannot be minimized further: its reproducer stays, and the crash counts as flaky if it was
    /// found with the last build of the program. Also writes the script that reproduces the crash.
    /// Returns true. Returns false, and writes nothing, if the entry was found on another target,
    /// since runs of this target say nothing of it.
    ///
    /// # Errors
    /// When there is no such entry, or a file cannot be read or written.
    pub fn give_up<S: StoreWriter>(
        &self,
        store: &Mutex<S>,
        id: &EntryId,
        tries: u64,
    ) -> Result<bool, CampaignError> {
        let mut store = lock(store);
        let entry = entry_of(&*store, id)?;
        let reader = store.reader().clone();
        if !FailuresOfTarget::of_target(&reader, &self.target)?.can_refute(&entry) {
            return Ok(false);
        }
        let flaky = is_of_last_build(&reader.campaigns()?, &self.target, &entry);
        store.write_reproduce(id, &self.of(&entry.crash).target.with_main_arguments())?;
        let why = match flaky {
            true => "the crash does not reproduce",
            false => "the crash does not reproduce with this build of the program",
        };
        let before = store::Minimized {
            claim: Claim::BestSoFar.to_string(),
            size_before: entry.original_bytes()?.len() as u64,
            size_after: entry.reproducer_bytes()?.len() as u64,
            tests: serde_json::to_value(Counts::default()).unwrap_or_default(),
            proved: store::Proved { done: 0, of: 0 },
            minor_after: None,
            debug: None,
            any_input: false,
            untried: 0,
            flaky: None,
            given_up: None,
        };
        let given_up = store::Minimized {
            flaky: flaky.then_some(Rate { hits: 0, tries }),
            given_up: Some(why.to_owned()),
            ..entry.minimized.unwrap_or(before)
        };
        store.write_outcome(id, &given_up)?;
        Ok(true)
    }

    /// Writes the results of a minimization into the entry: the minimized input, the script that
    /// reproduces its crash, and last the outcome.
    fn store_result<S: StoreWriter>(
        &self,
        store: &Mutex<S>,
        id: &EntryId,
        minimized: &Minimized,
    ) -> Result<(), CampaignError> {
        // Without a debug text the reproducer is shown as bytes only.
        let debug = debug_text(&self.target, &minimized.text).unwrap_or_default();
        let mut store = lock(store);
        store.write_minimized(id, &minimized.text)?;
        store.write_reproduce(id, &self.target.with_main_arguments())?;
        store.write_outcome(id, &outcome(minimized, debug))?;
        Ok(())
    }
}

/// Reads the entry `id` of the output directory. Fails if there is no such entry.
fn entry_of(store: &impl StoreWriter, id: &EntryId) -> Result<Entry, StoreError> {
    let missing = || StoreError::NoSuch(id.folder(store.reader().root()));
    store.reader().entry(id)?.ok_or_else(missing)
}

impl Finished {
    /// Makes the record of a finished minimization, without a note for the user or a further entry.
    pub fn new(start: StartLine, minimized: Minimized) -> Finished {
        Finished {
            start,
            minimized,
            note: None,
            smaller: None,
        }
    }

    /// Returns the outcome of the minimization (claim, sizes, counts of tests) in the form in which
    /// it is stored.
    pub fn outcome(&self) -> store::Minimized {
        outcome(&self.minimized, None)
    }
}

/// Converts the result of a minimization to the form in which it is stored for the entry. `debug`:
/// the minimized input as the program itself prints it; `None` if the program does not print it.
fn outcome(minimized: &Minimized, debug: Option<String>) -> store::Minimized {
    let untried = |warning: &Warning| match warning {
        Warning::Values { untried } => Some(*untried),
        _ => None,
    };
    store::Minimized {
        any_input: minimized.warnings.contains(&Warning::AnyInputFails),
        untried: minimized.warnings.iter().find_map(untried).unwrap_or(0),
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
        flaky: minimized.flaky(),
        given_up: None,
    }
}
