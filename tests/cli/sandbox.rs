//! `--sandbox`: where it stands in what is recorded, and that what was found in one is run in one.

use crate::ddfuzz::Desk;

/// Dies of `!` where it cannot write to a file beside it that everybody may write to.
const KEPT_IN: &str = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
    int main(int argc, char **argv) {\n\
    char path[4096];\n\
    snprintf(path, sizeof path, \"%s.out\", argv[0]);\n\
    while (argc) { int c = getchar(); if (c == EOF) return 0;\n\
    if (c == '!') { if (!fopen(path, \"a\")) abort(); return 3; } } }\n";

#[test]
fn what_is_found_in_a_sandbox_is_recorded_and_run_in_one() {
    let desk = Desk::new();
    let source = desk.write("kept.c", KEPT_IN);
    let program = desk.compile(source.to_str().unwrap(), "kept");
    let beside = desk.write("kept.out", "");
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(&beside, all).unwrap();
    desk.write("crash", "some text! and more");
    let target = format!("-- {}", program.display());
    let words = format!("min crash -o small --sandbox --json {target}");
    let result = desk.call(&words).exits(0).json();
    assert_eq!(result["size_after"], 1);
    let log = String::from_utf8(desk.read("small.log.jsonl")).unwrap();
    let first = log.lines().next().unwrap();
    assert!(first.contains("\"sandbox\":\"on\""), "{first}");
    desk.call("log verify small.log.jsonl").exits(0);
    let words = format!("triage crash --sandbox -o out --json {target}");
    desk.call(&words).exits(1);
    desk.call("check out").exits(1);
    let words = format!("min crash -o free --json {target}");
    desk.call(&words).exits(3); // it does not fail there
    desk.is_left_clean();
}

#[test]
fn a_program_whose_name_is_cut_inside_a_character_runs_in_a_sandbox() {
    let desk = Desk::new();
    let text = "#include <unistd.h>\nint main(void) { usleep(60000); return 0; }\n";
    let source = desk.write("waits.c", text);
    // The kernel cuts names after 15 bytes.
    let program = desk.compile(source.to_str().unwrap(), "aaaaaaaaaaaaaa\u{fc}");
    for way in ["command", "inject"] {
        let words = "run --sandbox --generator classic --runs 3 --seed 1 --max-len 9 --jobs 1";
        let words = format!(
            "{words} --exec {way} --json -o {way} -- {}",
            program.display()
        );
        let result = desk.call(&words).exits(0).json();
        assert_eq!(result["runs"], 3, "{result}");
    }
    desk.is_left_clean();
}
