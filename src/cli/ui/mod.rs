//! What is drawn on a terminal, or printed as lines where there is none: a count, the progress of a
//! campaign, a minimization, the full screen.

pub mod campaign;
mod minimizing;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub use minimizing::Minimizing;

use super::output::{self, Output};
use crate::campaign::{Progress, Screen};
use crate::report::text::printable;
use crate::report::{GroupView, block, size};
use crate::store::Kind;
use crate::triage::Key;

/// One line on stderr, with the time since it began; not drawn where stderr is no terminal, or
/// `output` is quiet.
pub fn bar(output: &Output) -> ProgressBar {
    let target = match output.quiet {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr_with_hz(5),
    };
    let style = ProgressStyle::with_template("{elapsed_precise} {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::with_draw_target(None, target).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// The width of the terminal that stdout is, in characters; `None` if it is none.
pub fn stdout_width() -> Option<usize> {
    let (_, columns) = console::Term::stdout().size_checked()?;
    Some(usize::from(columns))
}

/// Runs per second: with a decimal where a whole number would say too little.
pub fn rate(per_second: f64) -> String {
    match per_second {
        slow if slow < 10.0 => format!("{slow:.1}"),
        fast => size::grouped(fast.round() as u64),
    }
}

/// One line on stderr that is drawn again and again, if stderr is a terminal.
pub struct Counting {
    bar: ProgressBar,
    unit: &'static str,
    all: u64,
    began: Instant,
}

impl Counting {
    /// A line of `all` things, as loud as `output` says.
    pub fn new(output: &Output, unit: &'static str, all: u64) -> Counting {
        Counting {
            bar: bar(output),
            unit,
            all,
            began: Instant::now(),
        }
    }

    /// It is of so many things.
    pub fn set_all(&mut self, all: u64) {
        self.all = all;
    }

    /// So many are done, and this is what they came to.
    pub fn show(&self, done: u64, found: &str) {
        let per_second = done as f64 / self.began.elapsed().as_secs_f64().max(0.001);
        self.bar.set_message(format!(
            "{} of {}, {}/s, {found}",
            size::grouped(done),
            size::counted(self.all, self.unit),
            rate(per_second),
        ));
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// One line on stderr that is drawn again and again, if stderr is a terminal; the block of each
/// group above it. Without a terminal, lines for `grep` on stderr.
pub struct Line {
    bar: ProgressBar,
    output: Output,
    statuses: Statuses,
    unit: &'static str,
}

impl Line {
    /// A line as loud as `output` says.
    pub fn new(output: &Output) -> Line {
        Line {
            bar: bar(output),
            output: output.clone(),
            statuses: Statuses::default(),
            unit: "run",
        }
    }

    /// The same for a campaign that counts something else than runs.
    pub fn counting(mut self, unit: &'static str) -> Line {
        self.unit = unit;
        self
    }

    fn above(&self, text: &str) {
        if self.output.quiet {
            return;
        }
        self.bar.suspend(|| match self.output.json {
            true => output::tell(text),
            false => self.output.print(text),
        });
    }

    /// A line where nothing is drawn.
    fn say(&self, line: Option<String>) {
        if self.bar.is_hidden()
            && let Some(line) = line
        {
            self.output.say(&line);
        }
    }
}

impl Screen for Line {
    fn progress(&mut self, progress: &Progress) {
        let line = self.statuses.progress(progress);
        self.say(line);
        let text = format!(
            "{}, {}/s, {} crashed, {}, {}{}",
            size::counted(progress.runs, self.unit),
            rate(progress.runs_per_s),
            size::grouped(progress.crashes),
            size::counted(progress.groups, "group"),
            size::counted(progress.hangs, "hang"),
            match (progress.phase.text(), progress.minimizing) {
                (Some(phase), _) => format!("; {phase}"),
                (None, 0) => String::new(),
                (None, waiting) => format!(", minimizing {waiting}"),
            },
        );
        self.bar.set_message(text);
    }

    fn group(&mut self, group: &GroupView) {
        let line = self.statuses.group(group);
        self.say(line);
    }

    fn minimized(&mut self, group: &GroupView) {
        let line = self.statuses.minimized(group);
        // Where lines are written, one is enough: the result and `ddfuzz show` tell more.
        match self.bar.is_hidden() {
            true => self.say(Some(line)),
            false => self.above(&block(group)),
        }
    }

    fn note(&mut self, text: &str) {
        self.bar.suspend(|| self.output.say(text));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Milliseconds between two status lines.
const EVERY_MS: u64 = 10_000;

/// Makes the lines: one on the course every ten seconds and with each phase, one for each new group,
/// and one for each minimization that has ended. `t` is the time since the campaign began, in whole
/// seconds. What is not known is `-`.
#[derive(Debug, Default)]
pub struct Statuses {
    time_ms: u64,
    /// When the last status line was made.
    last_ms: u64,
    /// The phase of the last status line.
    phase: &'static str,
    told: HashSet<(Kind, Key)>,
}

impl Statuses {
    /// The status line, if it is time for one.
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

    /// The line of a group that is new.
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
