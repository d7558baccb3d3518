//! How an input shrank: the records, the curve and the drawing.

use ddfuzz::exec::{Limits, Program, Target, Way};
use ddfuzz::minimize::Claim;
use ddfuzz::minimize::log::{Line, StartLine, TargetRecord};
use ddfuzz::report::{MinimizationHistory, Pass, curve, passes_table, svg};
use serde_json::json;

/// The start of minimizing so many bytes by `full`.
fn start(size: usize) -> StartLine {
    let target = Target::new(Program::Bundled("ul".to_owned()));
    let target = TargetRecord::new(&target, Way::Mock);
    StartLine::new(&vec![b'x'; size], "full", target, None, Limits::default())
}

fn line(value: serde_json::Value) -> Line {
    serde_json::from_value(value).expect("a line")
}

/// A test that removes the rest of the best behind `size` bytes.
fn test(i: u64, size: u64, outcome: &str, source: &str, pass: Option<&str>) -> Line {
    let mut value = json!({
        "kind": "test", "i": i, "hash": "0123456789abcdef", "cut": [[size, size + 1]],
        "size": size, "outcome": outcome, "source": source, "us": 9,
    });
    match pass {
        Some("proof") => value["phase"] = json!("proof"),
        Some(pass) => value["pass"] = json!(pass),
        None => {}
    }
    line(value)
}

fn reduce(i: u64, rule: &str, size: u64) -> Line {
    line(json!({"kind": "reduce", "i": i, "rule": rule, "size": size}))
}

fn end(size: u64) -> Line {
    line(json!({
        "kind": "end", "claim": "1-minimal", "size": size,
        "blake3": "00".repeat(32), "proved": {"done": 1, "of": 1}, "proof": [0],
        "tests": {"executed": 4, "cached": 1, "repeated": 0, "predicted": 0, "speculative": 0,
            "checks": 7},
    }))
}

fn lines() -> Vec<Line> {
    vec![
        test(0, 900, "PASS", "run", Some("ends")),
        test(1, 100, "FAIL", "run", Some("ends")),
        reduce(1, "ends", 100),
        test(2, 50, "PASS", "cache", Some("sweep")),
        test(3, 4, "FAIL", "run", Some("sweep")),
        reduce(3, "sweep", 4),
        test(4, 3, "UNRESOLVED", "run", Some("proof")),
        end(4),
    ]
}

#[test]
fn tests_are_counted_by_the_pass_that_asked() {
    let shrinking = MinimizationHistory::of(&start(1000), &lines());
    let pass = |name: &str, tests, executed, reductions, removed| Pass {
        name: name.to_owned(),
        tests,
        executed,
        reductions,
        removed,
        ..Pass::default()
    };
    assert_eq!(
        shrinking.passes,
        [
            pass("ends", 2, 2, 1, 900),
            pass("sweep", 2, 1, 1, 96),
            pass("proof", 1, 1, 0, 0)
        ]
    );
    assert_eq!((shrinking.tests, shrinking.executed), (5, 4));
    assert_eq!(
        (shrinking.size_before, shrinking.size_after, shrinking.claim),
        (1000, 4, Some(Claim::OneMinimal))
    );
    assert_eq!(
        [0, 1, 2, 3, 4].map(|tests| shrinking.best_after(tests)),
        [1000, 1000, 100, 4, 4]
    );
}

#[test]
fn a_damaged_size_is_shown_as_it_is() {
    let mut damaged = lines();
    damaged[2] = reduce(1, "ends", u64::MAX);
    damaged.insert(3, reduce(1, "ends", 100));
    damaged.push(reduce(3, "ends", u64::MAX));
    let shrinking = MinimizationHistory::of(&start(1000), &damaged);
    assert_eq!(shrinking.passes[0].removed, u64::MAX - 100);
    assert_eq!(shrinking.size_after, u64::MAX);
    // Twice what a number can hold.
    damaged.insert(1, reduce(0, "ends", u64::MAX));
    damaged.insert(2, reduce(0, "ends", 0));
    let shrinking = MinimizationHistory::of(&start(1000), &damaged);
    assert_eq!(shrinking.passes[0].removed, u64::MAX);
    let shown = passes_table(&shrinking, None) + &curve(&shrinking, None) + &svg(&shrinking, "t");
    assert!(!shown.is_empty());
}

#[test]
fn a_search_without_passes_is_one_with_its_reductions_by_rule() {
    let lines = [
        test(0, 500, "FAIL", "run", None),
        reduce(0, "subset", 500),
        test(1, 250, "FAIL", "run", None),
        reduce(1, "complement", 250),
    ];
    let shrinking = MinimizationHistory::of(&start(1000), &lines);
    assert_eq!(
        passes_table(&shrinking, None),
        "PASS  TESTS  EXECUTED  REDUCTIONS  BYTES  RULES\n\
         full  2      2         2           -750   complement 1, subset 1\n"
    );
    assert_eq!(shrinking.claim, None);
}

