//! `--as c-test`, compiled.

use std::path::Path;
use std::process::Stdio;

use super::packages::without_locale;
use crate::ddfuzz::Desk;

/// Compiles these files of the desk with these words, and gives the status of the program.
fn compiled(desk: &Desk, words: &str) -> Option<i32> {
    let mut compiler = desk.command("cc");
    let output = compiler
        .args(["-Wall", "-Wextra", "-Werror", "-O1", "-o", "test"])
        .args(words.split_whitespace())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let mut test = desk.command(desk.file("test"));
    let test = without_locale(&mut test);
    test.stderr(Stdio::null()).status().unwrap().code()
}

#[test]
fn a_program_is_run_on_its_input_and_judged() {
    for (words, takes_file) in [("./frail", false), ("./frail -x @@", true)] {
        let desk = Desk::new();
        let input = match takes_file {
            true => "fopen(argv[2], \"r\")",
            false => "stdin",
        };
        let source = |does: &str| {
            format!(
                "#include <stdio.h>\nint main(int argc, char **argv) {{\n\
                 if (argc + !argv > 9) return 9;\n\
                 if (fgetc({input}) == 'k') {does};\n    return 0;\n}}\n"
            )
        };
        desk.write("frail.c", source("__builtin_trap()"));
        let path = desk.file("frail.c");
        desk.compile(path.to_str().unwrap(), "frail");
        desk.write("crash", "k \" \\ ??/ @@");
        let words = format!("triage crash -o ddfuzz-out --json -- {words}");
        let major = desk.call(&words).exits(1).json()["groups"][0]["major"].clone();
        let words = format!("export {} --as c-test --to test.c", major.as_str().unwrap());
        desk.call(&words).exits(0);
        assert_eq!(compiled(&desk, "test.c"), Some(1));
        // By 134 a shell would report an abort, but this program is none.
        for ends in ["return 7", "return 134"] {
            desk.write("frail.c", source(ends));
            desk.compile(path.to_str().unwrap(), "frail");
            assert_eq!(compiled(&desk, "test.c"), Some(0), "{ends}");
        }
        std::fs::remove_file(desk.file("frail")).unwrap();
        assert_eq!(compiled(&desk, "test.c"), Some(2));
    }
}

#[test]
fn a_crash_that_the_status_of_the_program_hides_is_not_exported() {
    let desk = Desk::new();
    let source = "#include <stdio.h>\n#include <stdlib.h>\n#include <sys/wait.h>\n\
                  #include <unistd.h>\nint main(void) {\n    int fails = getchar() == 'k';\n\
                  if (fork() == 0) {\n        if (fails) abort();\n        _exit(0);\n    }\n\
                  wait(0);\n    return 0;\n}\n";
    let path = desk.write("parent.c", source);
    desk.compile(path.to_str().unwrap(), "parent");
    desk.write("crash", "k");
    let said = desk.call("triage crash -o ddfuzz-out --json -- ./parent");
    let major = said.exits(1).json()["groups"][0]["major"].clone();
    for form in ["c-test", "rust-test"] {
        let words = format!("export {} --as {form} --to it", major.as_str().unwrap());
        let said = desk.call(&words).exits(2);
        assert!(said.err.contains("would not see it"), "{said:?}");
        assert!(!desk.file("it").exists());
    }
}

#[test]
fn a_program_found_in_a_sandbox_is_at_home_where_it_runs() {
    let desk = Desk::new();
    let source = "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\nint main(void) {\n\
                  char here[4096];\n    const char *home = getenv(\"HOME\");\n\
                  if (!getenv(\"LANG\") && !getenv(\"LC_ALL\") && !getenv(\"LC_CTYPE\")) return 0;\n\
                  if (home && getcwd(here, sizeof here) && !strcmp(home, here)) __builtin_trap();\n\
                  return 0;\n}\n";
    desk.write("homely.c", source);
    desk.compile(desk.file("homely.c").to_str().unwrap(), "homely");
    desk.write("crash", "k");
    let words = "triage crash -o ddfuzz-out --sandbox --json -- ./homely";
    let major = desk.call(words).exits(1).json()["groups"][0]["major"].clone();
    let words = format!("export {} --as c-test --to test.c", major.as_str().unwrap());
    desk.call(&words).exits(0);
    assert_eq!(compiled(&desk, "test.c"), Some(1));
}

