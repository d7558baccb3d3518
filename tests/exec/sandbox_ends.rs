//! Runs in a sandbox end as they do elsewhere, and are named alike.

use ddfuzz::exec::{Ended, Freshness, Program, Sandbox, Target, Way, find_program, start};
use ddfuzz::triage::{Crash, Triager, Verdict};

use crate::needs;
use crate::programs::{compile, patient, try_compile};
use crate::sandbox::sandboxed;

const WAYS: [Way; 3] = [Way::Command, Way::Inject, Way::Snapshot];

fn examine(target: &Target, way: Way, input: &[u8]) -> Crash {
    match Triager::of_target(target, way).unwrap().examine(input) {
        Ok(Verdict::Crash(crash)) => *crash,
        other => panic!("{way}: {other:?}"),
    }
}

#[test]
fn a_crash_has_the_same_keys_in_a_sandbox() {
    let program = compile("sandbox", &["-g"]);
    let bundled = |name: &str| patient(Program::Bundled(name.to_owned()));
    let cases = [
        (sandboxed(&program), b"+ crash\n".to_vec(), &WAYS[..]),
        (
            bundled("flex"),
            vec![b'x'; 2121],
            &[Way::Command, Way::Inject, Way::Snapshot, Way::Harness],
        ),
        (
            bundled("troff"),
            b"\\D\n".to_vec(),
            &[Way::Command, Way::Inject, Way::Snapshot, Way::Harness],
        ),
    ];
    for (target, input, ways) in cases {
        for way in ways {
            let with = |sandbox| {
                examine(
                    &Target {
                        sandbox,
                        ..target.clone()
                    },
                    *way,
                    &input,
                )
            };
            let (off, on) = (with(Sandbox::Off), with(Sandbox::On));
            assert_eq!(on.keys, off.keys, "{way}");
            assert_eq!(
                (on.class, on.ended, on.capture),
                (off.class, off.ended, off.capture)
            );
        }
    }
}

#[test]
fn a_sanitizer_reports_from_a_sandbox() {
    let Some(program) = try_compile("hostile", &["-fsanitize=address", "-g"]) else {
        return needs::missing("AddressSanitizer", "a program does not compile with it");
    };
    let target = sandboxed(&program);
    for way in WAYS {
        let on = examine(&target, way, b"overflow\n");
        let off = Target {
            sandbox: Sandbox::Off,
            ..target.clone()
        };
        let off = examine(&off, way, b"overflow\n");
        assert_eq!((on.keys, on.class), (off.keys, off.class), "{way}");
    }
}

#[test]
fn utilities_work_in_a_sandbox() {
    let cases: [(&str, &[&str], &str); 6] = [
        ("sort", &["-o", "out"], "b\na\n"),
        (
            "sh",
            &[
                "-c",
                "test \"$(ls / | wc -l)\" -gt 3 && echo x > y && cat y",
            ],
            "",
        ),
        (
            "gcc",
            &["-x", "c", "-", "-o", "made"],
            "int main(void) { return 0; }\n",
        ),
        (
            "gs",
            &["-q", "-dBATCH", "-sDEVICE=nullpage", "-"],
            "showpage\n",
        ),
        (
            "python3",
            &[
                "-c",
                "import subprocess, threading, tempfile; t = threading.Thread(target=print); t.start(); t.join(); tempfile.TemporaryFile().write(b'x'); subprocess.check_call(['true'])",
            ],
            "",
        ),
        ("bash", &["-c", "cat <(echo x) <<< y > /dev/null"], ""),
    ];
    for (name, args, input) in cases {
        let Some(path) = needs::program(name) else {
            continue;
        };
        let path = find_program(&path).unwrap();
        if !ddfuzz::exec::targets_reach(&path) {
            continue; // one of root's own, in his home directory, and what it starts stands there, too
        }
        let mut target = patient(Program::Path(path));
        target.sandbox = Sandbox::On;
        target.limits.cpu = std::time::Duration::from_secs(20);
        target.args = args.iter().map(Into::into).collect();
        match start(&target, Some(Way::Command), Freshness::Shared) {
            Ok(mut started) => {
                let ended = started.executor.run(input.as_bytes()).unwrap().ended;
                assert_eq!(ended, Ended::Exit(0), "{name}");
            }
            // One of root's own, in his home directory.
            Err(error) => assert!(error.to_string().contains("closed to"), "{name}: {error}"),
        }
    }
}
