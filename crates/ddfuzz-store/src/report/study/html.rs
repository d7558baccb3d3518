//! A study as an HTML page in one file. Its links stay valid if the page and the output directory
//! are moved together.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use maud::Markup;

use super::rows::once_each;
use super::{PUBLISHED, RateLine, Row, RowGroup, StudyGroup, by_channel, by_kind, summaries};
use crate::report::groups::severity;
use crate::report::html::{Cell, fixed_table, page, table, text};
use crate::report::size;
use crate::report::text::hex_line;

/// Maximum number of bytes of a reproducer that the HTML page of a study shows.
const SHOWN: usize = 64;

/// Maximum number of failing utilities that the head of a study's page names.
const NAMED: usize = 20;

/// Formats a study as an HTML page: summary, sortable table of utilities, failure rates of the
/// study and published ones, and the groups of failures with stack frames, reproducers and links.
/// `folder` is the absolute path of the page's directory, because links are relative to it.
pub fn html(rows: &[Row], folder: &Path) -> String {
    let groups = rows.iter().flat_map(|row| &row.groups);
    let has_groups = groups.filter(|group| group.found.is_some()).count() > 0;
    let body = maud::html! {
        header {
            h1 { (text(&headline(rows))) }
            p class="lead" {
                "A utility fails if it crashes or hangs in one of its runs on random input."
                (failing(rows))
            }
        }
        main {
            (utilities_section(rows))
            section id="groups" {
                h2 { "Groups" }
                @if has_groups {
                    p { "A group is one bug: inputs that make the utility fail at the same place." }
                } @else {
                    p { "Nothing was found." }
                }
                @for row in rows {
                    @for group in &row.groups {
                        @if let Some(found) = &group.found { (block(row, group, found, folder)) }
                    }
                }
            }
            (rates_section(rows))
        }
    };
    page("a study of utilities", &body)
}

/// Formats in a few words how many utilities the study has run, and how many of them fail.
fn headline(rows: &[Row]) -> String {
    let once = once_each(rows);
    let marks: Vec<_> = once.iter().filter_map(Row::marks).collect();
    let fail = marks.iter().filter(|marks| marks.fails()).count();
    match marks.len() {
        0 => "A study of utilities: none has been run".to_owned(),
        1 => format!(
            "A study of 1 utility: it {}",
            if fail == 1 { "fails" } else { "never fails" }
        ),
        run => {
            let fail = match fail {
                0 => "none of them fails".to_owned(),
                1 => "1 of them fails".to_owned(),
                fail => format!("{} of them fail", size::grouped(fail as u64)),
            };
            format!("A study of {} utilities: {fail}", size::grouped(run as u64))
        }
    }
}

/// Formats as HTML the names of at most 20 utilities that crash, hang or run out of memory, with
/// the symbols for these; empty if there are none.
fn failing(rows: &[Row]) -> Markup {
    let once = once_each(rows);
    let named = once.iter().filter_map(|row| {
        let marks = row.marks().filter(|marks| marks.fails() || marks.memory)?;
        Some((row, marks.symbols()))
    });
    let named: Vec<(&Row, String)> = named.collect();
    maud::html! {
        @if !named.is_empty() {
            " Here fail: "
            @for (at, (row, marks)) in named.iter().take(NAMED).enumerate() {
                @if at > 0 { ", " }
                b { (text(&row.utility)) } " " (marks)
            }
            @if named.len() > NAMED { ", and " (size::grouped((named.len() - NAMED) as u64)) " more" }
            "."
        }
    }
}

/// Makes the HTML section on the utilities of a study: a summary and a table. The page of the
/// study's output directory contains the same section.
pub(in crate::report) fn utilities_section(rows: &[Row]) -> Markup {
    maud::html! {
        section id="utilities" {
            h2 { "Utilities" }
            @for summary in summaries(rows) {
                @let line = format!("{}: {}.", summary.hosts.join(", "), summary.text());
                p { (text(line.trim_start_matches(": "))) }
            }
            (utilities(rows))
            p class="faint" { "● crashed, ○ hung, ◆ ran out of memory, – none of them." }
        }
    }
}

