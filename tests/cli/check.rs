//! `ddfuzz check`.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::ddfuzz::Desk;
use crate::needs;

/// All files below a directory with their contents.
fn files(root: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            let changed = path.metadata().unwrap().modified().unwrap();
            all.insert(path.clone(), (std::fs::read(&path).unwrap(), changed));
        }
    }
    all
}

#[test]
fn a_fixed_group_a_remaining_one_and_one_that_fails_otherwise_are_told_apart() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    desk.write("odd", "kkk");
    desk.write("even", "kk");
    desk.call("triage odd even -o out -- ./two_bugs").exits(1);
    let before = files(&desk.file("out"));
    let result = desk.call("check out --json").exits(1).json();
    assert_eq!((&result["same"], &result["fixed"]), (&2.into(), &0.into()));
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/programs");
    let source = std::fs::read_to_string(source.join("two_bugs.c")).unwrap();
    let mended = source.replace("        odd_bug();", "        return 0;");
    let mended = desk.write("mended.c", mended);
    desk.compile(mended.to_str().unwrap(), "mended");
    let result = desk.call("check out --json -- ./mended").exits(1).json();
    assert_eq!((&result["same"], &result["fixed"]), (&1.into(), &1.into()));
    let other = source.replace("    *nowhere = 1;", "    __builtin_trap();");
    let other = desk.write(
        "other.c",
        other.replace("        odd_bug();", "        return 0;"),
    );
    desk.compile(other.to_str().unwrap(), "other");
    let result = desk.call("check out --json -- ./other").exits(1).json();
    assert_eq!((&result["other"], &result["fixed"]), (&1.into(), &1.into()));
    let groups = result["groups"].as_array().unwrap();
    let now = groups
        .iter()
        .find(|group| group["status"] == "other")
        .unwrap();
    assert_eq!(now["now"]["class"], "ill");
    let said = desk.call("check out -- ./other").exits(1);
    assert!(said.out.contains("1 failing differently"), "{}", said.out);
    desk.call("check out -- ./no-such-program").exits(3);
    let another = desk.call("check out --json -- true").exits(1).json();
    assert_eq!(another["cannot_tell"], 2, "{another}");
    desk.compile("tests/cli/programs/two_loops.c", "loops");
    let another = desk.call("check out --json -- ./loops").exits(1).json();
    let why = another["groups"][0]["why"].as_str().unwrap();
    assert!(
        why.contains("loops has none of the functions in which it failed ("),
        "{why}"
    );
    let mut after = files(&desk.file("out"));
    assert!(after.remove(&desk.file("out/checks.jsonl")).is_some());
    assert_eq!(after, before);
    desk.is_left_clean();
}

#[test]
fn a_campaigns_directory_is_checked_by_its_reproducers() {
    let desk = Desk::new();
    desk.call("run --target crtplot --runs 60 --max-len 1000 --seed 1 -o out")
        .exits(1);
    let result = desk.call("check out --json").exits(1).json();
    assert_eq!(result["groups"][0]["status"], "same");
    let file = result["groups"][0]["file"].as_str().unwrap();
    assert!(file.ends_with("/minimized"), "{file}");
    let fixed = desk
        .call("check out --json --target crtplot-fixed")
        .exits(0)
        .json();
    assert_eq!(fixed["fixed"], 1);
    assert_eq!(fixed["groups"][0]["now"], serde_json::Value::Null);
    // The reproducer and the input as found.
    assert_eq!(fixed["groups"][0]["inputs"], 2);
    desk.write("known", result["groups"][0]["major"].as_str().unwrap());
    desk.call("check out --known known").exits(0);
}

