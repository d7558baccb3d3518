//! From the model to characters, as a pure function.

use std::time::Duration;

use ratatui::Frame;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::course::{Course, Page};
use super::{overview, page};

/// Draws a campaign on the whole of a frame, whatever its size.
pub fn draw(course: &Course, frame: &mut Frame<'_>) {
    let area = frame.area();
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let lines = match (course.page(), course.opened()) {
        (Page::Group { tab, scroll }, Some(group)) => {
            page::lines(course, group, tab, scroll, width, height)
        }
        _ => overview::lines(course, width, height),
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
pub(super) fn rule(course: &Course, title: &str, width: usize) -> Line<'static> {
    let faint = course.palette.faint();
    let title = match title {
        "" => String::new(),
        title => format!(" {title} "),
    };
    let rest = width.saturating_sub(title.chars().count() + 2);
    Line::from(vec![
        span("──", faint),
        span(title, course.palette.strong()),
        span("─".repeat(rest), faint),
    ])
}

/// What keys there are, as far as they fit.
pub(super) fn keys(course: &Course, keys: &[(&str, &str)], width: usize) -> Line<'static> {
    let mut spans = Vec::new();
    let mut used = 0;
    for (key, does) in keys {
        let text = format!(" {does}   ");
        used += key.chars().count() + text.chars().count();
        if used > width + 3 {
            break;
        }
        spans.push(span(*key, course.palette.accent()));
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
