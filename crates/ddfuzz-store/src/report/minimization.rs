//! The course of a minimization (`min`) or isolation (`max`, `diff`), read from its log, and its
//! drawing as SVG or as rows of text.

use std::collections::BTreeMap;

use serde::Serialize;

use super::size;
use ddfuzz_minimize::Claim;
use ddfuzz_minimize::log::{EditRecord, Line, Phase, Source, StartLine, TestLine, Units};
use ddfuzz_model::files::escaped_markup as escaped;

/// One reduction in a minimization: a candidate that failed and became the new best input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reduction {
    /// Index, in the minimization log, of the test that made the reduction, from 0.
    pub i: u64,
    /// Number of tests that ran the target up to the test that made the reduction, inclusive.
    pub executed: u64,
    /// Name of the transformation that made the candidate of this reduction.
    pub rule: String,
    /// Size of the new best input, in bytes; if parts of the command line are minimized, in units
    /// such as arguments. For `max` and `diff`, which narrow the difference between a passing and a
    /// failing input, the number of deltas by which these two still differ.
    pub size: u64,
}

/// A test of a minimization that ran the target, as a point in the drawing of sizes over tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestPoint {
    /// Number of the test among the tests that ran the target, from 1.
    pub executed: u64,
    /// Size of the tested candidate, in bytes; if parts of the command line are minimized, in units
    /// such as arguments.
    pub size: u64,
    /// Whether the candidate failed, that is, still shows the crash.
    pub failed: bool,
}

/// Counts of tests and reductions in one pass of a minimization's search. The proof of minimality
/// counts as a pass; a search without passes counts as one pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pass {
    /// Name of the pass of the search; `proof` for the proof of minimality.
    pub name: String,
    /// Number of tests in the pass, including those answered by a cache or a predictor.
    pub tests: u64,
    /// Number of tests in the pass that ran the target.
    pub executed: u64,
    /// Number of candidates in the pass that became the new best input: smaller, or simpler at the
    /// same size.
    pub reductions: u64,
    /// Number of bytes (or other units, such as arguments) that the pass removed from the best
    /// input.
    pub removed: u64,
    /// Number of the pass's reductions by name of the transformation, if the pass has several.
    pub rules: BTreeMap<String, u64>,
}

/// The course of a minimization, or of an isolation (of the difference between a failing and a
/// passing input): its reductions, executed tests and passes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MinimizationHistory {
    /// Name of the search algorithm that the minimization used.
    pub search: String,
    /// Unit of all sizes in this history of a minimization: `byte`, `unit` (of the command line,
    /// such as an argument), `edit` (between two inputs) or `change` (between two versions of a
    /// program).
    pub unit: &'static str,
    /// Size of the input before the minimization, in the history's `unit`. For `max` and `diff`,
    /// which narrow the difference between a passing and a failing input, the number of deltas
    /// between these two.
    pub size_before: u64,
    /// Size of the best input so far, in the history's `unit`. For `max` and `diff`, which narrow
    /// the difference between a passing and a failing input, the number of deltas by which these
    /// two still differ.
    pub size_after: u64,
    /// Number of tests of the minimization, including those answered by a cache or a predictor.
    pub tests: u64,
    /// Number of tests of the minimization that ran the target.
    pub executed: u64,
    /// The reductions (candidates that became the new best input), oldest first.
    pub steps: Vec<Reduction>,
    /// The tests that ran the target, oldest first. Empty for `max` and `diff`, which narrow the
    /// difference between a passing and a failing input.
    pub dots: Vec<TestPoint>,
    /// The passes of the search with their counts of tests and reductions, in the order of their
    /// first test.
    pub passes: Vec<Pass>,
    /// Proved minimality; `None` if the log has no end line, or has further lines after it.
    pub claim: Option<Claim>,
}

