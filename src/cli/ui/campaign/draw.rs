//! Draws the full screen from its model, as a pure function: page layout, plots, styles.

use std::time::Duration;

use ratatui::Frame;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::model::{Page, ScreenModel};
use super::{group_page, overview};

/// Draws the full screen on a frame of any size.
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

/// Creates a styled piece of a line.
pub(super) fn span(text: impl Into<String>, style: Style) -> Span<'static> {
    Span::styled(text.into(), style)
}

/// Creates an unstyled piece of a line.
pub(super) fn plain(text: impl Into<String>) -> Span<'static> {
    Span::raw(text.into())
}

/// Creates a line with `right` at its right end, if there is room for both.
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

/// Creates a horizontal rule with a title.
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

/// Creates the line that explains keys; keys that do not fit are left out.
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

/// Formats a duration: `0:12:04`, `3 d 02:11:09`.
pub(super) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0..24 => format!("{hours}:{minutes:02}:{rest:02}"),
        _ => format!("{} d {:02}:{minutes:02}:{rest:02}", hours / 24, hours % 24),
    }
}

/// Characters for 0 to 8 eighths of a cell, from the bottom.
const UP: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Characters for 0 to 8 eighths of a cell, from the left.
const RIGHT: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// Plots one value per column, from 0 to the maximum, as `rows` lines of text. Values above 0 are
/// always visible.
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

/// Formats `now` relative to `before` as a bar of `width` characters, on a logarithmic scale:
/// inputs shrink by orders of magnitude.
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

/// Styles of the full screen. Without colour, only bold and reversed text are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette {
    colored: bool,
}

impl Palette {
    /// Creates the styles, with or without colour.
    pub fn new(colored: bool) -> Palette {
        Palette { colored }
    }

    fn of(self, color: Color) -> Style {
        match self.colored {
            true => Style::new().fg(color),
            false => Style::new(),
        }
    }

    /// Style of labels and rules.
    pub fn faint(self) -> Style {
        self.of(Color::DarkGray)
    }

    /// Style of titles.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Style of the program's name and of keys.
    pub fn accent(self) -> Style {
        self.of(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// Style of plots, and of finished minimizations.
    pub fn good(self) -> Style {
        self.of(Color::Green)
    }

    /// Style of pending work and notes.
    pub fn pending(self) -> Style {
        self.of(Color::Yellow)
    }

    /// Style of crashes and errors.
    pub fn bad(self) -> Style {
        self.of(Color::Red)
    }

    /// Style of the selected line.
    pub fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}
