//! A study as a table in Markdown.

use super::{PUBLISHED, Row, by_channel, by_kind, summaries};
use crate::report::size;
use crate::report::text::{escaped_markdown as escaped, markdown_code as code};

/// Formats a study as Markdown: a heading, the table of utilities as in the published studies,
/// rates with confidence intervals, published rates, and reproduction commands. The first line is a
/// comment that marks the file as written by ddfuzz, so that a later call may overwrite it.
pub fn markdown(rows: &[Row]) -> String {
    let mut text = "<!-- ddfuzz -->\n## ddfuzz: a study of utilities\n".to_owned();
    for summary in summaries(rows) {
        let line = format!("{}: {}.", summary.hosts.join(", "), summary.text());
        text += &format!("\n{}\n", escaped(line.trim_start_matches(": ")));
    }
    text += "\n| utility | package | host | channel | crash | hang | memory | runs | exit > 125 | \
             groups | smallest reproducer | fails again | label |\n\
             |---|---|---|---|:-:|:-:|:-:|---:|---:|---:|---|---|---|\n";
    rows.iter().for_each(|row| text += &line(row));
    text += "\n● crashed, ○ hung, ◆ ran out of memory.\n";
    for (name, lines) in [("channel", by_channel(rows)), ("input", by_kind(rows))] {
        text += &format!(
            "\n| {name} | utilities | crash or hang | rate (95 % interval) | runs | crash or hang \
             | rate (95 % interval) |\n|---|---:|---:|---|---:|---:|---|\n"
        );
        for line in lines {
            text += &format!(
                "| {} |\n",
                line.cells().map(|cell| escaped(&cell)).join(" | ")
            );
        }
    }
    text +=
        "\nAs published:\n\n| year | system | rate | failures | study |\n|---|---|---|---|---|\n";
    for study in &PUBLISHED {
        text += &format!("| {} |\n", study.cells().join(" | "));
    }
    text + &reproducers(rows)
}

fn line(row: &Row) -> String {
    let total = row.total();
    let marks = row.marks();
    let mark = |is_set: Option<bool>, symbol| match is_set {
        Some(true) => symbol,
        Some(false) => "",
        None => "n/a",
    };
    let count = |count: u64| match total.runs {
        0 => String::new(),
        _ => size::grouped(count),
    };
    let or_empty = |text: &Option<String>| escaped(text.as_deref().unwrap_or_default());
    let package = match (&row.package, &row.version) {
        (Some(package), Some(version)) => escaped(&format!("{package} {version}")),
        (package, _) => or_empty(package),
    };
    let least = row.smallest();
    let label = match (&row.label, &row.note) {
        (Some(label), Some(note)) => escaped(&format!("{label}: {note}")),
        (label, note) => or_empty(if label.is_some() { label } else { note }),
    };
    format!(
        "| {} | {package} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {label} |\n",
        escaped(&row.utility),
        escaped(&row.host),
        escaped(&row.channels().join(", ")),
        mark(marks.map(|marks| marks.crash), "●"),
        mark(marks.map(|marks| marks.hang), "○"),
        mark(marks.map(|marks| marks.memory), "◆"),
        count(total.runs),
        count(total.high_exits),
        count(row.groups.len() as u64),
        least.map_or_else(String::new, |(_, found)| {
            let size = size::bytes(found.view.size_after());
            escaped(&format!("{size}, {}", found.view.class))
        }),
        least
            .and_then(|(group, _)| group.replay())
            .unwrap_or_default(),
    )
}

/// Formats a list with the reproduction command of each group, as a folded Markdown section.
fn reproducers(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        for group in &row.groups {
            let Some(found) = &group.found else {
                continue;
            };
            let view = &found.view;
            let place = view.place.as_ref();
            let place = place.map_or_else(String::new, |place| format!(" in {place}"));
            let how = match group.command() {
                Some(command) => code(&command),
                None => code(&crate::report::text::shell_word(&view.file)),
            };
            let what = format!("{}: {}{place}", row.utility, view.class);
            let what = escaped(&what);
            text += &format!("- {what}, {}: {how}\n", size::bytes(view.size_after()));
        }
    }
    match text.is_empty() {
        true => text,
        false => {
            format!("\n<details><summary>How to reproduce</summary>\n\n{text}\n</details>\n")
        }
    }
}