impl MinimizationHistory {
    /// Computes the course of a minimization, or of an isolation (of the difference between a
    /// failing and a passing input), from the start line of its log and the lines after it.
    pub fn of<'a>(
        start: &StartLine,
        lines: impl IntoIterator<Item = &'a Line>,
    ) -> MinimizationHistory {
        let mut isolation = Isolation::of(start);
        let size = isolation.as_ref().map_or(start.size, Isolation::left);
        let mut history = MinimizationHistory {
            search: start.search.clone(),
            unit: match (&isolation, &start.call) {
                _ if start.changes.is_some() => "change",
                (Some(isolation), _) => isolation.unit,
                (None, Some(_)) => "unit",
                (None, None) => "byte",
            },
            size_before: size,
            size_after: size,
            ..MinimizationHistory::default()
        };
        let mut last = 0;
        for line in lines {
            history.claim = None;
            match line {
                Line::Test(test) => {
                    // A version of a program's history has no size.
                    let is_version = start.changes.is_some() && test.size == 0;
                    last = history.test(test, isolation.is_none() && !is_version);
                    isolation.iter_mut().for_each(|one| one.test(test));
                }
                Line::Reduce(step) => {
                    isolation
                        .iter_mut()
                        .for_each(|one| one.reduce(step.i, &step.rule));
                    let size = isolation.as_ref().map_or(step.size, Isolation::left);
                    history.reduce(last, step.i, &step.rule, size);
                }
                Line::End(end) => {
                    // The log has no reduction to the empty input.
                    history.size_after = isolation.as_ref().map_or(end.size, Isolation::left);
                    history.claim = Some(end.claim);
                }
                Line::Start(_) | Line::Check(_) => {}
            }
        }
        history
    }

    /// Counts a test of the log, in the history and in its pass, and returns the index of the pass.
    /// If the test ran the target and `dotted` is true, it also becomes a point of the drawing.
    fn test(&mut self, test: &TestLine, dotted: bool) -> usize {
        let name = match (&test.pass, test.phase) {
            (_, Some(Phase::Proof)) => "proof",
            (Some(pass), None) => pass,
            (None, None) => &self.search,
        };
        let known = self.passes.iter().position(|pass| pass.name == name);
        let at = known.unwrap_or_else(|| {
            self.passes.push(Pass {
                name: name.to_owned(),
                ..Pass::default()
            });
            self.passes.len() - 1
        });
        self.tests += 1;
        self.passes[at].tests += 1;
        if test.source == Source::Run {
            self.executed += 1;
            self.passes[at].executed += 1;
            let dot = dotted.then(|| TestPoint {
                executed: self.executed,
                size: test.size,
                failed: test.has_failed(),
            });
            self.dots.extend(dot);
        }
        at
    }

    fn reduce(&mut self, pass: usize, i: u64, rule: &str, size: u64) {
        if let Some(pass) = self.passes.get_mut(pass) {
            pass.reductions += 1;
            let removed = self.size_after.saturating_sub(size);
            pass.removed = pass.removed.saturating_add(removed);
            if rule != pass.name {
                *pass.rules.entry(rule.to_owned()).or_default() += 1;
            }
        }
        self.size_after = size;
        self.steps.push(Reduction {
            i,
            executed: self.executed,
            rule: rule.to_owned(),
            size,
        });
    }

    /// Returns the unit of all sizes in this history of a minimization, in the plural: `bytes`,
    /// `units`, `edits` or `changes`.
    pub fn units(&self) -> &'static str {
        match self.unit {
            "unit" => "units",
            "edit" => "edits",
            "change" => "changes",
            _ => "bytes",
        }
    }

    /// Formats the sizes before and after the minimization in its unit: `40 → 6 bytes`, `12 → 3
    /// changes`. For `max` and `diff`, they are the numbers of deltas between the two inputs.
    pub fn sizes(&self) -> String {
        let after = self.size_after;
        match self.unit {
            "byte" => size::reduction(self.size_before, after),
            unit => size::reduction_in(self.size_before, after, unit),
        }
    }

    /// Returns the size of the best input after the first `executed` tests that ran the target.
    pub fn best_after(&self, executed: u64) -> u64 {
        let steps = self.steps.partition_point(|step| step.executed <= executed);
        match steps.checked_sub(1) {
            Some(last) => self.steps[last].size,
            None => self.size_before,
        }
    }

    /// Returns true if the final size is at most a twentieth of the first one: an axis of sizes
    /// should then be logarithmic.
    pub fn wants_log_sizes(&self) -> bool {
        self.size_before >= self.size_after.max(1).saturating_mul(20)
    }

    /// Returns true if there are at least 100 executed tests, and the first tenth of them made nine
    /// tenths of the whole reduction in size: an axis of tests should then be logarithmic.
    pub fn wants_log_tests(&self) -> bool {
        let all = self.size_before - self.size_after.min(self.size_before);
        let early = self.size_before - self.best_after(self.executed / 10).min(self.size_before);
        self.executed >= 100 && early.saturating_mul(10) >= all.saturating_mul(9)
    }
}