#[test]
fn a_group_of_which_any_stored_input_fails_is_not_fixed() {
    let desk = Desk::new();
    let build = |shortest: usize| {
        let source = format!(
            "#include <stdio.h>\n#include <stdlib.h>\n\
             int main(void) {{\n\
             char text[16];\n\
             size_t length = fread(text, 1, sizeof text, stdin);\n\
             if (length >= {shortest} && text[0] == 'A') abort();\n\
             }}\n"
        );
        desk.write("program.c", &source);
        let program = desk.compile(desk.file("program.c").to_str().unwrap(), "program");
        std::fs::copy(program, desk.file("under-test")).unwrap();
    };
    build(1);
    std::fs::create_dir(desk.file("in")).unwrap();
    desk.write("in/1-large", "A large");
    desk.write("in/2-small", "A");
    let triage = "triage --jobs 1 -o out in -- ./under-test";
    desk.call(triage).exits(1);
    build(4);
    let result = checked(&desk, "-- ./under-test", 1);
    assert_eq!(result["status"], "same", "{result}");
    build(8);
    let result = checked(&desk, "-- ./under-test", 0);
    assert_eq!(result["inputs"], 2, "{result}");
}

#[test]
fn a_build_that_refuses_every_input_is_warned_of() {
    let desk = Desk::new();
    let warned = |words: &str, then: &str| {
        let source = format!(
            "#include <stdio.h>\n#include <stdlib.h>\n\
             int main(void) {{ int byte = getchar(); {then} return byte == 'k'; }}\n"
        );
        desk.write("program.c", &source);
        let program = desk.compile(desk.file("program.c").to_str().unwrap(), "program");
        std::fs::copy(program, desk.file("under-test")).unwrap();
        let said = desk.call(words);
        said.err.contains("alike the target ends with exit 1")
    };
    desk.write("crash", "k");
    let triage = "triage crash -o out -- ./under-test";
    assert!(!warned(triage, "if (byte == 'k') abort();"));
    let check = "check out -- ./under-test";
    assert!(!warned(check, ""), "it ends with 0 on the trial inputs");
    assert!(warned(check, "return 1;"));
}

#[test]
fn hangs_are_checked_and_groups_of_several_targets_by_their_own() {
    let desk = Desk::new();
    desk.script("loop", "x=$(cat); while [ \"$x\" = h ]; do :; done");
    desk.write("hang", "h");
    desk.call("triage hang --timeout 50ms -o out -- ./loop")
        .exits(1);
    let result = desk.call("check out --json").exits(1).json();
    assert_eq!(result["groups"][0]["status"], "same");
    assert_eq!(result["groups"][0]["kind"], "hang");
    desk.script("loop", "cat >/dev/null");
    desk.call("check out").exits(0);
    desk.write("crash", "a t");
    desk.call("triage crash -o other --target crtplot").exits(1);
    desk.call("merge out other -o both").exits(0);
    let result = desk.call("check both --json").exits(1).json();
    assert_eq!((&result["same"], &result["fixed"]), (&1.into(), &1.into()));
    desk.call("check nowhere").exits(2);
}

#[test]
fn a_build_of_one_program_shows_no_fix_of_another_ones_group() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    desk.compile("tests/cli/programs/alternates.c", "alternates");
    desk.compile("tests/cli/programs/alternates.c", "mended");
    desk.write("even", "k ");
    desk.write("crash", "X");
    let turns = desk.write("turns", "");
    let anybody = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(&turns, anybody).unwrap();
    desk.call("triage even -o out -- ./two_bugs").exits(1);
    let call = format!("triage crash -o out -- ./alternates {}", turns.display());
    desk.call(&call);
    // Without its argument it does not fail, and it has none of the functions of the first program.
    let result = desk.call("check out --json -- ./mended").exits(1).json();
    let of = |frame: &str| {
        let groups = result["groups"].as_array().unwrap();
        let found = groups.iter().find(|group| group["frame"] == frame);
        found.unwrap_or_else(|| panic!("{frame}: {result}"))["status"].clone()
    };
    assert_eq!(of("even_bug"), "cannot tell");
    assert_ne!(result["cannot_tell"], 0, "{result}");
}

#[test]
fn a_campaign_on_another_program_that_found_nothing_is_no_matter() {
    let desk = Desk::new();
    let found = "run --runs 300 --seed 1 --minimize off --target crtplot -o out";
    desk.call(found).exits(1);
    desk.call("run --runs 16 --seed 1 --minimize off -o out -- true")
        .exits(0);
    let checked = desk.call("check out --json").exits(1).json();
    assert_eq!(checked["fixed"], 0, "{checked}");
}