#[test]
fn the_entry_of_a_harness_is_called() {
    let desk = Desk::new();
    let path = desk.compile("tests/cli/programs/entry.c", "harness");
    desk.write("crash", "BUG");
    let words = format!("triage crash -o ddfuzz-out --json -- {}", path.display());
    let result = desk.call(&words).exits(1).json();
    let major = result["groups"][0]["major"].as_str().unwrap();
    desk.call(&format!("export {major} --as c-test --to test.c"))
        .exits(0);
    // It is linked with the harness as it is, `main` and all, by the command that stands in it.
    let text = std::fs::read_to_string(desk.file("test.c")).unwrap();
    let command = text.lines().find_map(|line| line.strip_prefix("//   "));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/programs/entry.c");
    let source = std::fs::read_to_string(source).unwrap();
    for (bug, status) in [("abort()", 1), ("return 1", 0)] {
        desk.write("harness.c", source.replace("abort()", bug));
        let mut shell = desk.command("sh");
        let ended = shell.args(["-c", command.unwrap()]).stderr(Stdio::null());
        assert_eq!(ended.status().unwrap().code(), Some(status));
    }
}

#[test]
fn the_entry_has_the_variables_and_the_directory_of_the_run() {
    let desk = Desk::new();
    let entry = "#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
                 int target_main(const uint8_t *data, size_t size) {\n    \
                 const char *odd = getenv(\"ODD\");\n    \
                 FILE *file = fopen(\"beside\", \"r\");\n    \
                 if (size && data[0] == 'k' && file && odd && !strcmp(odd, \"it's \\\"odd\\\"\"))\n        \
                 BUG;\n    return 0;\n}\n";
    let main = "int main(void) {\n    uint8_t data[99];\n    \
                return target_main(data, fread(data, 1, sizeof data, stdin));\n}\n";
    let source = desk.write("whole.c", entry.replace("BUG", "abort()") + main);
    desk.compile(source.to_str().unwrap(), "harness");
    desk.write("crash", "k");
    let folder = desk.file("folder");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("beside"), "").unwrap();
    let words = ["--env=ODD=it's \"odd\"", "--", "./harness"];
    let cwd = format!(
        "triage crash -o ddfuzz-out --json --cwd {}",
        folder.display()
    );
    let result = desk
        .call_with(&cwd, &words.map(AsRef::as_ref))
        .exits(1)
        .json();
    let major = result["groups"][0]["major"].as_str().unwrap();
    desk.call(&format!("export {major} --as c-test --to test.c"))
        .exits(0);
    for (bug, status) in [("abort()", 1), ("return 1", 0)] {
        desk.write("harness.c", entry.replace("BUG", bug));
        assert_eq!(compiled(&desk, "test.c harness.c"), Some(status));
    }
}

#[test]
fn a_program_is_called_by_the_link_by_which_it_crashed() {
    let desk = Desk::new();
    let source = "#include <string.h>\nint main(int argc, char **argv) {\n\
                  if (argc && strstr(argv[0], \"other\")) __builtin_trap();\n    return 0;\n}\n";
    desk.write("tool.c", source);
    desk.compile(desk.file("tool.c").to_str().unwrap(), "tool");
    std::os::unix::fs::symlink("tool", desk.file("other")).unwrap();
    desk.write("crash", "k");
    let words = "triage crash -o ddfuzz-out --json -- ./other";
    let major = desk.call(words).exits(1).json()["groups"][0]["major"].clone();
    let words = format!("export {} --as c-test --to test.c", major.as_str().unwrap());
    desk.call(&words).exits(0);
    assert_eq!(compiled(&desk, "test.c"), Some(1));
}
