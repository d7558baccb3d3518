//! Groups of crashes in the terminal: a table of all groups, and a block of lines for one group.
//! Also the rendering of all tables in columns.

use std::path::Path;

use super::text::{cut, printable, shell_word};
use super::view::Finding;
use super::{Extent, GroupView, MinimizationHistory, VariantView, size, text};
use crate::LastCheck;
use ddfuzz_triage::Severity;

/// Blanks that separate two neighbouring columns of a table for the terminal.
const GAP: &str = "  ";

/// Columns of tables of groups that are dropped, in this order, if the terminal is too narrow.
pub(super) const DROPPABLE: [&str; 3] = ["WHY", "SEVERITY", "KIND"];

/// Formats the groups of an output directory as a table of at most `width` characters (`None`: no
/// limit).
pub fn groups_table(groups: &[GroupView], width: Option<usize>) -> String {
    let mut header = vec![
        "UTILITY", "KIND", "GROUP", "CLASS", "SEVERITY", "SEEN", "SIZE", "CLAIM", "WHERE", "WHY",
    ];
    let rows = groups.iter().map(|group| {
        vec![
            or_dash(&group.utility),
            group.kind.folder().to_owned(),
            group.major.short(),
            group.class.to_string(),
            severity(group.severity).to_owned(),
            size::grouped(group.runs_seen),
            size::reduction(group.size_before, group.size_after()),
            group.status_text(),
            or_dash(&group.last_place().cloned()),
            group.severity_reason.clone(),
        ]
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    if groups.iter().all(|group| group.utility.is_none()) {
        remove_column("UTILITY", &mut header, &mut rows);
    }
    render_columns(&header, rows, width, &DROPPABLE)
}

/// Formats the passes of a minimization as a table: for each pass the numbers of tests, of executed
/// tests, and of reductions by transformation. Lines have at most `width` characters (`None`: no
/// limit).
pub fn passes_table(history: &MinimizationHistory, width: Option<usize>) -> String {
    let units = history.units().to_uppercase();
    let header = ["PASS", "TESTS", "EXECUTED", "REDUCTIONS", &units, "RULES"];
    let rows = history.passes.iter().map(|pass| {
        let rules = pass.rules.iter();
        let rules: Vec<String> = rules
            .map(|(rule, count)| format!("{rule} {}", size::grouped(*count)))
            .collect();
        vec![
            pass.name.clone(),
            size::grouped(pass.tests),
            size::grouped(pass.executed),
            size::grouped(pass.reductions),
            match pass.removed {
                0 => "0".to_owned(),
                removed => format!("-{}", size::grouped(removed)),
            },
            rules.join(", "),
        ]
    });
    render_columns(&header, rows.collect(), width, &DROPPABLE)
}

pub(super) fn or_dash(text: &Option<String>) -> String {
    text.clone().unwrap_or_else(|| "-".to_owned())
}

pub(super) fn remove_column(name: &str, header: &mut Vec<&str>, rows: &mut [Vec<String>]) {
    if let Some(at) = header.iter().position(|column| *column == name) {
        header.remove(at);
        rows.iter_mut().for_each(|row| drop(row.remove(at)));
    }
}

/// Formats a table whose columns are as wide as their widest cell. If its lines are longer than
/// `width` characters (`None`: no limit), the columns named in `spared` are dropped one by one, in
/// that order; then lines are cut.
pub(super) fn render_columns(
    header: &[&str],
    rows: Vec<Vec<String>>,
    width: Option<usize>,
    spared: &[&str],
) -> String {
    let mut lines = vec![header.iter().map(|name| printable(name)).collect()];
    let printed = |row: Vec<String>| row.iter().map(|cell| printable(cell)).collect();
    lines.extend(rows.into_iter().map(printed));
    let widths: Vec<usize> = (0..header.len())
        .map(|column| {
            let cells = lines
                .iter()
                .map(|line: &Vec<String>| line[column].chars().count());
            cells.max().unwrap_or(0)
        })
        .collect();
    let mut shown: Vec<usize> = (0..header.len()).collect();
    let most = width.unwrap_or(usize::MAX);
    for name in spared {
        let used: usize = shown.iter().map(|column| widths[*column] + GAP.len()).sum();
        if used > most.saturating_add(GAP.len()) {
            shown.retain(|column| header[*column] != *name);
        }
    }
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> = (shown.iter())
            .map(|column| format!("{:<1$}", line[*column], widths[*column]))
            .collect();
        let joined = cells.join(GAP);
        text.push_str(&cut(joined.trim_end(), most));
        text.push('\n');
    }
    text
}

/// Number of bytes of the reproducer (smallest failing input) that the block of lines on one group
/// shows.
const SHOWN: usize = 16;

/// Maximum number of lines, and of characters per line, that the block of lines on one group shows
/// of the reproducer as parsed by the harness.
const DEBUG: (usize, usize) = (16, 100);

/// Formats one group as a block of lines: class, message, location, sizes, minimality, reproducer,
/// script, file and log, then its other minor keys and the reproducer as parsed by the harness.
pub fn block(view: &GroupView) -> String {
    head(&Finding::from(view)) + &figures(view, false)
}

/// Formats one group as a block of lines like [`block`], with stacks, source lines and the gdb
/// command.
pub fn block_in_full(view: &GroupView) -> String {
    let trace = view.trace.text(Extent::WHOLE);
    head(&Finding::from(view)) + &trace + &figures(view, true)
}

/// Formats what failed in a group and where: class, message, location, the innermost frames and
/// source lines.
pub fn cause(finding: &Finding) -> String {
    head(finding) + &finding.trace.text(Extent::SHORT)
}

/// Formats the first lines about a failure: its class, severity, message, place in the source code,
/// and explanation.
fn head(finding: &Finding) -> String {
    let of = finding.utility.as_ref();
    let of = of.map_or_else(String::new, |utility| format!(" of {}", printable(utility)));
    let mut text = format!(
        "{} {}{of}: {}, {} ({})\n",
        finding.kind.noun(),
        finding.major,
        printable(&finding.class),
        severity(finding.severity),
        printable(&finding.severity_reason),
    );
    let message = finding.trace.message.as_deref().unwrap_or_default();
    for (index, line) in message.lines().enumerate() {
        let name = if index == 0 { "message" } else { "" };
        text.push_str(&fact_line(name, line));
    }
    text.push_str(&fact_line(
        "where",
        finding.place.as_deref().unwrap_or("unknown"),
    ));
    if let Some(place) = &finding.place_before {
        text.push_str(&fact_line("", &format!("with an earlier build: {place}")));
    }
    let explanation = finding.explanation.as_deref().unwrap_or_default();
    for (index, line) in explanation.lines().enumerate() {
        text.push_str(&fact_line(if index == 0 { "why" } else { "" }, line));
    }
    text
}

fn figures(view: &GroupView, with_gdb: bool) -> String {
    let reduced = size::reduction(view.size_before, view.size_after());
    let reduced = match view.tests_executed() {
        Some(tests) => format!("{reduced} in {}", size::counted(tests, "test")),
        None => reduced,
    };
    let path = |path: Option<&Path>| path.map_or_else(|| "none".to_owned(), shell_word);
    let gdb = view.gdb().filter(|_| with_gdb);
    let lines = [
        ("size", Some(reduced)),
        ("claim", Some(view.claim())),
        ("check", view.checked.as_ref().map(check_of)),
        ("input", Some(text::hex_line(&view.reproducer, SHOWN))),
        ("replay", Some(path(view.script.as_deref()))),
        ("gdb", gdb),
        ("file", Some(path(Some(&view.file)))),
        ("log", Some(path(view.log.as_deref()))),
    ];
    let lines = lines
        .iter()
        .filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let mut text: String = lines.map(|(name, value)| fact_line(name, value)).collect();
    for variant in &view.variants {
        text.push_str(&fact_line("variant", &line_of(variant)));
    }
    let debug = (view.minimized.as_ref()).and_then(|minimized| minimized.debug.as_deref());
    text + &debug.map_or_else(String::new, debug_lines)
}

/// Formats the result of the last check of a group, with its time and the commit of the program.
fn check_of(check: &LastCheck) -> String {
    let commit = check.commit.as_ref();
    let commit = commit.map_or_else(String::new, |id| {
        format!(", in commit {}", &id[..id.len().min(12)])
    });
    format!("{} since {}{commit}", check.status.name(), check.at)
}

/// Formats the reproducer of one of a group's further minor keys (call paths to the bug) as one
/// line: its size, the caller of the crashing function, and its file.
fn line_of(variant: &VariantView) -> String {
    let bytes = size::counted(variant.size_after, "byte");
    let caller = variant.caller.as_ref();
    let caller = caller.map_or_else(String::new, |caller| format!(", called by {caller}"));
    format!("{bytes}{caller}: {}", shell_word(&variant.file))
}

/// Formats one fact about a group, a label and a value, as a line in which values of all facts
/// begin in the same column.
fn fact_line(name: &str, value: &str) -> String {
    let line = format!("  {name:<7} {}", printable(value));
    format!("{}\n", line.trim_end())
}

/// Formats the first lines of the reproducer as parsed by the harness, under the label `debug`.
fn debug_lines(debug: &str) -> String {
    let count = debug.lines().count();
    let mut text = String::new();
    for (index, line) in debug.lines().take(DEBUG.0).enumerate() {
        let name = if index == 0 { "debug" } else { "" };
        text.push_str(&fact_line(name, &cut(&printable(line), DEBUG.1)));
    }
    if count > DEBUG.0 {
        let more = size::counted((count - DEBUG.0) as u64, "more line");
        text.push_str(&fact_line(
            "",
            &format!("… {more} in debug.txt beside the file"),
        ));
    }
    text
}

pub(super) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Low => "low",
        Severity::Medium => "medium",
        Severity::High => "high",
    }
}
