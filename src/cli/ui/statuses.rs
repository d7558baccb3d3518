//! The course of a campaign as lines for `grep`: one word, then `name=value`.

use std::collections::HashSet;

use crate::campaign::Progress;
use crate::report::GroupView;
use crate::report::text::printable;
use crate::store::Kind;
use crate::triage::Key;

/// Milliseconds between two lines on the course.
const EVERY_MS: u64 = 10_000;

/// Makes the lines: one on the course every ten seconds and with each phase, one for each new group,
/// and one for each minimization that has ended. `t` is the time since the campaign began, in whole
/// seconds. What is not known is `-`.
#[derive(Debug, Default)]
pub struct Statuses {
    time_ms: u64,
    /// When the last line on the course was made.
    last_ms: u64,
    /// What it did when it was last told of.
    phase: &'static str,
    told: HashSet<(Kind, Key)>,
}

impl Statuses {
    /// The line on the course, if it is time for one.
    pub fn progress(&mut self, progress: &Progress) -> Option<String> {
        self.time_ms = progress.time_ms;
        let phase = progress.phase.name();
        let another = std::mem::replace(&mut self.phase, phase) != phase;
        let behind = another && phase != "fuzzing";
        if progress.time_ms < self.last_ms + EVERY_MS && !behind {
            return None;
        }
        self.last_ms = progress.time_ms;
        let known = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let count = |value: Option<u64>| known(value.map(|value| value.to_string()));
        Some(format!(
            "status t={} phase={phase} runs={} runs_per_s={:.1} crashes={} hangs={} ooms={} groups={} \
             minimizing={} minimizer_share={:.3} corpus={} edges={} edges_of={} stability={}",
            self.seconds(),
            progress.runs,
            progress.runs_per_s,
            progress.crashes,
            progress.hangs,
            progress.ooms,
            progress.groups.max(self.crash_groups()),
            progress.minimizing,
            progress.minimizer_share,
            progress.corpus,
            count(progress.edges),
            count(progress.edges_of),
            known(progress.stability.map(|share| format!("{share:.3}"))),
        ))
    }

    /// How many groups of crashes the lines have named. Some were met by minimizations only, which
    /// the campaign does not count.
    fn crash_groups(&self) -> u64 {
        let crashes = self.told.iter().filter(|(kind, _)| *kind == Kind::Crash);
        crashes.count() as u64
    }

    /// The line on a group that was not told before.
    pub fn group(&mut self, group: &GroupView) -> Option<String> {
        self.told.insert((group.kind, group.major)).then(|| {
            format!(
                "found t={} {} size={} where={}",
                self.seconds(),
                named(group),
                group.size_before,
                place(group),
            )
        })
    }

    /// The line on a minimization that has ended; of a group with several results it says which
    /// variant it is of.
    pub fn minimized(&mut self, group: &GroupView) -> String {
        self.told.insert((group.kind, group.major));
        let claim = group.claim_word().map(|word| word.replace(' ', "-"));
        let tests = group.tests_executed().map(|tests| tests.to_string());
        let variant = group.variant().map(|minor| format!(" variant={minor}"));
        format!(
            "minimized t={} {} size_before={} size_after={} tests={} claim={}{}",
            self.seconds(),
            named(group),
            group.size_before,
            group.size_after(),
            tests.as_deref().unwrap_or("-"),
            claim.map_or_else(|| "-".to_owned(), |claim| printable(&claim)),
            variant.unwrap_or_default(),
        )
    }

    fn seconds(&self) -> u64 {
        self.time_ms / 1000
    }
}

fn named(group: &GroupView) -> String {
    let class = printable(&group.class.to_string());
    format!(
        "kind={} group={} class={class}",
        group.kind.folder(),
        group.major.short()
    )
}

/// The place, the last value of its line, for it has blanks.
fn place(group: &GroupView) -> String {
    printable(group.place.as_deref().unwrap_or("-"))
}
