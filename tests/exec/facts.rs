//! What a program was compiled with, read off its file.

use std::path::Path;
use std::process::Command;

use ddfuzz::exec::facts::{DEBUG_ASSERTIONS, TargetFacts};
use ddfuzz::exec::{Program, Target};

use crate::needs;

/// It adds, indexes and follows a pointer.
const PROGRAM: &str = "int table[4];\nint main(int argc, char **argv) {\n    \
    return (argc + table[argc & 7]) & argv[0][0] & 0;\n}\n";
const ENTRY: &str = "int table[4];\n\
    int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size) {\n    \
    return size ? (table[size & 7] + data[0]) & 0 : 0;\n}\n";
/// Nothing in it can be checked.
const NOTHING: &str = "int main(void) { return 0; }\n";

/// What the program has that this compiler makes of the source; `None`, and said so, where it does
/// not.
fn sanitizers(folder: &Path, compiler: &str, source: &str) -> Option<Vec<&'static str>> {
    let (text, program) = (folder.join("source.c"), folder.join("program"));
    std::fs::write(&text, source).unwrap();
    let mut words = compiler.split_whitespace();
    let output = Command::new(words.next().unwrap())
        .args(["-O0", "-w"])
        .args(words)
        .arg(&text)
        .arg("-o")
        .arg(&program)
        .output();
    match output {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            needs::missing(compiler, &String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Err(error) => {
            needs::missing(compiler, &error.to_string());
            return None;
        }
    }
    let facts = TargetFacts::of(&Target::new(Program::Path(program))).unwrap();
    Some(facts.sanitizers)
}

#[test]
fn sanitizers_are_those_of_the_code_and_not_those_of_the_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&str, &str, &[&str]); 17] = [
        ("cc", PROGRAM, &[]),
        ("cc -fsanitize=address", PROGRAM, &["address"]),
        ("cc -fsanitize=undefined", PROGRAM, &["undefined"]),
        ("cc -fsanitize=undefined", NOTHING, &["undefined"]),
        (
            "cc -fsanitize=address,undefined",
            PROGRAM,
            &["address", "undefined"],
        ),
        ("cc -fsanitize=thread", PROGRAM, &["thread"]),
        ("cc -fsanitize=leak", PROGRAM, &["leak"]),
        ("clang", PROGRAM, &[]),
        // The handlers of UndefinedBehaviorSanitizer are in both, and nothing calls them.
        ("clang -fsanitize=address", PROGRAM, &["address"]),
        ("clang -fsanitize=fuzzer", ENTRY, &[]),
        ("clang -fsanitize=fuzzer,undefined", ENTRY, &["undefined"]),
        ("clang -fsanitize=undefined", NOTHING, &["undefined"]),
        (
            "clang -fsanitize=address,undefined",
            PROGRAM,
            &["address", "undefined"],
        ),
        ("clang -fsanitize=memory", PROGRAM, &["memory"]),
        ("clang -fsanitize=bounds", PROGRAM, &["bounds"]),
        (
            "clang -fsanitize=undefined -fsanitize-minimal-runtime -fno-sanitize-recover=all",
            PROGRAM,
            &["undefined"],
        ),
        // It goes on after a failed check, and shows nothing of it.
        (
            "clang -fsanitize=undefined -fsanitize-minimal-runtime",
            PROGRAM,
            &[],
        ),
    ];
    for (compiler, source, expected) in cases {
        if let Some(found) = sanitizers(folder.path(), compiler, source) {
            assert_eq!(found, expected, "{compiler}");
        }
    }
}

#[test]
fn a_stripped_program_still_shows_its_sanitizers() {
    let folder = tempfile::tempdir().unwrap();
    for (compiler, expected) in [
        ("cc -s -fsanitize=undefined", "undefined"),
        ("cc -s -fsanitize=address", "address"),
        ("clang -s -fsanitize=address", "address"),
        ("clang -s -fsanitize=undefined", "undefined"),
    ] {
        if let Some(found) = sanitizers(folder.path(), compiler, PROGRAM) {
            assert_eq!(found, [expected], "{compiler}");
        }
    }
}

#[test]
fn rust_shows_whether_it_checks_for_overflows() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("a.rs"), folder.path().join("a"));
    let text = "fn main() { println!(\"{}\", std::env::args().count() as u8 + 1); }";
    std::fs::write(&source, text).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    for (words, expected) in [
        (&[][..], true),
        (&["-O"], false),
        (&["-O", "-Coverflow-checks=on"], true),
        (&["-O", "-Cdebug-assertions=on"], true),
    ] {
        let mut command = Command::new(&rustc);
        command.args(words).arg(&source).arg("-o").arg(&program);
        assert!(command.status().unwrap().success());
        let facts = TargetFacts::of(&Target::new(Program::Path(program.clone()))).unwrap();
        assert_eq!(facts.debug_assertions, expected, "{words:?}");
        let known = facts.instrumentation().unwrap();
        assert_eq!(known.iter().any(|name| name == DEBUG_ASSERTIONS), expected);
    }
}

#[test]
fn what_a_script_runs_was_compiled_with_is_not_known() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/bin/sh\nexit 0\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let facts = TargetFacts::of(&Target::new(Program::Path(script))).unwrap();
    assert_eq!(facts.instrumentation(), None);
}
