//! Runs a study: one utility after the other, by all workers, and has its groups minimized.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::plan::StudyPlan;
use super::select::is_by;
use super::state::{StudyRequest, StudyState, StudySummary, runs};
use super::utility::{self, RunEnvironment, SkipReason, Utility};
use super::worker::{Baseline, baseline};
use crate::campaign_state::{CampaignState, lock};
use crate::disk_full::{DiskWait, PauseGate};
use crate::error::CampaignError;
use crate::minimizing::Minimizing;
use crate::schedule::SlippedInputs;
use crate::screen::{Phase, Progress, Screen};
use crate::session::CampaignSession;
use crate::settings::When;
use crate::until::{Deadline, NewGroups};
use ddfuzz_exec::{ExecError, Way};
use ddfuzz_store::{EntryId, KnownGroups, Store, StudyRecord};
use ddfuzz_triage::Key;

/// Between two checkpoints without a finding.
const SAVE_EVERY: Duration = Duration::from_secs(2);

/// The settings of a study.
#[derive(Clone, Debug)]
pub struct StudySettings {
    /// The utilities of this part of the study.
    pub utilities: Vec<Utility>,
    /// What they are run with.
    pub environment: RunEnvironment,
    /// What the study was asked for: a call that resumes it is held to that.
    pub asked: StudyRequest,
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
    let mut ledger = CampaignState::open(store, &settings.record.campaign)?;
    let state = ledger.checkpoint.study.get_or_insert_default();
    state.asked = Some(settings.asked.clone());
    state.begin_count(&settings.utilities);
    let first = state.utilities.iter().map(runs).sum();
    ledger.checkpoint.begin_count(None);
    ledger.save()?;
    let gate = PauseGate::default();
    let began = Instant::now();
    let end = settings.time.and_then(|time| began.checked_add(time));
    let session = CampaignSession {
        store,
        screen,
        stop,
        deadline: &settings.deadline,
        minimizing: &settings.minimizing,
        jobs: settings.jobs,
        known: &settings.known,
        gate: &gate,
        room: DiskWait::new(stop, &gate).until(end),
        began,
        new_groups: NewGroups::default(),
        gone: HashSet::new(),
    };
    let engine = StudyEngine {
        session,
        settings,
        ledger,
        phase: Phase::Fuzzing,
        waiting: 0,
        running: None,
        first,
        fuzzed: Duration::ZERO,
        ways: Vec::new(),
        not_started: HashSet::new(),
        saved: began,
    };
    engine.study()
}

pub(super) struct StudyEngine<'a> {
    pub(super) session: CampaignSession<'a>,
    pub(super) settings: &'a StudySettings,
    pub(super) ledger: CampaignState<'a>,
    /// Runs made before this call.
    first: u64,
    /// How long utilities were run.
    pub(super) fuzzed: Duration,
    /// By which ways, each once.
    pub(super) ways: Vec<Way>,
    /// Entries whose programs could not be run any more: this call lets them be.
    pub(super) not_started: HashSet<EntryId>,
    saved: Instant,
    /// What it does, and how many groups wait to be minimized.
    pub(super) phase: Phase,
    pub(super) waiting: u64,
    /// Since when a utility is being run, if one is.
    pub(super) running: Option<Instant>,
}