/// State of an isolation (`max`, `diff`), a search that narrows the difference between a passing
/// and a failing input: the numbers of deltas in these two inputs, which approach each other. The
/// byte sizes in the log do not show the progress, because the passing input grows.
pub(super) struct Isolation {
    /// Number of deltas that the current passing input contains, in a search that narrows the
    /// difference between a passing and a failing input; it grows from 0.
    passing: u64,
    /// Number of deltas that the current failing input contains, in a search that narrows the
    /// difference between a passing and a failing input; it shrinks from the number of all deltas.
    failing: u64,
    /// Number of deltas that the candidate of each test of the isolation contains, in the order of
    /// the log.
    kept: Vec<u64>,
    /// Unit of one delta between the passing and the failing input: `byte` or `edit`.
    pub unit: &'static str,
}

impl Isolation {
    /// Makes the state, before its first test, of an isolation (`max` or `diff`, which narrow the
    /// difference between a passing and a failing input) from the log's start line; `None` for the
    /// log of a minimization (`min`).
    pub fn of(start: &StartLine) -> Option<Isolation> {
        let difference = start.difference.as_ref()?;
        Some(Isolation {
            passing: 0,
            failing: difference.deltas,
            kept: Vec::new(),
            unit: match difference.units {
                Units::Bytes | Units::EditBytes => "byte",
                Units::Edits => "edit",
            },
        })
    }

    /// Returns the number of deltas by which the current passing and the current failing input of
    /// an isolation still differ.
    pub fn left(&self) -> u64 {
        self.failing.saturating_sub(self.passing)
    }

    /// Records how many deltas (differences between the passing and the failing input) the
    /// candidate of an isolation's test contains, as the test's line in the log says.
    pub fn test(&mut self, test: &TestLine) {
        self.kept.push(match &test.edit {
            EditRecord::Keep(kept) => kept
                .iter()
                .map(|[start, end]| end.saturating_sub(*start))
                .fold(0, u64::saturating_add),
            EditRecord::Cut(_) | EditRecord::Set(_) => 0,
        });
    }

    /// Makes the candidate of test `i` the new passing input of the isolation if the name `rule` of
    /// its transformation begins with `increase-`, else the new failing input.
    pub fn reduce(&mut self, i: u64, rule: &str) {
        let kept = usize::try_from(i).ok().and_then(|i| self.kept.get(i));
        let Some(kept) = kept else { return };
        match rule.starts_with("increase-") {
            true => self.passing = *kept,
            false => self.failing = *kept,
        }
    }
}

/// Width of the SVG drawing of a minimization, in pixels; the constants after it are its height and
/// margins.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 56.0;
/// Approximate maximum number of points in the SVG drawing; if there are more tests, some of those
/// that do not fail are left out, evenly.
const MOST_DOTS: usize = 20_000;