/// Makes the HTML section on the rates of failure, of this study and of published ones. The page of
/// the study's output directory contains the same section.
pub(in crate::report) fn rates_section(rows: &[Row]) -> Markup {
    maud::html! {
        section id="rates" {
            h2 { "Rates of failure" }
            (rates("channel", &by_channel(rows)))
            (rates("input", &by_kind(rows)))
            h3 { "As published" }
            (published())
        }
    }
}

fn utilities(rows: &[Row]) -> Markup {
    let heads = "utility, package, version, host, channel, marks, runs, crashes, hangs, \
                 memory, exit > 125, groups, smallest, class, fails again, label";
    // The summary names the machine if it is only one.
    let is_one_host = rows.windows(2).all(|pair| pair[0].host == pair[1].host);
    let lines = rows.iter().map(|row| {
        let host = if is_one_host { "" } else { &row.host };
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
            Cell::text(host),
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

fn rates(name: &str, lines: &[RateLine]) -> Markup {
    let heads = format!(
        "{name}, utilities, crash or hang, rate (95 % interval), runs, crash or hang, rate (95 % interval)"
    );
    let lines = lines.iter().map(|line| {
        let of = |rate: super::Rate| {
            let value = rate.share.unwrap_or(-1.0);
            let cell = Cell::value(rate.cell(), value.to_string());
            [Cell::number(rate.of), Cell::number(rate.hits), cell]
        };
        let mut cells = vec![Cell::text(&line.name)];
        cells.extend(of(line.utilities));
        cells.extend(of(line.runs));
        cells
    });
    table(&heads, lines)
}

fn published() -> Markup {
    let heads = "year, system, rate, failures, study";
    let lines = PUBLISHED.iter().map(|study| {
        let rate = study.text();
        let cells = [
            Cell::text(study.system),
            Cell::value(rate.clone(), rate),
            Cell::text(study.failures),
            Cell::text(study.source),
        ];
        let mut line = vec![Cell::text(&study.year.to_string())];
        line.extend(cells);
        line
    });
    fixed_table(heads, lines)
}

fn block(row: &Row, group: &RowGroup, found: &StudyGroup, folder: &Path) -> Markup {
    let view = &found.view;
    let files = [
        ("reproducer", Some(&view.file)),
        ("log", view.log.as_ref()),
        ("reproduce.sh", view.script.as_ref()),
    ];
    let files = files.into_iter();
    let links = files.filter_map(|(name, file)| Some((name, link(folder, file?))));
    let place = view.place.as_deref().unwrap_or("unknown place");
    maud::html! {
        details {
            summary {
                (text(&row.utility)) ": " (text(&view.class.0)) " in " (text(place)) " ("
                (size::bytes(view.size_after())) ")"
            }
            p {
                @let name = severity(view.severity);
                span class=(name) { (name) } " · " (text(&view.severity_reason))
                @if let Some(headline) = view.trace.headline() { " · " (text(headline)) }
            }
            p {
                (group.tally.kind.folder()) " " code { (text(&group.tally.major)) } ", "
                (size::reduction(view.size_before, view.size_after()))
                @if let Some(replay) = group.replay() { "; fails again " (text(&replay)) }
                ", " (text(&view.claim())) "."
            }
            pre tabindex="0" { (text(&hex_line(&view.reproducer, SHOWN))) }
            @if let Some(command) = group.command() { pre tabindex="0" { (text(&command)) } }
            p {
                @for (index, (name, to)) in links.enumerate() {
                    @if index > 0 { " · " }
                    a href=(text(&to)) { (name) }
                }
            }
        }
    }
}

/// Returns the relative URI from a file in directory `from` to the file `to`; both paths are
/// absolute. Unusual bytes are percent-encoded.
pub(in crate::report) fn link(from: &Path, to: &Path) -> String {
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

/// Splits an absolute path into the names of its folders and file. Each `..` removes the name
/// before it, as a browser does, whatever links the path has.
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
