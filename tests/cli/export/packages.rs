//! Packages of Rust in a user's directory.

use std::process::{Command, Output};

use crate::ddfuzz::Desk;

/// A package `frail` whose `parse` panics at a k, with a program that passes stdin to it, and a
/// file `crash` with such an input.
pub fn frail(desk: &Desk) {
    std::fs::create_dir(desk.file("src")).unwrap();
    desk.write(
        "Cargo.toml",
        "[package]\nname = \"frail\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
    );
    desk.write(
        "src/main.rs",
        "use std::io::Read;\n\
         fn main() {\n\
             let mut input = Vec::new();\n\
             std::io::stdin().read_to_end(&mut input).unwrap();\n\
             println!(\"{}\", frail::parse(&input));\n\
         }\n",
    );
    break_it(desk);
    desk.write("crash", "some \"text\"\n  with a k \\ and \0\x7f\n");
}

const PARSE: &str = "pub fn parse(input: &[u8]) -> usize {\n    \
                         assert!(!input.contains(&b'k'), \"a k\");\n    \
                         input.len()\n}\n";

/// `parse` panics.
pub fn break_it(desk: &Desk) {
    desk.write("src/lib.rs", PARSE);
}

/// `parse` does not panic any more.
pub fn mend_it(desk: &Desk) {
    desk.write("src/lib.rs", PARSE.replace("assert!(", "let _ = ("));
}

/// The command in an environment that names no locale, as in containers.
pub fn without_locale(command: &mut Command) -> &mut Command {
    let names = ["LANG", "LC_ALL", "LC_CTYPE"].into_iter();
    names.fold(command, |command, name| command.env_remove(name))
}

/// Calls cargo with these words in the desk.
pub fn cargo(desk: &Desk, words: &str) -> Output {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = desk.command(cargo);
    command
        .args(words.split_whitespace())
        .arg("--offline")
        .env("CARGO_TARGET_DIR", desk.file("target"))
        .env("CARGO_TERM_COLOR", "never");
    without_locale(&mut command).output().unwrap()
}

/// What `cargo test` said, and whether all tests passed.
pub fn cargo_test(desk: &Desk) -> (bool, String) {
    let output = cargo(desk, "test --no-fail-fast --tests");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(!said.contains("warning"), "{said}");
    (output.status.success(), said)
}
