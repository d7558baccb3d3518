//! The table of the studies as one page that needs nothing else.

use std::path::Path;

use super::relative::link;
use super::{PUBLISHED, RateLine, Row, RowGroup, StudyGroup, by_channel, by_kind, summaries};
use crate::report::html::{Cell, END, escaped, head, table};
use crate::report::{hexdump, size};

/// Bytes of a reproducer that are shown.
const SHOWN: usize = 64;

/// The page: what it came to, the table of utilities (which sorts by a click on a column), the
/// rates, the published ones, and the groups with their frames, reproducers and links. `folder`,
/// absolute, is where the file will stand: links are relative to it. The second line is a comment by
/// which a later call knows the file for one of ddfuzz's.
pub fn html(rows: &[Row], folder: &Path) -> String {
    let mut page = head("a study of utilities");
    for summary in summaries(rows) {
        let line = format!("{}: {}.", summary.hosts.join(", "), summary.text());
        page += &format!("<p>{}</p>\n", escaped(line.trim_start_matches(": ")));
    }
    page += &utilities(rows);
    page += "<p>● crashed, ○ hung, ◆ ran out of memory, – none of them.</p>\n<h2>Rates</h2>\n";
    page += &rates("channel", &by_channel(rows));
    page += &rates("input", &by_kind(rows));
    page += &published();
    page += "<h2>Groups</h2>\n";
    for row in rows {
        for group in &row.groups {
            if let Some(found) = &group.found {
                page += &block(row, group, found, folder);
            }
        }
    }
    page + END
}

fn utilities(rows: &[Row]) -> String {
    let heads = [
        "utility",
        "package",
        "version",
        "host",
        "channel",
        "marks",
        "runs",
        "crashes",
        "hangs",
        "memory",
        "exit > 125",
        "groups",
        "smallest",
        "class",
        "fails again",
        "label",
    ];
    let lines = rows.iter().map(|row| {
        let total = row.total();
        let or_empty = |text: &Option<String>| Cell::text(text.as_deref().unwrap_or_default());
        let least = row.smallest();
        let marks = row.marks().map(|marks| marks.symbols());
        let label = [&row.label, &row.note].map(|text| text.as_deref().unwrap_or_default());
        let label = label.join(" ");
        vec![
            Cell::text(&row.utility),
            or_empty(&row.package),
            or_empty(&row.version),
            Cell::text(&row.host),
            Cell::text(&row.channels().join(", ")),
            or_empty(&marks),
            Cell::number(total.runs),
            Cell::number(total.crashes),
            Cell::number(total.hangs),
            Cell::number(total.ooms),
            Cell::number(total.high_exits),
            Cell::number(row.groups.len() as u64),
            least.map_or(Cell::text(""), |(_, found)| {
                Cell::number(found.view.size_after())
            }),
            Cell::text(least.map_or("", |(_, found)| &found.view.class.0)),
            or_empty(&least.and_then(|(group, _)| group.replay())),
            Cell::text(label.trim()),
        ]
    });
    table(&heads, lines)
}

fn rates(name: &str, lines: &[RateLine]) -> String {
    let heads = [
        name,
        "utilities",
        "crash or hang",
        "rate (95 % interval)",
        "runs",
        "crash or hang",
        "rate (95 % interval)",
    ];
    let lines = lines.iter().map(|line| {
        let of = |rate: super::Rate| {
            let value = rate.share.unwrap_or(-1.0);
            let (text, key) = (rate.cell(), value.to_string());
            [
                Cell::number(rate.of),
                Cell::number(rate.hits),
                Cell { text, key },
            ]
        };
        let mut cells = vec![Cell::text(&line.name)];
        cells.extend(of(line.utilities));
        cells.extend(of(line.runs));
        cells
    });
    table(&heads, lines)
}

fn published() -> String {
    let heads = ["as published", "system", "rate", "failures", "study"];
    let lines = PUBLISHED.iter().map(|study| {
        let cells = [study.system, &study.text(), study.failures, study.source].map(Cell::text);
        let mut line = vec![Cell::number(study.year.into())];
        line[0].text = study.year.to_string();
        line.extend(cells);
        line
    });
    table(&heads, lines)
}

fn block(row: &Row, group: &RowGroup, found: &StudyGroup, folder: &Path) -> String {
    let view = &found.view;
    let files = [
        ("reproducer", Some(&view.file)),
        ("log", view.log.as_ref()),
        ("reproduce.sh", view.script.as_ref()),
    ];
    let links: Vec<String> = (files.iter())
        .filter_map(|(name, file)| {
            let to = escaped(&link(folder, file.as_ref()?));
            Some(format!("<a href=\"{to}\">{name}</a>"))
        })
        .collect();
    let place = view.place.as_deref().unwrap_or("unknown place");
    let command = group.command();
    let command = command.map_or_else(String::new, |command| {
        format!("<pre>{}</pre>\n", escaped(&command))
    });
    let replay = group.replay();
    let replay = replay.map_or_else(String::new, |replay| format!("; fails again {replay}"));
    format!(
        "<details>\n<summary>{}: {} in {} ({})</summary>\n<p>{} <code>{}</code>, {}{}, {}.</p>\n\
         <pre>{}</pre>\n{command}<p>{}</p>\n</details>\n",
        escaped(&row.utility),
        escaped(&view.class.0),
        escaped(place),
        escaped(&size::bytes(view.size_after())),
        escaped(group.kind.folder()),
        escaped(&group.major),
        escaped(&size::reduction(view.size_before, view.size_after())),
        escaped(&replay),
        escaped(&view.claim()),
        escaped(&hexdump::line(&view.reproducer, SHOWN)),
        links.join(" · "),
    )
}
