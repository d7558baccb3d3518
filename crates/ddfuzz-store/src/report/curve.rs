//! The size of the best over the executed tests, as rows of text.

use super::{Shrinking, size};

/// Eighths of a row, from the bottom.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Rows of the plot.
const ROWS: u64 = 8;
/// Widest and narrowest plot, in characters.
const WIDTH: (usize, usize) = (72, 10);

/// The curve, its axes named; nothing where no test was run. `width`: of the terminal, in
/// characters (`None`: as wide as is of use).
pub fn curve(shrinking: &Shrinking, width: Option<usize>) -> String {
    if shrinking.executed == 0 || shrinking.size_before == 0 {
        return String::new();
    }
    let label = size::grouped(shrinking.size_before);
    let margin = label.chars().count().max(1);
    let width = width.unwrap_or(usize::MAX).saturating_sub(margin + 2);
    let width = width.min(WIDTH.0).max(WIDTH.1) as u64;
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
