//! The page of one group.

use ratatui::text::{Line, Span};

use super::detail::{Detail, ROW};
use super::draw::{clock, keys, left, plain, rule, span, spread};
use super::model::{Course, Group, Tab, kind};
use crate::report::text::cut;
use crate::report::{TraceLine, curve, size, text};

/// Width from which a row of the dump has sixteen bytes.
const WIDE: usize = 78;
/// Width of the names of facts.
const NAMES: usize = 8;
/// Width of the bar of what is left.
const BAR: usize = 12;

/// The page as lines.
pub(super) fn lines(
    course: &Course,
    group: &Group,
    tab: Tab,
    scroll: usize,
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let mut lines = vec![title(course, group, width)];
    lines.extend(facts(course, group, width));
    lines.push(rule(course, "", width));
    lines.push(tabs(course, tab));
    let room = height.saturating_sub(lines.len() + 1);
    let mut content = content(course, tab, scroll, width, room);
    content.resize(room, Line::default());
    lines.extend(content);
    lines.truncate(height.saturating_sub(1));
    let all = [
        ("q", "back"),
        ("tab", "next part"),
        ("↑↓", "scroll"),
        ("ctrl-c", "quit"),
    ];
    lines.push(keys(course, &all, width));
    lines
}

fn title(course: &Course, group: &Group, width: usize) -> Line<'static> {
    let time = span(clock(course.elapsed), course.palette.strong());
    let mut left = vec![
        span("ddfuzz ", course.palette.accent()),
        span(
            format!("{} {}", kind(group.kind), group.key),
            course.palette.strong(),
        ),
        plain(": "),
        span(group.class.clone(), course.palette.bad()),
    ];
    let used: usize = left.iter().map(Span::width).sum();
    // The time is worth more than the whole of the reason.
    let room = width.saturating_sub(used + time.width() + 2);
    left.push(plain(cut(&format!(", {}", group.severity), room)));
    spread(left, time, width)
}

fn facts(course: &Course, group: &Group, width: usize) -> Vec<Line<'static>> {
    let reduced = size::reduction(group.size_before, group.size);
    let sizes = format!(
        "{reduced}  {}{}",
        left(group.size_before, group.size, BAR),
        match group.tests {
            Some(tests) => format!("  in {}", size::counted(tests, "test")),
            None => String::new(),
        }
    );
    let facts = [
        ("message", group.message.clone()),
        ("where", Some(group.place.clone())),
        ("size", Some(sizes)),
        ("claim", Some(group.sentence.clone())),
        ("seen", Some(size::counted(group.seen, "run"))),
        ("file", Some(group.file.clone())),
    ];
    let line = |(name, value): (&str, Option<String>)| {
        Some(Line::from(vec![
            span(format!("{name:<NAMES$}"), course.palette.faint()),
            plain(cut(&value?, width.saturating_sub(NAMES))),
        ]))
    };
    facts.into_iter().filter_map(line).collect()
}

fn tabs(course: &Course, shown: Tab) -> Line<'static> {
    let names = Tab::ALL.map(|tab| match tab == shown {
        true => span(format!("[{}]", tab.name()), course.palette.accent()),
        false => plain(format!(" {} ", tab.name())),
    });
    Line::from(names.to_vec())
}

fn content(
    course: &Course,
    tab: Tab,
    scroll: usize,
    width: usize,
    room: usize,
) -> Vec<Line<'static>> {
    let detail = &course.detail;
    if let Some(trouble) = &detail.trouble {
        return vec![Line::from(span(trouble.clone(), course.palette.bad()))];
    }
    let nothing = |text: &str| vec![Line::from(span(text.to_owned(), course.palette.faint()))];
    match tab {
        Tab::Stack => match &detail.trace {
            None => nothing("reading"),
            Some(trace) if trace.is_empty() => nothing("no stack frame is known"),
            Some(_) => trace(course, scroll, width, room),
        },
        Tab::Input => dump(detail, scroll, width, room),
        Tab::Curve => match &detail.log.shrinking {
            Some(shrinking) if shrinking.executed > 0 => {
                let text = curve(shrinking, Some(width));
                text.lines()
                    .map(|line| Line::from(line.to_owned()))
                    .collect()
            }
            _ => nothing("no test has been run yet"),
        },
        Tab::Log if detail.log.lines.is_empty() => nothing("there is no log yet"),
        Tab::Log => log(detail, scroll, width, room),
    }
}

/// The lines of the stacks and of the source, what is not the user's code faintly.
fn trace(course: &Course, scroll: usize, width: usize, room: usize) -> Vec<Line<'static>> {
    let all = course.detail.trace.iter().flatten();
    let line = |line: &TraceLine| {
        let text = cut(&line.text, width.saturating_sub(NAMES));
        Line::from(vec![
            span(format!("{:<NAMES$}", line.title), course.palette.faint()),
            match line.own {
                true => plain(text),
                false => span(text, course.palette.faint()),
            },
        ])
    };
    all.skip(scroll).take(room).map(line).collect()
}

/// The bytes from the scrolled line on: where, hex, text.
fn dump(detail: &Detail, scroll: usize, width: usize, room: usize) -> Vec<Line<'static>> {
    let columns = if width >= WIDE { ROW.0 } else { ROW.1 };
    let bytes = &detail.bytes;
    let all = bytes.len().div_ceil(columns);
    let first = scroll.min(all.saturating_sub(1));
    let mut lines: Vec<Line<'static>> = bytes
        .chunks(columns)
        .enumerate()
        .skip(first)
        .take(room)
        .map(|(row, bytes)| {
            let (hex, text) = split(text::hex_line(bytes, columns));
            let wide = columns * 3;
            Line::from(format!("{:08x}  {hex:<wide$} {text}", row * columns))
        })
        .collect();
    if bytes.is_empty() {
        lines.push(Line::from("(empty)"));
    }
    let hidden = detail.size.saturating_sub(bytes.len() as u64);
    if hidden > 0 && lines.len() < room {
        let text = format!("and {} more", size::bytes(hidden));
        lines.push(Line::from(text));
    }
    lines
}

/// The hex and the text of a dumped line.
fn split(line: String) -> (String, String) {
    match line.split_once('|') {
        Some((hex, text)) => (hex.trim_end().to_owned(), format!("|{text}")),
        None => (line, String::new()),
    }
}

/// The last lines, or those that are scrolled back to: the newest stand at the bottom.
fn log(detail: &Detail, scroll: usize, width: usize, room: usize) -> Vec<Line<'static>> {
    let lines = &detail.log.lines;
    let end = lines
        .len()
        .saturating_sub(scroll)
        .max(room.min(lines.len()));
    let first = end.saturating_sub(room);
    lines
        .range(first..end)
        .map(|line| Line::from(cut(line, width)))
        .collect()
}
