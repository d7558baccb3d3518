//! Crashes that `ddfuzz clean` runs into while it trims.

use serde_json::Value;

use crate::ddfuzz::Desk;

/// Inputs of `crtplot` that end well: a label is drawn behind a comment, and without the sign of the
/// comment there is nothing to draw it by.
fn corpus(desk: &Desk) {
    std::fs::create_dir(desk.file("in")).unwrap();
    desk.write("in/a", "#comment\nm 1 2\n");
    desk.write("in/b", "#thello\nm 4 5\n");
}

fn clean(desk: &Desk, words: &str) -> Value {
    let words = format!("clean in --json --jobs 2 --trim worth --target crtplot {words}");
    desk.call(&words).exits(0).json()
}

/// The groups that are there, minimized, as `show` has them.
fn shown(desk: &Desk, out: &str) -> Vec<(Value, Value)> {
    let shown = desk.call(&format!("show {out} --json")).json();
    let groups = shown["groups"].as_array().unwrap().iter();
    groups
        .map(|group| (group["major"].clone(), group["size_after"].clone()))
        .collect()
}

#[test]
fn what_trimming_runs_into_is_among_the_groups_and_minimized() {
    let desk = Desk::new();
    corpus(&desk);
    let result = clean(&desk, "-o out");
    assert_eq!(result["crashes"], 0, "{result}");
    let groups = result["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 1, "{result}");
    assert_eq!(groups[0]["folder"], "crashes");
    assert_eq!(groups[0]["count"], 0);
    assert_eq!(
        shown(&desk, "out"),
        [(groups[0]["major"].clone(), 1.into())]
    );
    desk.is_left_clean();
}

#[test]
fn a_later_call_minimizes_what_an_earlier_one_has_left_of_it() {
    let desk = Desk::new();
    corpus(&desk);
    // It leaves what a call does that is killed behind trimming: the crash is filed, no more.
    let first = clean(&desk, "-o out --minimize off");
    assert_eq!(shown(&desk, "out").len(), 1);
    assert_ne!(shown(&desk, "out")[0].1, 1);
    let second = clean(&desk, "-o out");
    assert_eq!(second["trim_runs"], 0, "{second}");
    assert_eq!(second["groups"], first["groups"]);
    assert_eq!(shown(&desk, "out")[0].1, 1);
    let calm = clean(&desk, "-o calm");
    assert_eq!(calm["groups"], second["groups"]);
    desk.is_left_clean();
}
