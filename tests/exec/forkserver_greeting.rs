//! What fork servers say, new and old, right and wrong: spoken by a program of our own, since the
//! compilers of one system are of one age.

use ddfuzz::exec::{Ended, ExecError, Executor, Freshness, Program, Target, Way, start};

use crate::programs::{Compiled, compile, patient};

fn speaker(program: &Compiled, how: &str) -> Target {
    let mut target = patient(Program::Path(program.path.clone()));
    target.args = vec![how.into()];
    target
}

fn speaking(program: &Compiled, how: &str) -> Result<Box<dyn Executor>, ExecError> {
    let target = speaker(program, how);
    start(&target, Some(Way::Forkserver), Freshness::Shared).map(|started| started.executor)
}

#[test]
fn every_greeting_of_a_server_that_works_is_understood() {
    let program = compile("afl_speaker", &[]);
    for (how, size) in [
        ("new", 100),
        ("new, all", 100),
        ("large", 20_000_000),
        ("bare", 65_536),
    ] {
        let mut executor = speaking(&program, how).unwrap();
        let zeros = vec![0; size];
        for _ in 0..3 {
            for length in [0, 1, 5, 64] {
                let run = executor.run(&vec![b'x'; length]).unwrap();
                assert_eq!(run.ended, Ended::Exit(length as i32), "{how}");
                let coverage = executor.coverage().unwrap();
                assert_eq!(coverage.len(), size, "{how}");
                let (before, from) = coverage.split_at(length);
                assert!(from[0] > 0, "{how}");
                // No other one has been passed. Slices are compared by the C library.
                assert!(
                    before == &zeros[..length] && from[1..] == zeros[length + 1..],
                    "{how}"
                );
            }
            let crash = executor.run(b"crash").unwrap().ended;
            assert_eq!(crash, Ended::Signal(libc::SIGABRT), "{how}");
        }
    }
}

#[test]
fn every_trouble_in_a_greeting_is_a_named_error() {
    let program = compile("afl_speaker", &[]);
    for (how, words) in [
        ("too large", "too small"),
        ("error", "attached"),
        ("old error", "fixed address"),
        ("late error", "mapped"),
        ("newer", "version 7"),
        ("options", "options 0x00000040"),
        ("chatter", "invalid handshake"),
        ("half", "exited before its fork server"),
        ("nothing", "exited before its fork server"),
    ] {
        let error = speaking(&program, how).err().unwrap();
        assert!(matches!(error, ExecError::WayUnfit { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(words), "{how}: {text}");
        assert!(text.contains("forkserver"), "{how}: {text}");
    }
}

#[test]
fn a_server_that_tells_no_process_is_a_named_error() {
    let program = compile("afl_speaker", &[]);
    let error = speaking(&program, "no pid").unwrap().run(b"").unwrap_err();
    assert!(matches!(error, ExecError::Server { .. }), "{error:?}");
    assert!(error.to_string().contains("process id"), "{error}");
}

#[test]
fn a_server_that_dies_of_each_request_ends_the_run() {
    let program = compile("afl_speaker", &[]);
    let run = speaking(&program, "mortal").unwrap().run(b"").unwrap();
    assert_eq!(run.ended, Ended::Signal(libc::SIGKILL));
}

#[test]
fn a_program_that_is_missing_or_no_program_is_said_to_be() {
    use std::os::unix::fs::PermissionsExt;
    let program = compile("afl_speaker", &[]);
    let plain = program.path.with_file_name("plain");
    std::fs::write(&plain, "no program").unwrap();
    std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o755)).unwrap();
    let target = Target::new(Program::Path(plain));
    let error = start(&target, Some(Way::Forkserver), Freshness::Shared).err();
    assert!(
        matches!(error, Some(ExecError::NotExecutable { .. })),
        "{error:?}"
    );
}

#[test]
fn an_ordinary_program_has_no_fork_server_and_is_told_so() {
    let program = compile("hostile", &[]);
    let error = speaking(&program, "").err().unwrap().to_string();
    assert!(error.contains("afl-clang-fast"), "{error}");
}
