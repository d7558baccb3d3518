//! Runs a study: one utility behind the other, by all workers, and has its groups minimized.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::plan::StudyPlan;
use super::select::is_by;
use super::state::{Asked, StudyState, StudySummary, runs};
use super::utility::{self, Circumstances, Unfit, Utility};
use super::worker::{Baseline, baseline};
use crate::error::CampaignError;
use crate::ledger::{Ledger, lock};
use crate::minimizing::Minimizing;
use crate::room::{Fullness, Gate, Room};
use crate::schedule::Met;
use crate::screen::{Phase, Progress, Screen};
use crate::settings::When;
use crate::until::Deadline;
use ddfuzz_exec::{ExecError, Way};
use ddfuzz_store::{EntryId, Kind, KnownGroups, Store, StudyRecord};

/// Between two checkpoints without a finding.
const SAVE_EVERY: Duration = Duration::from_secs(2);

/// What a study is told.
#[derive(Clone, Debug)]
pub struct StudySettings {
    /// The utilities of this part of the study.
    pub utilities: Vec<Utility>,
    /// What they are run with.
    pub circumstances: Circumstances,
    /// What the study was asked for: a call that resumes it is held to that.
    pub asked: Asked,
    /// The inputs.
    pub plan: StudyPlan,
    /// Wall time that this call runs utilities, shared by them.
    pub time: Option<Duration>,
    /// The end of the whole call.
    pub deadline: Deadline,
    /// Workers.
    pub jobs: usize,
    /// When groups are minimized.
    pub when: When,
    /// How groups are minimized; its target is that of no utility.
    pub minimizing: Minimizing,
    /// How often a reproducer is run again.
    pub replays: u32,
    /// Groups to mute: they are counted and stored, not minimized.
    pub known: KnownGroups,
    /// What the record of the study says of the machine and the list; its utilities are filled in.
    pub record: StudyRecord,
}

/// Runs one call of the study that `store` belongs to. When `stop` turns true it saves its state
/// and ends.
///
/// # Errors
/// When the output directory cannot be written; what was committed until then is kept. A utility
/// that cannot be run is no error: the record says so.
pub fn run(
    store: &Mutex<Store>,
    settings: &StudySettings,
    screen: &mut dyn Screen,
    stop: &AtomicBool,
) -> Result<StudySummary, CampaignError> {
    let mut ledger = Ledger::open(store, &settings.record.campaign)?;
    let state = ledger.checkpoint.study.get_or_insert_default();
    state.asked = Some(settings.asked.clone());
    state.begin_count(&settings.utilities);
    let first = state.utilities.iter().map(runs).sum();
    ledger.checkpoint.begin_count(None);
    ledger.save()?;
    let gate = Gate::default();
    let began = Instant::now();
    let end = settings.time.and_then(|time| began.checked_add(time));
    let engine = Engine {
        store,
        settings,
        screen,
        stop,
        ledger,
        room: Room::new(stop, &gate).until(end),
        phase: Phase::Fuzzing,
        waiting: 0,
        running: None,
        gate: &gate,
        first,
        fuzzed: Duration::ZERO,
        ways: Vec::new(),
        gone: HashSet::new(),
        began,
        saved: began,
    };
    engine.study()
}

pub(super) struct Engine<'a> {
    pub(super) store: &'a Mutex<Store>,
    pub(super) settings: &'a StudySettings,
    pub(super) screen: &'a mut dyn Screen,
    pub(super) stop: &'a AtomicBool,
    pub(super) ledger: Ledger<'a>,
    pub(super) room: Room<'a>,
    /// Closed while there is no room.
    pub(super) gate: &'a Gate,
    /// Runs made before this call.
    first: u64,
    /// How long utilities were run.
    pub(super) fuzzed: Duration,
    /// By which ways, each once.
    pub(super) ways: Vec<Way>,
    /// Entries whose programs could not be run any more: this call lets them be.
    pub(super) gone: HashSet<EntryId>,
    pub(super) began: Instant,
    saved: Instant,
    /// What it does, and how many groups wait to be minimized.
    pub(super) phase: Phase,
    pub(super) waiting: u64,
    /// Since when a utility is being run, if one is.
    pub(super) running: Option<Instant>,
}

