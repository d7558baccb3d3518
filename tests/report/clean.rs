//! The result of a corpus cleanup as text and as a page.

use ddfuzz::report::clean::{CleanResult, clean_html, clean_table};
use serde_json::{Value, json};

fn result(change: impl FnOnce(&mut Value)) -> CleanResult {
    let mut value = json!({
        "before": {"files": 12345, "bytes": 4000000}, "after": {"files": 2, "bytes": 30},
        "edges_before": 100, "edges_after": 100,
        "features_before": 2000, "features_after": 2000, "flaky_features": 7,
        "steps": [{"step": "duplicates", "files": 345, "bytes": 1000},
                  {"step": "subset", "files": 11998, "bytes": 3998960},
                  {"step": "trimming", "files": 0, "bytes": 10}],
        "duplicates": 345, "crashes": 0, "hangs": 0, "ooms": 0, "trimmed_bytes": 10,
        "kept": [{"file": "/out/a", "from": "/in/<b>\"&\u{1b}[2J", "content": "00", "why": "w",
                  "size": 10, "size_before": 20, "us": 5, "features": 9, "only_here": 3,
                  "claim": "1-minimal"}],
        "groups": [], "cover": {"weight": 110, "lower_bound": 100, "optimal": false},
        "missing": [], "unread": [],
        "spread": {"sizes_before": [0, 1, 5], "sizes_after": [0, 1],
                   "times_before": [3], "times_after": [1]},
        "runs": 1, "trim_runs": 1, "known": 0, "max_len": 1000, "exec": "harness",
        "corpus": ["/in"], "out": "/out/corpus", "old": null, "wall_ms": 1
    });
    change(&mut value);
    serde_json::from_value(value).unwrap()
}

#[test]
fn the_table_has_a_line_for_each_step_and_what_is_reached() {
    let text = clean_table(&result(|_| {}), None);
    let lines: Vec<Vec<&str>> = (text.lines())
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert!(
        lines.contains(&vec!["corpus", "12,345", "4,000,000"]),
        "{text}"
    );
    assert!(
        lines.contains(&vec!["duplicates", "-345", "-1,000"]),
        "{text}"
    );
    assert!(lines.contains(&vec!["kept", "2", "30"]), "{text}");
    assert!(
        text.contains("coverage: 100 edges before, 100 after"),
        "{text}"
    );
    assert!(
        text.contains("at most 10.0 % larger than a minimal subset"),
        "{text}"
    );
    assert!(text.contains("unique: "), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn what_is_missing_is_said_first_of_all() {
    let text = clean_table(
        &result(|value| {
            value["missing"] = json!([{"edge": 4, "counts": [8, 15], "file": "/out/a"}]);
        }),
        None,
    );
    assert!(text.contains("COVERAGE LOST"), "{text}");
    assert!(
        text.contains("edge 4 with 8 to 15 hits, which /out/a reached before"),
        "{text}"
    );
}

#[test]
fn what_was_not_there_before_is_said() {
    let more = |value: &mut Value| value["gained"] = json!([{"edge": 4, "counts": [8, 15]}]);
    let text = clean_table(&result(more), None);
    assert!(text.contains("more than before"), "{text}");
    assert!(text.contains(" reach 1 feature "), "{text}");
    let text = clean_table(&result(|_| {}), None);
    assert!(!text.contains("more than before"), "{text}");
}

#[test]
fn a_target_without_coverage_has_no_edges() {
    let none = |value: &mut Value| {
        for key in [
            "edges_before",
            "edges_after",
            "features_before",
            "features_after",
        ] {
            value[key] = Value::Null;
        }
    };
    let text = clean_table(&result(none), None);
    assert!(
        text.contains("not reported by the target") && !text.contains("edges"),
        "{text}"
    );
}

#[test]
fn names_mean_nothing_to_the_page() {
    let page = clean_html(&result(|_| {}));
    assert!(page.contains("&lt;b&gt;&quot;&amp;"), "{page}");
    assert!(!page.contains("<b>") && !page.contains('\u{1b}'));
    assert_eq!(page.matches("<svg").count(), 2);
    assert_eq!(page.matches("</svg>").count(), 2);
    assert!(page.starts_with("<!DOCTYPE html>\n<!-- ddfuzz -->"));
    assert!(page.contains("Corpus cleanup: 12,345 → 2 files"), "{page}");
    assert!(page.contains("<td>trimming</td>"), "{page}");
}