/// A program of C whose `BUG` is a condition on the first byte of its input.
const FRAIL: &str = "#include <limits.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
    volatile int kept;\nchar *volatile held;\n\
    int main(int argc, char **argv) {\n    \
        int first = fgetc(stdin);\n    \
        (void)argv;\n    \
        BODY\n    \
        return 0;\n}\n";

/// Writes and compiles the program with its bug, or fixed; `None`, and said so, where the compiler
/// has no such sanitizer.
pub fn frail(desk: &Desk, name: &str, compiler: &str, (body, fixed): (&str, bool)) -> Option<()> {
    let bug = if fixed {
        "first == 1000"
    } else {
        "first == 'k'"
    };
    let body = body.replace("BUG", bug);
    // Of one name, so that places are the same.
    let source = desk.write("frail.c", FRAIL.replace("BODY", &body));
    let mut words = compiler.split_whitespace();
    let compiled = desk
        .command(words.next().unwrap())
        .args(["-g", "-O1", "-w", "-o", name])
        .args(words)
        .arg(source)
        .output()
        .ok()?;
    if !compiled.status.success() {
        needs::missing(compiler, &String::from_utf8_lossy(&compiled.stderr));
        return None;
    }
    Some(())
}

/// The only group in the result of a check of `out` with this program, which ends with this code.
#[track_caller]
pub fn checked(desk: &Desk, words: &str, code: i32) -> serde_json::Value {
    let result = desk
        .call(&format!("check out --json {words}"))
        .exits(code)
        .json();
    assert_eq!(result["groups"].as_array().unwrap().len(), 1, "{result}");
    let told = result["groups"][0]["status"] == "cannot tell";
    assert_eq!(result["cannot_tell"], u64::from(told), "{result}");
    result["groups"][0].clone()
}

const OVERFLOW: &str = "held = malloc(4); if (BUG) held[3 + argc] = 1; free(held);";

#[test]
fn a_build_without_the_sanitizer_that_reported_it_is_no_fix() {
    let desk = Desk::new();
    let with = "cc -fsanitize=address";
    if frail(&desk, "asan", with, (OVERFLOW, false)).is_none() {
        return;
    }
    desk.write("crash", "k");
    desk.call("triage crash -o out -- ./asan").exits(1);
    frail(&desk, "plain", "cc", (OVERFLOW, false)).unwrap();
    let group = checked(&desk, "-- ./plain", 1);
    assert_eq!(group["status"], "cannot tell");
    assert!(
        group["why"].as_str().unwrap().contains("AddressSanitizer"),
        "{group}"
    );
    assert!(
        group["hint"]
            .as_str()
            .unwrap()
            .contains("-fsanitize=address"),
        "{group}"
    );
    let said = desk.call("check out -- ./plain").exits(1).out;
    for part in [
        "cannot tell whether ",
        "-fsanitize=address",
        "; 1 undecided",
    ] {
        assert!(said.contains(part), "{said}");
    }
    frail(&desk, "fixed", with, (OVERFLOW, true)).unwrap();
    let group = checked(&desk, "-- ./fixed", 0);
    assert_eq!(
        (&group["status"], &group["why"]),
        (&"fixed".into(), &serde_json::Value::Null)
    );
    // What a script starts is asked.
    desk.script("asan", &format!("exec {}", desk.file("plain").display()));
    assert_eq!(checked(&desk, "-- ./asan", 1)["status"], "cannot tell");
    desk.script("asan", &format!("{}; true", desk.file("fixed").display()));
    assert_eq!(checked(&desk, "-- ./asan", 0)["status"], "fixed");
    desk.is_left_clean();
}

