//! How a campaign stands, and whether it is over.

use std::time::{Duration, Instant};

use super::session::Session;
use crate::screen::Progress;
use crate::{Course, reached};
use ddfuzz_store::Kind;

impl Session<'_> {
    /// Whether no more runs are to be made.
    pub(super) fn is_over(&self) -> bool {
        self.stopped()
            || self.failed.is_some()
            || self.ended.is_some()
            || self.until.is_some()
            || self.rebuilt
            || self.settings.time.is_some_and(|time| self.clock() >= time)
            || self.left() == Some(0) && self.outstanding == 0
    }

    /// Runs of this count that nobody has made; `None` where there is no end.
    pub(super) fn left(&self) -> Option<u64> {
        let checkpoint = &self.books.ledger.checkpoint;
        Some(checkpoint.goal?.saturating_sub(checkpoint.next))
    }

    /// How long was fuzzed: not while the disk was full, nor while another build was looked at.
    pub(super) fn fuzzed(&self) -> Duration {
        self.clock().saturating_sub(self.gate.held())
    }

    /// What of the time for fuzzing is over, which a full disk does not stop.
    fn clock(&self) -> Duration {
        let until = self.ended.unwrap_or_else(Instant::now);
        let all = until.saturating_duration_since(self.began);
        all.saturating_sub(self.paused)
    }

    /// Looks whether it is enough, or the program another one.
    pub(super) fn look(&mut self) {
        let elapsed = self.fuzzed();
        self.count_new(elapsed);
        let (groups, last) = self.new_seen;
        let course = Course {
            groups,
            since_new: last.map(|last| elapsed.saturating_sub(last)),
            elapsed,
        };
        self.until = self.until.or(reached(&self.settings.until, &course));
        self.rebuilt = self.rebuilt || self.watch.has_changed();
    }

    /// Counts the groups that are new, where there are more groups than before: to ask of each
    /// whether it is muted may take a look into its files.
    fn count_new(&mut self, elapsed: Duration) {
        let checkpoint = &self.books.ledger.checkpoint;
        let seen = checkpoint.seen.get(&Kind::Crash);
        let all = seen.map_or(0, |groups| groups.len());
        if std::mem::replace(&mut self.counted, all) == all {
            return;
        }
        let new = seen.into_iter().flatten().filter(|(major, _)| {
            !checkpoint.known_before.contains(*major) && !self.books.is_muted(major)
        });
        let groups = new.count() as u64;
        if groups > self.new_seen.0 {
            self.new_seen = (groups, Some(elapsed));
        }
    }

    /// The course at this moment.
    pub(super) fn progress(&self) -> Progress {
        let checkpoint = &self.books.ledger.checkpoint;
        let groups = checkpoint
            .seen
            .get(&Kind::Crash)
            .map_or(0, |groups| groups.len());
        let best = self.best;
        let stable = |edges: u64| 1.0 - best.unstable.min(edges) as f64 / edges as f64;
        let workers = self.fuzzed().as_secs_f64() * self.settings.jobs.max(1) as f64;
        Progress {
            phase: self.phase,
            time_ms: self.began.elapsed().as_millis() as u64,
            runs: checkpoint.next - checkpoint.count_start,
            runs_per_s: Progress::rate(checkpoint.next - self.first, self.fuzzed()),
            corpus: self.corpus,
            groups: groups as u64,
            crashes: checkpoint.total(Kind::Crash),
            hangs: checkpoint.total(Kind::Hang),
            ooms: checkpoint.total(Kind::Oom),
            minimizing: self.books.desk.waiting() as u64,
            edges: Some(best.edges),
            edges_of: Some(best.edges_of),
            stability: (best.edges > 0).then(|| stable(best.edges)),
            minimizer_share: self.minimized.as_secs_f64() / workers.max(0.001),
        }
    }
}
