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
use crate::minimize::{MinimizePhase, MinimizeStatus, Options, Runs};
use crate::report::text::printable;
use crate::report::{GroupView, block, size, text};
use crate::store::Kind;
use crate::triage::Key;

/// Creates a progress line on stderr with the elapsed time; hidden if stderr is not a terminal or
/// the output is quiet.
pub fn bar(output: &Output) -> ProgressBar {
    let bar = progress_bar(output, "{elapsed_precise} {wide_msg}", 5);
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// Creates a progress bar on stderr that is drawn at most `hz` times per second, with the given
/// indicatif template; hidden if stderr is not a terminal or the output is quiet.
fn progress_bar(output: &Output, template: &str, hz: u8) -> ProgressBar {
    let target = match output.quiet {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr_with_hz(hz),
    };
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::with_draw_target(None, target).with_style(style)
}

/// Returns the width of stdout in columns; `None` if stdout is not a terminal.
pub fn stdout_width() -> Option<usize> {
    let (_, columns) = console::Term::stdout().size_checked()?;
    Some(usize::from(columns))
}

/// Formats a rate per second, such as that of runs, with one decimal if it is below 10.
pub fn rate(per_second: f64) -> String {
    match per_second {
        slow if slow < 10.0 => format!("{slow:.1}"),
        fast => size::grouped(fast.round() as u64),
    }
}

/// A progress line on a terminal that counts finished items and shows how many are finished per
/// second.
pub struct CountBar {
    bar: ProgressBar,
    unit: &'static str,
    all: u64,
    began: Instant,
}

impl CountBar {
    /// Creates a progress line for a total of `all` items, each called `unit` in the text.
    pub fn new(output: &Output, unit: &'static str, all: u64) -> CountBar {
        CountBar {
            bar: bar(output),
            unit,
            all,
            began: Instant::now(),
        }
    }

    /// Sets the total number of items that the progress line shows.
    pub fn set_all(&mut self, all: u64) {
        self.all = all;
    }

    /// Shows the number `done` of finished items, and the text `found` about the results so far.
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

/// The progress display of a campaign without a full screen. On a terminal, it is a line at the
/// bottom, above which a block of text is printed for each minimized crash group. Without a
/// terminal, it prints `key=value` lines, for `grep`, on stderr.
pub struct CampaignLine {
    bar: ProgressBar,
    output: Output,
    statuses: Statuses,
    unit: &'static str,
}

impl CampaignLine {
    /// Creates the progress line of a campaign; `output` says whether messages are printed at all.
    pub fn new(output: &Output) -> CampaignLine {
        CampaignLine {
            bar: bar(output),
            output: output.clone(),
            statuses: Statuses::default(),
            unit: "run",
        }
    }

    /// Returns this display with `unit` as the word that the progress line uses for an execution:
    /// `run` or `input`.
    pub fn counting(mut self, unit: &'static str) -> CampaignLine {
        self.unit = unit;
        self
    }

    fn above(&self, text: &str) {
        if self.output.quiet {
            return;
        }
        let text = output::printable_lines(text);
        self.bar.suspend(|| match self.output.json {
            true => output::tell(&text),
            false => self.output.print(&text),
        });
    }

    /// Prints `line` on stderr if stderr is not a terminal; else does nothing.
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

/// Interval between the status lines that a campaign prints without a terminal, in milliseconds.
const EVERY_MS: u64 = 10_000;

/// Formats the `key=value` lines that a campaign prints without a terminal: one for each new group,
/// one for each finished minimization, and status lines. A status line is due every ten seconds,
/// and when the campaign begins to locate hangs or to minimize. `t=` is the time since the campaign
/// began, in seconds; unknown values are `-`.
#[derive(Debug, Default)]
pub struct Statuses {
    time_ms: u64,
    /// Time at which the last status line was formatted, in milliseconds since the campaign began.
    last_ms: u64,
    /// Phase of the campaign (fuzzing, locating hangs, minimizing) in the latest progress report.
    phase: &'static str,
    /// Kinds and major keys (the hashes that identify groups) of the groups for which a `key=value`
    /// line was formatted.
    named: HashSet<(Kind, Key)>,
}

impl Statuses {
    /// Returns a status line about `progress` if one is due: ten seconds after the last one, or
    /// when the campaign has just changed to another phase than fuzzing. Otherwise returns `None`.
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

    /// Returns the number of crash groups for which a `key=value` line was formatted. It may be
    /// greater than the campaign's own count, since minimizations find further groups.
    fn crash_groups(&self) -> u64 {
        let crashes = self.named.iter().filter(|(kind, _)| *kind == Kind::Crash);
        crashes.count() as u64
    }

    /// Returns the `key=value` line for a new group. `None` if the group had a line before.
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

    /// Returns the `key=value` line for a finished minimization of a group. If the group has
    /// several minimized crashes, the line contains the minor key (finer hash of crashes), which
    /// tells them apart.
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

/// Formats the place of a group's crash in the source code, which is the last value in a
/// `key=value` line, because it may contain spaces.
fn place(group: &GroupView) -> String {
    printable(group.place.as_deref().unwrap_or("-"))
}

/// Maximum number of latest reductions (smaller failing inputs) that the progress display of a
/// minimization lists.
const RECENT: usize = 3;
/// Interval between the progress lines that a minimization prints if stderr is not a terminal.
const PLAIN: Duration = Duration::from_secs(10);
/// Width in columns of the elapsed time, `00:00:00 `, at the beginning of the progress line of a
/// minimization.
const CLOCK: usize = 9;

/// The progress display of a minimization: a few lines drawn on a terminal, else a line every ten
/// seconds.
pub struct MinimizationScreen {
    shown: RefCell<Shown>,
    output: Output,
}

struct Shown {
    bar: ProgressBar,
    began: Instant,
    /// Whether a command line is minimized: if so, sizes are counted in units (arguments,
    /// characters or variables), and else in bytes.
    of_call: bool,
    /// Number of tests that earlier calls of ddfuzz had executed when this call resumed the
    /// minimization; `None` before the first status.
    executed_before: Option<u64>,
    standing: Option<MinimizeStatus>,
    /// From what the remaining time of the present phase (step) of the minimization is computed:
    /// the name of the phase, the time at which it was first shown, and how many of its runs had
    /// been made at that time. `None` if the phase has no known number of runs.
    counted: Option<(&'static str, Instant, u64)>,
    recent: VecDeque<String>,
    /// Time at which the last progress line was printed because stderr is not a terminal.
    said: Instant,
}

impl MinimizationScreen {
    /// Creates the progress display of a minimization; `output` says whether it is shown at all.
    pub fn new(output: &Output) -> MinimizationScreen {
        let bar = progress_bar(output, "{elapsed_precise} {msg}", 10);
        let now = Instant::now();
        let shown = Shown {
            bar,
            began: now,
            of_call: false,
            executed_before: None,
            standing: None,
            counted: None,
            recent: VecDeque::new(),
            said: now,
        };
        MinimizationScreen {
            shown: RefCell::new(shown),
            output: output.clone(),
        }
    }

    /// Returns `options`, the options of a minimization, with added callbacks that show its
    /// progress on this display. `of_call`: true if a command line is minimized, false if an input
    /// is.
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

    /// Prints a line above the progress display of a minimization, unless `--quiet` is given.
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
        shown.executed_before.get_or_insert(standing.executed);
        shown.standing = Some(*standing);
        shown.time_phase(standing);
        if !shown.bar.is_hidden() {
            shown.draw();
        } else if !self.output.quiet && shown.said.elapsed() >= PLAIN {
            shown.said = Instant::now();
            output::tell(&shown.line());
        }
    }
}

impl Shown {
    /// Clears the progress display and restarts its clock for the next minimization. `of_call`:
    /// true if a command line is minimized, false if an input is.
    fn begin(&mut self, of_call: bool) {
        self.of_call = of_call;
        self.began = Instant::now();
        self.executed_before = None;
        self.standing = None;
        self.counted = None;
        self.recent.clear();
        if !self.bar.is_hidden() {
            self.bar.enable_steady_tick(Duration::from_millis(500));
        }
    }

    /// Records when the present phase of the minimization was first shown, and how many of its runs
    /// had been made by then. Does nothing if this is recorded already; records nothing for a phase
    /// without a known number of runs.
    fn time_phase(&mut self, standing: &MinimizeStatus) {
        let name = standing.phase.name();
        self.counted = standing.runs.map(|runs| match self.counted {
            Some(counted) if counted.0 == name => counted,
            _ => (name, Instant::now(), runs.done),
        });
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

    /// Formats the state of the minimization as one line: the sizes, the number of tests and tests
    /// per second, the present step, and which part of the proof of minimality is done.
    fn line(&self) -> String {
        let (Some(standing), Some(before)) = (&self.standing, self.executed_before) else {
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
        let tests = size::counted(standing.executed, "test");
        // Where runs are counted, what is left tells more than tests per second.
        let speed = match standing.runs {
            Some(_) => String::new(),
            None => format!(", {}/s", rate(per_second)),
        };
        let mut line = format!("{sizes}, {tests}{speed}, {}", standing.phase);
        if let Some(runs) = standing.runs {
            let timed = self.counted.map(|(_, began, done)| (began.elapsed(), done));
            line.push_str(&counted_runs(runs, timed));
        }
        if standing.phase != MinimizePhase::Baseline {
            line.push_str(&format!(
                ", {} of {} removals proved",
                size::grouped(standing.proved.done),
                size::grouped(standing.proved.of)
            ));
        }
        line
    }
}

/// Formats how many runs of a phase are made, and about how long the remaining ones take, unless
/// that is less than a second: `: 4 of 20 runs, about 32 s left`. `timed`: the time since the phase
/// was first shown, and how many of its runs had been made at that time.
fn counted_runs(runs: Runs, timed: Option<(Duration, u64)>) -> String {
    let Runs { done, of } = runs;
    let mut text = format!(": {} of {}", size::grouped(done), size::counted(of, "run"));
    if let Some((elapsed, before)) = timed
        && done > before
    {
        let left = elapsed.as_secs_f64() / (done - before) as f64 * of.saturating_sub(done) as f64;
        match left.round() as u64 {
            0 => {}
            seconds @ 1..60 => text.push_str(&format!(", about {seconds} s left")),
            seconds => {
                let left = size::duration(Duration::from_secs(seconds));
                text.push_str(&format!(", about {left} left"));
            }
        }
    }
    text
}

impl Drop for MinimizationScreen {
    fn drop(&mut self) {
        self.shown.borrow().bar.finish_and_clear();
    }
}
