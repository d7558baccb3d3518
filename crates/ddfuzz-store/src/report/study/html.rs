//! A study as an HTML page in one file. Its links stay valid if the page and the output directory
//! are moved together.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use super::{PUBLISHED, RateLine, Row, RowGroup, StudyGroup, by_channel, by_kind, summaries};
use crate::report::html::{Cell, END, escaped, head, table};
use crate::report::size;
use crate::report::text::hex_line;

/// Number of reproducer bytes that the HTML page shows.
const SHOWN: usize = 64;

/// Formats a study as an HTML page: summary, sortable table of utilities, rates, published rates,
/// and the groups with frames, reproducers and links. `folder` is the absolute path of the page's
/// directory, because links are relative to it.
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
    let heads = "utility, package, version, host, channel, marks, runs, crashes, hangs, \
                 memory, exit > 125, groups, smallest, class, fails again, label";
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
    table(heads, lines)
}

fn rates(name: &str, lines: &[RateLine]) -> String {
    let heads = format!(
        "{name}, utilities, crash or hang, rate (95 % interval), runs, crash or hang, rate (95 % interval)"
    );
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
    let heads = "as published, system, rate, failures, study";
    let lines = PUBLISHED.iter().map(|study| {
        let cells = [study.system, &study.text(), study.failures, study.source].map(Cell::text);
        let mut line = vec![Cell::number(study.year.into())];
        line[0].text = study.year.to_string();
        line.extend(cells);
        line
    });
    table(heads, lines)
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
        escaped(group.tally.kind.folder()),
        escaped(&group.tally.major),
        escaped(&size::reduction(view.size_before, view.size_after())),
        escaped(&replay),
        escaped(&view.claim()),
        escaped(&hex_line(&view.reproducer, SHOWN)),
        links.join(" · "),
    )
}

/// Returns the relative URI from a file in directory `from` to the file `to`; both paths are
/// absolute. Unusual bytes are percent-encoded.
pub(super) fn link(from: &Path, to: &Path) -> String {
    let (from, to) = (names(from), names(to));
    let same = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let mut link = "../".repeat(from.len() - same);
    for (at, name) in to[same..].iter().enumerate() {
        if at > 0 {
            link.push('/');
        }
        for byte in *name {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => {
                    link.push(*byte as char);
                }
                // Writing to a string never fails.
                _ => drop(write!(link, "%{byte:02X}")),
            }
        }
    }
    link
}

/// Splits an absolute path into its names; `..` removes the name before it, as in a browser.
fn names(path: &Path) -> Vec<&[u8]> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.as_bytes()),
            Component::ParentDir => drop(names.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_goes_up_to_what_both_have_in_common() {
        let link = |from: &str, to: &str| link(Path::new(from), Path::new(to));
        assert_eq!(link("/a/out", "/a/out/crashes/x"), "crashes/x");
        assert_eq!(link("/a/reports", "/a/out/x"), "../out/x");
        assert_eq!(link("/", "/x"), "x");
        assert_eq!(link("/a/b/..", "/a/../a/out/x"), "out/x");
    }

    #[test]
    fn a_name_cannot_become_another_scheme_or_markup() {
        let to = Path::new("/o/javascript:alert(1)\"><b>\u{e4}");
        assert_eq!(
            link(Path::new("/o"), to),
            "javascript%3Aalert%281%29%22%3E%3Cb%3E%C3%A4"
        );
    }
}
