//! `ddfuzz min OUT` and `ddfuzz triage --minimize`: the groups of an output directory are minimized,
//! as far as they are not; and `ddfuzz run --resume` by the target on record.

use std::path::{Path, PathBuf};

use crate::ddfuzz::Desk;

/// A desk with crash files of two bugs: `two_bugs` dies of each k, in one function where the input
/// has an even length, in another where it has an odd one.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    std::fs::create_dir(desk.file("in")).unwrap();
    for (name, text) in [
        ("a", "some text with a k"),
        ("b", "and k"),
        ("c", "here is one k more"),
    ] {
        desk.write(&format!("in/{name}"), text);
    }
    desk
}

/// All files of this name.
fn files(folder: &Path, name: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(self::files(&path, name)),
            false if path.ends_with(name) => files.push(path),
            false => {}
        }
    }
    files
}

/// The sizes of all files of this name.
fn sizes(folder: &Path, name: &str) -> Vec<u64> {
    let files = files(folder, name).into_iter();
    let mut sizes: Vec<u64> = files.map(|file| file.metadata().unwrap().len()).collect();
    sizes.sort_unstable();
    sizes
}

#[test]
fn what_triage_leaves_is_minimized_as_a_whole_by_the_target_on_record() {
    let desk = desk();
    let said = desk.call("triage in -o groups -- ./two_bugs").exits(1);
    assert!(said.err.contains("next: ddfuzz min groups"), "{said:?}");
    assert!(sizes(&desk.file("groups"), "minimized").is_empty());
    let said = desk.call("min groups --json").exits(0);
    let result = said.json();
    assert!(said.err.contains("minimized "), "{said:?}");
    assert_eq!(result["interrupted"], false);
    let groups = result["groups"].as_array().unwrap();
    let sizes_after: Vec<_> = groups.iter().map(|one| &one["size_after"]).collect();
    assert_eq!(groups.len(), 2, "{result}");
    assert!(sizes_after.contains(&&1.into()) && sizes_after.contains(&&2.into()));
    for group in groups {
        assert_eq!(group["claim"], "1-minimal", "{result}");
        let log = group["log"].as_str().unwrap();
        desk.call(&format!("log verify {log}")).exits(0);
        assert!(
            Path::new(group["file"].as_str().unwrap())
                .with_file_name("reproduce.sh")
                .exists()
        );
    }
    // Nothing is left, and nothing is done again.
    let again = desk.call("min groups").exits(0);
    assert!(again.out.contains("nothing to minimize"), "{again:?}");
    let said = desk
        .call("triage in -o groups --resume -- ./two_bugs")
        .exits(1);
    assert!(!said.err.contains("ddfuzz min"), "{said:?}");
    desk.is_left_clean();
}

#[test]
fn triage_minimizes_what_it_has_filed_where_that_is_asked_for() {
    let desk = desk();
    let words = "triage in -o groups --minimize --json -- ./two_bugs";
    let result = desk.call(words).exits(1).json();
    assert_eq!(result["groups"].as_array().unwrap().len(), 2, "{result}");
    let minimized = result["minimized"].as_array().unwrap();
    assert_eq!(minimized.len(), 2, "{result}");
    assert!(minimized.iter().all(|one| one["claim"] == "1-minimal"));
    assert_eq!(sizes(&desk.file("groups"), "minimized"), [1, 2]);
    let said = desk.call("triage in --minimize -- ./two_bugs").exits(2);
    assert!(said.err.contains("--out"), "{said:?}");
}

#[test]
fn a_stopped_minimization_of_a_directory_is_gone_on_with() {
    let desk = desk();
    desk.call("triage in -o groups -q -- ./two_bugs").exits(1);
    desk.call("triage in -o calm -q --minimize -- ./two_bugs")
        .exits(1);
    // What a killed call has begun stands in its log.
    let mut child = desk.start("min groups");
    std::thread::sleep(std::time::Duration::from_millis(300));
    let _ = child.kill();
    child.wait().unwrap();
    desk.call("min groups -q").exits(0);
    let minimized = |out: &str| sizes(&desk.file(out), "minimized");
    assert_eq!(minimized("groups"), minimized("calm"));
    desk.is_left_clean();
}

