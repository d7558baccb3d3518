//! Runs a study: all workers together run one utility after the other; also has its groups
//! minimized.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::fuzzing::{Baseline, baseline};
use super::plan::StudyPlan;
use super::state::{StudyRequest, StudyState, StudySummary};
use super::utility::{self, RunEnvironment, SkipReason, Utility, is_by};
use crate::{
    CampaignError, CampaignSession, CampaignState, Deadline, Minimizing, PauseGate, Phase,
    Progress, Screen, SessionSettings, SlippedInputs, When, lock,
};
use ddfuzz_exec::{ExecError, Way};
use ddfuzz_store::{EntryId, KnownGroups, Store, StudyRecord};
use ddfuzz_triage::Key;

/// The settings of one call of ddfuzz for a study, which is a campaign that fuzzes many utilities
/// (programs).
#[derive(Clone, Debug)]
pub struct StudySettings {
    /// Utilities (programs to fuzz) that this call of ddfuzz runs, one after the other.
    pub utilities: Vec<Utility>,
    /// Limits, sandbox and PATH with which each run of a utility is made.
    pub environment: RunEnvironment,
    /// What the user asks for in this call of ddfuzz; a call that resumes the study must ask for
    /// the same as the first one.
    pub request: StudyRequest,
    /// The rule by which each run of a utility gets its input and options.
    pub plan: StudyPlan,
    /// Wall time for which this call of ddfuzz runs utilities, divided equally among those still to
    /// be run; `None` means no limit.
    pub time: Option<Duration>,
    /// Deadline of the whole call of ddfuzz, including the minimizations after the runs
    /// (`--total-time`).
    pub deadline: Deadline,
    /// Number of worker threads that run a utility in parallel.
    pub jobs: usize,
    /// When the groups that the study finds are minimized.
    pub when: When,
    /// Settings of the minimization of groups; their target is replaced by the utility of each
    /// group.
    pub minimizing: Minimizing,
    /// Number of times that each reproducer is run again after minimization, to measure how often
    /// it fails.
    pub replays: u32,
    /// Groups that the user has muted: their findings are stored and counted, but they neither
    /// count as new nor are minimized.
    pub known: KnownGroups,
    /// Record of the study for reports, with machine and list; the engine adds the records of the
    /// utilities.
    pub record: StudyRecord,
}

/// Runs one call of ddfuzz for the study that `store` belongs to. When `stop` turns true, the call
/// saves its state and ends.
///
/// # Errors
/// When the output directory cannot be written; everything stored before the error is kept. A
/// utility that cannot be run is no error: its record says so.
pub fn run(
    store: &Mutex<Store>,
    settings: &StudySettings,
    screen: &mut dyn Screen,
    stop: &AtomicBool,
) -> Result<StudySummary, CampaignError> {
    let mut campaign = CampaignState::open(store, &settings.record.campaign)?;
    let state = campaign.checkpoint.study.get_or_insert_default();
    state.asked = Some(settings.request.clone());
    state.begin_count(&settings.utilities);
    let first = state.all_runs();
    campaign.checkpoint.begin_count(None);
    campaign.save()?;
    let gate = PauseGate::default();
    let common = SessionSettings {
        deadline: &settings.deadline,
        minimizing: &settings.minimizing,
        jobs: settings.jobs,
        known: &settings.known,
        time: settings.time,
        until: &[],
    };
    let engine = StudyEngine {
        session: CampaignSession::new(store, screen, stop, &gate, common),
        settings,
        campaign,
        phase: Phase::Fuzzing,
        waiting: 0,
        running: None,
        first,
        fuzzed: Duration::ZERO,
        ways: Vec::new(),
        not_minimizable: HashSet::new(),
        unstored: 0,
    };
    engine.study()
}

/// State of one call of ddfuzz for a study (a campaign on many utilities), and its main loop.
pub(super) struct StudyEngine<'a> {
    pub(super) session: CampaignSession<'a>,
    pub(super) settings: &'a StudySettings,
    pub(super) campaign: CampaignState<'a>,
    /// Number of runs of the study that earlier calls (invocations of ddfuzz) have made.
    first: u64,
    /// Wall time that this call of ddfuzz has spent on running utilities and classifying their
    /// failures, not counting the utility that is being run.
    pub(super) fuzzed: Duration,
    /// Ways of execution (such as a fork server) in which utilities were run so far, each once.
    pub(super) ways: Vec<Way>,
    /// Entries (stored findings) whose programs could not be run, or whose crash did not happen
    /// again, when they were to be minimized; this call of ddfuzz does not try them again.
    pub(super) not_minimizable: HashSet<EntryId>,
    /// Number of findings of this call that were not stored because the disk was full.
    pub(super) unstored: u64,
    pub(super) phase: Phase,
    /// Number of entries that wait to be minimized, which the user's screen shows.
    pub(super) waiting: u64,
    /// When the runs of the present utility began; `None` while no utility runs.
    pub(super) running: Option<Instant>,
}

