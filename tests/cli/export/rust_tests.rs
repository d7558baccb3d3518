//! `--as rust-test`, in packages that cargo builds.

use super::packages::{cargo, cargo_test, frail, mend_it};
use crate::ddfuzz::Desk;

#[test]
fn exported_tests_fail_before_the_fix_and_pass_after_it() {
    let desk = Desk::new();
    frail(&desk);
    assert!(cargo(&desk, "build").status.success());
    desk.call("triage crash -o out -- target/debug/frail")
        .exits(1);
    std::fs::create_dir(desk.file("tests")).unwrap();
    // In the process, and by the program.
    let call = ["--call".as_ref(), "frail::parse(INPUT)".as_ref()];
    desk.call_with("export -o out --into tests/by_call", &call)
        .exits(0);
    desk.call("export -o out --into tests/by_program").exits(0);
    let listed = std::fs::read_dir(desk.file("tests/by_program")).unwrap();
    let names: Vec<_> = listed.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let test = names.iter().find(|name| *name != "main.rs").unwrap();
    let test = desk.read(&format!("tests/by_program/{}", test.to_str().unwrap()));
    // It moves with the project.
    let text = String::from_utf8(test).unwrap();
    assert!(text.contains("b\"target/debug/frail\""), "{text}");
    let (passes, said) = cargo_test(&desk);
    assert!(!passes, "{said}");
    assert_eq!(
        said.matches("test result: FAILED. 0 passed; 1 failed")
            .count(),
        2,
        "{said}"
    );
    assert!(said.contains("it ends with exit status: 101"), "{said}");
    assert!(said.contains("a k"), "{said}");
    mend_it(&desk);
    let (passes, said) = cargo_test(&desk);
    assert!(passes, "{said}");
    assert_eq!(said.matches("::group_").count(), 2, "{said}");
}

/// A C program `frail` that is frail in this way, and a package with its exported test.
fn program(desk: &Desk, source: &str, words: &str) {
    desk.write("frail.c", source);
    let source = desk.file("frail.c");
    desk.compile(source.to_str().unwrap(), "frail");
    desk.write("crash", "a k");
    desk.call(&format!("triage crash -o out {words}")).exits(1);
    std::fs::create_dir_all(desk.file("tests")).unwrap();
    desk.write(
        "Cargo.toml",
        "[package]\nname = \"tested\"\nversion = \"0.1.0\"\nedition = \"2018\"\n\n[workspace]\n\n\
         [lib]\npath = \"lib.rs\"\n",
    );
    desk.write("lib.rs", "");
    let kinds = ["crashes", "hangs", "oom"];
    let group = kinds.iter().find_map(|kind| {
        let entry = std::fs::read_dir(desk.file("out").join(kind))
            .ok()?
            .next()?;
        Some(entry.unwrap().path())
    });
    let group = group.expect("a group");
    let words = format!(
        "export {} --as rust-test --to tests/one.rs",
        group.display()
    );
    desk.call(&words).exits(0);
}

const WITH_FILE: &str = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
     int main(int argc, char **argv) {\n\
         char input[9] = {0};\n\
         if (argc != 3 || strcmp(argv[1], \"an \\\"option\\\"\") || !getenv(\"ODD\") || !getenv(\"odd.name\")) return 3;\n\
         if (!getenv(\"LANG\") && !getenv(\"LC_ALL\") && !getenv(\"LC_CTYPE\")) return 5;\n\
         FILE *file = fopen(argv[2] + 1, \"r\");\n\
         if (!file || !fread(input, 1, 8, file)) return 4;\n\
         FRAIL\n\
         return 0;\n\
     }\n";

#[test]
fn a_program_gets_its_arguments_variables_and_file() {
    let desk = Desk::new();
    let source = WITH_FILE.replace("FRAIL", "if (strchr(input, 'k')) abort();");
    desk.write("frail.c", &source);
    desk.compile(desk.file("frail.c").to_str().unwrap(), "frail");
    desk.write("crash", "a k");
    let odd = [
        "--env=ODD=it's \u{e9}",
        "--env=odd.name=it's \u{e9}",
        "--",
        "./frail",
        "an \"option\"",
        "=@@",
    ];
    desk.call_with("triage crash -o out", &odd.map(AsRef::as_ref))
        .exits(1);
    desk.write(
        "Cargo.toml",
        "[package]\nname = \"tested\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n\n\
         [lib]\npath = \"lib.rs\"\n",
    );
    desk.write("lib.rs", "");
    std::fs::create_dir(desk.file("tests")).unwrap();
    desk.call("export -o out --into tests/found").exits(0);
    let (passes, said) = cargo_test(&desk);
    assert!(!passes && said.contains("signal: 6"), "{said}");
    // By 134 a shell would report the signal, but this program is none.
    desk.write("frail.c", WITH_FILE.replace("FRAIL", "return 134;"));
    desk.compile(desk.file("frail.c").to_str().unwrap(), "frail");
    let (passes, said) = cargo_test(&desk);
    assert!(passes, "{said}");
}

#[test]
fn the_test_of_a_hang_has_a_limit() {
    let desk = Desk::new();
    let source = "#include <stdio.h>\nint main(void) { while (getchar() == 'a') rewind(stdin); }\n";
    program(&desk, source, "--timeout 60ms -- ./frail");
    let text = String::from_utf8(desk.read("tests/one.rs")).unwrap();
    assert!(text.contains("ulimit -t 1; "), "{text}");
    let (passes, said) = cargo_test(&desk);
    assert!(
        !passes && said.contains("it takes more than 80ms of processor time"),
        "{said}"
    );
    desk.write("frail.c", "int main(void) { return 0; }\n");
    desk.compile(desk.file("frail.c").to_str().unwrap(), "frail");
    let (passes, said) = cargo_test(&desk);
    assert!(passes, "{said}");
    desk.is_left_clean();
}

#[test]
fn the_test_of_memory_that_runs_away_has_a_limit() {
    let desk = Desk::new();
    let source = "#include <stdlib.h>\n#include <string.h>\nint main(void) {\n\
                  for (;;) { char *p = malloc(1 << 20); if (!p) abort(); memset(p, 1, 1 << 20); }\n\
                  }\n";
    program(&desk, source, "--memory 64M -- ./frail");
    let (passes, said) = cargo_test(&desk);
    assert!(
        !passes && said.contains("it takes more than 67108864 bytes of memory"),
        "{said}"
    );
    desk.write("frail.c", "int main(void) { return 0; }\n");
    desk.compile(desk.file("frail.c").to_str().unwrap(), "frail");
    let (passes, said) = cargo_test(&desk);
    assert!(passes, "{said}");
}