#[test]
fn options_of_one_input_are_refused_for_a_directory() {
    let desk = desk();
    desk.call("triage in -o groups -q -- ./two_bugs").exits(1);
    for option in ["-o result", "--force", "--args", "--log log"] {
        let error = desk
            .call(&format!("min groups {option} --json"))
            .exits(2)
            .json();
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains("output directory"), "{option}: {message}");
    }
    let error = desk.call("min in --json -- ./two_bugs").exits(2).json();
    let hint = error["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("output directory of ddfuzz"), "{hint}");
    for (words, option) in [
        ("min in/a --variants 2 -- ./two_bugs", "--variants"),
        (
            "min in/a --search ddmin --grammar pdf -- ./two_bugs",
            "--grammar",
        ),
        ("min groups --search ddmin --grammar pdf", "--grammar"),
    ] {
        let error = desk.call(words).exits(2).err;
        assert!(error.contains(option), "{words}: {error}");
    }
    assert!(!desk.file("in/a.min").exists() && !desk.file("a.min").exists());
}

#[test]
fn a_damaged_log_is_set_aside_and_keeps_no_other_group_from_being_minimized() {
    let desk = desk();
    let groups = desk.file("groups");
    desk.call("triage in -o groups -q --minimize -- ./two_bugs")
        .exits(1);
    // One minimization is to go on, by a log with a line that is none.
    for (at, log) in files(&groups, "log.jsonl").iter().enumerate() {
        std::fs::remove_file(log.with_file_name("minimized.json")).unwrap();
        match at {
            0 => desk.write(
                log.to_str().unwrap(),
                std::fs::read_to_string(log).unwrap() + "{}\n",
            ),
            _ => std::fs::remove_file(log).map(|()| log.clone()).unwrap(),
        };
    }
    let said = desk.call("min groups").exits(0);
    assert!(said.err.contains("log.jsonl.damaged"), "{said:?}");
    assert_eq!(sizes(&groups, "minimized"), [1, 2]);
    assert_eq!(files(&groups, "log.jsonl.damaged").len(), 1);
    // An empty log of a result is the log of no other crash.
    std::fs::write(&files(&groups, "log.jsonl")[0], "").unwrap();
    let said = desk.call("min groups").exits(0);
    assert!(said.out.contains("nothing to minimize"), "{said:?}");
}

#[test]
fn what_a_budget_has_ended_goes_on_when_that_is_asked_for() {
    let desk = desk();
    desk.write(
        "long",
        "nothing but words, and words, and more of them, and one k at the end",
    );
    desk.call("triage long -o groups -- ./two_bugs").exits(1);
    let claims = |words: &str| {
        let groups = desk.call(words).exits(0).json()["groups"].clone();
        let groups = groups.as_array().unwrap().iter();
        let mut claims: Vec<String> = groups.map(|one| one["claim"].to_string()).collect();
        claims.dedup();
        claims
    };
    let unfinished = ["\"best-so-far\""];
    assert_eq!(
        claims("min groups --budget-tests 3 --search ddmin --json"),
        unfinished
    );
    assert_eq!(claims("min groups --search ddmin --json"), unfinished);
    let said = desk.call("min groups --search ddmin").exits(0);
    assert!(said.out.contains("min --resume groups"), "{said:?}");
    assert_eq!(
        claims("min groups --search ddmin --resume --json"),
        ["\"1-minimal\""]
    );
    let said = desk.call("min groups --resume").exits(0);
    assert!(said.out.ends_with("nothing to minimize\n"), "{said:?}");
}

