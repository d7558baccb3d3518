//! The groups, one line each.

use ratatui::style::Style;
use ratatui::text::Line;

use super::course::Course;
use super::draw::{plain, span};
use super::group::Group;
use super::plot;
use crate::report::size;
use crate::report::text::cut;
use crate::store::Kind;

/// Longest class that is shown.
const CLASS: usize = 16;
/// Width from which keys are whole and bars are long.
const WIDE: usize = 78;
/// Narrowest place that is worth its column.
const PLACE: usize = 12;

/// The columns of a table.
struct Columns {
    class: usize,
    key: usize,
    seen: usize,
    size: usize,
    bar: usize,
    claim: usize,
    is_wide: bool,
    /// Where in the code; none where there is no room.
    place: usize,
}

impl Columns {
    fn of(groups: &[Group], width: usize) -> Columns {
        let widest = |least: usize, text: &dyn Fn(&Group) -> String| {
            let widths = groups.iter().map(|one| text(one).chars().count());
            widths.max().unwrap_or(0).max(least)
        };
        let is_wide = width >= WIDE;
        let mut columns = Columns {
            class: widest("CLASS".len(), &class).min(CLASS),
            key: if is_wide { 12 } else { 8 },
            seen: widest("SEEN".len(), &|one| size::grouped(one.seen)),
            size: widest("SIZE".len(), &|one| sizes(one, is_wide)),
            is_wide,
            bar: if is_wide { 8 } else { 4 },
            claim: widest("CLAIM".len(), &|one| one.standing().to_owned()),
            place: 0,
        };
        // A mark, and two blanks between each two columns.
        let Columns {
            key,
            seen,
            size,
            bar,
            claim,
            ..
        } = columns;
        let used = 2 + key + seen + size + bar + claim + 5 * 2;
        // The class can lose its end before a claim does.
        let room = width.saturating_sub(used).max("CLASS".len());
        columns.class = columns.class.min(room);
        let used = used + columns.class;
        let left = width.saturating_sub(used + 2);
        if left >= PLACE {
            columns.place = left;
        }
        columns
    }
}

/// The head and as many groups as there are rows, the selected one among them.
pub(super) fn lines(course: &Course, width: usize, rows: usize) -> Vec<Line<'static>> {
    if rows == 0 {
        return Vec::new();
    }
    if course.groups.is_empty() {
        return vec![Line::from(span("none yet", course.palette.faint()))];
    }
    let all = course.groups.len();
    // Where not all fit, the last line says how many more there are.
    let shown = match rows - 1 {
        room if room >= all || room < 2 => room,
        room => room - 1,
    };
    let first = (course.selected + 1)
        .saturating_sub(shown)
        .min(all.saturating_sub(shown));
    let groups = &course.groups[first..all.min(first + shown)];
    let columns = Columns::of(groups, width);
    let mut lines = vec![head(course, &columns)];
    for (index, group) in groups.iter().enumerate() {
        let is_selected = first + index == course.selected;
        lines.push(row(course, group, &columns, is_selected));
    }
    if lines.len() < rows && all > first + shown {
        let more = size::grouped((all - first - shown) as u64);
        let more = span(format!("  and {more} more"), course.palette.faint());
        lines.push(Line::from(more));
    }
    lines
}

fn head(course: &Course, columns: &Columns) -> Line<'static> {
    let Columns {
        class,
        key,
        seen,
        size,
        bar,
        claim,
        place,
        ..
    } = columns;
    let gone = " ".repeat(*bar);
    let mut text = format!(
        "  {:<class$}  {:<key$}  {:>seen$}  {:>size$}  {gone}  {:<claim$}",
        "CLASS", "GROUP", "SEEN", "SIZE", "CLAIM"
    );
    if *place > 0 {
        text.push_str("  WHERE");
    }
    Line::from(span(text, course.palette.faint()))
}

fn row(course: &Course, group: &Group, columns: &Columns, is_selected: bool) -> Line<'static> {
    let Columns {
        class: width,
        key,
        seen,
        size: sized,
        bar,
        claim,
        is_wide,
        place,
    } = columns;
    let palette = course.palette;
    let state = match (&group.claim, group.shrinks) {
        (Some(_), _) => palette.good(),
        (None, true) => palette.pending(),
        (None, false) => Style::new(),
    };
    let class = cut(&class(group), *width);
    let runs = size::grouped(group.seen);
    let short = cut_key(&group.key, *key);
    let mut line = Line::from(vec![
        plain(if is_selected { "▶ " } else { "  " }),
        span(format!("{class:<width$}"), palette.bad()),
        plain(format!(
            "  {short:<key$}  {runs:>seen$}  {:>sized$}  ",
            sizes(group, *is_wide)
        )),
        span(plot::left(group.size_before, group.size, *bar), state),
        span(format!("  {:<claim$}", group.standing()), state),
    ]);
    if *place > 0 {
        line.push_span(plain(format!("  {}", cut(&group.place, *place))));
    }
    match is_selected {
        true => line.style(palette.selected()),
        false => line,
    }
}

fn cut_key(key: &str, width: usize) -> String {
    key.chars().take(width).collect()
}

/// The class; of what is no plain crash, the kind of finding where the class does not say it.
fn class(group: &Group) -> String {
    match group.kind {
        Kind::Flaky => format!("flaky {}", group.class),
        Kind::Crash | Kind::Hang | Kind::Oom => group.class.clone(),
    }
}

fn sizes(group: &Group, is_wide: bool) -> String {
    match is_wide {
        true => size::reduction(group.size_before, group.size),
        false => format!("{} → {}", short(group.size_before), short(group.size)),
    }
}

/// A size in few characters, by powers of 1024: `9,999`, `39.1K`, `2.0M`.
fn short(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = None;
    for name in ['K', 'M', 'G'] {
        if value >= 1000.0 && bytes >= 10_000 {
            value /= 1024.0;
            unit = Some(name);
        }
    }
    match unit {
        Some(name) => format!("{value:.1}{name}"),
        None => size::grouped(bytes),
    }
}