#[test]
fn a_build_without_undefinedbehaviorsanitizer_is_no_fix_though_it_has_its_runtime() {
    let desk = Desk::new();
    let body = "kept = BUG ? INT_MAX : argc; kept = kept + argc;";
    let with = "cc -fsanitize=undefined";
    if frail(&desk, "ubsan", with, (body, false)).is_none() {
        return;
    }
    desk.write("crash", "k");
    desk.call("triage crash -o out -- ./ubsan").exits(1);
    for (name, compiler) in [("plain", "cc"), ("asan", "clang -fsanitize=address")] {
        if frail(&desk, name, compiler, (body, false)).is_some() {
            let group = checked(&desk, &format!("-- ./{name}"), 1);
            assert_eq!(group["status"], "cannot tell", "{name}");
            let hint = group["hint"].as_str().unwrap();
            assert!(hint.contains("-fsanitize=undefined"), "{hint}");
        }
    }
    // The same in gcc's build, and in one in which clang links the runtime into the program.
    for (name, compiler) in [("gcc", with), ("clang", "clang -fsanitize=undefined")] {
        if frail(&desk, name, compiler, (body, true)).is_some() {
            assert_eq!(
                checked(&desk, &format!("-- ./{name}"), 0)["status"],
                "fixed"
            );
        }
    }
    // Of another check nothing is known.
    let bounds = "clang -fsanitize=bounds";
    let table = "int table[4]; table[argc & 3] = 1; kept = table[first & 7];";
    if frail(&desk, "bounds", bounds, (table, true)).is_some() {
        let group = checked(&desk, "-- ./bounds", 1);
        let why = group["why"].as_str().unwrap();
        assert!(why.contains("signed-integer-overflow"), "{group}");
    }
}

#[test]
fn another_layout_of_memory_is_no_fix_but_may_show_the_same_line() {
    let desk = Desk::new();
    let wild = "if (BUG) *(volatile char *)(long)(first * 1000) = 1;";
    let twice = "held = malloc(4); if (BUG) free(held); free(held);";
    let own = "if (BUG) abort();";
    let asan = "cc -fsanitize=address";
    desk.write("crash", "k");
    for (body, fixed, buggy) in [
        (wild, "cannot tell", "same"),
        (twice, "cannot tell", "same"),
        (own, "fixed", "same"),
    ] {
        let _ = std::fs::remove_dir_all(desk.file("out"));
        frail(&desk, "plain", "cc", (body, false)).unwrap();
        desk.call("triage crash -o out -- ./plain").exits(1);
        if frail(&desk, "asan", asan, (body, false)).is_none() {
            return;
        }
        assert_eq!(checked(&desk, "-- ./asan", 1)["status"], buggy, "{body}");
        frail(&desk, "fixed", asan, (body, true)).unwrap();
        let code = i32::from(fixed != "fixed");
        let group = checked(&desk, "-- ./fixed", code);
        assert_eq!(group["status"], fixed, "{body}");
        frail(&desk, "plain-fixed", "cc", (body, true)).unwrap();
        assert_eq!(
            checked(&desk, "-- ./plain-fixed", 0)["status"],
            "fixed",
            "{body}"
        );
    }
    // The other way round, and where something else fails.
    let _ = std::fs::remove_dir_all(desk.file("out"));
    frail(&desk, "asan", asan, (wild, false)).unwrap();
    desk.call("triage crash -o out -- ./asan").exits(1);
    let group = checked(&desk, "-- ./plain-fixed", 1);
    assert_eq!(group["status"], "cannot tell");
    assert!(
        group["hint"]
            .as_str()
            .unwrap()
            .contains("-fsanitize=address"),
        "{group}"
    );
    frail(
        &desk,
        "other",
        "cc",
        ("if (BUG)\n\n\n__builtin_trap();", false),
    )
    .unwrap();
    let group = checked(&desk, "-- ./other", 1);
    assert_eq!(
        (&group["status"], &group["now"]["class"]),
        (&"cannot tell".into(), &"ill".into())
    );
}

