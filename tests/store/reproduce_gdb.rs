//! The reproducer script in gdb: it stops at the crash, with the stack that led there.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ddfuzz::exec::{Channel, Limits, Program, Target, Terminal};
use ddfuzz::files::OsText;
use ddfuzz::store::Kind;
use tempfile::TempDir;

use crate::compiled::output;
use crate::needs;
use crate::reproduce::{Fixture, filed_as, sh};

/// Crashes of its input, taken from stdin or from the file of its last argument.
const SOURCE: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static volatile int zero;
__attribute__((noinline)) void planted_bug(const char *text, size_t size)
{
    if (size < 5 || memcmp(text, "crash", 5))
        return;
#ifdef ODD
    const char *odd = getenv("an.odd-name") ? getenv("an.odd-name") : getenv("LINES");
    if (odd && !strcmp(odd, "it's $y\nEND\n") && !getenv("scratch"))
        exit(11);
#endif
    if (getenv("LINES") || getenv("COLUMNS"))
        exit(9);
    volatile char *heap = malloc(4);
    heap[4 + zero] = 1;
    if (text[5] == 's')
        for (;;)
            zero = 0;
    if (text[5] == 'e')
        exit(3);
    if (getenv("SPARED") == NULL)
        *(volatile int *)(uintptr_t)zero = 1;
}
#ifdef FUZZER
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    planted_bug((const char *)data, size);
    return 0;
}
#else
int main(int count, char **words)
{
    static char text[4096];
    FILE *file = count > 1 && strcmp(words[count - 1], "-") ? fopen(words[count - 1], "rb") : stdin;
    if (!file || count > 2 && strcmp(words[1], "a 'b' \"$c\""))
        return 7;
    planted_bug(text, fread(text, 1, sizeof text - 1, file));
    return 0;
}
#endif
"#;

/// A program that crashes, in a folder of its own; `None` where something is missing.
fn compiled(compiler: &str, flags: &[&str], name: &str) -> Option<(TempDir, Target)> {
    needs::program("gdb")?;
    needs::program(compiler)?;
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let source = folder.path().join("source.c");
    std::fs::write(&source, SOURCE).unwrap();
    let program = folder.path().join(name);
    let mut command = Command::new(compiler);
    command.args(["-w", "-g", "-O1"]).args(flags).arg(&source);
    assert!(command.arg("-o").arg(&program).status().unwrap().success());
    Some((folder, Target::new(Program::Path(program))))
}

/// A script that shows this crash of the target by the input `crash`, with what it lies in.
fn script(kind: Kind, class: &str, target: &Target, input: &str) -> (Fixture, PathBuf) {
    let (mut fixture, script) = filed_as(kind, class).script_kept(&target.with_main_arguments());
    fixture.minimize(input.as_bytes());
    (fixture, script)
}

/// What gdb says of the script, with the stack.
fn in_gdb(script: &Path) -> String {
    let mut command = Command::new(script);
    command
        .args(["gdb", "-batch", "-ex", "bt"])
        .current_dir("/")
        .stdin(std::process::Stdio::null());
    let output = output(&mut command);
    let [said, errors] = [output.stdout, output.stderr];
    String::from_utf8_lossy(&[said, errors].concat()).into_owned()
}

#[track_caller]
fn stops(said: &str, at: &str) {
    assert!(said.contains(at), "{said}");
    assert!(said.contains("planted_bug (text="), "{said}");
}

const FAULT: &str = "received signal SIGSEGV";

#[test]
fn a_program_that_reads_stdin_or_a_file_stops_at_its_crash() {
    let Some((_folder, mut target)) = compiled("gcc", &[], "pro gram's") else {
        return;
    };
    for words in [
        &[][..],
        &["@@"],
        &["a 'b' \"$c\"", "@@"],
        &["a 'b' \"$c\"", "-"],
    ] {
        target.args = words.iter().map(Into::into).collect();
        let (_fixture, script) = script(Kind::Crash, "segv", &target, "crash");
        stops(&in_gdb(&script), FAULT);
        let text = std::fs::read_to_string(&script).unwrap();
        assert!(
            text.contains("# To stop at the crash in gdb: sh reproduce.sh gdb."),
            "{text}"
        );
    }
}

#[test]
fn variables_names_and_two_files_are_as_in_the_run() {
    let Some((folder, mut target)) = compiled("gcc", &[], "a=b") else {
        return;
    };
    target.args = vec!["@@".into()];
    target.channel = Channel::Named(OsText("x 'y'.txt".into()));
    let (_fixture, named) = script(Kind::Crash, "segv", &target, "crash");
    stops(&in_gdb(&named), FAULT);
    target.channel = Channel::TwoFiles;
    target.args = vec!["@@".into(), "@@".into()];
    // The first is no word that it knows.
    let (_fixture, two) = script(Kind::Crash, "segv", &target, "crash\x1ccrash");
    assert!(in_gdb(&two).contains("exited with code 07"));
    (target.channel, target.args) = (Channel::Plain, Vec::new());
    target.cwd = Some(folder.path().to_owned());
    target.env = vec![("SPARED".into(), "it's $y".into())];
    for only in [false, true] {
        target.env_only = only;
        let (_fixture, spared) = script(Kind::Crash, "segv", &target, "crash");
        assert!(in_gdb(&spared).contains("exited normally"), "{only}");
    }
}

