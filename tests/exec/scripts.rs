//! Programs that are started through an interpreter.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ddfuzz::exec::{Ended, Executor, Freshness, Program, Target, Way, start};

use crate::programs::{open_directory, patient};

fn write(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn executor(target: &Target, way: Way) -> Box<dyn Executor> {
    start(target, Some(way), Freshness::Shared)
        .unwrap()
        .executor
}

/// One program in several languages: exits with the number it reads, or dies of the signal it
/// names. Its argument is to be `an argument`, or it exits with 90.
const SHELL: &str = r#"
[ "$1" = "an argument" ] || exit 90
read -r word
case $word in
SEGV | ABRT | KILL) kill -s "$word" $$ ;;
*) exit "$word" ;;
esac
"#;
const PERL: &str = r#"
exit 90 unless $ARGV[0] eq "an argument";
my $word = <STDIN>;
chomp $word;
kill($word, $$) if $word =~ /[A-Z]/;
exit $word;
"#;
const PYTHON: &str = r#"
import os, signal, sys
if sys.argv[1] != "an argument":
    sys.exit(90)
word = sys.stdin.readline().strip()
if word.isalpha():
    os.kill(os.getpid(), getattr(signal, "SIG" + word))
sys.exit(int(word))
"#;

#[test]
fn scripts_end_alike_by_inject_and_command() {
    let dir = open_directory();
    for (name, line, text, needs) in [
        ("sh", "#!/bin/sh", SHELL, "/bin/sh"),
        ("bash", "#!/bin/bash -e", SHELL, "/bin/bash"),
        ("env", "#!/usr/bin/env sh", SHELL, "/usr/bin/env"),
        ("split", "#!/usr/bin/env -S sh -e", SHELL, "/usr/bin/env"),
        ("perl", "#!/usr/bin/perl -w", PERL, "/usr/bin/perl"),
        ("python", "#!/usr/bin/python3", PYTHON, "/usr/bin/python3"),
    ] {
        if !Path::new(needs).exists() {
            continue; // perl and python are no part of every system
        }
        let path = write(dir.path(), name, &format!("{line}\n{text}"));
        let mut target = patient(Program::Path(path));
        target.args = vec!["an argument".into()];
        let mut command = executor(&target, Way::Command);
        let mut inject = executor(&target, Way::Inject);
        for (input, expected) in [
            ("0\n", Ended::Exit(0)),
            ("42\n", Ended::Exit(42)),
            ("SEGV\n", Ended::Signal(libc::SIGSEGV)),
            ("ABRT\n", Ended::Signal(libc::SIGABRT)),
            ("KILL\n", Ended::Signal(libc::SIGKILL)),
        ] {
            let ended = command.run(input.as_bytes()).unwrap().ended;
            assert_eq!(ended, expected, "{name}: {input:?}");
            let ended = inject.run(input.as_bytes()).unwrap().ended;
            assert_eq!(ended, expected, "{name}: {input:?} by inject");
        }
    }
}

#[test]
fn what_a_shell_starts_counts_although_the_shell_goes_on() {
    let dir = open_directory();
    let text = "#!/bin/sh\nread -r word\nsh -c \"$word\"\nexit 7\n";
    let mut target = patient(Program::Path(write(dir.path(), "starts", text)));
    for way in [Way::Command, Way::Inject, Way::Snapshot] {
        let mut executor = executor(&target, way);
        for (input, expected) in [
            ("exit 3\n", Ended::Exit(7)),
            ("kill -s SEGV $$\n", Ended::Signal(libc::SIGSEGV)),
            (
                "sh -c 'kill -s BUS $$'; true\n",
                Ended::Signal(libc::SIGBUS),
            ),
            ("kill -s TERM $$\n", Ended::Exit(7)),
        ] {
            let ended = executor.run(input.as_bytes()).unwrap().ended;
            assert_eq!(ended, expected, "{input:?} by {way}");
        }
    }
    // With the program in a file, and the input too.
    target.program = Program::Path("/bin/sh".into());
    target.args = vec!["@@".into()];
    for way in [Way::Command, Way::Inject, Way::Snapshot] {
        let mut executor = executor(&target, way);
        let ended = executor.run(b"(kill -s ILL $$); exit 1").unwrap().ended;
        assert_eq!(ended, Ended::Signal(libc::SIGILL), "{way}");
        let ended = executor.run(b"sh -c 'kill -s FPE $$'; exit 1").unwrap();
        assert_eq!(ended.ended, Ended::Signal(libc::SIGFPE), "{way}");
    }
}
