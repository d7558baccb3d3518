//! Studies side by side, in the terminal.

use super::{Change, ComparedGroup, ComparedUtility, Comparison, Tested, UtilityIn};
use crate::report::table::render_columns;
use crate::report::text::printable;
use crate::report::{SameBy, size};

/// The comparison: the directories with their rates, a line for each utility, a line for each of
/// their groups, and whether the rates differ by more than chance. No line of a table is longer than
/// `width` characters (`None`: as long as need be).
pub fn comparison_text(comparison: &Comparison, width: Option<usize>) -> String {
    let mut text = String::new();
    for (at, directory) in comparison.directories.iter().enumerate() {
        let summary = &directory.summary;
        let on = match summary.hosts.is_empty() {
            true => String::new(),
            false => format!(" on {}", summary.hosts.join(", ")),
        };
        let line = format!(
            "[{}] {}{on}: {}",
            at + 1,
            directory.directory,
            summary.text()
        );
        text += &printable(&line);
        text.push('\n');
    }
    if comparison.utilities.is_empty() {
        return text;
    }
    text.push('\n');
    text += &utilities(comparison, width);
    let groups = groups(comparison, width);
    if !groups.is_empty() {
        text.push('\n');
        text += &groups;
    }
    text.push('\n');
    text += &totals(comparison);
    for test in &comparison.tests {
        text += &tested(test, comparison);
    }
    text
}

fn utilities(comparison: &Comparison, width: Option<usize>) -> String {
    let numbers: Vec<String> = (1..=comparison.directories.len())
        .map(|number| format!("[{number}]"))
        .collect();
    let mut header = vec!["UTILITY"];
    header.extend(numbers.iter().map(String::as_str));
    header.push("GROUPS");
    let rows = comparison.utilities.iter().map(|utility| {
        let mut row = vec![utility.utility.clone()];
        row.extend(
            utility
                .studies
                .iter()
                .map(|cell| cell.as_ref().map_or_else(String::new, shown)),
        );
        row.push(changes(utility));
        row
    });
    render_columns(&header, rows.collect(), width, &[])
}

/// The marks of a utility in one study, its label and its version.
fn shown(cell: &UtilityIn) -> String {
    let marks = match cell.marks {
        Some(marks) => marks.symbols(),
        None => "not run".to_owned(),
    };
    let mut parts = vec![marks];
    parts.extend(cell.label.clone());
    if !cell.versions.is_empty() {
        parts.push(format!("({})", cell.versions.join(", ")));
    }
    parts.join(" ")
}

/// `1 new, 2 gone, 1 same`.
fn changes(utility: &ComparedUtility) -> String {
    let all = [Change::New, Change::Gone, Change::NotRun, Change::Same];
    let parts = all.into_iter().filter_map(|change| {
        let of_it = utility.groups.iter().filter(|group| group.change == change);
        let count = of_it.count() as u64;
        (count > 0).then(|| format!("{} {}", size::grouped(count), change.name()))
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn groups(comparison: &Comparison, width: Option<usize>) -> String {
    let header = [
        "CHANGE", "UTILITY", "KIND", "CLASS", "GROUP", "SAME BY", "WHERE",
    ];
    let of = |utility: &ComparedUtility, group: &ComparedGroup| {
        let majors = group.majors.iter().map(|majors| match majors.is_empty() {
            true => "–".to_owned(),
            false => majors.join("+"),
        });
        let mut majors: Vec<String> = majors.collect();
        if majors.iter().all(|major| *major == majors[0]) {
            majors.truncate(1);
        }
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        vec![
            group.change.name().to_owned(),
            utility.utility.clone(),
            group.kind.folder().to_owned(),
            or_none(&group.class),
            majors.join(" "),
            match group.same_by {
                Some(SameBy::Key) => "key".to_owned(),
                Some(SameBy::Names) => "names".to_owned(),
                None => "-".to_owned(),
            },
            or_none(&group.frame),
        ]
    };
    let rows = comparison.utilities.iter();
    let rows: Vec<Vec<String>> = rows
        .flat_map(|utility| utility.groups.iter().map(move |group| of(utility, group)))
        .collect();
    match rows.is_empty() {
        true => String::new(),
        false => render_columns(&header, rows, width, &["KIND"]),
    }
}

fn totals(comparison: &Comparison) -> String {
    let groups = || {
        comparison
            .utilities
            .iter()
            .flat_map(|utility| &utility.groups)
    };
    let count =
        |change| size::grouped(groups().filter(|group| group.change == change).count() as u64);
    format!(
        "groups in [{}]: {} new, {} as before, {} gone, {} of utilities that were not run\n",
        comparison.directories.len(),
        count(Change::New),
        count(Change::Same),
        count(Change::Gone),
        count(Change::NotRun),
    )
}

fn tested(test: &Tested, comparison: &Comparison) -> String {
    let [first, second] = test.studies;
    let rate = |at: usize| {
        let rate = comparison.directories[at].summary.failing;
        format!("{} of {}", size::grouped(rate.hits), size::grouped(rate.of))
    };
    format!(
        "[{}] {} and [{}] {} crash or hang: p = {} by Fisher's exact test, two-sided\n\
         of {} that both have run {} failed in [{}] alone, {} in [{}] alone: p = {} by McNemar's \
         exact test, two-sided\n",
        first + 1,
        rate(first),
        second + 1,
        rate(second),
        p_value(test.fisher),
        size::grouped(test.both_run),
        size::grouped(test.only_first),
        first + 1,
        size::grouped(test.only_second),
        second + 1,
        p_value(test.mcnemar),
    )
}

fn p_value(p: f64) -> String {
    match p {
        ..0.0001 => "less than 0.0001".to_owned(),
        _ => format!("{p:.4}"),
    }
}