impl Engine<'_> {
    fn study(mut self) -> Result<StudySummary, CampaignError> {
        match self
            .run_all()
            .and_then(|()| self.minimize_all())
            .and_then(|()| self.end())
        {
            // It has ended at its time, with what is stored.
            Err(error) if self.gives_up(&error) => {}
            ended => ended?,
        }
        self.screen.progress(&self.progress());
        self.summary()
    }

    /// Runs the utilities, one behind the other.
    fn run_all(&mut self) -> Result<(), CampaignError> {
        let settings = self.settings;
        for utility in &settings.utilities {
            if self.stopped() {
                break;
            }
            let at = self.state().at(utility).unwrap_or_default();
            if self.state().utilities[at].done {
                continue;
            }
            self.phase = Phase::Fuzzing;
            self.one(utility, at)?;
            if matches!(settings.when, When::Inline | When::Worker) {
                self.minimize_founders()?;
            }
            if !self.stopped() {
                self.state().utilities[at].done = true;
            }
            self.save()?;
        }
        Ok(())
    }

    /// Minimizes what is left to be.
    fn minimize_all(&mut self) -> Result<(), CampaignError> {
        if self.settings.when == When::Off {
            return Ok(());
        }
        let (mut met, budget) = (Met::default(), self.budget_of_all());
        self.minimize_founders()?;
        self.minimize_others()?;
        self.minimize_smaller(&mut met, budget)?;
        self.replay_rest()
    }

    fn end(&mut self) -> Result<(), CampaignError> {
        if !self.interrupted() {
            self.state().end_count();
            let Engine {
                room,
                screen,
                ledger,
                ..
            } = self;
            room.made(&mut |text| screen.note(text), || ledger.end_call())?;
        }
        self.save()
    }

    /// Runs one utility, as far as it can be run.
    fn one(&mut self, utility: &Utility, at: usize) -> Result<(), CampaignError> {
        let Some(program) = utility.path.as_deref().filter(|_| utility.unfit.is_none()) else {
            return Ok(());
        };
        match self.look_at(utility, program) {
            Ok((utility, baselines)) => {
                let endless = baselines.iter().find_map(|baseline| baseline.label());
                let terminal = utility.interactive_only.then_some("interactive-only");
                if let Some(label) = endless.or(terminal) {
                    self.state().utilities[at].label = Some(label.to_owned());
                }
                self.fuzz(&utility, program, at, &baselines)
            }
            Err(_) if self.stopped() => Ok(()),
            Err(unfit) => {
                self.refuse(at, &unfit);
                Ok(())
            }
        }
    }

    /// How a utility is to be run, and what each course does with an empty input.
    fn look_at(
        &self,
        utility: &Utility,
        program: &Path,
    ) -> Result<(Utility, Vec<Baseline>), Unfit> {
        let not_starting = |error: ExecError| Unfit::NotStarting(error.to_string());
        let circumstances = &self.settings.circumstances;
        let mut utility = utility.clone();
        if utility.courses.is_empty() {
            let found = utility::courses(circumstances, program);
            (utility.courses, utility.interactive_only) = found.map_err(not_starting)?;
            let wanted = &self.settings.asked.channels;
            (utility.courses).retain(|course| is_by(&course.name(), wanted));
            if utility.courses.is_empty() {
                return Err(Unfit::NoCourse);
            }
        }
        let courses = utility.courses.iter();
        let baselines = courses.map(|course| baseline(circumstances, program, course));
        let baselines = baselines.collect::<Result<Vec<_>, _>>();
        let baselines = baselines.map_err(not_starting)?;
        Ok((utility, baselines))
    }

    /// Notes that a utility cannot be run.
    pub(super) fn refuse(&mut self, at: usize, unfit: &Unfit) {
        let record = &mut self.state().utilities[at];
        record.label = Some(unfit.label().to_owned());
        record.note = unfit.note();
    }

    pub(super) fn state(&mut self) -> &mut StudyState {
        self.ledger.checkpoint.study.get_or_insert_default()
    }

    /// How long the next utility may be run: what is left of the time is shared by those that are
    /// left.
    pub(super) fn share(&mut self) -> Option<Duration> {
        let left = self.settings.time?.saturating_sub(self.fuzzed);
        let utilities = &self.settings.utilities;
        let utilities = self.state().left(utilities).max(1);
        Some(left / u32::try_from(utilities).unwrap_or(u32::MAX))
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether it was the user who has stopped it, and not the end of the whole time.
    fn interrupted(&self) -> bool {
        self.stopped() && !self.settings.deadline.is_over()
    }

    /// Whether this is only that the disk was full until the time was over, or the user has
    /// stopped.
    fn gives_up(&self, error: &CampaignError) -> bool {
        error.full_at().is_some() && (self.stopped() || self.room.is_given_up())
    }

    pub(super) fn muted(&self, major: &str) -> bool {
        let known = &self.settings.known;
        lock(self.store)
            .reader()
            .is_muted(Kind::Crash, major, known)
    }

    /// Saves the checkpoint, and the record for reports, when there is room.
    pub(super) fn save(&mut self) -> Result<(), CampaignError> {
        let utilities = self.state().utilities.clone();
        let record = StudyRecord {
            utilities,
            ..self.settings.record.clone()
        };
        let Engine {
            room,
            screen,
            ledger,
            store,
            ..
        } = self;
        self.saved = Instant::now();
        Ok(room.made(&mut |text| screen.note(text), || {
            ledger.save()?;
            lock(store).write_study(&record)
        })?)
    }

    pub(super) fn tick(&mut self) -> Result<(), CampaignError> {
        let progress = self.progress();
        self.screen.progress(&progress);
        if self.saved.elapsed() >= SAVE_EVERY || self.ledger.is_unsaved() {
            self.save()?;
            let Engine {
                room,
                screen,
                store,
                ..
            } = self;
            let append = || lock(store).append_stats(&progress);
            room.made(&mut |text| screen.note(text), append)?;
        }
        Ok(())
    }

    pub(super) fn progress(&self) -> Progress {
        let checkpoint = &self.ledger.checkpoint;
        let state = checkpoint.study.as_ref();
        let all: u64 = state.map_or(0, |state| state.utilities.iter().map(runs).sum());
        let groups = checkpoint
            .seen
            .get(&Kind::Crash)
            .map_or(0, |seen| seen.len());
        let running = self.running.map_or(Duration::ZERO, |since| since.elapsed());
        Progress {
            phase: self.phase,
            time_ms: self.began.elapsed().as_millis() as u64,
            runs: state.map_or(0, StudyState::runs),
            runs_per_s: Progress::rate(all - self.first, self.fuzzed + running),
            groups: groups as u64,
            crashes: checkpoint.total(Kind::Crash),
            hangs: checkpoint.total(Kind::Hang),
            ooms: checkpoint.total(Kind::Oom),
            minimizing: self.waiting,
            ..Progress::default()
        }
    }

    fn summary(&self) -> Result<StudySummary, CampaignError> {
        let muted = |major: ddfuzz_triage::Key| self.muted(&major.short());
        let checkpoint = &self.ledger.checkpoint;
        let state = checkpoint.study.as_ref();
        let all: u64 = state.map_or(0, |state| state.utilities.iter().map(runs).sum());
        Ok(StudySummary {
            runs: state.map_or(0, StudyState::runs),
            runs_of_call: all - self.first,
            fuzzed: self.fuzzed,
            new_groups: self.ledger.new_groups(muted)?,
            known_crashes: checkpoint.known_crashes(|major| self.muted(major)),
            interrupted: self.interrupted(),
            out_of_time: self.settings.deadline.is_over(),
            out_of_room: self.room.is_given_up(),
            ways: self.ways.clone(),
        })
    }
}
