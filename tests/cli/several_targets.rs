//! An output directory with results of several targets: what one of them has crashed on is neither
//! minimized nor checked by runs of another one, which would show it as flaky or fixed.

use serde_json::Value;

use crate::ddfuzz::Desk;

/// A desk with two programs, and a file on which both crash: `two_bugs` on each k, in one of two
/// functions, and `two_letters` on an X and a Y.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    desk.compile("tests/cli/programs/two_letters.c", "two_letters");
    desk.write("crash", "a k, an X and a Y");
    desk
}

/// The kinds and claims of all groups in the directory, sorted.
fn claims(desk: &Desk, out: &str) -> Vec<String> {
    let shown = desk.call(&format!("show {out} --json")).exits(0).json();
    let groups = shown["groups"].as_array().unwrap();
    let claim = |group: &Value| format!("{} {}", group["kind"], group["claim"]).replace('"', "");
    let mut claims: Vec<String> = groups.iter().map(claim).collect();
    claims.sort();
    claims
}

#[test]
fn an_input_that_crashes_two_programs_is_minimized_by_each() {
    let desk = desk();
    desk.call("triage crash -o out -- ./two_letters").exits(1);
    desk.call("triage crash -o out -- ./two_bugs").exits(1);
    let minimized = desk.call("min out --json -- ./two_bugs").exits(0).json();
    // The search slips into the other bug of the same program.
    assert_eq!(minimized["minimized"], 2, "{minimized}");
    let expected = ["crash 1-minimal", "crash 1-minimal", "crash null"];
    assert_eq!(claims(&desk, "out"), expected);
    let minimized = desk.call("min out --json -- ./two_letters").exits(0).json();
    assert_eq!(minimized["minimized"], 1, "{minimized}");
    assert_eq!(claims(&desk, "out"), ["crash 1-minimal"; 3]);
}

#[test]
fn groups_of_a_merge_are_minimized_by_their_programs() {
    let desk = desk();
    desk.call("triage crash -o bugs -- ./two_bugs").exits(1);
    desk.call("triage crash -o letters -- ./two_letters")
        .exits(1);
    desk.call("merge bugs letters -o out").exits(0);
    let minimized = desk.call("min out --json -- ./two_letters").exits(0).json();
    assert_eq!(minimized["minimized"], 1, "{minimized}");
    let minimized = desk.call("min out --json -- ./two_bugs").exits(0).json();
    assert_eq!(minimized["minimized"], 2, "{minimized}");
    assert_eq!(claims(&desk, "out"), ["crash 1-minimal"; 3]);
}

#[test]
fn a_file_that_was_minimized_into_a_directory_belongs_to_its_program() {
    let desk = desk();
    desk.call("triage crash -o out -- ./two_letters").exits(1);
    desk.call("min crash -o out -- ./two_bugs").exits(0);
    let read = std::fs::read_to_string(desk.file("out/ddfuzz.json")).unwrap();
    let record: Value = serde_json::from_str(&read).unwrap();
    let others = record["campaigns"].as_array().unwrap();
    assert_eq!(others.len(), 1, "{record}");
    let minimized = desk.call("min out --json -- ./two_letters").exits(0).json();
    assert_eq!(minimized["minimized"], 1, "{minimized}");
    let minimized = desk.call("min out --json -- ./two_bugs").exits(0).json();
    assert_eq!(minimized["minimized"], 1, "the slip: {minimized}");
    assert_eq!(claims(&desk, "out"), ["crash 1-minimal"; 3]);
}

#[test]
fn a_guided_campaign_leaves_crashes_of_another_program_alone() {
    let desk = desk();
    desk.call("triage crash -o out -- ./two_letters").exits(1);
    let run = "run -o out --generator guided --runs 200 --seed 1 -q -- ./two_bugs";
    desk.call(run);
    let left = claims(&desk, "out");
    assert!(left.contains(&"crash null".to_owned()), "{left:?}");
    assert!(
        !left.iter().any(|claim| claim.starts_with("flaky")),
        "{left:?}"
    );
    let minimized = desk.call("min out --json -- ./two_letters").exits(0).json();
    assert_eq!(minimized["minimized"], 1, "{minimized}");
}

