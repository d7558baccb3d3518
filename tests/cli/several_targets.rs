//! An output directory with results of several targets: what one of them has crashed on is neither
//! minimized nor checked by runs of another one, which would show it as flaky or fixed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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

/// Compiles a program that aborts on inputs of `n` bytes from `c` with this condition of C, in a
/// function of this name.
fn compile(desk: &Desk, name: &str, function: &str, condition: &str) {
    let source = format!(
        "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
         __attribute__((noinline)) void {function}(void) {{ abort(); }}\n\
         int main(int argc, char **argv) {{ char c[64] = \"\"; long n = read(0, c, sizeof c);\n\
         const char *option = argc > 1 ? argv[1] : \"\"; if ({condition}) {function}();\n\
         return *option == 1; }}\n"
    );
    let file = desk.write(&format!("{name}.c"), source);
    desk.compile(file.to_str().unwrap(), &format!("{name}.new"));
    std::fs::rename(desk.file(&format!("{name}.new")), desk.file(name)).unwrap();
}

/// A condition of C for a second program: its crash is in `main`, so it has another key.
const CRASH_OF_TWO: &str = "n >= 2 && *c == 'B' && (abort(), 1)";

/// All files below a directory.
fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => drop(all.insert(path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    all
}

/// The one file of this name below the groups of crashes.
fn only_file(desk: &Desk, out: &str, name: &str) -> PathBuf {
    let all = files(&desk.file(&format!("{out}/crashes"))).into_keys();
    let named: Vec<PathBuf> = all.filter(|path| path.ends_with(name)).collect();
    assert_eq!(named.len(), 1, "{named:?}");
    named[0].clone()
}

/// Checks a directory and returns how many groups are the same, fixed, and undecided.
fn checked(desk: &Desk, words: &str) -> (u64, u64, u64) {
    let result = desk.call(&format!("check --json {words}")).json();
    let count = |status: &str| {
        let groups = result["groups"].as_array().unwrap().iter();
        groups.filter(|group| group["status"] == status).count() as u64
    };
    (count("same"), count("fixed"), count("cannot tell"))
}

const RUN: &str = "run --generator classic --seed 3 -q";

#[test]
fn what_an_incomplete_fix_leaves_is_stored_and_not_called_fixed() {
    for call in ["run", "watch", "clean"] {
        let desk = Desk::new();
        compile(&desk, "program", "bug", "n >= 2 && *c == 'A'");
        desk.write("short", "AA");
        desk.call("triage short -o out -- ./program").exits(1);
        desk.call("min out").exits(0);
        compile(&desk, "program", "bug", "n >= 8 && *c == 'A'");
        std::fs::create_dir(desk.file("in")).unwrap();
        desk.write("in/long", "A".repeat(12));
        desk.write("in/other", "B");
        let done = match call {
            "run" => desk.call(&format!("{RUN} --runs 60 --seeds in -o out -- ./program")),
            "watch" => desk.call("watch in --once -o out -q -- ./program"),
            _ => desk.call("clean in -o out --in-place --delete-old -q -- ./program"),
        };
        assert_eq!(checked(&desk, "out"), (1, 0, 0), "{call}: {done:?}");
        // What fails now is minimized, too.
        let sizes: Vec<usize> = files(&desk.file("out/crashes"))
            .iter()
            .filter(|(path, _)| path.ends_with("minimized"))
            .map(|(_, bytes)| bytes.len())
            .collect();
        assert!(sizes.contains(&8), "{call}: {sizes:?} {done:?}");
        let record = std::fs::read_to_string(desk.file("out/ddfuzz.json")).unwrap();
        assert!(!record.contains("\"fixed\""), "{call}: {record}");
    }
}

#[test]
fn a_triage_that_shows_a_fixed_group_again_opens_it() {
    let desk = Desk::new();
    compile(&desk, "program", "bug", "n >= 2 && *c == 'A'");
    desk.write("short", "AA");
    desk.write("long", "AAAAAAAA");
    desk.call("triage short -o out -- ./program").exits(1);
    compile(&desk, "program", "bug", "n >= 8 && *c == 'A'");
    assert!(desk.call("min out").exits(0).err.contains("1 fixed"));
    desk.call("triage long -o out -- ./program").exits(1);
    let shown = desk.call("show out").exits(0);
    assert!(!shown.out.contains("fixed"), "{shown:?}");
    // The founder passes now; the next input is minimized instead.
    let result = desk.call("min out --json").exits(0).json();
    assert_eq!(result["minimized"], 1, "{result}");
    let minimized = only_file(&desk, "out", "minimized");
    assert_eq!(std::fs::read(minimized).unwrap().len(), 8);
}

/// A directory `out` in which a crash of `./one` was found, and its next calls, by which the crash
/// is fixed and not flaky: all after `one` was rebuilt.
fn fixed_by(desk: &Desk, found: &[&str], after: &[&str]) {
    let again = format!("{RUN} --runs 20 -o out -- ./one");
    compile(desk, "one", "bug_of_one", "n >= 2 && *c == 'A'");
    compile(desk, "two", "bug", CRASH_OF_TWO);
    desk.write("a", "AA");
    desk.write("b", "BB");
    for words in found {
        desk.call(words);
    }
    compile(desk, "one", "bug_of_one", "n < 0");
    for words in after.iter().copied().chain([&*again]) {
        let said = desk.call(words);
        assert!(!desk.file("out/flaky").exists(), "{words}: {said:?}");
    }
    let (same, fixed, undecided) = checked(desk, "out -- ./one");
    assert_eq!((same, fixed), (0, 1), "{undecided} undecided: {found:?}");
}

#[test]
fn fixed_crashes_are_not_flaky_after_several_calls() {
    let off = format!("{RUN} --runs 20 --minimize off -o out -- ./one");
    fixed_by(&Desk::new(), &["triage a -o out -- ./one"], &[&off]);
}

#[test]
fn fixed_crashes_of_a_merge_are_not_flaky() {
    let merged = ["triage a -o first -- ./one", "merge first -o out"];
    fixed_by(&Desk::new(), &merged, &[]);
    let after = ["triage b -o out -- ./one", "min out -- ./one"];
    fixed_by(&Desk::new(), &merged, &after);
}

#[test]
fn fixed_crashes_beside_those_of_another_program_are_not_flaky() {
    let both = ["triage b -o out -- ./two", "triage a -o out -- ./one"];
    let desk = Desk::new();
    fixed_by(&desk, &both, &["min out -- ./one"]);
    let desk = Desk::new();
    let runs = ["./one", "./two"].map(|name| format!("{RUN} --runs 20 -o out -- {name}"));
    let found = ["triage a -o out -- ./one", &runs[0], &runs[1]];
    fixed_by(&desk, &found, &[]);
}

#[test]
fn a_build_of_one_program_is_not_recorded_for_another() {
    let desk = Desk::new();
    compile(&desk, "one", "bug_of_one", "n >= 2 && *c == 'A'");
    compile(&desk, "two", "bug", CRASH_OF_TWO);
    desk.call(&format!("{RUN} --runs 20 -o out -- ./one"));
    std::fs::create_dir(desk.file("in")).unwrap();
    desk.write("in/b", "BB");
    desk.write("in/well", "C");
    desk.call("clean in -o out -q -- ./two").exits(0);
    let read = std::fs::read_to_string(desk.file("out/ddfuzz.json")).unwrap();
    let record: Value = serde_json::from_str(&read).unwrap();
    assert_eq!(record["builds"].as_array().unwrap().len(), 1, "{record}");
    let other = &record["campaigns"][0]["builds"];
    assert_eq!(other.as_array().unwrap().len(), 1, "{record}");
    assert_ne!(other[0]["blake3"], record["builds"][0]["blake3"]);
}

#[test]
fn another_program_on_which_nothing_was_found_changes_nothing() {
    let desk = Desk::new();
    compile(&desk, "one", "bug_of_one", "n >= 2 && *c == 'A'");
    compile(&desk, "wrong", "bug_of_wrong", "n < 0");
    desk.write("a", "A".repeat(41));
    desk.call("triage a -o out -- ./one").exits(1);
    let unchanged = |words: &str| {
        let before = files(&desk.file("out/crashes"));
        let said = desk.call(words).exits(0);
        assert!(said.err.contains("not minimized"), "{said:?}");
        assert_eq!(files(&desk.file("out/crashes")), before, "{words}");
    };
    unchanged("min out -- ./wrong");
    let result = desk.call("min out --budget-tests 1 --json").exits(0).json();
    assert_eq!(result["minimized"], 1, "{result}");
    unchanged("min out --resume -- ./wrong");
}

#[test]
fn a_program_that_was_moved_minimizes_what_it_has_crashed_on() {
    let desk = Desk::new();
    compile(&desk, "one", "bug", "n >= 2 && *c == 'A'");
    compile(&desk, "two", "bug", CRASH_OF_TWO);
    desk.write("a", "AAAA");
    desk.write("b", "BBBB");
    desk.call("triage a -o first -- ./one").exits(1);
    desk.call("triage b -o second -- ./two").exits(1);
    desk.call("merge first second -o out").exits(0);
    std::fs::create_dir(desk.file("moved")).unwrap();
    std::fs::rename(desk.file("one"), desk.file("moved/one")).unwrap();
    let said = desk.call("min out --json -- moved/one").exits(0);
    assert!(
        said.err.contains("1 group found on another target"),
        "{said:?}"
    );
    assert_eq!(said.json()["minimized"], 1, "{said:?}");
    let minimized = only_file(&desk, "out", "minimized");
    assert_eq!(std::fs::read(minimized).unwrap().len(), 2);
}

#[test]
fn a_crash_of_one_call_is_not_hidden_by_that_of_another() {
    let desk = Desk::new();
    compile(&desk, "one", "bug", "n >= (*option ? 8 : 2) && *c == 'A'");
    for folder in ["first", "second"] {
        std::fs::create_dir(desk.file(folder)).unwrap();
    }
    desk.write("first/x", "AA");
    desk.write("second/y", "AAAAAAAAAAAA");
    let watch = "watch --once --minimize off -o out -q";
    desk.call(&format!("{watch} first -- ./one")).exits(1);
    desk.call(&format!("{watch} second -- ./one -v"));
    assert_eq!(checked(&desk, "out -- ./one -v"), (1, 0, 0));
    let result = desk.call("min out --json -- ./one -v").exits(0).json();
    assert_eq!(result["minimized"], 1, "{result}");
    let minimized = only_file(&desk, "out", "minimized");
    assert_eq!(std::fs::read(minimized).unwrap().len(), 8);
}

#[test]
fn an_input_that_crashes_two_calls_of_a_program_is_minimized_by_either() {
    for first in ["./one", "./one -v"] {
        let desk = Desk::new();
        compile(&desk, "one", "bug", "n >= 2 && *c == 'A'");
        desk.write("a", "AAAA");
        desk.call("triage a -o out -- ./one").exits(1);
        desk.call("triage a -o out -- ./one -v").exits(1);
        let words = format!("min out --json -- {first}");
        let result = desk.call(&words).exits(0).json();
        assert_eq!(result["minimized"], 1, "{first}: {result}");
    }
}

#[test]
fn a_group_of_other_arguments_is_not_called_fixed() {
    let desk = Desk::new();
    let with = "*option && n >= 2 && *c == 'B' && (abort(), 1)";
    let without = "!*option && n >= 2 && *c == 'A'";
    compile(&desk, "one", "bug", &format!("({with}) || ({without})"));
    desk.write("a", "AA");
    desk.write("b", "BB");
    desk.call("triage b -o out -- ./one -b").exits(1);
    desk.call("triage a -o out -- ./one").exits(1);
    assert_eq!(checked(&desk, "out -- ./one"), (1, 0, 1));
    assert_eq!(checked(&desk, "out"), (2, 0, 0));
    compile(&desk, "one", "bug", "n < 0");
    assert_eq!(checked(&desk, "out -- ./one -b"), (0, 1, 1));
    assert_eq!(checked(&desk, "out"), (0, 2, 0));
}

#[test]
fn a_log_of_another_search_does_not_stop_the_others() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    desk.write("odd", "kkk and more");
    desk.write("even", "kkkk and more");
    desk.call("triage odd even -o out -- ./two_bugs").exits(1);
    desk.call("min out --budget-tests 2").exits(0);
    // As an interrupted minimization leaves them.
    for path in files(&desk.file("out/crashes")).into_keys() {
        if path.ends_with("minimized.json") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let result = desk.call("min out --search ddmin --json").exits(0).json();
    assert_eq!(result["minimized"], 2, "{result}");
    assert_eq!(claims(&desk, "out"), ["crash 1-minimal"; 2]);
    let kept = files(&desk.file("out/crashes")).into_keys();
    let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let kept = kept.map(name).filter(|name| name.starts_with("log.jsonl."));
    assert_eq!(kept.count(), 2);
}

#[test]
fn how_runs_are_made_does_not_make_another_target() {
    let desk = Desk::new();
    compile(&desk, "one", "bug", "n >= 2 && *c == 'A'");
    desk.write("a", "AAAA");
    desk.call("triage a -o out -- ./one").exits(1);
    let run = format!("{RUN} --runs 5 --freeze-start --minimize off -o out -- ./one");
    let said = desk.call(&run);
    assert!(!said.err.contains("another target"), "{said:?}");
    let result = desk.call("min out --json").exits(0).json();
    assert_eq!(result["minimized"], 1, "{result}");
}

#[test]
fn a_watch_is_not_resumed_as_a_run() {
    let desk = Desk::new();
    compile(&desk, "one", "bug", "n >= 2 && *c == 'A'");
    std::fs::create_dir(desk.file("in")).unwrap();
    desk.write("in/a", "AAAA");
    desk.call("watch in --once -o out -q -- ./one").exits(1);
    let said = desk.call("run --resume --runs 5 -o out -- ./one").exits(2);
    assert!(said.err.contains("`ddfuzz watch --resume`"), "{said:?}");
    desk.call("watch in --once --resume -o out -q -- ./one")
        .exits(0);
}
