//! The table as a page.

use std::path::Path;

use ddfuzz::report::study::{StudyGroup, html, rows};
use ddfuzz::store::Kind;
use ddfuzz::triage::Class;

use super::{HOSTILE, group, small, study, tally, utility};

#[test]
fn a_page_has_a_sortable_table_and_the_groups_with_links() {
    let (studies, groups) = small();
    let page = html(&rows(&studies, &groups), Path::new("/out/reports"));
    assert!(page.starts_with("<!DOCTYPE html>\n<!-- ddfuzz -->\n"));
    for expected in [
        "<td class=\"n\" data-key=\"1000\">1,000</td>",
        "<td>●○</td>",
        "<summary>boxes: segv in parse_line at ul.c:40 (1 byte)</summary>",
        "<pre tabindex=\"0\">41  |A|</pre>",
        "<pre tabindex=\"0\">sh /out/crash/reproduce.sh</pre>",
        "<a href=\"../crash/log.jsonl\">log</a>",
        "<a href=\"../crash/reproduce.sh\">reproduce.sh</a>",
        "fails again 10/10",
        "12 % (9 of 74)",
    ] {
        assert!(page.contains(expected), "{expected:?} in {page}");
    }
    assert!(page.ends_with("</html>\n"));
}

#[test]
fn a_page_loads_nothing_and_hostile_text_is_nothing_but_text() {
    let record = utility(HOSTILE, 0, vec![tally(HOSTILE, HOSTILE, 5, 1, 0)]);
    let studies = [study("c1", HOSTILE, vec![record])];
    let mut found = group(HOSTILE, Kind::Crash, "x", 1);
    found.view.class = Class(HOSTILE.to_owned());
    found.view.place = Some(HOSTILE.to_owned());
    found.view.file = format!("/out/{HOSTILE}").into();
    let found = StudyGroup { ..found };
    let page = html(&rows(&studies, &[found]), Path::new("/out"));
    // The page's own, and no other.
    assert_eq!(page.matches("<script").count(), 1);
    assert!(!page.contains("\"alert"), "{page}");
    let bad = |character: char| character.is_control() && character != '\n';
    assert!(!page.contains(bad), "{page}");
    for outside in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn an_empty_study_is_a_page() {
    let page = html(&[], Path::new("/"));
    assert!(page.contains("none has been run") && page.contains("Nothing was found"));
}