impl StudyEngine<'_> {
    fn study(mut self) -> Result<StudySummary, CampaignError> {
        let ended = self
            .run_all()
            .and_then(|()| self.minimize_all())
            .and_then(|()| self.end());
        self.session.or_stopped(ended, ())?;
        self.session.screen.progress(&self.progress());
        self.summary()
    }

    /// Runs the utilities one after the other, each on all its inputs, except those whose runs are
    /// complete already. If groups are minimized while fuzzing, minimizes the groups of each
    /// utility after its runs.
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
            self.run_utility(utility, at)?;
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

    /// Minimizes, after the runs of all utilities, the remaining groups, unless minimization is
    /// off. Then measures how often reproducers fail if an earlier call of ddfuzz has minimized but
    /// not measured them.
    fn minimize_all(&mut self) -> Result<(), CampaignError> {
        if self.settings.when == When::Off {
            return Ok(());
        }
        let (mut slipped, budget) = (SlippedInputs::default(), self.budget_of_all());
        self.minimize_founders()?;
        self.minimize_others()?;
        self.minimize_smaller(&mut slipped, budget)?;
        self.replay_rest()
    }

    fn end(&mut self) -> Result<(), CampaignError> {
        if !self.session.interrupted() {
            self.state().end_count();
            self.session.with_space(|| self.campaign.end_call())?;
        }
        self.save()
    }

    /// Fuzzes the utility whose record has the index `at`, and notes in the record if it does not
    /// end on an empty input or works only at a terminal. Does nothing if the utility is not
    /// installed or has a reason to be skipped. If it does not start, records this.
    fn run_utility(&mut self, utility: &Utility, at: usize) -> Result<(), CampaignError> {
        let path = utility.path.as_deref();
        let Some(program) = path.filter(|_| utility.skip_reason.is_none()) else {
            return Ok(());
        };
        match self.probe(utility, program) {
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
                self.skip_utility(at, &skip_reason);
                Ok(())
            }
        }
    }

    /// Finds out how the utility is to be called, and what it does on an empty input. If it is in
    /// no list, chooses its invocations; then runs each invocation on an empty input. Returns the
    /// utility with its invocations, and for each invocation what it does. Fails with the reason to
    /// skip the utility if it does not start, or has no invocation with one of the chosen channels.
    fn probe(
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
            let channels = &self.settings.request.channels;
            (utility.invocations).retain(|invocation| is_by(&invocation.name(), channels));
            if utility.invocations.is_empty() {
                return Err(SkipReason::NoInvocation);
            }
        }
        let invocations = utility.invocations.iter();
        let baselines = invocations.map(|invocation| baseline(environment, program, invocation));
        let baselines = baselines.collect::<Result<Vec<_>, _>>();
        Ok((utility, baselines.map_err(not_starting)?))
    }

    /// Records in the utility's record, which has the index `at`, why the utility is not run.
    pub(super) fn skip_utility(&mut self, at: usize, skip_reason: &SkipReason) {
        let record = &mut self.state().utilities[at];
        record.label = Some(skip_reason.label().to_owned());
        record.note = skip_reason.note();
    }

    pub(super) fn state(&mut self) -> &mut StudyState {
        self.campaign.checkpoint.study.get_or_insert_default()
    }

    /// Returns the time for which the next utility is run: an equal share of the remaining time;
    /// `None` means no limit.
    pub(super) fn share(&mut self) -> Option<Duration> {
        let left = self.settings.time?.saturating_sub(self.fuzzed);
        let utilities = &self.settings.utilities;
        let utilities = self.state().left(utilities).max(1);
        Some(left / u32::try_from(utilities).unwrap_or(u32::MAX))
    }

    /// Saves the checkpoint and the study's record for reports; waits while the disk is full.
    pub(super) fn save(&mut self) -> Result<(), CampaignError> {
        let utilities = self.state().utilities.clone();
        let record = StudyRecord {
            utilities,
            ..self.settings.record.clone()
        };
        self.session.saved = Instant::now();
        let store = self.session.store;
        Ok(self.session.with_space(|| {
            self.campaign.save()?;
            lock(store).write_study(&record)
        })?)
    }

    pub(super) fn tick(&mut self) -> Result<(), CampaignError> {
        let progress = self.progress();
        self.session.screen.progress(&progress);
        if self.session.is_save_due() || self.campaign.is_unsaved() {
            self.save()?;
            self.session.append_stats(&progress)?;
        }
        Ok(())
    }

    pub(super) fn progress(&self) -> Progress {
        let running = self.running.map_or(Duration::ZERO, |since| since.elapsed());
        let (runs, of_call) = self.runs();
        Progress {
            phase: self.phase,
            runs,
            minimizing: self.waiting,
            ..(self.session).progress(&self.campaign, of_call, self.fuzzed + running)
        }
    }

    /// Returns two numbers of runs: those that count for the option `--runs`, which several calls
    /// of ddfuzz may share, and those of this call.
    fn runs(&self) -> (u64, u64) {
        let state = self.campaign.checkpoint.study.as_ref();
        let runs = state.map_or(0, StudyState::runs);
        (runs, state.map_or(0, StudyState::all_runs) - self.first)
    }

    fn summary(&self) -> Result<StudySummary, CampaignError> {
        let muted = |major: Key| self.session.is_muted(&major.short());
        let checkpoint = &self.campaign.checkpoint;
        let (runs, runs_of_call) = self.runs();
        Ok(StudySummary {
            runs,
            runs_of_call,
            fuzzed: self.fuzzed,
            new_groups: self.campaign.new_groups(muted)?,
            known_crashes: checkpoint.known_crashes(|major| self.session.is_muted(major)),
            interrupted: self.session.interrupted(),
            out_of_time: self.settings.deadline.is_over(),
            out_of_room: self.session.disk_wait.is_given_up(),
            unstored: self.unstored,
            ways: self.ways.clone(),
        })
    }
}
