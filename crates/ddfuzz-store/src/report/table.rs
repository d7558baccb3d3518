//! Tables that fit the terminal.

use super::block::severity;
use super::text::{cut, printable};
use super::{GroupView, Shrinking, size};

/// Characters between two columns.
const GAP: &str = "  ";

/// Columns that a narrow terminal does without, the first to go first: where a group is says more
/// than how bad it is thought to be.
const SPARED: [&str; 3] = ["WHY", "SEVERITY", "KIND"];

/// The groups of an output directory, one line each, no line longer than `width` characters
/// (`None`: as long as need be).
pub fn groups_table(groups: &[GroupView], width: Option<usize>) -> String {
    let mut header = vec![
        "UTILITY", "KIND", "GROUP", "CLASS", "SEVERITY", "SEEN", "SIZE", "CLAIM", "WHERE", "WHY",
    ];
    let rows = groups.iter().map(|group| {
        vec![
            group.utility.clone().unwrap_or_else(|| "-".to_owned()),
            group.kind.folder().to_owned(),
            group.major.short(),
            group.class.to_string(),
            severity(group.severity).to_owned(),
            size::grouped(group.runs_seen),
            size::reduction(group.size_before, group.size_after()),
            group.standing(),
            group.place.clone().unwrap_or_else(|| "-".to_owned()),
            group.severity_reason.clone(),
        ]
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    if groups.iter().all(|group| group.utility.is_none()) {
        // Of one program only.
        header.remove(0);
        rows.iter_mut().for_each(|row| drop(row.remove(0)));
    }
    render_columns(&header, rows, width, &SPARED)
}

/// What each pass of a minimization did, one line each, like [`groups_table`].
pub fn passes_table(shrinking: &Shrinking, width: Option<usize>) -> String {
    let units = shrinking.units().to_uppercase();
    let header = ["PASS", "TESTS", "EXECUTED", "REDUCTIONS", &units, "RULES"];
    let rows = shrinking.passes.iter().map(|pass| {
        let rules = pass.rules.iter();
        let rules: Vec<String> = rules
            .map(|(rule, count)| format!("{rule} {}", size::grouped(*count)))
            .collect();
        [
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
    render(header, rows.collect(), width)
}

/// [`render_columns`] of a fixed number of columns, of which those of [`SPARED`] may go.
pub(super) fn render<const N: usize>(
    header: [&str; N],
    rows: Vec<[String; N]>,
    width: Option<usize>,
) -> String {
    let rows = rows.into_iter().map(Vec::from).collect();
    render_columns(&header, rows, width, &SPARED)
}

/// Columns as wide as their widest cell. Where lines are too long, those named in `spared`
/// go, one after the other, and then the lines lose their ends.
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