/// Draws the course of a minimization as SVG: a point for each executed test, by the size of its
/// candidate, and a line for the size of the best input.
pub fn svg(history: &MinimizationHistory, title: &str) -> String {
    let tests = Axis {
        most: history.executed.max(1),
        logarithmic: history.wants_log_tests(),
    };
    let largest = history.dots.iter().map(|dot| dot.size).max();
    let largest = largest.unwrap_or(0).max(history.size_before).max(1);
    let sizes = Axis {
        most: largest,
        logarithmic: history.wants_log_sizes(),
    };
    let place = |executed: u64, size: u64| {
        let x = LEFT + tests.share(executed) * (WIDTH - LEFT - RIGHT);
        let y = HEIGHT - BOTTOM - sizes.share(size) * (HEIGHT - TOP - BOTTOM);
        (x, y)
    };
    let mut svg = String::new();
    svg.push_str(&head(title));
    svg.push_str(&axes(&tests, &sizes, history.units(), &place));
    for dot in thinned(&history.dots) {
        let (x, y) = place(dot.executed, dot.size);
        let class = if dot.failed { "fail" } else { "other" };
        svg.push_str(&format!(
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"1.6\"/>\n"
        ));
    }
    svg.push_str(&line(history, &place));
    svg.push_str("</svg>\n");
    svg
}

/// A linear or logarithmic axis of the SVG drawing, from 0 to `most`.
struct Axis {
    most: u64,
    logarithmic: bool,
}

impl Axis {
    fn share(&self, value: u64) -> f64 {
        match self.logarithmic {
            true => (value as f64 + 1.0).ln() / (self.most as f64 + 1.0).ln(),
            false => value as f64 / self.most as f64,
        }
    }

    /// Returns the values at which the axis of the SVG drawing has labels, from 0 up to `most`.
    fn marks(&self) -> Vec<u64> {
        if self.logarithmic {
            let powers = (0..19).map(|power| 10u64.pow(power));
            return std::iter::once(0)
                .chain(powers.take_while(|power| *power <= self.most))
                .collect();
        }
        // The smallest of 1, 2, 5, 10, 20, … with at most six steps.
        let powers = (0..19).map(|power| 10u64.pow(power));
        let steps = powers.flat_map(|power| [power, 2 * power, power.saturating_mul(5)]);
        let step = steps
            .into_iter()
            .find(|step| self.most / step <= 6)
            .unwrap_or(self.most);
        (0..=self.most / step).map(|mark| mark * step).collect()
    }

    fn name(&self, of: &str) -> String {
        match self.logarithmic {
            true => format!("{of} (logarithmic)"),
            false => of.to_owned(),
        }
    }
}

