//! Numbers as blocks of characters.

/// Eighths of a row, from the bottom.
const UP: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Eighths of a column, from the left.
const RIGHT: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// A plot of one column a value, from 0 to the greatest of them, as `rows` lines from the top.
/// What is more than nothing shows.
pub fn plot(values: &[f64], rows: usize) -> Vec<String> {
    let most = values.iter().copied().fold(0.0, f64::max);
    let height = |value: &f64| match *value > 0.0 && most > 0.0 {
        true => ((value / most * (rows * 8) as f64).round() as usize).max(1),
        false => 0,
    };
    let heights: Vec<usize> = values.iter().map(height).collect();
    (0..rows)
        .rev()
        .map(|row| {
            let eighths = |height: &usize| height.saturating_sub(row * 8).min(8);
            heights.iter().map(|height| UP[eighths(height)]).collect()
        })
        .collect()
}

/// How much is left of `before`, as a bar of `width` characters. Both count by their logarithms:
/// inputs shrink by orders of magnitude, and the last bytes take the most tests.
pub fn left(before: u64, now: u64, width: usize) -> String {
    let share = match before {
        0 => 0.0,
        _ => ((now as f64 + 1.0).ln() / (before as f64 + 1.0).ln()).min(1.0),
    };
    let eighths = (share * (width * 8) as f64).round() as usize;
    let eighths = eighths.max(usize::from(now > 0)).min(width * 8);
    (0..width)
        .map(|column| RIGHT[eighths.saturating_sub(column * 8).min(8)])
        .collect()
}