#[test]
fn variables_that_a_shell_drops_reach_the_program() {
    for name in ["program", "a=b"] {
        let Some((folder, mut target)) = compiled("gcc", &["-DODD"], name) else {
            return;
        };
        target.cwd = Some(folder.path().to_owned());
        for (odd, reaches) in [("an.odd-name", true), ("an.other", false), ("LINES", true)] {
            target.env = vec![(odd.into(), "it's $y\nEND\n".into())];
            for only in [false, true] {
                target.env_only = only;
                let (_fixture, script) = script(Kind::Crash, "segv", &target, "crash");
                let said = in_gdb(&script);
                let code = if reaches {
                    "exited with code 013"
                } else {
                    FAULT
                };
                assert!(said.contains(code), "{odd} {only}: {said}");
            }
        }
    }
}

#[test]
fn a_sanitizer_and_a_libfuzzer_binary_stop_at_the_report() {
    let asan = "asan:heap-buffer-overflow";
    for (compiler, flags) in [
        ("gcc", &["-fsanitize=address"][..]),
        ("clang", &["-fsanitize=address"]),
        ("clang", &["-DFUZZER", "-fsanitize=fuzzer,address"]),
    ] {
        let Some((_folder, target)) = compiled(compiler, flags, "program") else {
            continue;
        };
        let (_fixture, script) = script(Kind::Crash, asan, &target, "crash");
        let said = in_gdb(&script);
        stops(&said, "received signal SIGABRT");
        assert!(said.contains("heap-buffer-overflow"), "{said}");
    }
    let plain = compiled("clang", &["-DFUZZER", "-fsanitize=fuzzer"], "program");
    if let Some((_folder, target)) = plain {
        let (_fixture, script) = script(Kind::Crash, "segv", &target, "crash");
        stops(&in_gdb(&script), FAULT);
    }
}

#[test]
fn what_ends_by_no_signal_is_stopped_all_the_same() {
    let Some((_folder, mut target)) = compiled("gcc", &[], "program") else {
        return;
    };
    target.crash_exit = Some(3);
    let (_fixture, exits) = script(Kind::Crash, "exit:3", &target, "crashe");
    stops(&in_gdb(&exits), "call to syscall exit_group");
    target.limits = Limits::with_cpu(Duration::from_millis(10));
    let (_fixture, spins) = script(Kind::Hang, "hang", &target, "crashs");
    stops(&in_gdb(&spins), "received signal SIGXCPU");
}

#[test]
fn a_panic_is_stopped_before_it_unwinds() {
    let (Some(_), Some(rustc)) = (needs::program("gdb"), needs::program("rustc")) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("p.rs"), folder.path().join("p"));
    let text = "#[inline(never)] fn planted_bug(text: &str) { panic!(\"{text}\") }\n\
                fn main() { planted_bug(&std::io::read_to_string(std::io::stdin()).unwrap()) }";
    std::fs::write(&source, text).unwrap();
    let mut command = Command::new(rustc);
    command.args(["-g", "--edition", "2021"]).arg(&source);
    assert!(command.arg("-o").arg(&program).status().unwrap().success());
    let target = Target::new(Program::Path(program));
    let (_fixture, script) = script(Kind::Crash, "rustpanic", &target, "crash");
    let said = in_gdb(&script);
    assert!(said.contains("p::planted_bug (text="), "{said}");
    assert!(said.contains("p::main"), "{said}");
}

#[test]
fn what_gdb_cannot_show_has_no_such_part() {
    let script = |class: &str, target: &Target| {
        let (_fixture, script) = filed_as(Kind::Crash, class).script_kept(target);
        std::fs::read_to_string(script).unwrap()
    };
    let program = Target::new(Program::Path("/bin/cat".into()));
    assert!(script("segv", &program).contains("gdb"));
    assert!(!script("lsan:direct-leak", &program).contains("gdb"));
    let folder = tempfile::tempdir().unwrap();
    let shell = folder.path().join("script");
    std::fs::write(&shell, "#!/bin/sh\nexit 1\n").unwrap();
    assert!(!script("segv", &Target::new(Program::Path(shell))).contains("gdb"));
    let at_terminal = Target {
        channel: Channel::Terminal(Terminal::default()),
        ..sh("cat")
    };
    assert!(!script("segv", &at_terminal).contains("gdb"));
}
