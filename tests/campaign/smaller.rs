//! A group has a founder, and its reproducer may be far from the smallest: smaller inputs of the
//! group are minimized, too, wherever they come from.

use std::path::Path;

use serde_json::Value;

use crate::ddfuzz::Desk;
use crate::guided::targets::{Built, program};
use crate::outcome::{assert_same, outcome};

const SOURCE: &str = "tests/campaign/programs/two_sizes.c";

/// Sizes before and after of the group that crashes in this function.
#[track_caller]
fn sizes(result: &Value, function: &str) -> (u64, u64) {
    let groups = result["groups"].as_array().unwrap();
    let group = groups.iter().find(|group| {
        let frame = group["frame"].as_str().unwrap_or_default();
        frame.starts_with(function)
    });
    let group = group.unwrap_or_else(|| panic!("no {function} in {result}"));
    assert_eq!(group["claim"], "1-minimal", "{group}");
    let size = |key: &str| group[key].as_u64().unwrap();
    (size("size_before"), size("size_after"))
}

/// Writes seeds; the smaller one crashes in another function, and the search for that crash runs
/// into the one of the larger.
fn seeds(desk: &Desk) {
    std::fs::create_dir(desk.file("seeds")).unwrap();
    desk.write("seeds/large", [b'a'; 5000]);
    let mut small = vec![b'k'];
    small.extend([b'a'; 30]);
    small.push(b'z');
    desk.write("seeds/small", small);
}

#[test]
fn a_smaller_input_that_a_later_run_finds_takes_the_founders_place() {
    let desk = Desk::new();
    desk.compile(SOURCE, "two_sizes");
    let words = "run --generator classic --runs 600 --max-len 8000 --seed 5 --json -o";
    let result = desk.call(&format!("{words} out -- ./two_sizes")).exits(1);
    let (before, after) = sizes(&result.json(), "of_size");
    assert!((1000..=1100).contains(&before), "{before}");
    assert_eq!(after, 1000);
    let whole = outcome(&desk.file("out"));
    for (at, options) in [
        "--jobs 4",
        "--jobs 2 --minimize after",
        "--jobs 3 --minimize worker",
    ]
    .into_iter()
    .enumerate()
    {
        desk.call(&format!("{words} out{at} {options} -- ./two_sizes"))
            .exits(1);
        assert_same(&outcome(&desk.file(&format!("out{at}"))), &whole, options);
    }
    // What is not minimized now is later, and a count in two calls comes to the same.
    let words = "run --generator classic --max-len 8000 --seed 5 -q -o";
    desk.call(&format!("{words} parts --runs 200 -- ./two_sizes"));
    desk.call(&format!("{words} parts --runs 400 --resume -- ./two_sizes"));
    desk.call(&format!(
        "{words} late --runs 600 --minimize off -- ./two_sizes"
    ));
    desk.call(&format!("{words} late --runs 0 --resume -- ./two_sizes"));
    for out in ["parts", "late"] {
        let (mut other, mut whole) = (outcome(&desk.file(out)), whole.clone());
        other.remove("state.json");
        whole.remove("state.json");
        assert_same(&other, &whole, out);
    }
    desk.is_left_clean();
}

#[test]
fn a_smaller_input_that_the_search_for_another_crash_has_met_is_minimized() {
    let desk = Desk::new();
    desk.compile(SOURCE, "two_sizes");
    seeds(&desk);
    let words = "run --generator classic --seeds seeds --runs 4 --max-len 8000 --seed 1 --json -o";
    let outcomes = ["--jobs 1", "--jobs 2 --minimize after"].map(|options| {
        let out = options.replace([' ', '-'], "");
        let result = desk.call(&format!("{words} {out} {options} -- ./two_sizes"));
        let result = result.exits(1).json();
        assert_eq!(sizes(&result, "of_letters").1, 2, "{result}");
        assert_eq!(sizes(&result, "of_size").1, 1, "{result}");
        outcome(&desk.file(&out))
    });
    assert_same(&outcomes[1], &outcomes[0], "after");
    desk.is_left_clean();
}

#[test]
fn a_guided_campaign_minimizes_smaller_inputs_as_well() {
    let desk = Desk::new();
    let source = include_str!("programs/two_sizes.c");
    if program(&desk, "two_sizes", Built::Harness, source, &["-DHARNESS"]).is_none() {
        return;
    }
    std::fs::create_dir(desk.file("seeds")).unwrap();
    desk.write("seeds/large", [b'a'; 5000]);
    desk.write("seeds/near", [b'a'; 1150]);
    for minimize in ["inline", "worker"] {
        let words = format!(
            "run --seeds seeds --seed 1 --runs 20000 --minimize {minimize} --json -o {minimize}"
        );
        let result = desk
            .call(&format!("{words} -- ./two_sizes"))
            .exits(1)
            .json();
        let (before, after) = sizes(&result, "of_size");
        assert!(before < 4000 && after <= 1000, "{result}");
    }
    desk.is_left_clean();
}

#[test]
fn a_watch_minimizes_smaller_files_of_a_group() {
    let desk = Desk::new();
    desk.compile(SOURCE, "two_sizes");
    std::fs::create_dir(desk.file("in")).unwrap();
    for (name, size) in [
        ("a", 6000),
        ("b", 4100),
        ("c", 5000),
        ("d", 1050),
        ("e", 1060),
    ] {
        desk.write(&format!("in/{name}"), vec![b'a'; size]);
    }
    let words = "watch in --once --jobs 1 --json -o out";
    let result = desk
        .call(&format!("{words} -- ./two_sizes"))
        .exits(1)
        .json();
    assert_eq!(sizes(&result, "of_size"), (1050, 1000), "{result}");
    assert_eq!(result["groups"][0]["runs_seen"], 5);
    // The next call has nothing to do.
    let entries = files_of(&desk.file("out"), "minimized");
    assert_eq!(entries, 2, "the founder, and the smallest");
    let again = desk
        .call(&format!("{words} --resume -- ./two_sizes"))
        .json();
    assert_eq!(again["groups"], result["groups"]);
    desk.is_left_clean();
}

/// How many files of this name there are.
fn files_of(root: &Path, name: &str) -> usize {
    let all = crate::outcome::files(root);
    all.iter().filter(|path| path.ends_with(name)).count()
}
