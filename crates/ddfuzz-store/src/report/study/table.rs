//! A study as a table for the terminal, and as CSV (RFC 4180).

use super::{PUBLISHED, RateLine, Row, by_channel, by_kind, summaries};
use crate::report::{groups::render_columns, size, text::printable};

/// Columns of the table of utilities that are dropped, in this order, if the terminal is too
/// narrow.
const DROPPABLE: [&str; 7] = [
    "NOTE", "EXIT>125", "VERSION", "REPLAY", "HOST", "PACKAGE", "CHANNEL",
];

/// Formats a study for the terminal: the table of utilities, reproduction commands, summary, rates
/// by channel and kind of input, and published rates. Tables are at most `width` characters wide
/// (`None`: no limit).
pub fn table(rows: &[Row], width: Option<usize>) -> String {
    if rows.is_empty() {
        return "no utility was run\n".to_owned();
    }
    let mut text = utilities(rows, width);
    text.push_str("marks: ● crashed  ○ hung  ◆ ran out of memory  – none of them\n");
    let commands = commands(rows);
    if !commands.is_empty() {
        text.push_str("\nto reproduce:\n");
        text.push_str(&commands);
    }
    text.push('\n');
    let summaries = summaries(rows);
    for summary in &summaries {
        let line = match summaries.len() {
            1 => summary.text(),
            _ => format!("{}: {}", summary.hosts.join(", "), summary.text()),
        };
        text.push_str(&printable(&line));
        text.push('\n');
    }
    for (name, lines) in [("CHANNEL", by_channel(rows)), ("INPUT", by_kind(rows))] {
        if !lines.is_empty() {
            text.push('\n');
            text.push_str(&rates(name, &lines, width));
        }
    }
    text.push('\n');
    text.push_str(&published(width));
    text
}

/// Formats the table of utilities without its empty columns.
fn utilities(rows: &[Row], width: Option<usize>) -> String {
    let mut header = vec![
        "UTILITY", "MARK", "RUNS", "CRASHES", "HANGS", "MEMORY", "EXIT>125", "GROUPS", "LEAST",
        "REPLAY", "LABEL", "CHANNEL", "PACKAGE", "VERSION", "HOST", "NOTE",
    ];
    let mut cells: Vec<Vec<String>> = rows.iter().map(line).collect();
    let first = &rows[0].host;
    let one_host = rows.iter().all(|row| row.host == *first);
    for column in (0..header.len()).rev() {
        let is_empty = cells.iter().all(|line| line[column].is_empty());
        if is_empty || header[column] == "HOST" && one_host {
            header.remove(column);
            cells.iter_mut().for_each(|line| drop(line.remove(column)));
        }
    }
    render_columns(&header, cells, width, &DROPPABLE)
}

fn line(row: &Row) -> Vec<String> {
    let total = row.total();
    let least = row.smallest();
    let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
    let count = |count: u64| match total.runs {
        0 => String::new(),
        _ => size::grouped(count),
    };
    vec![
        row.utility.clone(),
        row.marks().map(|marks| marks.symbols()).unwrap_or_default(),
        count(total.runs),
        count(total.crashes),
        count(total.hangs),
        count(total.ooms),
        count(total.high_exits),
        count(row.groups.len() as u64),
        least.map_or_else(String::new, |(_, found)| {
            format!(
                "{} {}",
                size::bytes(found.view.size_after()),
                found.view.class
            )
        }),
        least
            .and_then(|(group, _)| group.replay())
            .unwrap_or_default(),
        or_empty(&row.label),
        row.channels().join(", "),
        or_empty(&row.package),
        or_empty(&row.version),
        row.host.clone(),
        or_empty(&row.note),
    ]
}

/// Formats a line for each utility that failed: the command that shows the failure of its smallest
/// reproducer.
fn commands(rows: &[Row]) -> String {
    let lines = rows.iter().filter_map(|row| {
        let (group, found) = row.smallest()?;
        let command = match group.command() {
            Some(command) => command,
            None => crate::report::text::shell_word(&found.view.file),
        };
        Some(format!("  {}: {command}\n", printable(&row.utility)))
    });
    lines.collect()
}

fn rates(name: &str, lines: &[RateLine], width: Option<usize>) -> String {
    let header = [
        name,
        "UTILITIES",
        "FAIL",
        "RATE (95 %)",
        "RUNS",
        "FAILED",
        "OF RUNS (95 %)",
    ];
    let cells = lines.iter().map(|line| line.cells().to_vec());
    render_columns(&header, cells.collect(), width, &[])
}

fn published(width: Option<usize>) -> String {
    let header = ["AS PUBLISHED", "SYSTEM", "RATE", "FAILURES", "STUDY"];
    let cells = PUBLISHED.iter().map(|study| study.cells().to_vec());
    render_columns(&header, cells.collect(), width, &[])
}

/// First line of the CSV file, by which a later call recognizes a file that it may overwrite.
pub const CSV_HEADER: &str = "utility,package,version,host,channels,runs,crashes,hangs,ooms,\
                          high_exits,crash,hang,memory,groups,smallest_size,smallest_class,\
                          smallest_file,replay_hits,replay_tries,label,note,reproduce";

/// Formats a study as CSV with one line for each row (utility, package version and machine). The
/// columns `crash`, `hang` and `memory` are 1 or 0, or empty if nothing was run. Control characters
/// are escaped, and text that a spreadsheet would take for a formula starts with an apostrophe.
pub fn csv(rows: &[Row]) -> String {
    let mut text = format!("{CSV_HEADER}\r\n");
    for row in rows {
        let cells: Vec<String> = csv_cells(row).iter().map(|cell| quoted(cell)).collect();
        text.push_str(&cells.join(","));
        text.push_str("\r\n");
    }
    text
}

fn csv_cells(row: &Row) -> [String; 22] {
    let total = row.total();
    let marks = row.marks();
    let or_empty = |value: Option<String>| value.unwrap_or_default();
    let text = |value: &Option<String>| plain(value.as_deref().unwrap_or_default());
    let mark = |is_set: Option<bool>| or_empty(is_set.map(|set| u8::from(set).to_string()));
    let least = row.smallest();
    let view = least.map(|(_, found)| &found.view);
    let replayed = least.and_then(|(group, _)| group.tally.replayed);
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

/// Escapes control characters in the text of a CSV cell, and prefixes text that looks like a
/// formula with an apostrophe.
fn plain(text: &str) -> String {
    let shown = printable(text);
    match shown.starts_with(['=', '+', '-', '@']) {
        true => format!("'{shown}"),
        false => shown,
    }
}

/// Quotes the text of a CSV cell if it contains a comma, a quote or a line break.
fn quoted(cell: &str) -> String {
    match cell.contains(['"', ',', '\r', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}
