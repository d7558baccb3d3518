//! The table in Markdown.

use ddfuzz::report::study::{markdown, rows};
use ddfuzz::store::Kind;

use super::{HOSTILE, group, small, study, tally, utility};

#[test]
fn a_summary_in_markdown_has_the_papers_table_and_how_to_reproduce() {
    let (studies, groups) = small();
    let text = markdown(&rows(&studies, &groups));
    assert!(text.starts_with("<!-- ddfuzz -->\n"));
    for expected in [
        "| boxes | boxes-package 1.0 | host | stdin, cp a.txt | ● | ○ |  | 1,000 | 0 | 2 | 1 byte, segv | 10/10 |  |\n",
        "| cat | cat-package 1.0 | host | stdin |  |  |  | 600 | 0 | 0 |  |  |  |\n",
        "| su | su-package 1.0 | host |  | n/a | n/a | n/a |  |  |  |  |  | setuid |\n",
        "| stdin | 2 | 1 | 50.0 % (9.5–90.5) | 1,200 | 4 | 0.3 % (0.1–0.9) |\n",
        "| 2006 | Mac OS X, command line | 7 % | crash |",
        "`sh /out/crash/reproduce.sh`\n",
    ] {
        assert!(text.contains(expected), "{expected:?} in {text}");
    }
}

#[test]
fn a_hostile_name_is_nothing_but_text() {
    let studies = [study(
        "c1",
        HOSTILE,
        vec![utility(HOSTILE, 0, vec![tally(HOSTILE, HOSTILE, 5, 1, 0)])],
    )];
    let text = markdown(&rows(&studies, &[group(HOSTILE, Kind::Crash, "x", 1)]));
    assert!(
        !text.contains("<script") && !text.contains('\x1b'),
        "{text}"
    );
    let bars = |line: &&str| line.starts_with("| =x");
    for line in text.lines().filter(bars) {
        let cells = line.replace("\\|", "").matches('|').count();
        assert!(cells == 14 || cells == 8, "{cells} {line}");
    }
    assert_eq!(text.lines().filter(bars).count(), 3);
}

#[test]
fn an_empty_study_is_a_table_without_lines() {
    let text = markdown(&[]);
    assert!(
        text.contains("0 utilities run") && !text.contains("reproduce\n"),
        "{text}"
    );
}