#[test]
fn larger_limits_and_a_status_that_does_not_count_are_no_fix() {
    let desk = Desk::new();
    desk.write("crash", "k");
    // It takes three times its limit, and a third of the larger one.
    desk.script("slow", "i=0; case $(cat) in k) sleep 3 ;; esac");
    desk.call("triage crash --timeout 100ms -o out -- ./slow")
        .exits(1);
    assert_eq!(checked(&desk, "--timeout 20s", 1)["status"], "cannot tell");
    desk.script("slow", "cat >/dev/null");
    assert_eq!(checked(&desk, "", 0)["status"], "fixed");
    let _ = std::fs::remove_dir_all(desk.file("out"));
    desk.script("seven", "case $(cat) in k) exit 7 ;; esac");
    desk.call("triage crash --crash-exit 7 -o out -- ./seven")
        .exits(1);
    assert_eq!(checked(&desk, "-- ./seven", 1)["status"], "same");
    let group = checked(&desk, "--crash-exit 8 -- ./seven", 1);
    assert_eq!(group["status"], "cannot tell");
    assert!(
        group["hint"].as_str().unwrap().contains("--crash-exit 7"),
        "{group}"
    );
    assert_eq!(
        checked(&desk, "--crash-exit 7 -- ./seven", 1)["status"],
        "same"
    );
    desk.script("seven", "cat >/dev/null");
    assert_eq!(
        checked(&desk, "--crash-exit 7 -- ./seven", 0)["status"],
        "fixed"
    );
}

#[test]
fn a_program_that_gets_no_file_any_more_is_warned_of() {
    let desk = Desk::new();
    desk.write("crash", "k");
    desk.script("frail", "case $(cat \"$1\") in k) kill -SEGV $$ ;; esac");
    desk.call("triage crash -o out -- ./frail @@").exits(1);
    let warning = "put @@ where the file is to stand";
    let said = desk.call("check out -- ./frail @@").exits(1);
    assert!(!said.err.contains(warning), "{said:?}");
    desk.script("frail", "true");
    let said = desk.call("check out -- ./frail").exits(1);
    assert!(said.err.contains(warning), "{said:?}");
    assert!(said.out.contains("cannot tell"), "{said:?}");
    desk.script("frail", "cat \"$1\"");
    assert!(
        desk.call("check out -- ./frail @@")
            .exits(0)
            .out
            .contains("1 fixed")
    );
}

#[test]
fn a_build_without_overflow_checks_is_no_fix() {
    let desk = Desk::new();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let build = |name: &str, add: &str, words: &[&str]| {
        let source = format!(
            "use std::io::Read;\nfn main() {{\n    let mut input = Vec::new();\n    \
             std::io::stdin().read_to_end(&mut input).unwrap();\n    \
             println!(\"{{}}\", input.iter().fold(0u8, |sum, byte| {add}));\n}}\n"
        );
        desk.write("frail.rs", source);
        let mut command = desk.command(&rustc);
        command.args(["--edition", "2021", "-o", name, "frail.rs"]);
        assert!(command.args(words).status().unwrap().success());
    };
    build("frail", "sum + *byte", &[]);
    desk.write("crash", "\u{ff}\u{ff}");
    desk.call("triage crash -o out -- ./frail").exits(1);
    build("released", "sum + *byte", &["-O"]);
    let group = checked(&desk, "-- ./released", 1);
    assert_eq!(group["status"], "cannot tell");
    assert!(
        group["hint"].as_str().unwrap().contains("debug-assertions"),
        "{group}"
    );
    build("fixed", "sum.wrapping_add(*byte)", &[]);
    assert_eq!(checked(&desk, "-- ./fixed", 0)["status"], "fixed");
}

#[test]
fn where_there_is_no_output_directory_that_is_said() {
    let desk = Desk::new();
    for command in ["show", "check"] {
        let error = desk.call(&format!("{command} . --json")).exits(2).json();
        let error = &error["error"];
        assert_eq!(error["kind"], "not-an-output-directory", "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.starts_with("there is no output directory in ."),
            "{message}"
        );
    }
    desk.write("crash", "a t");
    desk.call("triage crash -o ddfuzz-out --target crtplot")
        .exits(1);
    // Above it and in it, it is named.
    for place in [".", "ddfuzz-out/crashes"] {
        let error = desk.call(&format!("show {place} --json")).exits(2).json();
        let hint = error["error"]["hint"].as_str().unwrap();
        assert!(hint.contains("ddfuzz-out, which is one"), "{hint}");
    }
}

