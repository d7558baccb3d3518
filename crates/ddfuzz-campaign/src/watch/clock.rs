//! How far a watch has come, and when it is over.

use std::collections::BTreeMap;
use std::time::Duration;

use super::engine::{Engine, Over};
use crate::error::CampaignError;
use crate::screen::{Phase, Progress};
use crate::summary::Summary;
use crate::until::{Course, Until, reached};
use ddfuzz_store::Kind;
use ddfuzz_store::report::EndedBy;
use ddfuzz_triage::Key;

impl Engine<'_> {
    /// How long was watched: not while the disk was full.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed().saturating_sub(self.gate.held())
    }

    /// Counts the groups that are new in this call, and looks whether they are enough.
    pub(super) fn count_new(&mut self) {
        let checkpoint = &self.books.ledger.checkpoint;
        let seen = checkpoint.seen.get(&Kind::Crash).into_iter().flatten();
        let new = seen
            .filter(|(major, _)| !checkpoint.known_before.contains(*major) && !self.is_muted(major))
            .count() as u64;
        if new > self.new_seen.0 {
            self.new_seen = (new, Some(self.elapsed()));
        }
        self.end_with(Until::is_of_runs);
    }

    /// Whether the clock ends it.
    pub(super) fn look_at_clock(&mut self) {
        self.end_with(|until| !until.is_of_runs());
        let is_over = |time| self.began.elapsed() >= time;
        if self.over.is_none() && self.settings.time.is_some_and(is_over) {
            self.over = Some(Over::Time);
        }
        if self.over.is_none() && self.build.has_changed() {
            self.over = Some(Over::Rebuilt);
        }
    }

    fn end_with(&mut self, which: impl Fn(&Until) -> bool) {
        let (groups, last) = self.new_seen;
        let elapsed = self.elapsed();
        let course = Course {
            groups,
            since_new: last.map(|last| elapsed.saturating_sub(last)),
            elapsed,
        };
        let ends: Vec<Until> = self.settings.until.iter().copied().filter(which).collect();
        if self.over.is_none()
            && let Some(until) = reached(&ends, &course)
        {
            self.over = Some(Over::Until(until));
        }
    }

    /// Runs of this call.
    fn runs(&self) -> u64 {
        match self.producer.runs() {
            0 => self.books.ledger.checkpoint.next - self.first,
            runs => runs,
        }
    }

    /// What is done: when nothing more is watched, what is left is minimized.
    fn phase(&self) -> Phase {
        let waiting = self.shrinking.waiting();
        match self.watched {
            Some(_) if waiting > 0 => Phase::Minimizing {
                done: self.shrinking.done(),
                of: self.shrinking.done() + waiting,
                each_ms: (self.settings.minimizing.budget_time)
                    .map(|budget| budget.as_millis() as u64),
            },
            _ => Phase::Fuzzing,
        }
    }

    pub(super) fn progress(&self) -> Progress {
        let checkpoint = &self.books.ledger.checkpoint;
        let groups = checkpoint.seen.get(&Kind::Crash).map_or(0, BTreeMap::len);
        let elapsed = self.began.elapsed();
        Progress {
            phase: self.phase(),
            time_ms: elapsed.as_millis() as u64,
            runs: self.runs(),
            runs_per_s: Progress::rate(self.runs(), self.watched.unwrap_or(elapsed)),
            groups: groups as u64,
            crashes: checkpoint.total(Kind::Crash),
            hangs: checkpoint.total(Kind::Hang),
            ooms: checkpoint.total(Kind::Oom),
            minimizing: self.shrinking.waiting(),
            minimizer_share: self.shrinking.spent.as_secs_f64()
                / self.settings.jobs.max(1) as f64
                / elapsed.as_secs_f64().max(0.001),
            ..Progress::default()
        }
    }

    /// What the call has come to.
    pub(super) fn summary(&self, watched: Duration) -> Result<Summary, CampaignError> {
        let checkpoint = &self.books.ledger.checkpoint;
        let muted = |major: Key| self.is_muted(&major.short());
        let (ended_by, until) = match self.over {
            _ if self.interrupted() => (EndedBy::Interrupted, None),
            Some(Over::Until(until)) => (EndedBy::Until, Some(until)),
            Some(Over::Time) => (EndedBy::Time, None),
            Some(Over::Ended | Over::Rebuilt) | None => (EndedBy::Fuzzer, None),
        };
        Ok(Summary {
            runs: self.runs(),
            runs_of_call: self.runs(),
            fuzzed: watched,
            new_groups: self.books.ledger.new_groups(muted)?,
            known_crashes: checkpoint.known_crashes(|major| self.is_muted(major)),
            crashes: checkpoint.total(Kind::Crash),
            interrupted: self.interrupted(),
            ended_by,
            until,
            // Who has dropped the files has them still.
            unstored: 0,
            unnamed: 0,
            out_of_room: self.room.is_given_up(),
            rebuilt: self.rebuild().is_on_record(),
        })
    }
}