#[test]
fn a_campaign_goes_on_with_the_target_on_record() {
    let desk = desk();
    let words = "run --runs 40 --max-len 500 --seed 4 --timeout 3s -q -o out -- ./two_bugs";
    desk.call(words).exits(1);
    let result = desk.call("run --resume --runs 40 --json -o out");
    let result = result.exits(4).json();
    assert_eq!(
        (&result["runs"], &result["resumed"]),
        (&40.into(), &true.into())
    );
    // Without a campaign it says what is missing.
    let error = desk.call("run --resume --json -o nowhere").exits(2).json();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("nowhere does not exist"), "{message}");
    assert!(!desk.file("nowhere").exists());
    // With a target it begins one, and says so.
    let said = desk.call("run --resume --runs 20 --max-len 500 -o nowhere -- ./two_bugs");
    assert!(
        said.err
            .contains("nowhere does not exist: a new campaign is started"),
        "{said:?}"
    );
    assert!(desk.file("nowhere/ddfuzz.json").exists());
    desk.is_left_clean();
}

#[test]
fn the_crash_that_is_held_is_told_in_a_line() {
    let desk = desk();
    let said = desk.call("min in/b -o small -- ./two_bugs").exits(0);
    let line = said
        .err
        .lines()
        .find(|line| line.starts_with("minimizing the crash "));
    let line = line.unwrap_or_else(|| panic!("{said:?}"));
    assert!(
        line.contains("segv in ") && line.contains(", group "),
        "{line}"
    );
    let said = desk.call("min in/b -q -o smaller -- ./two_bugs").exits(0);
    assert_eq!(said.err, "");
}