/// Crashes in one function, called by another one for each of two options: with `-a` on 2 to 4
/// bytes, with `-b` on 6 and more.
const ONE_LEAF: &str = "#include <stdio.h>\n\
    static char text[4096];\n\
    static int *volatile nowhere;\n\
    __attribute__((noinline)) int leaf(int n) { *nowhere = n; return n; }\n\
    __attribute__((noinline)) int ga(int n) { return leaf(n) + 1; }\n\
    __attribute__((noinline)) int gb(int n) { return leaf(n) + 2; }\n\
    int main(int argc, char **argv) {\n\
      int n = fread(text, 1, sizeof text, stdin), option = argc > 1 ? argv[1][1] : 'b';\n\
      if (option == 'a' && n >= 2 && n < 5) return ga(n);\n\
      if (option == 'b' && n >= 6) return gb(n);\n\
      return 0;\n\
    }\n";

#[test]
fn a_smaller_input_of_another_call_is_not_minimized_by_this_one() {
    let desk = Desk::new();
    let source = desk.write("one_leaf.c", ONE_LEAF);
    desk.compile(source.to_str().unwrap(), "one_leaf");
    let run = "run -o out --generator classic --seed 1 -q";
    let first = format!("{run} --minimize off --runs 60 --max-len 4 -- ./one_leaf -a");
    desk.call(&first).exits(1);
    let other = format!("{run} --minimize off --runs 60 --max-len 20 -- ./one_leaf -b");
    desk.call(&other);
    desk.call("run -o out --generator classic -q --resume --runs 90 -- ./one_leaf -b");
    let left = claims(&desk, "out");
    assert!(
        !left.iter().any(|claim| claim.starts_with("flaky")),
        "{left:?}"
    );
    assert!(left.contains(&"crash 1-minimal".to_owned()), "{left:?}");
}

#[test]
fn groups_of_a_study_are_not_checked_with_the_program_of_a_campaign() {
    let desk = Desk::new();
    let source = desk.write("one_leaf.c", ONE_LEAF);
    desk.compile(source.to_str().unwrap(), "one_leaf");
    let study = "revisit -o out --runs 40 --minimize off";
    let program = desk.file("one_leaf");
    desk.call(&format!("{study} {}", program.display()))
        .exits(1);
    let before = claims(&desk, "out");
    desk.call("run -o out --generator classic --minimize off --runs 20 --seed 1 -- /bin/true")
        .exits(0);
    assert_eq!(claims(&desk, "out"), before);
    let shown = desk.call("show out").exits(0);
    assert!(!shown.out.contains("fixed"), "{shown:?}");
}

#[test]
fn each_group_is_checked_with_the_program_that_showed_it() {
    let desk = desk();
    desk.call("triage crash -o out -- ./two_bugs").exits(1);
    desk.call("triage crash -o out -- ./two_letters").exits(1);
    let checked = desk.call("check out --json").exits(1).json();
    assert_eq!(
        (&checked["same"], &checked["fixed"]),
        (&2.into(), &0.into()),
        "{checked}"
    );
    // One of them is named: the other one's group is not called fixed.
    let checked = desk
        .call("check out --json -- ./two_letters")
        .exits(1)
        .json();
    assert_eq!(
        (&checked["same"], &checked["fixed"]),
        (&1.into(), &0.into()),
        "{checked}"
    );
    std::fs::copy("/bin/cat", desk.file("two_letters")).unwrap();
    let checked = desk.call("check out --json").exits(1).json();
    assert_eq!(
        (&checked["same"], &checked["fixed"]),
        (&1.into(), &1.into()),
        "{checked}"
    );
}
