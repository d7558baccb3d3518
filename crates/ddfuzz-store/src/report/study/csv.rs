//! The table of the studies as comma-separated values (RFC 4180).

use super::Row;
use crate::report::text::printable;

/// The first line, by which a later call knows the file for one of ddfuzz's.
pub const HEADER: &str = "utility,package,version,host,channels,runs,crashes,hangs,ooms,\
                          high_exits,crash,hang,memory,groups,smallest_size,smallest_class,\
                          smallest_file,replay_hits,replay_tries,label,note,reproduce";

/// A line for each utility, under a header; lines end as the RFC has it. Numbers are bare, marks
/// are 1, 0, or empty where nothing was run. Control and format characters stand as their escapes,
/// and a text that a spreadsheet would take for a formula begins with an apostrophe.
pub fn csv(rows: &[Row]) -> String {
    let mut text = format!("{HEADER}\r\n");
    for row in rows {
        let cells: Vec<String> = cells(row).iter().map(|cell| quoted(cell)).collect();
        text.push_str(&cells.join(","));
        text.push_str("\r\n");
    }
    text
}

fn cells(row: &Row) -> [String; 22] {
    let total = row.total();
    let marks = row.marks();
    let or_empty = |value: Option<String>| value.unwrap_or_default();
    let text = |value: &Option<String>| plain(value.as_deref().unwrap_or_default());
    let mark = |is_set: Option<bool>| or_empty(is_set.map(|set| u8::from(set).to_string()));
    let least = row.smallest();
    let view = least.map(|(_, found)| &found.view);
    let replayed = least.and_then(|(group, _)| group.replayed);
    [
        plain(&row.utility),
        text(&row.package),
        text(&row.version),
        plain(&row.host),
        plain(&row.channels().join(", ")),
        total.runs.to_string(),
        total.crashes.to_string(),
        total.hangs.to_string(),
        total.ooms.to_string(),
        total.high_exits.to_string(),
        mark(marks.map(|marks| marks.crash)),
        mark(marks.map(|marks| marks.hang)),
        mark(marks.map(|marks| marks.memory)),
        row.groups.len().to_string(),
        or_empty(view.map(|view| view.size_after().to_string())),
        or_empty(view.map(|view| plain(&view.class.0))),
        or_empty(view.map(|view| plain(&view.file.to_string_lossy()))),
        or_empty(replayed.map(|replayed| replayed.hits.to_string())),
        or_empty(replayed.map(|replayed| replayed.tries.to_string())),
        text(&row.label),
        text(&row.note),
        or_empty(
            least
                .and_then(|(group, _)| group.command())
                .map(|it| plain(&it)),
        ),
    ]
}

/// Text that is nothing but text, also to a spreadsheet.
fn plain(text: &str) -> String {
    let shown = printable(text);
    match shown.starts_with(['=', '+', '-', '@']) {
        true => format!("'{shown}"),
        false => shown,
    }
}

/// The cell in quotes where it needs them.
fn quoted(cell: &str) -> String {
    match cell.contains(['"', ',', '\r', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}
