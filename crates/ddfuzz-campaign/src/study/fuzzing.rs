//! The runs of one utility: workers, the commits of what they report, and whether a run over its
//! time limit hangs or is only slow.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam::channel::{self, Receiver, RecvTimeoutError, bounded};
use serde::{Deserialize, Serialize};

use super::engine::StudyEngine;
use super::utility::{SkipReason, Utility};
use super::worker::{self, Baseline, Chunk, Worker, WorkerContext};
use crate::classifier::{Classified, Finding};
use crate::error::CampaignError;
use crate::until::StopCondition;
use ddfuzz_exec::{Ended, ExecError, Freshness, Limits, TimeLimit, start};
use ddfuzz_store::{GroupTally, Kind};
use ddfuzz_triage::{Crash, Key, Subject};

/// Chunks that may wait to be committed before the workers pause.
const BACKLOG: usize = 1 << 12;
const TICK: Duration = Duration::from_millis(200);
/// The runs of the utility at this place have the numbers from this many times the place on.
const SPAN: u64 = 1_000_000_000;

type Report = Result<Chunk, ExecError>;

impl StudyEngine<'_> {
    /// Runs a utility until the end of the count, of its share of the time, or of the user's
    /// patience.
    pub(super) fn fuzz(
        &mut self,
        utility: &Utility,
        program: &Path,
        at: usize,
        baselines: &[Baseline],
    ) -> Result<(), CampaignError> {
        let began = Instant::now();
        self.running = Some(began);
        let next = self.state().next(at);
        let share = self.share();
        let shared = WorkerContext {
            utility,
            program,
            baselines,
            plan: &self.settings.plan,
            environment: &self.settings.environment,
            next: AtomicU64::new(next),
            end: self.state().end(at),
            stop_condition: StopCondition::new(
                self.session.stop,
                share.and_then(|share| began.checked_add(share)),
                self.session.gate,
            ),
        };
        let (report, reports) = channel::bounded::<Report>(BACKLOG);
        let done = std::thread::scope(|scope| {
            for _ in 0..self.settings.jobs.max(1) {
                let (report, shared) = (report.clone(), &shared);
                scope.spawn(move || Worker::new(shared).work(&report));
            }
            drop(report);
            let done = self.commit_all(&shared, &reports, at);
            shared.stop_condition.break_off(true);
            // A worker may be waiting for room; nothing more is committed.
            while reports.recv().is_ok() {}
            done
        });
        // What is committed after the deadline was run before it.
        self.running = None;
        self.fuzzed += began.elapsed().min(share.unwrap_or(Duration::MAX));
        done
    }

    /// Commits chunks in the order of their runs. Where a time ends them, all that were begun are
    /// committed, and the next call goes on after them; else those after one that was cut short
    /// are made again, for a number of runs is a function of the seed.
    fn commit_all(
        &mut self,
        shared: &WorkerContext<'_>,
        reports: &Receiver<Report>,
        at: usize,
    ) -> Result<(), CampaignError> {
        let mut waiting: BTreeMap<u64, Chunk> = BTreeMap::new();
        let mut cut_short = false;
        loop {
            match reports.recv_timeout(TICK) {
                Ok(Ok(chunk)) => drop(waiting.insert(chunk.first, chunk)),
                // The user's Ctrl-C may have reached a starting target, too.
                Ok(Err(_)) if self.session.stopped() => {}
                Ok(Err(error)) => {
                    // A utility that cannot be run any more does not end the study.
                    self.refuse(at, &SkipReason::NotStarting(error.to_string()));
                    shared.stop_condition.break_off(true);
                    cut_short = true;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return self.commit_rest(shared, waiting, at);
                }
            }
            while !cut_short && let Some(chunk) = waiting.remove(&self.state().next(at)) {
                cut_short = !self.commit(shared, chunk, at)?;
            }
            self.tick()?;
        }
    }

    /// Commits what follows the chunks of workers that have failed.
    fn commit_rest(
        &mut self,
        shared: &WorkerContext<'_>,
        waiting: BTreeMap<u64, Chunk>,
        at: usize,
    ) -> Result<(), CampaignError> {
        if !self.loses_nothing(shared, at) {
            return Ok(());
        }
        for (first, chunk) in waiting {
            let gap = first.saturating_sub(self.state().next(at));
            self.state().skip(at, gap);
            self.commit(shared, chunk, at)?;
        }
        Ok(())
    }

    /// Whether all runs that were made count, also those after others that were not.
    fn loses_nothing(&mut self, shared: &WorkerContext<'_>, at: usize) -> bool {
        self.state().is_timed(at) || shared.stop_condition.is_late()
    }

    /// Commits a chunk as a whole: where that fails, its runs are not counted, and are made again
    /// by the call that continues. Gives whether those after it may be committed as well.
    fn commit(
        &mut self,
        shared: &WorkerContext<'_>,
        mut chunk: Chunk,
        at: usize,
    ) -> Result<bool, CampaignError> {
        let all = self.loses_nothing(shared, at);
        let stop = self.session.stop;
        let hangs = take_out_slow(&mut chunk, &self.state().hangs[at], stop);
        // Ctrl-C, or the end of the whole time, may have ended what was asked about.
        if self.session.stopped() && hangs != self.state().hangs[at] {
            return Ok(false);
        }
        self.state().hangs[at] = hangs;
        let left = chunk.planned - chunk.runs;
        let place = self.state().utilities[at].place;
        let way = chunk.subject.target.way;
        if !self.ways.contains(&way) {
            self.ways.push(way);
        }
        for finding in std::mem::take(&mut chunk.findings) {
            let finding = Finding {
                run: place * SPAN + finding.run,
                ..finding
            };
            self.commit_finding(finding, &chunk.subject, at)?;
        }
        let record = &mut self.state().utilities[at];
        for one in chunk.tallies {
            worker::add(&mut record.tallies, one);
        }
        if all {
            self.state().skip(at, left);
        }
        Ok(all || left == 0)
    }

    fn commit_finding(
        &mut self,
        mut finding: Finding,
        subject: &Subject,
        at: usize,
    ) -> Result<(), CampaignError> {
        if let Classified::Crash(crash) | Classified::Flaky(crash) = &mut finding.what {
            crash.of = Some(Box::new(subject.clone()));
        }
        let kind = worker::kind_of(&finding.what);
        let major = match &finding.what {
            Classified::Known { major, .. } => major.short(),
            Classified::Crash(crash) | Classified::Flaky(crash) => crash.keys.major.short(),
        };
        let stored = self.session.made(|| self.ledger.commit(&finding))?;
        count(&mut self.state().utilities[at].groups, kind, major);
        if let Some(stored) = stored.filter(|stored| stored.founds)
            && let Some(view) = self.session.view(&stored.id)?
        {
            self.session.screen.group(&view);
        }
        Ok(())
    }
}

