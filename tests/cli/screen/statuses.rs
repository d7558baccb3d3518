//! Lines for `grep`.

use ddfuzz::campaign::{Phase, Progress};
use ddfuzz::cli::ui::Statuses;

use super::sample::{minimized, progress, view};
use crate::ddfuzz::Desk;

#[test]
fn a_line_on_the_course_comes_every_ten_seconds() {
    let mut statuses = Statuses::default();
    let lines: Vec<String> = (0..=34)
        .filter_map(|seconds| statuses.progress(&progress(seconds, true)))
        .collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(
        lines[0],
        "status t=10 phase=fuzzing runs=19950 runs_per_s=1995.0 crashes=30 hangs=2 ooms=1 groups=3 minimizing=2 \
         minimizer_share=0.042 corpus=63 edges=189 edges_of=8192 stability=0.998"
    );
    let bare = Statuses::default().progress(&progress(10, false)).unwrap();
    assert!(
        bare.ends_with("corpus=0 edges=- edges_of=- stability=-"),
        "{bare}"
    );
}

#[test]
fn what_begins_when_the_fuzzing_is_over_is_told_at_once() {
    let mut statuses = Statuses::default();
    let mut lines = Vec::new();
    for seconds in 0..8 {
        let phase = match seconds {
            0..3 => Phase::Fuzzing,
            3 => Phase::Naming { left: 1 },
            _ => Phase::Minimizing {
                done: seconds - 4,
                of: 7,
                each_ms: Some(60_000),
            },
        };
        let progress = Progress {
            phase,
            ..progress(seconds, true)
        };
        lines.extend(statuses.progress(&progress));
    }
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[0].starts_with("status t=3 phase=naming "),
        "{lines:?}"
    );
    assert!(
        lines[1].starts_with("status t=4 phase=minimizing "),
        "{lines:?}"
    );
    let text = Phase::Minimizing {
        done: 2,
        of: 7,
        each_ms: Some(60_000),
    };
    let text = text.text().unwrap();
    assert_eq!(
        text,
        "fuzzing is over; minimizing 3 of 7, at most 60 s each"
    );
    assert_eq!(Phase::Fuzzing.text(), None);
}

#[test]
fn a_group_is_told_once_and_its_end_as_well() {
    let mut statuses = Statuses::default();
    statuses.progress(&progress(3, false));
    let found = statuses.group(&view("segv", 40_000)).unwrap();
    let key = view("segv", 1).major.short();
    assert_eq!(
        found,
        format!(
            "found t=3 kind=crashes group={key} class=segv size=40000 where=parse_line at ul.c:40"
        )
    );
    assert_eq!(statuses.group(&view("segv", 40)), None);
    assert!(statuses.group(&view("abrt", 40)).is_some());
    assert_eq!(
        statuses.minimized(&minimized("segv", 6)),
        format!(
            "minimized t=3 kind=crashes group={key} class=segv size_before=40000 size_after=6 \
             tests=47 claim=1-minimal"
        )
    );
    // A second result of a group is one of its variants.
    let mut variant = minimized("segv", 9);
    variant.variants = vec![ddfuzz::report::VariantView {
        minor: "0123456789ab".to_owned(),
        size_before: 40_000,
        size_after: 6,
        claim: "1-minimal".to_owned(),
        caller: None,
        file: "first".into(),
    }];
    let line = statuses.minimized(&variant);
    let which = format!(" claim=1-minimal variant={}", variant.minor.short());
    assert!(line.ends_with(&which), "{line}");
    // Each group that was named counts, also where only a minimization has met it.
    let course = Progress {
        groups: 1,
        ..progress(30, false)
    };
    let line = statuses.progress(&course).unwrap();
    assert!(line.contains(" groups=2 "), "{line}");
    let mut any = minimized("trap", 0);
    any.minimized.as_mut().unwrap().any_input = true;
    assert!(statuses.minimized(&any).ends_with(" claim=any-input"));
    let mut hostile = view("se\u{1b}gv", 4);
    hostile.place = Some("a\nstatus t=0".to_owned());
    let line = statuses.group(&hostile).unwrap();
    assert!(!line.contains(['\n', '\u{1b}']), "{line:?}");
}

#[test]
fn without_a_terminal_groups_are_lines_on_stderr() {
    let desk = Desk::new();
    let words = "run --target crtplot --runs 60 --max-len 500 --seed 1";
    for more in ["-o out", "--plain -o plain", "--json -o json"] {
        let said = desk.call(&format!("{words} {more}")).exits(1);
        let begin = |word: &str| {
            said.err
                .lines()
                .filter(|line| line.starts_with(word))
                .count()
        };
        assert_eq!(begin("found t=0 kind=crashes group="), 1, "{}", said.err);
        assert_eq!(begin("minimized t="), 1, "{}", said.err);
        assert!(!said.err.contains('\u{1b}'), "{}", said.err);
    }
    let later = desk
        .call(&format!("{words} --minimize after -o after"))
        .exits(1);
    let phase =
        |line: &&str| line.contains(" phase=minimizing ") && line.contains(" minimizing=1 ");
    let told = later.err.lines().filter(phase).count();
    assert_eq!(told, 1, "{}", later.err);
    let quiet = desk.call(&format!("{words} -q -o quiet")).exits(1);
    assert_eq!(quiet.err, "");
}
