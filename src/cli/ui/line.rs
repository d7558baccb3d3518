//! The progress of a campaign as lines.

use indicatif::ProgressBar;

use super::{Statuses, bar, rate};
use crate::campaign::{Progress, Screen};
use crate::cli::output::{self, Output};
use crate::report::{GroupView, block, size};

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