/// The words after `--` of a program that crashes in each run whose number is a multiple of `every`.
fn now_and_then(every: u32) -> String {
    format!(
        "n=$(($(cat $DESK/tmp/n) + 1)); echo $n >$DESK/tmp/n; cat >/dev/null; \
         if [ $((n % {every})) = 0 ]; then kill -SEGV $$; fi; exit 0"
    )
}

#[test]
fn what_fails_now_and_then_is_tried_until_it_would_have_failed() {
    let desk = Desk::new();
    desk.write("input", "k");
    let call = |words: &str, every, runs: &str| {
        let counter = desk.write("tmp/n", runs);
        std::fs::set_permissions(&counter, Permissions::from_mode(0o666)).unwrap();
        desk.script("program", &now_and_then(every));
        desk.call(&format!(
            "{words} --exec command --jobs 1 --json -- ./program"
        ))
    };
    let found = call("triage input -o out", 2, "1").exits(1).json();
    let rate = (&found["inputs"][0]["hits"], &found["inputs"][0]["tries"]);
    assert_eq!(rate, (&1.into(), &3.into()), "{found}");
    // The rate may be 14 %: of this, 47 passes would be chance once in a thousand times.
    let rarer = call("check out", 40, "0").exits(1).json();
    assert_eq!(rarer["fixed"], 0, "{rarer}");
    let gone = call("check out", 100, "0").exits(0).json();
    assert_eq!(gone["fixed"], 1, "{gone}");
    let runs = std::fs::read_to_string(desk.file("tmp/n")).unwrap();
    assert_eq!(
        runs.trim(),
        "51",
        "one run to try the program, one without a tracer, and one on an empty input"
    );
}

#[test]
fn a_group_without_a_complete_input_is_said_not_to_be_checked() {
    let desk = Desk::new();
    desk.call("run --target nroff --runs 60 --max-len 2000 --seed 7 --minimize off -o out -q")
        .exits(1);
    for group in std::fs::read_dir(desk.file("out/crashes")).unwrap() {
        for minor in std::fs::read_dir(group.unwrap().path()).unwrap() {
            let minor = minor.unwrap().path();
            if minor.is_dir() {
                std::fs::remove_dir_all(minor).unwrap();
            }
        }
    }
    let said = desk.call("check out").exits(1);
    assert!(
        said.err.contains("none of its inputs is complete"),
        "{said:?}"
    );
    assert!(!said.out.contains("programs no longer exist"), "{said:?}");
}

#[test]
fn a_group_whose_record_is_damaged_is_left_out_by_no_command_silently() {
    let desk = Desk::new();
    desk.script("frail", "case $(cat) in k) kill -SEGV $$ ;; esac");
    desk.write("crash", "k");
    desk.call("triage crash -o out -- ./frail").exits(1);
    let shown = desk.call("show out --json").exits(0).json();
    let file = shown["groups"][0]["file"].clone();
    let folder = Path::new(file.as_str().unwrap()).parent().unwrap();
    std::fs::write(folder.join("crash.json"), "{").unwrap();
    let group = folder.ancestors().nth(2).unwrap();
    for missing in [false, true] {
        if missing {
            std::fs::remove_file(group.join("group.json")).unwrap();
        }
        for (words, code) in [
            ("show out", 0),
            ("report out", 0),
            ("report out --markdown", 0),
            ("min out", 0),
            ("check out", 1),
        ] {
            let said = desk.call(words).exits(code);
            let warning = "none of its inputs is complete";
            assert!(said.err.contains(warning), "{missing} {words}: {said:?}");
            assert!(!said.out.contains("no longer exist"), "{words}: {said:?}");
        }
    }
}

