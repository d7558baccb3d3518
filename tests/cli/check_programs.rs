//! `ddfuzz check`: programs that seem to be another one, or to end before they do their work.

use std::path::Path;

use crate::check::checked;
use crate::ddfuzz::{Desk, compiled};

#[test]
fn a_program_that_reads_nothing_shows_no_fix_without_a_minimization() {
    let desk = Desk::new();
    let reads = "read x; case $x in *z*) kill -SEGV $$;; esac";
    desk.script("program", reads);
    desk.write("in", "abcz");
    desk.call("triage in -o out -- ./program").exits(1);
    desk.script("program", "exit 1");
    let group = checked(&desk, "", 1);
    assert_eq!(group["status"], "cannot tell", "{group}");
    let why = group["why"].as_str().unwrap();
    assert!(why.ends_with("it read some when it failed"), "{group}");
    // What a call of min says of a new build is the same.
    let said = desk.call("min out").exits(0);
    assert!(said.err.contains("0 fixed, 1 undecided"), "{said:?}");
    // An older record does not say whether the program read anything.
    let file = Path::new(group["file"].as_str().unwrap()).with_file_name("crash.json");
    let record = std::fs::read_to_string(&file).unwrap();
    let mut record: serde_json::Value = serde_json::from_str(&record).unwrap();
    assert_eq!(
        record.as_object_mut().unwrap().remove("read"),
        Some(4.into())
    );
    std::fs::write(&file, record.to_string()).unwrap();
    let group = checked(&desk, "", 1);
    assert_eq!(group["status"], "cannot tell", "{group}");
    desk.script("program", "read x");
    assert_eq!(checked(&desk, "", 0)["status"], "fixed");
    // One that never read anything is fixed without.
    std::fs::remove_dir_all(desk.file("out")).unwrap();
    desk.script("program", "kill -SEGV $$");
    desk.call("triage in -o out -- ./program").exits(1);
    desk.script("program", "exit 0");
    assert_eq!(checked(&desk, "", 0)["status"], "fixed");
}

#[test]
fn the_very_build_that_failed_is_not_called_fixed() {
    let desk = Desk::new();
    desk.write("input", "k");
    let source = |more: &str| {
        format!(
            "#include <stdlib.h>\nint main(void) {{\n    {more}\n    \
             if (getenv(\"MODE\")) abort();\n    return 0;\n}}\n"
        )
    };
    desk.write("program.c", source(""));
    let made = || {
        compiled::run(
            desk.command("cc")
                .args(["-g", "-o", "program", "program.c"]),
        )
    };
    made();
    let mut call = desk.command(env!("CARGO_BIN_EXE_ddfuzz"));
    let words = ["min", "input", "-o", "out/", "--", "./program"];
    assert!(
        call.args(words)
            .env("MODE", "1")
            .output()
            .unwrap()
            .status
            .success()
    );
    let checked = desk.call("check out --json").exits(1).json();
    let why = checked["groups"][0]["why"].as_str().unwrap_or_default();
    assert!(why.contains("the very build that failed"), "{checked}");
    // Another build may have the mend.
    desk.write("program.c", source("unsetenv(\"MODE\");"));
    made();
    desk.call("check out").exits(0);
    desk.is_left_clean();
}

#[test]
fn a_run_under_other_conditions_than_recorded_shows_no_fix() {
    let desk = Desk::new();
    desk.write("input", "k");
    for folder in ["here", "there"] {
        std::fs::create_dir(desk.file(folder)).unwrap();
    }
    desk.write("here/flag", "");
    let here = desk.file("here");
    let here = here.display();
    let there = desk.file("there");
    let there = there.display();
    let die = "{ cat >/dev/null; kill -SEGV $$; }";
    for (found, now, lines, why, hint) in [
        (
            "--env MODE=bad".to_owned(),
            "--env MODE=good".to_owned(),
            format!("[ \"$MODE\" = bad ] && {die}; cat"),
            "it was found with another environment",
            "add '--env=MODE=bad', and omit '--env=MODE=good'".to_owned(),
        ),
        (
            "--env MODE=bad".to_owned(),
            "--env SAFE=1".to_owned(),
            format!("[ -z \"$SAFE\" ] && {die}; cat"),
            "it was found with another environment",
            "omit '--env=SAFE=1'".to_owned(),
        ),
        (
            format!("--cwd {here}"),
            format!("--cwd {there}"),
            format!("[ -f flag ] && {die}; cat"),
            "it was found with another working directory",
            format!("add --cwd {here}, and omit --cwd {there}"),
        ),
    ] {
        desk.script("frail", &lines);
        desk.call(&format!("triage input {found} -o out -- ./frail"))
            .exits(1);
        // Another build, with the same bug, be it named or not.
        desk.script("frail", &format!("{lines}; true"));
        for program in ["", "-- ./frail"] {
            let group = checked(&desk, &format!("{now} {program}"), 1);
            assert_eq!(group["status"], "cannot tell", "{now} {program}: {group}");
            assert_eq!(
                (&group["why"], &group["hint"]),
                (&why.into(), &hint.clone().into())
            );
            assert_eq!(checked(&desk, program, 1)["status"], "same", "{found}");
        }
        desk.script("frail", "cat");
        for words in ["", &found, "-- ./frail"] {
            assert_eq!(checked(&desk, words, 0)["status"], "fixed", "{words}");
        }
        // Where libraries are is part of the build.
        let libraries = format!("--env LD_LIBRARY_PATH={there}");
        assert_eq!(checked(&desk, &libraries, 0)["status"], "fixed");
        std::fs::remove_dir_all(desk.file("out")).unwrap();
    }
}

/// Where only `main` was on the stack, the source file tells one program from another.
#[test]
fn another_program_of_which_only_main_is_known_fixes_nothing() {
    let desk = Desk::new();
    let build = |name: &str, body: &str| {
        let source = format!("{name}.c");
        let text = format!("#include <stdio.h>\nint main(void) {{ {body} }}\n");
        desk.write(&source, text);
        let mut compiler = desk.command("cc");
        compiler.args(["-g", "-O0", "-o", name, &source]);
        assert!(compiler.status().unwrap().success(), "{name}");
    };
    build(
        "alone",
        "if (getchar() == 'x') *(volatile int *)0 = 1; return 0;",
    );
    build("apart", "return getchar() == 'y';");
    desk.write("in", "x");
    desk.call("triage in -o out -- ./alone").exits(1);
    let result = desk.call("check out --json -- ./apart").exits(1).json();
    assert_eq!(result["cannot_tell"], 1, "{result}");
    let why = result["groups"][0]["why"].as_str().unwrap();
    let is_told = why.contains("none of the source files in which it failed (alone.c)");
    assert!(is_told, "{why}");
    // The same program under another name, fixed.
    build("alone", "return getchar() == 'y';");
    std::fs::rename(desk.file("alone"), desk.file("mended")).unwrap();
    let result = desk.call("check out --json -- ./mended").exits(0).json();
    assert_eq!(result["fixed"], 1, "{result}");
}