impl StudyEngine<'_> {
    fn study(mut self) -> Result<StudySummary, CampaignError> {
        match self
            .run_all()
            .and_then(|()| self.minimize_all())
            .and_then(|()| self.end())
        {
            // It has ended at its time, with what is stored.
            Err(error) if self.session.gives_up(&error) => {}
            ended => ended?,
        }
        self.session.screen.progress(&self.progress());
        self.summary()
    }

    /// Runs the utilities, one after the other.
    fn run_all(&mut self) -> Result<(), CampaignError> {
        let settings = self.settings;
        for utility in &settings.utilities {
            if self.session.stopped() {
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
            if !self.session.stopped() {
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
        let (mut met, budget) = (SlippedInputs::default(), self.budget_of_all());
        self.minimize_founders()?;
        self.minimize_others()?;
        self.minimize_smaller(&mut met, budget)?;
        self.replay_rest()
    }

    fn end(&mut self) -> Result<(), CampaignError> {
        if !self.session.interrupted() {
            self.state().end_count();
            self.session.made(|| self.ledger.end_call())?;
        }
        self.save()
    }

    /// Runs one utility, as far as it can be run.
    fn one(&mut self, utility: &Utility, at: usize) -> Result<(), CampaignError> {
        let Some(program) = utility
            .path
            .as_deref()
            .filter(|_| utility.skip_reason.is_none())
        else {
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
            Err(_) if self.session.stopped() => Ok(()),
            Err(skip_reason) => {
                self.refuse(at, &skip_reason);
                Ok(())
            }
        }
    }

    /// How a utility is to be run, and what each invocation does with an empty input.
    fn look_at(
        &self,
        utility: &Utility,
        program: &Path,
    ) -> Result<(Utility, Vec<Baseline>), SkipReason> {
        let not_starting = |error: ExecError| SkipReason::NotStarting(error.to_string());
        let environment = &self.settings.environment;
        let mut utility = utility.clone();
        if utility.invocations.is_empty() {
            let found = utility::invocations(environment, program);
            (utility.invocations, utility.interactive_only) = found.map_err(not_starting)?;
            let wanted = &self.settings.asked.channels;
            (utility.invocations).retain(|invocation| is_by(&invocation.name(), wanted));
            if utility.invocations.is_empty() {
                return Err(SkipReason::NoInvocation);
            }
        }
        let invocations = utility.invocations.iter();
        let baselines = invocations.map(|invocation| baseline(environment, program, invocation));
        let baselines = baselines.collect::<Result<Vec<_>, _>>();
        let baselines = baselines.map_err(not_starting)?;
        Ok((utility, baselines))
    }

    /// Notes that a utility cannot be run.
    pub(super) fn refuse(&mut self, at: usize, skip_reason: &SkipReason) {
        let record = &mut self.state().utilities[at];
        record.label = Some(skip_reason.label().to_owned());
        record.note = skip_reason.note();
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

    /// Saves the checkpoint, and the record for reports, when there is room.
    pub(super) fn save(&mut self) -> Result<(), CampaignError> {
        let utilities = self.state().utilities.clone();
        let record = StudyRecord {
            utilities,
            ..self.settings.record.clone()
        };
        self.saved = Instant::now();
        let store = self.session.store;
        Ok(self.session.made(|| {
            self.ledger.save()?;
            lock(store).write_study(&record)
        })?)
    }

    pub(super) fn tick(&mut self) -> Result<(), CampaignError> {
        let progress = self.progress();
        self.session.screen.progress(&progress);
        if self.saved.elapsed() >= SAVE_EVERY || self.ledger.is_unsaved() {
            self.save()?;
            self.session.append_stats(&progress)?;
        }
        Ok(())
    }

    pub(super) fn progress(&self) -> Progress {
        let checkpoint = &self.ledger.checkpoint;
        let state = checkpoint.study.as_ref();
        let all: u64 = state.map_or(0, |state| state.utilities.iter().map(runs).sum());
        let running = self.running.map_or(Duration::ZERO, |since| since.elapsed());
        Progress {
            phase: self.phase,
            time_ms: self.session.began.elapsed().as_millis() as u64,
            runs: state.map_or(0, StudyState::runs),
            runs_per_s: Progress::rate(all - self.first, self.fuzzed + running),
            minimizing: self.waiting,
            ..checkpoint.progress()
        }
    }

    fn summary(&self) -> Result<StudySummary, CampaignError> {
        let muted = |major: Key| self.session.is_muted(&major.short());
        let checkpoint = &self.ledger.checkpoint;
        let state = checkpoint.study.as_ref();
        let all: u64 = state.map_or(0, |state| state.utilities.iter().map(runs).sum());
        Ok(StudySummary {
            runs: state.map_or(0, StudyState::runs),
            runs_of_call: all - self.first,
            fuzzed: self.fuzzed,
            new_groups: self.ledger.new_groups(muted)?,
            known_crashes: checkpoint.known_crashes(|major| self.session.is_muted(major)),
            interrupted: self.session.interrupted(),
            out_of_time: self.session.deadline.is_over(),
            out_of_room: self.session.room.is_given_up(),
            ways: self.ways.clone(),
        })
    }
}
