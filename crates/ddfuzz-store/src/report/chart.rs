//! The size of candidates and of the best over the executed tests: as a drawing (figure 3 of
//! Hildebrandt & Zeller, *Simplifying failure-inducing input*, ISSTA 2000) and as rows of text.

use super::text::printable;
use super::{Dot, Shrinking, size};

/// The drawing and the plot in it, in pixels.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 56.0;
/// So many dots are drawn at most; of more of them those that did not fail are thinned out.
const MOST_DOTS: usize = 20_000;

/// A drawing of how an input shrank: a dot for each executed test, a line for the best. `title`
/// may be any text.
pub fn svg(shrinking: &Shrinking, title: &str) -> String {
    let tests = Axis::new(shrinking.executed.max(1), shrinking.wants_log_tests());
    let largest = shrinking.dots.iter().map(|dot| dot.size).max();
    let largest = largest.unwrap_or(0).max(shrinking.size_before).max(1);
    let sizes = Axis::new(largest, shrinking.wants_log_sizes());
    let place = |executed: u64, size: u64| {
        let x = LEFT + tests.share(executed) * (WIDTH - LEFT - RIGHT);
        let y = HEIGHT - BOTTOM - sizes.share(size) * (HEIGHT - TOP - BOTTOM);
        (x, y)
    };
    let mut svg = String::new();
    svg.push_str(&head(title));
    svg.push_str(&axes(&tests, &sizes, shrinking.units(), &place));
    for dot in thinned(&shrinking.dots) {
        let (x, y) = place(dot.executed, dot.size);
        let class = if dot.failed { "fail" } else { "other" };
        svg.push_str(&format!(
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"1.6\"/>\n"
        ));
    }
    svg.push_str(&line(shrinking, &place));
    svg.push_str("</svg>\n");
    svg
}

/// An axis from 0 on, in shares of its length; a logarithmic one is that of the value plus one.
struct Axis {
    most: u64,
    logarithmic: bool,
}

impl Axis {
    fn new(most: u64, logarithmic: bool) -> Axis {
        Axis { most, logarithmic }
    }

    fn share(&self, value: u64) -> f64 {
        match self.logarithmic {
            true => (value as f64 + 1.0).ln() / (self.most as f64 + 1.0).ln(),
            false => value as f64 / self.most as f64,
        }
    }

    /// Values that are named.
    fn marks(&self) -> Vec<u64> {
        if self.logarithmic {
            let powers = (0..19).map(|power| 10u64.pow(power));
            return std::iter::once(0)
                .chain(powers.take_while(|power| *power <= self.most))
                .collect();
        }
        // The least of 1, 2, 5, 10, 20, … that leaves six marks.
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

/// The best, which stays as it is until a test reduces it.
fn line(shrinking: &Shrinking, place: &impl Fn(u64, u64) -> (f64, f64)) -> String {
    let mut size = shrinking.size_before;
    let mut points = vec![place(0, size)];
    for step in &shrinking.steps {
        points.push(place(step.executed, size));
        size = step.size;
        points.push(place(step.executed, size));
    }
    points.push(place(shrinking.executed, size));
    let points: Vec<String> = points
        .iter()
        .map(|(x, y)| format!("{x:.1},{y:.1}"))
        .collect();
    format!(
        "<polyline class=\"best\" points=\"{}\"/>\n",
        points.join(" ")
    )
}

/// All that failed, and as many of the rest as there is room for, evenly.
fn thinned(dots: &[Dot]) -> impl Iterator<Item = &Dot> {
    let every = dots.len().div_ceil(MOST_DOTS).max(1);
    let shown = move |(at, dot): &(usize, &Dot)| dot.failed || at.is_multiple_of(every);
    dots.iter().enumerate().filter(shown).map(|(_, dot)| dot)
}

/// Any text inside XML.
fn escaped(text: &str) -> String {
    // What is no character of XML 1.0 stands as its escape.
    let shown = printable(text).replace(['\u{fffe}', '\u{ffff}'], "?");
    shown
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Eighths of a row, from the bottom.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Rows of the plot.
const ROWS: u64 = 8;
/// Widest and narrowest plot, in characters.
const COLUMNS: (usize, usize) = (72, 10);

/// The curve, its axes named; nothing where no test was run. `width`: of the terminal, in
/// characters (`None`: as wide as is of use).
pub fn curve(shrinking: &Shrinking, width: Option<usize>) -> String {
    if shrinking.executed == 0 || shrinking.size_before == 0 {
        return String::new();
    }
    let label = size::grouped(shrinking.size_before);
    let margin = label.chars().count().max(1);
    let width = width.unwrap_or(usize::MAX).saturating_sub(margin + 2);
    let width = width.min(COLUMNS.0).max(COLUMNS.1) as u64;
    let heights: Vec<u64> = (0..width)
        .map(|column| {
            // Of the tests that fall into a column, the last.
            let tests = position(shrinking, column + 1, width);
            height(shrinking, shrinking.best_after(tests))
        })
        .collect();
    let mut text = String::new();
    for row in (0..ROWS).rev() {
        let shown = match row {
            _ if row + 1 == ROWS => label.as_str(),
            0 => "0",
            _ => "",
        };
        let shown = match (row, shrinking.wants_log_sizes()) {
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
    let ends = size::counted(shrinking.executed, "test");
    let scale = match (shrinking.wants_log_sizes(), shrinking.wants_log_tests()) {
        (true, true) => " (both axes logarithmic)".to_owned(),
        (true, false) => format!(" ({} logarithmic)", shrinking.units()),
        (false, true) => " (tests logarithmic)".to_owned(),
        (false, false) => String::new(),
    };
    let units = shrinking.units();
    let below = format!("{units} over executed tests, to {ends}{scale}");
    text.push_str(&format!("{:>margin$}  {below}\n", ""));
    text
}

/// The number of executed tests at the right end of a column, counted from 1.
fn position(shrinking: &Shrinking, column: u64, columns: u64) -> u64 {
    let (all, share) = (shrinking.executed, column as f64 / columns as f64);
    if column == columns {
        return all;
    }
    let tests = match shrinking.wants_log_tests() {
        true => (all as f64).powf(share),
        false => all as f64 * share,
    };
    tests as u64
}

/// Eighths of a row that a size takes: one at least, unless nothing is left.
fn height(shrinking: &Shrinking, size: u64) -> u64 {
    let most = shrinking.size_before as f64;
    let share = match shrinking.wants_log_sizes() {
        true => (size as f64 + 1.0).ln() / (most + 1.0).ln(),
        false => size as f64 / most,
    };
    let eighths = (share * (ROWS * 8) as f64).round() as u64;
    eighths.clamp(u64::from(size > 0), ROWS * 8)
}
