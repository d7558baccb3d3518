//! Progress display on a terminal, or as lines: a count, a campaign, a minimization; the full
//! screen is in `campaign`.

pub mod campaign;

use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::campaign::{Progress, Screen};
use crate::cli::output::{self, Output};
use crate::minimize::log::{Line, ReduceLine};
use crate::minimize::{MinimizePhase, MinimizeStatus, Options};
use crate::report::text::printable;
use crate::report::{GroupView, block, size, text};
use crate::store::Kind;
use crate::triage::Key;

/// Creates a progress line on stderr with the elapsed time; hidden if stderr is no terminal or the
/// output is quiet.
pub fn bar(output: &Output) -> ProgressBar {
    let bar = progress_bar(output, "{elapsed_precise} {wide_msg}", 5);
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// Creates a progress bar on stderr that is drawn at most `hz` times per second; hidden if stderr is
/// no terminal or the output is quiet.
fn progress_bar(output: &Output, template: &str, hz: u8) -> ProgressBar {
    let target = match output.quiet {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr_with_hz(hz),
    };
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::with_draw_target(None, target).with_style(style)
}

/// Returns the width of stdout in columns; `None` if it is no terminal.
pub fn stdout_width() -> Option<usize> {
    let (_, columns) = console::Term::stdout().size_checked()?;
    Some(usize::from(columns))
}

/// Formats runs per second; small rates get a decimal.
pub fn rate(per_second: f64) -> String {
    match per_second {
        slow if slow < 10.0 => format!("{slow:.1}"),
        fast => size::grouped(fast.round() as u64),
    }
}

/// Progress line that counts items, with their rate; drawn only on a terminal.
pub struct CountBar {
    bar: ProgressBar,
    unit: &'static str,
    all: u64,
    began: Instant,
}

impl CountBar {
    /// Creates a progress line for `all` items, each called `unit`.
    pub fn new(output: &Output, unit: &'static str, all: u64) -> CountBar {
        CountBar {
            bar: bar(output),
            unit,
            all,
            began: Instant::now(),
        }
    }

    /// Sets the total number of items.
    pub fn set_all(&mut self, all: u64) {
        self.all = all;
    }

    /// Shows the number of finished items, and a text about the results.
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

impl Drop for CountBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Progress line of a campaign on a terminal, with a block of text for each minimized group above
/// it. Without a terminal: lines for `grep` on stderr.
pub struct CampaignLine {
    bar: ProgressBar,
    output: Output,
    statuses: Statuses,
    unit: &'static str,
}

impl CampaignLine {
    /// Creates the progress line; `output` sets how much is printed.
    pub fn new(output: &Output) -> CampaignLine {
        CampaignLine {
            bar: bar(output),
            output: output.clone(),
            statuses: Statuses::default(),
            unit: "run",
        }
    }

    /// Sets the name of a run in counts: `run` or `input`.
    pub fn counting(mut self, unit: &'static str) -> CampaignLine {
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

    /// Prints a line if there is no terminal.
    fn say(&self, line: Option<String>) {
        if self.bar.is_hidden()
            && let Some(line) = line
        {
            self.output.say(&line);
        }
    }
}

impl Screen for CampaignLine {
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

impl Drop for CampaignLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Interval between status lines, in milliseconds.
const EVERY_MS: u64 = 10_000;

/// Formats the lines printed without a terminal: a status line every ten seconds and at each change
/// of phase, one line for each new group, and one for each finished minimization. `t=` is the time
/// since the campaign began, in seconds; unknown values are `-`.
#[derive(Debug, Default)]
pub struct Statuses {
    time_ms: u64,
    /// Time of the last status line, in milliseconds.
    last_ms: u64,
    /// Phase in the last status line.
    phase: &'static str,
    /// Kinds and major keys of the groups named in lines.
    named: HashSet<(Kind, Key)>,
}

impl Statuses {
    /// Returns a status line if one is due.
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

    /// Number of crash groups named in lines. Minimizations find some that the campaign does not
    /// count.
    fn crash_groups(&self) -> u64 {
        let crashes = self.named.iter().filter(|(kind, _)| *kind == Kind::Crash);
        crashes.count() as u64
    }

    /// Returns the line for a group, if the group is new.
    pub fn group(&mut self, group: &GroupView) -> Option<String> {
        self.named.insert((group.kind, group.major)).then(|| {
            format!(
                "found t={} {} size={} where={}",
                self.seconds(),
                named(group),
                group.size_before,
                place(group),
            )
        })
    }

    /// Returns the line for a finished minimization; it names the variant if the group has several
    /// results.
    pub fn minimized(&mut self, group: &GroupView) -> String {
        self.named.insert((group.kind, group.major));
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

/// Formats the crash's place, the last value of its line because it may contain spaces.
fn place(group: &GroupView) -> String {
    printable(group.place.as_deref().unwrap_or("-"))
}

/// Number of reductions that are shown.
const RECENT: usize = 3;
/// Interval between lines if stderr is no terminal.
const PLAIN: Duration = Duration::from_secs(10);
/// Width of the clock at the beginning of a line: `00:00:00 `.
const CLOCK: usize = 9;

/// Progress of a minimization: a few lines drawn on a terminal, else a line every ten seconds.
pub struct MinimizationScreen {
    shown: RefCell<Shown>,
    output: Output,
}

struct Shown {
    bar: ProgressBar,
    began: Instant,
    /// Whether a command line is minimized: sizes are then in units instead of bytes.
    of_call: bool,
    /// Number of tests executed before this call.
    before: Option<u64>,
    standing: Option<MinimizeStatus>,
    recent: VecDeque<String>,
    /// Time of the last line printed without a terminal.
    said: Instant,
}

impl MinimizationScreen {
    /// Creates the display; `output` sets how much is printed.
    pub fn new(output: &Output) -> MinimizationScreen {
        let bar = progress_bar(output, "{elapsed_precise} {msg}", 10);
        let now = Instant::now();
        let shown = Shown {
            bar,
            began: now,
            of_call: false,
            before: None,
            standing: None,
            recent: VecDeque::new(),
            said: now,
        };
        MinimizationScreen {
            shown: RefCell::new(shown),
            output: output.clone(),
        }
    }

    /// Adds callbacks to the options of a minimization, so that its progress is shown. `of_call`: a
    /// command line is minimized instead of an input.
    pub fn watch<'a>(&'a self, options: Options<'a>, of_call: bool) -> Options<'a> {
        self.shown.borrow_mut().begin(of_call);
        Options {
            on_line: Box::new(|line| {
                if let Line::Reduce(reduction) = line {
                    self.reduced(reduction);
                }
            }),
            on_status: Some(Box::new(|standing| self.stands(standing))),
            ..options
        }
    }

    /// Prints a line above the progress, unless the output is quiet.
    pub fn say(&self, text: &str) {
        let shown = self.shown.borrow();
        shown.bar.suspend(|| self.output.say(text));
    }

    fn reduced(&self, reduction: &ReduceLine) {
        let mut shown = self.shown.borrow_mut();
        let left = match shown.of_call {
            true => size::counted(reduction.size, "unit"),
            false => size::bytes(reduction.size),
        };
        let test = size::grouped(reduction.i);
        let line = format!("test {test}: {left} by {}", reduction.rule);
        if self.output.verbose && !self.output.quiet {
            shown.bar.suspend(|| output::tell(&line));
        }
        shown.recent.push_front(line);
        shown.recent.truncate(RECENT);
    }

    fn stands(&self, standing: &MinimizeStatus) {
        let mut shown = self.shown.borrow_mut();
        shown.before.get_or_insert(standing.executed);
        shown.standing = Some(*standing);
        if !shown.bar.is_hidden() {
            shown.draw();
        } else if !self.output.quiet && shown.said.elapsed() >= PLAIN {
            shown.said = Instant::now();
            output::tell(&shown.line());
        }
    }
}

impl Shown {
    /// Resets the display for the next minimization.
    fn begin(&mut self, of_call: bool) {
        self.of_call = of_call;
        self.began = Instant::now();
        self.before = None;
        self.standing = None;
        self.recent.clear();
        if !self.bar.is_hidden() {
            self.bar.enable_steady_tick(Duration::from_millis(500));
        }
    }

    fn draw(&self) {
        let width = match console::Term::stderr().size_checked() {
            Some((_, columns)) => usize::from(columns),
            None => 80,
        };
        let mut message = text::cut(&self.line(), width.saturating_sub(CLOCK + 1));
        for line in &self.recent {
            message.push('\n');
            message.push_str(&text::cut(&format!("  {line}"), width.saturating_sub(1)));
        }
        self.bar.set_message(message);
    }

    /// Formats the progress as one line.
    fn line(&self) -> String {
        let (Some(standing), Some(before)) = (&self.standing, self.before) else {
            return String::new();
        };
        let seconds = self.began.elapsed().as_secs_f64();
        let per_second = match seconds > 0.0 {
            true => (standing.executed - before) as f64 / seconds,
            false => 0.0,
        };
        let sizes = match self.of_call {
            true => size::reduction_in(standing.size_before, standing.size, "unit"),
            false => size::reduction(standing.size_before, standing.size),
        };
        let mut line = format!(
            "{sizes}, {}, {}/s, {}",
            size::counted(standing.executed, "test"),
            rate(per_second),
            standing.phase
        );
        if standing.phase != MinimizePhase::Baseline {
            line.push_str(&format!(
                ", {} of {} proved",
                size::grouped(standing.proved.done),
                size::grouped(standing.proved.of)
            ));
        }
        line
    }
}

impl Drop for MinimizationScreen {
    fn drop(&mut self) {
        self.shown.borrow().bar.finish_and_clear();
    }
}