#[test]
fn groups_that_only_a_minimization_has_met_are_counted_as_seen() {
    let desk = desk();
    std::fs::create_dir(desk.file("one")).unwrap();
    desk.write("one/a", "some text with a k");
    desk.call("triage one -o groups -q --minimize -- ./two_bugs")
        .exits(1);
    let shown = desk.call("show groups --json").exits(0).json();
    let groups = shown["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2, "{shown}");
    for group in groups {
        assert!(group["runs_seen"].as_u64().unwrap() > 0, "{shown}");
    }
}

/// Dies whatever it is given; with an argument of nothing at all, and of an x.
const CARELESS: &str = "#include <stdio.h>\n#include <stdlib.h>\n\
    int main(int argc, char **argv) {\n\
      int first = getchar();\n\
      (void)argv;\n\
      if (argc == 1 || first == EOF || first == 'x') abort();\n\
      return 0;\n\
    }\n";

#[test]
fn a_target_that_crashes_whatever_its_input_is_is_warned_of() {
    let desk = Desk::new();
    let source = desk.write("careless.c", CARELESS);
    desk.compile(source.to_str().unwrap(), "careless");
    desk.write("crash", "xyz");
    let warning = "crashes on any input";
    let said = desk.call("min crash -o small -- ./careless").exits(0);
    assert!(
        said.err.contains(warning) && said.out.contains(warning),
        "{said:?}"
    );
    assert!(!said.out.contains("proved by 0 tests"), "{said:?}");
    let said = desk.call("triage crash -- ./careless").exits(1);
    assert!(said.err.contains(warning), "{said:?}");
    let said = desk
        .call("run --runs 10 --max-len 100 -o out -- ./careless")
        .exits(1);
    assert!(
        said.err.contains(warning) && said.out.contains("any input"),
        "{said:?}"
    );
    let said = desk.call("show out --markdown page.md").exits(0);
    assert!(said.err.contains(warning), "{said:?}");
    let page = String::from_utf8(desk.read("page.md")).unwrap();
    assert!(page.contains(warning), "{page}");
    // That the empty input crashes is another thing.
    let said = desk.call("min crash -o smaller -- ./careless x").exits(0);
    assert!(!said.err.contains(warning), "{said:?}");
    assert!(said.out.contains("fails on the empty input"), "{said:?}");
    let said = desk.call("triage crash -- ./careless x").exits(1);
    assert!(!said.err.contains(warning), "{said:?}");
    desk.is_left_clean();
}

#[test]
fn a_crash_that_the_program_no_longer_has_is_fixed_and_not_flaky() {
    let desk = desk();
    desk.call("triage in -o groups -- ./two_bugs").exits(1);
    std::fs::rename(desk.file("two_bugs"), desk.file("aside")).unwrap();
    std::fs::copy("/bin/cat", desk.file("two_bugs")).unwrap();
    let said = desk.call("min groups").exits(0);
    assert!(said.err.contains("2 fixed"), "{said:?}");
    assert!(said.out.contains("nothing to minimize"), "{said:?}");
    assert!(!desk.file("groups/flaky").exists());
    // When the bug is back, its groups are minimized.
    std::fs::rename(desk.file("aside"), desk.file("two_bugs")).unwrap();
    let said = desk.call("min groups --json").exits(0);
    assert_eq!(said.json()["minimized"], 2, "{said:?}");
    assert_eq!(sizes(&desk.file("groups"), "minimized"), [1, 2]);
}

#[test]
fn groups_crash_in_the_program_of_their_directory_whatever_a_settings_file_names() {
    let desk = desk();
    desk.call("triage in -o groups -- ./two_bugs").exits(1);
    desk.write("ddfuzz.toml", "[common]\ntarget = [\"/bin/cat\"]\n");
    let result = desk.call("min groups --json").exits(0).json();
    assert_eq!(result["minimized"], 2, "{result}");
    // Another program, named on the command line, makes no crash of theirs a flaky one.
    let desk = self::desk();
    desk.call("triage in -o groups -- ./two_bugs").exits(1);
    let said = desk.call("min groups -- /bin/cat").exits(0);
    assert!(said.err.contains("not minimized"), "{said:?}");
    assert!(!desk.file("groups/flaky").exists(), "{said:?}");
    let result = desk.call("min groups --resume --json").exits(0).json();
    let groups = result["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2, "{result}");
    assert!(groups.iter().all(|one| one["claim"] == "1-minimal"));
}

#[test]
fn a_new_campaign_in_a_directory_notices_that_the_program_was_fixed() {
    let desk = desk();
    desk.call("triage in -o groups -- ./two_bugs").exits(1);
    std::fs::copy("/bin/cat", desk.file("two_bugs")).unwrap();
    let said = desk.call("run -o groups --runs 30 --seed 1 --generator classic -- ./two_bugs");
    let said = said.exits(0);
    assert!(said.err.contains("the program was rebuilt"), "{said:?}");
    assert!(said.err.contains("2 fixed"), "{said:?}");
    assert!(!desk.file("groups/flaky").exists(), "{said:?}");
    // Of the same build nothing is checked again.
    let again = desk.call("run -o groups --runs 30 --seed 2 --generator classic -- ./two_bugs");
    assert!(!again.exits(0).err.contains("checking"));
}

/// A crash of `two_letters` with much around it.
fn long_crash() -> Desk {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_letters.c", "two_letters");
    let long = format!(
        "{}X{}Y",
        "words and ".repeat(50),
        "more of them ".repeat(20)
    );
    desk.write("crash", long);
    desk
}

#[test]
fn a_result_within_other_limits_is_not_replaced_by_a_larger_one() {
    let desk = long_crash();
    let words = "min crash -o out/ --search ddmin --json";
    let first = desk.call(&format!(
        "{words} --timeout 2s --budget-tests 40 -- ./two_letters"
    ));
    let first = first.exits(0).json();
    let log = first["log"].as_str().unwrap();
    let before = std::fs::read(log).unwrap();
    let words = "min crash -o out/ --search ddmin --timeout 3s";
    let again = desk.call(&format!("{words} --budget-tests 4 --json -- ./two_letters"));
    let result = again.exits(0).json();
    assert_eq!(result["claim"], "best-so-far");
    assert_eq!(result["size_after"], first["size_after"]);
    assert_eq!(std::fs::read(log).unwrap(), before);
    let said = desk.call(&format!("{words} -- ./two_letters")).exits(0);
    assert!(said.err.contains("within the limits"), "{said:?}");
    let verified = desk.call(&format!("log verify {log}")).exits(0);
    assert!(verified.out.contains("1-minimal"), "{verified:?}");
}

#[test]
fn a_smaller_result_of_another_search_is_kept_as_an_entry() {
    let desk = long_crash();
    let min = |search: &str, tests: u64| {
        let words = format!("min crash -o out/ --search {search} --budget-tests {tests} --json");
        desk.call(&format!("{words} -- ./two_letters")).exits(0)
    };
    let first = min("ddmin", 40).json();
    let first_size = first["size_after"].as_u64().unwrap();
    let mut smallest = first_size;
    for (search, tests) in [("full", 3), ("ddmin", 2), ("full", 2)] {
        let said = min(search, tests);
        assert!(said.err.contains("has a smaller result"), "{said:?}");
        let size = said.json()["size_after"].as_u64().unwrap();
        assert!(size <= first_size, "{said:?}");
        smallest = smallest.min(size);
    }
    let shown = desk.call("show out --json").exits(0).json();
    assert_eq!(shown["groups"].as_array().unwrap().len(), 1, "{shown}");
    assert_eq!(shown["groups"][0]["size_after"], smallest, "{shown}");
    // No log of an earlier minimization replaces another one.
    let folder = Path::new(first["log"].as_str().unwrap()).parent().unwrap();
    let names = std::fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let logs = names.filter(|name| name.starts_with("log.jsonl."));
    assert_eq!(logs.count(), 3);
}

#[test]
fn another_grammar_is_another_minimization() {
    let desk = long_crash();
    let structure = |log: &str| {
        let text = String::from_utf8(desk.read(log)).unwrap();
        let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        first["structure"].as_str().unwrap().to_owned()
    };
    let said = desk
        .call("min crash -o small --budget-tests 5 -- ./two_letters")
        .exits(0);
    let how = "--resume and a larger --budget-tests";
    assert!(said.err.contains(how), "{said:?}");
    let words = "min crash -o small --resume --grammar json --json -- ./two_letters";
    let error = desk.call(words).exits(2).json();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("another structure"), "{error}");
    assert!(
        error["error"]["hint"]
            .as_str()
            .unwrap()
            .contains("--grammar"),
        "{error}"
    );
    // The same one, and none, go on.
    let named = structure("small.log.jsonl");
    let words =
        format!("min crash -o small --resume --budget-tests 6 --grammar {named} -- ./two_letters");
    desk.call(&words).exits(0);
    desk.call("min crash -o small --resume -- ./two_letters")
        .exits(0);
    // In an output directory it starts again.
    let first = desk.call("min crash -o out/ --budget-tests 5 --json -- ./two_letters");
    let log = first.exits(0).json()["log"].as_str().unwrap().to_owned();
    desk.call("min out --resume --grammar json").exits(0);
    assert_eq!(structure(&log), "json");
}

#[test]
fn a_result_whose_reproducer_is_gone_is_made_again_from_its_log() {
    let desk = desk();
    desk.call("triage in/a -o groups --minimize -- ./two_bugs")
        .exits(1);
    let shown = desk.call("show groups --json").exits(0).json();
    let group = &shown["groups"][0];
    assert_eq!(group["claim"], "1-minimal", "{shown}");
    let file = group["file"].as_str().unwrap();
    let reproducer = std::fs::read(file).unwrap();
    for damaged in [None, Some("")] {
        match damaged {
            None => std::fs::remove_file(file).unwrap(),
            Some(text) => std::fs::write(file, text).unwrap(),
        }
        let shown = desk.call("show groups --json").exits(0).json();
        assert_ne!(shown["groups"][0]["claim"], "1-minimal", "{shown}");
        let result = desk.call("min groups --json").exits(0).json();
        assert_eq!(result["groups"][0]["claim"], "1-minimal", "{result}");
        assert_eq!(std::fs::read(file).unwrap(), reproducer);
    }
}
