//! Draws the full screen from its model, as a pure function: the page that is shown, and parts of
//! all pages (rules, bars, styles).

use std::time::Duration;

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::terminal::Frame;
use ratatui_core::text::{Line, Span};

use super::model::{Page, ScreenModel};
use super::{group_page, overview};

/// Draws the full screen's current page, overview or crash group, with the data in `model`, on a
/// terminal of any size.
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

/// Creates a piece of a line of text with a style.
pub(super) fn span(text: impl Into<String>, style: Style) -> Span<'static> {
    Span::styled(text.into(), style)
}

/// Creates a piece of a line of text without a style.
pub(super) fn plain(text: impl Into<String>) -> Span<'static> {
    Span::raw(text.into())
}

/// Creates a line of `width` columns: the text `left` at its left end, and, if there is room for
/// both, the text `right` at its right end.
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

/// Creates a line with a horizontal rule of `width` columns, interrupted by `title` unless the
/// title is empty.
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

/// Creates the line at the bottom of the screen that explains keys. `keys`: pairs of a key and what
/// it does; pairs that do not fit into `width` columns are left out.
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

/// Formats a duration as hours, minutes and seconds, with days from 24 hours: `0:12:04`, `3 d
/// 02:11:09`.
pub(super) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0..24 => format!("{hours}:{minutes:02}:{rest:02}"),
        _ => format!("{} d {:02}:{minutes:02}:{rest:02}", hours / 24, hours % 24),
    }
}

/// Block characters that fill 0 to 8 eighths of a cell, from the bottom, for vertical bars.
const UP: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Block characters that fill 0 to 8 eighths of a cell, from the left, for horizontal bars.
const RIGHT: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// Returns `rows` lines of text in which the values are plotted as vertical bars, one column for
/// each value, scaled to the largest value. Values above 0 are always visible.
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

/// Draws how small an input has become: a horizontal bar for the size `now`, of at most `width`
/// characters, which the size `before` would fill. The scale is logarithmic, since inputs shrink by
/// orders of magnitude.
pub fn size_bar(before: u64, now: u64, width: usize) -> String {
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

/// The styles of text on the full screen; without colour, only bold and reversed text are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette {
    colored: bool,
}

impl Palette {
    /// Creates the styles of the full screen, with or without colour.
    pub fn new(colored: bool) -> Palette {
        Palette { colored }
    }

    fn of(self, color: Color) -> Style {
        match self.colored {
            true => Style::new().fg(color),
            false => Style::new(),
        }
    }

    /// Returns the style of unimportant text: labels and rules.
    pub fn faint(self) -> Style {
        self.of(Color::DarkGray)
    }

    /// Returns the style of titles.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Returns the style of the program's name and of the names of keys.
    pub fn accent(self) -> Style {
        self.of(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// Returns the style of plots, and of finished minimizations.
    pub fn good(self) -> Style {
        self.of(Color::Green)
    }

    /// Returns the style of notes, and of inputs that are being minimized.
    pub fn pending(self) -> Style {
        self.of(Color::Yellow)
    }

    /// Returns the style of crashes and errors.
    pub fn bad(self) -> Style {
        self.of(Color::Red)
    }

    /// Returns the style of the selected line in the table of groups.
    pub fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}
