//! Tables.

use ddfuzz::minimize::Rate;
use ddfuzz::report::{GroupView, groups_table};
use ddfuzz::store::Kind;

use crate::sample::view;

#[test]
fn groups_stand_in_columns() {
    let hang = GroupView {
        kind: Kind::Hang,
        class: ddfuzz::triage::Class("hang".to_owned()),
        place: None,
        minimized: None,
        runs_seen: 1,
        ..view()
    };
    let major = view().major.short();
    let expected = format!(
        "KIND     GROUP         CLASS  SEVERITY  SEEN   SIZE          CLAIM      WHERE                  WHY\n\
         crashes  {major}  segv   high      1,234  40 → 6 bytes  1-minimal  parse_line at ul.c:40  write to a wild address\n\
         hangs    {major}  hang   high      1      40 → 6 bytes  -          -                      write to a wild address\n"
    );
    assert_eq!(groups_table(&[view(), hang], None), expected);
}

#[test]
fn no_line_is_longer_than_the_terminal() {
    for width in [0, 1, 10, 79, 80, 90] {
        let text = groups_table(&[view(), view()], Some(width));
        assert!(text.lines().all(|line| line.chars().count() <= width));
        assert_eq!(text.lines().count(), 3);
    }
}

#[test]
fn a_narrow_terminal_is_told_where_rather_than_how_bad() {
    let text = groups_table(&[view()], Some(93));
    assert!(text.contains("parse_line at ul.c:40"), "{text}");
    assert!(!text.contains("WHY") && text.contains("SEVERITY"), "{text}");
    let text = groups_table(&[view()], Some(72));
    assert!(text.contains("parse_line at ul.c"), "{text}");
    assert!(!text.contains("SEVERITY"), "{text}");
}

#[test]
fn a_name_with_a_line_end_stays_in_its_line() {
    let view = GroupView {
        place: Some("a\nb".to_owned()),
        ..view()
    };
    assert_eq!(groups_table(&[view], None).lines().count(), 2);
}

#[test]
fn what_does_not_come_each_time_is_marked_beside_its_claim() {
    let marked = |kind, minimized, flaky| {
        let view = GroupView {
            kind,
            minimized,
            flaky,
            ..view()
        };
        groups_table(&[view], None)
    };
    let rate = |hits, tries| Some(Rate { hits, tries });
    let text = marked(Kind::Crash, view().minimized, rate(14, 20));
    assert!(text.contains("  1-minimal, flaky 14/20  "), "{text}");
    let text = marked(Kind::Flaky, None, rate(1, 1));
    assert!(text.contains("bytes  flaky  "), "{text}");
    // On a terminal that has no room for KIND, too.
    let narrow = GroupView {
        kind: Kind::Flaky,
        minimized: None,
        flaky: rate(1, 3),
        ..view()
    };
    let text = groups_table(&[narrow], Some(72));
    assert!(
        !text.contains("KIND") && text.contains("flaky 1/3"),
        "{text}"
    );
}