/// Counts the runs of a chunk that were over their time and do end as slow, and no more as
/// findings; gives what is known of hangs then.
fn take_out_slow(chunk: &mut Chunk, known: &Hangs, stop: &AtomicBool) -> Hangs {
    let mut hangs = known.clone();
    for finding in std::mem::take(&mut chunk.findings) {
        if is_slow(&finding, &chunk.subject, &mut hangs, stop) {
            let tally = &mut chunk.tallies[(finding.run - chunk.first) as usize];
            (tally.hangs, tally.slow) = (0, 1);
        } else {
            chunk.findings.push(finding);
        }
    }
    hangs
}

/// Whether a finding is a run over its time that does end.
fn is_slow(finding: &Finding, subject: &Subject, hangs: &mut Hangs, stop: &AtomicBool) -> bool {
    match &finding.what {
        Classified::Crash(crash) if Kind::of_class(&crash.class) == Kind::Hang => {
            // That a program cannot be started any more, its workers say.
            !hangs
                .is_real(&finding.input, crash, subject, stop)
                .unwrap_or_default()
        }
        _ => false,
    }
}

/// Counts a run that ended in a group.
fn count(groups: &mut Vec<GroupTally>, kind: Kind, major: String) {
    let same = |held: &&mut GroupTally| held.kind == kind && held.major == major;
    match groups.iter_mut().find(same) {
        Some(held) => held.runs += 1,
        None => groups.push(GroupTally {
            kind,
            major,
            runs: 1,
            replayed: None,
        }),
    }
}

/// How many times its limit a run is given before it is called a hang.
const PATIENCE: u32 = 10;
/// How often it is looked whether somebody waits for the answer.
const GLANCE: Duration = Duration::from_millis(50);
/// So often is asked of one utility; what stands at further places is taken for slow.
const MOST: u32 = 6;
/// So often is asked at one place.
const MOST_AT_ONE: u32 = 3;

/// What is known of the hangs of a utility. It is asked in the order of the runs, about each of
/// them, and kept from call to call, so that what it says depends on nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hangs {
    places: BTreeMap<Key, HangSite>,
    asked: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct HangSite {
    is_real: bool,
    slow: u32,
}

impl Hangs {
    /// Whether `subject` hangs on `input`, on which it was over its limit as `crash` says. Nobody
    /// waits for the answer when `stop` is true.
    pub(super) fn is_real(
        &mut self,
        input: &[u8],
        crash: &Crash,
        subject: &Subject,
        stop: &AtomicBool,
    ) -> Result<bool, ExecError> {
        let place = self.places.entry(crash.keys.major).or_default();
        if place.is_real || self.asked >= MOST || place.slow >= MOST_AT_ONE {
            return Ok(place.is_real);
        }
        self.asked += 1;
        place.is_real = outlasts(input, crash.limits, subject, stop)?;
        place.slow += u32::from(!place.is_real);
        Ok(place.is_real)
    }
}

/// Whether the run does not end in many times its limits, as far as that is known when `stop`
/// becomes true.
fn outlasts(
    input: &[u8],
    limits: Limits,
    subject: &Subject,
    stop: &AtomicBool,
) -> Result<bool, ExecError> {
    let patient = TimeLimit::from(limits).times(PATIENCE).within(limits);
    let Some(target) = subject.target.target(patient) else {
        return Ok(false);
    };
    let (way, input) = (Some(subject.target.way), input.to_vec());
    let (tell, told) = bounded(1);
    std::thread::spawn(move || {
        let run = start(&target, way, Freshness::Fresh).and_then(|mut it| it.executor.run(&input));
        // Nobody listens any more where the call has been stopped.
        let _ = tell.send(run);
    });
    while !stop.load(Ordering::Relaxed) {
        match told.recv_timeout(GLANCE) {
            Ok(run) => return Ok(run?.ended == Ended::Timeout),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use ddfuzz_exec::{Program, Target, TargetRecord, Way};

    #[test]
    fn nobody_waits_for_the_answer_who_has_been_stopped() {
        let target = Target {
            args: vec!["1000".into()],
            ..Target::new(Program::Path("/bin/sleep".into()))
        };
        let subject = Subject {
            utility: "sleep".to_owned(),
            target: TargetRecord::new(&target, Way::Command),
        };
        let limits = Limits::with_cpu(Duration::from_secs(1000));
        let (stop, began) = (AtomicBool::new(true), Instant::now());
        assert!(!outlasts(b"", limits, &subject, &stop).unwrap());
        assert!(began.elapsed() < limits.cpu);
    }
}