fn head(title: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>{title}</title>\n\
         <style>.best{{fill:none;stroke:#1f5fa8;stroke-width:2}}.fail{{fill:#1f5fa8}}\
         .other{{fill:#b0b0b0}}.grid{{stroke:#e4e4e4}}text{{fill:#333333}}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"24\" font-size=\"14\">{title}</text>\n",
        title = escaped(title)
    )
}

fn axes(
    tests: &Axis,
    sizes: &Axis,
    units: &str,
    place: &impl Fn(u64, u64) -> (f64, f64),
) -> String {
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    let mut svg = String::new();
    for mark in sizes.marks() {
        let y = place(0, mark).1;
        svg.push_str(&format!(
            "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
            LEFT - 8.0,
            y + 4.0,
            size::grouped(mark)
        ));
    }
    for mark in tests.marks() {
        let x = place(mark, 0).0;
        svg.push_str(&format!(
            "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
            bottom + 18.0,
            size::grouped(mark)
        ));
    }
    svg.push_str(&format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n\
         <text x=\"16\" y=\"{TOP}\" transform=\"rotate(-90 16 {TOP})\" \
         text-anchor=\"end\">{}</text>\n",
        (LEFT + right) / 2.0,
        HEIGHT - 14.0,
        tests.name("tests executed"),
        sizes.name(units)
    ));
    svg
}

/// Returns as SVG the line of the best input's size, which drops at each reduction.
fn line(history: &MinimizationHistory, place: &impl Fn(u64, u64) -> (f64, f64)) -> String {
    let mut size = history.size_before;
    let mut points = vec![place(0, size)];
    for step in &history.steps {
        points.push(place(step.executed, size));
        size = step.size;
        points.push(place(step.executed, size));
    }
    points.push(place(history.executed, size));
    let points: Vec<String> = points
        .iter()
        .map(|(x, y)| format!("{x:.1},{y:.1}"))
        .collect();
    format!(
        "<polyline class=\"best\" points=\"{}\"/>\n",
        points.join(" ")
    )
}

/// Selects the tests to draw as points: all failing ones, and an even selection of the others.
fn thinned(dots: &[TestPoint]) -> impl Iterator<Item = &TestPoint> {
    let every = dots.len().div_ceil(MOST_DOTS).max(1);
    let shown = move |(at, dot): &(usize, &TestPoint)| dot.failed || at.is_multiple_of(every);
    dots.iter().enumerate().filter(shown).map(|(_, dot)| dot)
}

/// Block characters that fill zero to eight eighths of a row in the plot of a minimization as text.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ROWS: u64 = 8;
/// Maximum and minimum width, in characters, of the plot of a minimization as text.
const COLUMNS: (usize, usize) = (72, 10);

/// Draws the size of the best input over the executed tests as rows of text; empty if no test was
/// executed or the input was empty. `width` is the terminal's width in characters (`None`: no
/// limit).
pub fn curve(history: &MinimizationHistory, width: Option<usize>) -> String {
    if history.executed == 0 || history.size_before == 0 {
        return String::new();
    }
    let label = size::grouped(history.size_before);
    let margin = label.chars().count().max(1);
    let width = width.unwrap_or(usize::MAX).saturating_sub(margin + 2);
    let width = width.min(COLUMNS.0).max(COLUMNS.1) as u64;
    let heights: Vec<u64> = (0..width)
        .map(|column| {
            // A column shows the last of its tests.
            let tests = position(history, column + 1, width);
            height(history, history.best_after(tests))
        })
        .collect();
    let mut text = String::new();
    for row in (0..ROWS).rev() {
        let shown = match row {
            _ if row + 1 == ROWS => label.as_str(),
            0 => "0",
            _ => "",
        };
        let shown = match (row, history.wants_log_sizes()) {
            (0, true) => "1",
            _ => shown,
        };
        let line: String = heights
            .iter()
            .map(|height| BLOCKS[height.saturating_sub(row * 8).min(8) as usize])
            .collect();
        text.push_str(&format!("{shown:>margin$} ┤{}\n", line.trim_end()));
    }
    let axis = "─".repeat(width as usize);
    text.push_str(&format!("{:>margin$} └{axis}\n", ""));
    let ends = size::counted(history.executed, "test");
    let scale = match (history.wants_log_sizes(), history.wants_log_tests()) {
        (true, true) => " (both axes logarithmic)".to_owned(),
        (true, false) => format!(" ({} logarithmic)", history.units()),
        (false, true) => " (tests logarithmic)".to_owned(),
        (false, false) => String::new(),
    };
    let units = history.units();
    let below = format!("{units} over executed tests, to {ends}{scale}");
    text.push_str(&format!("{:>margin$}  {below}\n", ""));
    text
}

/// Returns the number of executed tests up to the right edge of column number `column` (from 1), in
/// the plot of a minimization as text, which has `columns` columns.
fn position(history: &MinimizationHistory, column: u64, columns: u64) -> u64 {
    let (all, share) = (history.executed, column as f64 / columns as f64);
    if column == columns {
        return all;
    }
    let tests = match history.wants_log_tests() {
        true => (all as f64).powf(share),
        false => all as f64 * share,
    };
    tests as u64
}

/// Converts a size of the best input to the height of its column in the plot of a minimization as
/// text, in eighths of a row; a size above 0 gets at least one eighth.
fn height(history: &MinimizationHistory, size: u64) -> u64 {
    let most = history.size_before as f64;
    let share = match history.wants_log_sizes() {
        true => (size as f64 + 1.0).ln() / (most + 1.0).ln(),
        false => size as f64 / most,
    };
    let eighths = (share * (ROWS * 8) as f64).round() as u64;
    eighths.clamp(u64::from(size > 0), ROWS * 8)
}
