//! The screen of a minimization.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::rate;
use crate::cli::output::{self, Output};
use crate::minimize::log::{Line, ReduceLine};
use crate::minimize::{MinimizePhase, MinimizeStatus, Options};
use crate::report::{size, text};

/// Reductions that are shown.
const RECENT: usize = 3;
/// Between two lines where nothing can be drawn.
const PLAIN: Duration = Duration::from_secs(10);
/// Characters of a line before its text: `00:00:00 `.
const CLOCK: usize = 9;

/// A few lines on stderr that are drawn again and again, if stderr is a terminal, and else a line
/// every ten seconds.
pub struct Minimizing {
    shown: RefCell<Shown>,
    output: Output,
}

struct Shown {
    bar: ProgressBar,
    began: Instant,
    /// Whether it is a part of a call that shrinks: sizes are in its units.
    of_call: bool,
    /// Tests that were executed before this call.
    before: Option<u64>,
    standing: Option<MinimizeStatus>,
    recent: VecDeque<String>,
    /// When a plain line was last written.
    said: Instant,
}

impl Minimizing {
    /// A screen as loud as `output` says.
    pub fn new(output: &Output) -> Minimizing {
        let target = match output.quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr_with_hz(10),
        };
        let style = ProgressStyle::with_template("{elapsed_precise} {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::with_draw_target(None, target).with_style(style);
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
        Minimizing {
            shown: RefCell::new(shown),
            output: output.clone(),
        }
    }

    /// The options of the minimization of an input that is shown here.
    pub fn watch<'a>(&'a self, options: Options<'a>) -> Options<'a> {
        self.watch_next(options, false)
    }

    /// The options of the minimization of a part of a call that is shown here.
    pub fn watch_call<'a>(&'a self, options: Options<'a>) -> Options<'a> {
        self.watch_next(options, true)
    }

    fn watch_next<'a>(&'a self, options: Options<'a>, of_call: bool) -> Options<'a> {
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

    /// Prints a line above what is drawn, unless the output is quiet.
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
    /// Begins with another minimization; the clock goes on.
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

    /// Where things stand, in one line.
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

impl Drop for Minimizing {
    fn drop(&mut self) {
        self.shown.borrow().bar.finish_and_clear();
    }
}