#[test]
fn what_is_not_said_of_a_program_is_as_recorded() {
    let desk = Desk::new();
    desk.write("input", "k");
    let touched = desk.write("touched", "");
    std::fs::set_permissions(&touched, Permissions::from_mode(0o666)).unwrap();
    let lines = format!(
        "echo >>{}; [ \"$MODE\" = 1 ] && kill -SEGV $$",
        touched.display()
    );
    desk.script("moody", &lines);
    desk.call("triage input --env MODE=1 -o out -- ./moody")
        .exits(1);
    for words in ["-- ./moody", ""] {
        let checked = desk
            .call(&format!("check out --json {words}"))
            .exits(1)
            .json();
        assert_eq!(checked["same"], 1, "{words}: {checked}");
    }
    let healed = "check out --env MODE=0 --json -- ./moody";
    assert_eq!(desk.call(healed).exits(1).json()["cannot_tell"], 1);
    // Nor is an option dropped where the program is the recorded one.
    let touches = || std::fs::read(&touched).unwrap().len();
    let before = touches();
    assert!(before > 0);
    for words in ["check out --sandbox", "min out --sandbox"] {
        assert!(desk.call(words).code.is_some_and(|code| code < 2));
        assert_eq!(touches(), before, "{words}");
    }
    let test = desk.script("test.sh", "exit 0");
    let words = format!("min input --sandbox --test {}", test.display());
    assert!(desk.call(&words).exits(2).err.contains("--sandbox"));
}

#[test]
fn a_build_of_another_name_gets_its_input_as_recorded() {
    let desk = Desk::new();
    desk.write("input", "k\x1ck");
    let die = "kill -SEGV $$";
    for (options, args, lines) in [
        ("--env MODE=1", "", format!("[ \"$MODE\" = 1 ] && {die}")),
        (
            "--two-files",
            "@@ @@",
            format!("[ \"$(cat $2)\" = k ] && {die}"),
        ),
        (
            "--file-name a.t",
            "@@",
            format!("case $1 in *a.t) {die} ;; esac"),
        ),
        ("--cwd sub", "", format!("[ -f here ] && {die}")),
        (
            "--terminal=10x40 --ending q",
            "",
            format!("[ -t 0 ] && {die}"),
        ),
    ] {
        std::fs::create_dir_all(desk.file("sub")).unwrap();
        desk.write("sub/here", "");
        desk.script("old", &lines);
        desk.script("new", &lines);
        desk.call(&format!("triage input {options} -o out -- ./old {args}"))
            .exits(1);
        let words = format!("check out --json -- ./new {args}");
        let checked = desk.call(&words).exits(1).json();
        assert_eq!(checked["same"], 1, "{options}: {checked}");
        if !args.is_empty() {
            let without = desk.call("check out --json -- ./new").exits(1).json();
            assert_eq!(without["cannot_tell"], 1, "{options}: {without}");
        }
        desk.script("new", "[ $# = 0 ] || cat \"$@\"");
        desk.call(&words).exits(0);
        std::fs::remove_dir_all(desk.file("out")).unwrap();
    }
}

#[test]
fn what_was_found_otherwise_is_not_called_fixed() {
    let desk = Desk::new();
    desk.write("input", "k");
    let die = "kill -SEGV $$";
    // Nor where the user says how.
    let lines = format!("[ \"$MODE\" = 1 ] && {die}");
    desk.script("old", &lines);
    desk.script("new", &lines);
    desk.call("triage input --env MODE=1 -o out -- ./old")
        .exits(1);
    let said = desk.call("check out --env MODE=0 --json -- ./new").exits(1);
    assert_eq!(said.json()["cannot_tell"], 1, "{said:?}");
    // Of several records the last is taken, and the others are doubted.
    desk.write("other", "o");
    desk.script("last", "kill -ABRT $$");
    desk.script("new", "true");
    desk.call("triage other -o out -- ./last").exits(1);
    let said = desk.call("check out --json -- ./new").exits(1).json();
    let why = "it was found with another environment";
    let groups = said["groups"].as_array().unwrap();
    assert!(groups.iter().any(|one| one["why"] == why), "{said}");
    // Nor does a triage that runs otherwise show that they are gone.
    let words = "triage input --against out --json -- ./new";
    let compared = desk.call(words).exits(0).json();
    let open = compared["cannot_tell"].as_array().unwrap();
    assert!(
        open.iter().any(|one| one["hint"] == "add '--env=MODE=1'"),
        "{compared}"
    );
}
