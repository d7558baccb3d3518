//! From the model to characters, as a pure function: pages, plots, styles.

use std::time::Duration;

use ratatui::Frame;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::model::{Page, ScreenModel};
use super::{group_page, overview};

/// Draws a campaign on the whole of a frame, whatever its size.
pub fn draw(model: &ScreenModel, frame: &mut Frame<'_>) {
    let area = frame.area();
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let lines = match (model.page(), model.opened()) {
        (Page::Group { tab, scroll }, Some(group)) => {
            group_page::lines(model, group, tab, scroll, width, height)
        }
        _ => overview::lines(model, width, height),
    };
    let buffer = frame.buffer_mut();
    for (row, line) in (area.y..area.bottom()).zip(&lines) {
        buffer.set_line(area.x, row, line, area.width);
    }
}

/// A piece of a line.
pub(super) fn span(text: impl Into<String>, style: Style) -> Span<'static> {
    Span::styled(text.into(), style)
}

/// A plain piece of a line.
pub(super) fn plain(text: impl Into<String>) -> Span<'static> {
    Span::raw(text.into())
}

/// A line with something at its right end, where there is room for both.
pub(super) fn spread(
    mut left: Vec<Span<'static>>,
    right: Span<'static>,
    width: usize,
) -> Line<'static> {
    let used: usize = left.iter().map(Span::width).sum();
    let room = width.saturating_sub(used + right.width());
    if room > 0 {
        left.push(plain(" ".repeat(room)));
        left.push(right);
    }
    Line::from(left)
}

/// A rule with a title.
pub(super) fn rule(model: &ScreenModel, title: &str, width: usize) -> Line<'static> {
    let faint = model.palette.faint();
    let title = match title {
        "" => String::new(),
        title => format!(" {title} "),
    };
    let rest = width.saturating_sub(title.chars().count() + 2);
    Line::from(vec![
        span("──", faint),
        span(title, model.palette.strong()),
        span("─".repeat(rest), faint),
    ])
}

/// What keys there are, as far as they fit.
pub(super) fn keys(model: &ScreenModel, keys: &[(&str, &str)], width: usize) -> Line<'static> {
    let mut spans = Vec::new();
    let mut used = 0;
    for (key, does) in keys {
        let text = format!(" {does}   ");
        used += key.chars().count() + text.chars().count();
        if used > width + 3 {
            break;
        }
        spans.push(span(*key, model.palette.accent()));
        spans.push(plain(text));
    }
    Line::from(spans)
}

/// A time since the beginning: `0:12:04`, `3 d 02:11:09`.
pub(super) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0..24 => format!("{hours}:{minutes:02}:{rest:02}"),
        _ => format!("{} d {:02}:{minutes:02}:{rest:02}", hours / 24, hours % 24),
    }
}

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

/// How things look. Without colour only weight and reversal tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette {
    colored: bool,
}

impl Palette {
    /// With or without colour.
    pub fn new(colored: bool) -> Palette {
        Palette { colored }
    }

    fn of(self, color: Color) -> Style {
        match self.colored {
            true => Style::new().fg(color),
            false => Style::new(),
        }
    }

    /// Names of things, rules.
    pub fn faint(self) -> Style {
        self.of(Color::DarkGray)
    }

    /// Titles.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The name of the program, keys.
    pub fn accent(self) -> Style {
        self.of(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// Plots of what is good when it is much.
    pub fn good(self) -> Style {
        self.of(Color::Green)
    }

    /// What is not done yet.
    pub fn pending(self) -> Style {
        self.of(Color::Yellow)
    }

    /// Crashes, and trouble.
    pub fn bad(self) -> Style {
        self.of(Color::Red)
    }

    /// The selected line.
    pub fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}