#[test]
fn a_log_gone_on_with_behind_its_end_has_not_ended() {
    let mut lines = lines();
    lines.push(test(5, 2, "PASS", "run", Some("proof")));
    assert_eq!(MinimizationHistory::of(&start(1000), &lines).claim, None);
}

#[test]
fn the_curve_falls_from_the_size_of_the_input() {
    let shrinking = MinimizationHistory::of(&start(1000), &lines());
    let text = curve(&shrinking, Some(20));
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(rows.len(), 10, "{text}");
    assert!(rows[0].starts_with("1,000 ┤█"), "{text}");
    assert!(text.contains("to 4 tests (bytes logarithmic)"));
    assert!(
        rows[..9].iter().all(|row| row.chars().count() <= 20),
        "{text}"
    );
    // Each row is filled from the left, where the input was larger.
    let filled: Vec<usize> = rows[..8]
        .iter()
        .map(|row| row.matches('█').count())
        .collect();
    assert!(filled.is_sorted(), "{text}");
}

#[test]
fn nothing_tested_gives_no_curve_and_an_empty_drawing() {
    let shrinking = MinimizationHistory::of(&start(1000), &[]);
    assert_eq!(curve(&shrinking, None), "");
    check_xml(&svg(&shrinking, "nothing"));
    let empty = MinimizationHistory::of(&start(0), &[end(0)]);
    assert_eq!(curve(&empty, Some(0)), "");
    check_xml(&svg(&empty, ""));
}

#[test]
fn the_drawing_has_a_dot_for_each_executed_test_and_a_line_for_the_best() {
    let drawing = svg(&MinimizationHistory::of(&start(1000), &lines()), "crash-1");
    check_xml(&drawing);
    assert_eq!(drawing.matches("<circle class=\"fail\"").count(), 2);
    assert_eq!(drawing.matches("<circle class=\"other\"").count(), 2);
    assert_eq!(drawing.matches("<polyline").count(), 1);
    assert!(drawing.contains(">crash-1</text>") && drawing.contains("bytes (logarithmic)"));
    assert!(!drawing.contains("NaN") && !drawing.contains("inf"));
}

#[test]
fn a_hostile_title_stays_text() {
    let title = "<script>\"&amp;\u{1b}[2J\u{202e}]]>\u{ffff}";
    let drawing = svg(&MinimizationHistory::of(&start(1000), &lines()), title);
    check_xml(&drawing);
    assert!(drawing.contains("&lt;script&gt;&quot;&amp;amp;"));
    assert!(!drawing.contains('\u{1b}'));
}

#[test]
fn many_tests_give_a_drawing_of_bounded_size() {
    let mut all = vec![test(0, 500, "FAIL", "run", None), reduce(0, "subset", 500)];
    all.extend((1..60_000).map(|i| test(i, 499, "PASS", "run", None)));
    let shrinking = MinimizationHistory::of(&start(1000), &all);
    assert_eq!(shrinking.dots.len(), 60_000);
    let drawing = svg(&shrinking, "long");
    let dots = drawing.matches("<circle").count();
    assert!((15_000..=20_001).contains(&dots), "{dots}");
    assert_eq!(drawing.matches("<circle class=\"fail\"").count(), 1);
    assert!(drawing.contains("tests executed (logarithmic)"));
}

/// Fails unless the text is one well-formed element of XML behind a declaration.
fn check_xml(text: &str) {
    let rest = text.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let mut rest = rest.expect("a declaration");
    let mut open: Vec<&str> = Vec::new();
    while let Some(at) = rest.find('<') {
        check_text(&rest[..at]);
        let close = at + rest[at..].find('>').expect("an end of the tag");
        let tag = &rest[at + 1..close];
        rest = &rest[close + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "</{name}>");
            assert!(
                !open.is_empty() || rest == "\n",
                "behind the root: {rest:?}"
            );
            continue;
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "<{tag}>");
        let name = tag.split([' ', '/']).next().expect("a name");
        assert!(!name.is_empty());
        if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "not closed: {open:?}");
}

fn check_text(text: &str) {
    assert!(!text.contains('>'));
    for (at, _) in text.match_indices('&') {
        let known = ["&amp;", "&lt;", "&gt;", "&quot;"];
        assert!(
            known.iter().any(|name| text[at..].starts_with(name)),
            "{text}"
        );
    }
    let allowed = |c: char| c == '\n' || c >= ' ' && !('\u{fffe}'..='\u{ffff}').contains(&c);
    assert!(text.chars().all(allowed), "{text:?}");
}
