//! Rust programs that panic.

use std::path::PathBuf;
use std::process::Command;

use ddfuzz::exec::{Ended, Limits, Program, Target, Way};
use ddfuzz::triage::{Crash, Quick, Severity, Triager, Verdict};

use crate::needs;

struct Built {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn build(flags: &[&str]) -> Option<Built> {
    needs::program("rustc")?;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (source, path) = (
        folder.path().join("panicking.rs"),
        folder.path().join("panicking"),
    );
    std::fs::write(&source, include_str!("panicking.txt")).unwrap();
    // Relative, because the path stands in the keys.
    let mut command = Command::new("rustc");
    let command = command.args(["-O", "--edition", "2021"]).args(flags);
    let command = command.arg("panicking.rs").current_dir(folder.path());
    let built = command.arg("-o").arg(&path).output().unwrap();
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    Some(Built {
        _folder: folder,
        path,
    })
}

fn triager(program: &Built, way: Way) -> Triager {
    let mut target = Target::new(Program::Path(program.path.clone()));
    target.limits = Limits::with_cpu(std::time::Duration::from_secs(60));
    Triager::of_target(&target, way).unwrap()
}

fn crash(program: &Built, input: &str) -> Crash {
    match triager(program, Way::Inject)
        .examine(input.as_bytes())
        .unwrap()
    {
        Verdict::Crash(crash) => *crash,
        Verdict::Flaky { ended, .. } => panic!("{input} ended with {ended}"),
    }
}

#[test]
fn a_panic_is_named_by_its_place_whether_it_unwinds_or_aborts() {
    let (Some(unwinding), Some(aborting)) = (build(&[]), build(&["-C", "panic=abort"])) else {
        return;
    };
    for input in ["index", "unwrap", "double", "joined"] {
        let (one, other) = (crash(&unwinding, input), crash(&aborting, input));
        assert_eq!(
            (one.class.0.as_str(), other.class.0.as_str()),
            ("rustpanic", "rustpanic")
        );
        assert_eq!(one.keys.major, other.keys.major, "{input}");
        assert_eq!(other.ended, Ended::Signal(libc::SIGABRT));
    }
    let index = crash(&unwinding, "index");
    let message = index.details.message.as_deref().unwrap();
    assert!(
        message.starts_with("index out of bounds: the len is "),
        "{message}"
    );
    assert_eq!(
        crash(&aborting, "index").details.message.as_deref(),
        Some(message)
    );
    assert_eq!(
        (index.ended, index.severity),
        (Ended::Exit(101), Severity::Low)
    );
    assert_eq!(index.capture, "text");
    let panic = index.details.panic.unwrap();
    assert!(
        panic
            .location
            .as_deref()
            .unwrap()
            .ends_with("panicking.rs:5:5"),
        "{panic:?}"
    );
    assert!(
        panic.message.starts_with("index out of bounds"),
        "{panic:?}"
    );
    assert_eq!(crash(&unwinding, "index-too").keys.major, index.keys.major);
}

#[test]
fn two_panics_of_the_standard_library_do_not_merge() {
    for flags in [
        &["-g"][..],
        &[],
        &["-C", "panic=abort"],
        &["-g", "-C", "panic=abort"],
    ] {
        let Some(program) = build(flags) else { return };
        let (older, younger) = (crash(&program, "older"), crash(&program, "younger"));
        assert_ne!(older.keys.major, younger.keys.major, "{flags:?}");
        assert_eq!(crash(&program, "older").keys, older.keys, "{flags:?}");
        let place = older.details.panic.unwrap().place;
        if flags.contains(&"-g") {
            assert!(place.ends_with("panicking.rs:10:5"), "{flags:?}: {place}");
        }
    }
}

#[test]
fn keys_of_panics_are_equal_by_every_way_and_with_and_without_symbols() {
    for mode in ["panic=unwind", "panic=abort"] {
        let Some(program) = build(&["-C", mode]) else {
            return;
        };
        let Some(stripped) = build(&["-C", mode, "-C", "strip=symbols"]) else {
            return;
        };
        for input in ["index", "unwrap", "double", "joined"] {
            let inject = crash(&program, input);
            let quick = triager(&program, Way::Command)
                .key(input.as_bytes())
                .unwrap();
            let Quick::Crash {
                class,
                major,
                minor,
            } = quick
            else {
                panic!("{input}: {quick:?}")
            };
            assert_eq!(class, inject.class);
            assert_eq!(
                (major, minor),
                (inject.keys.major, inject.keys.minor),
                "{mode} {input}"
            );
            let other = triager(&stripped, Way::Command)
                .key(input.as_bytes())
                .unwrap();
            let bare = crash(&stripped, input);
            assert_eq!(bare.keys.major, major, "{mode} {input}");
            let keys = (bare.keys.major, bare.keys.minor);
            assert!(matches!(other, Quick::Crash { major, minor, .. } if (major, minor) == keys));
        }
    }
}

#[test]
fn an_exit_status_or_an_ignored_panic_alone_is_no_crash() {
    let Some(program) = build(&[]) else { return };
    let mut triager = triager(&program, Way::Inject);
    for (input, status) in [("status", 101), ("ignored", 0), ("fine", 0)] {
        let quick = triager.key(input.as_bytes()).unwrap();
        assert_eq!(quick, Quick::Ended(Ended::Exit(status)), "{input}");
    }
    assert!(triager.suspects(Ended::Exit(101)));
    assert!(!triager.suspects(Ended::Exit(1)));
}

#[test]
fn a_program_without_the_panic_hook_is_never_suspected() {
    let target = Target::new(Program::Path("/bin/ls".into()));
    let triager = Triager::of_target(&target, Way::Command).unwrap();
    assert!(!triager.suspects(Ended::Exit(101)));
    assert!(triager.suspects(Ended::Signal(libc::SIGSEGV)));
}

#[test]
fn much_text_before_or_behind_a_panic_does_not_hide_it() {
    let Some(program) = build(&[]) else { return };
    let index = crash(&program, "index");
    assert_eq!(crash(&program, "loud").keys.major, index.keys.major);
    assert_eq!(crash(&program, "loud-behind").keys.major, index.keys.major);
}
