//! Programs compiled by AFL++ run by their own fork server as they run by `command`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ddfuzz::exec::{Ended, Executor, Freshness, Target, Way, start};

use crate::needs;
use crate::programs::{Compiled, compile_by, target};

/// Compiled by `afl-clang-fast` with these flags; `None`, and said so, where it is missing.
pub fn instrumented(name: &str, flags: &[&str]) -> Option<Compiled> {
    let compiler = "afl-clang-fast";
    needs::program(compiler)?;
    let program = compile_by(compiler, name, flags);
    if program.is_none() {
        needs::missing(compiler, "it cannot compile");
    }
    program
}

/// The program of this name, where it is installed.
fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut files = std::env::split_paths(&path).map(|folder| folder.join(name));
    files.find(|file| file.is_file())
}

pub fn by(target: &Target, way: Way, freshness: Freshness) -> Box<dyn Executor> {
    start(target, Some(way), freshness).unwrap().executor
}

/// Inputs of all lengths up to some hundreds of bytes, whose first byte asks for something.
fn inputs(count: u64) -> impl Iterator<Item = Vec<u8>> {
    (0..count).map(|seed| {
        let mut bytes = crate::stream::stream(seed, (seed * 13 % 400) as usize);
        let asks = b"acxkyyz";
        if let Some(first) = bytes.first_mut()
            && seed % 3 == 0
        {
            *first = asks[(seed / 3) as usize % asks.len()];
        }
        // What takes its time, or tells how many inputs were seen, is not for comparing.
        if bytes.first().is_some_and(|first| b"lnosv".contains(first)) {
            bytes[0] = b'y';
        }
        bytes
    })
}

#[test]
fn endings_are_those_of_command_on_600_inputs() {
    let flags = ["-DDEFERRED"];
    for compiler in ["afl-clang-fast", "afl-clang-lto", "afl-gcc-fast"] {
        let program = match compiler {
            "afl-clang-fast" => instrumented("afl_branches", &flags),
            // As they are packed, the others need a linker, or the very compiler that they were
            // built with: where they do not compile, they are nothing that could be installed.
            _ => installed(compiler).and_then(|_| compile_by(compiler, "afl_branches", &flags)),
        };
        let Some(program) = program else {
            continue;
        };
        let mut file = target(&program);
        file.args = vec!["@@".into()];
        for target in [target(&program), file] {
            let mut command = by(&target, Way::Command, Freshness::Fresh);
            let mut own = by(&target, Way::Forkserver, Freshness::Shared);
            assert_eq!(own.freshness(), Freshness::Fresh);
            let mut crashes = 0;
            for (index, input) in inputs(600).enumerate() {
                let expected = command.run(&input).unwrap();
                let run = own.run(&input).unwrap();
                crashes += usize::from(expected.ended.is_crash(None));
                assert_eq!(run.ended, expected.ended, "{compiler}, input {index}");
                assert_eq!(run.read, expected.read, "{compiler}, input {index}");
            }
            assert!((20..300).contains(&crashes), "{crashes} crashes");
        }
    }
}

#[test]
fn one_process_takes_many_inputs_where_that_is_permitted() {
    let Some(program) = instrumented("afl_branches", &["-DPERSISTENT"]) else {
        return;
    };
    let target = target(&program);
    let mut many = by(&target, Way::Forkserver, Freshness::Shared);
    let mut one = by(&target, Way::Forkserver, Freshness::Fresh);
    assert_eq!(many.freshness(), Freshness::Shared);
    assert_eq!(one.freshness(), Freshness::Fresh);
    let mut command = by(&target, Way::Command, Freshness::Fresh);
    // The process that it starts is the program's only one, which ends with what it returns.
    assert_eq!(one.run(b"n").unwrap().ended, Ended::Exit(1));
    assert_eq!(one.run(b"n").unwrap().ended, Ended::Exit(1));
    for (index, input) in inputs(1000).enumerate() {
        let expected = command.run(&input).unwrap().ended;
        assert_eq!(one.run(&input).unwrap().ended, expected, "input {index}");
        let ended = many.run(&input).unwrap().ended;
        match expected {
            Ended::Signal(_) => assert_eq!(ended, expected, "input {index}"),
            // What is returned when the loop goes on, nobody sees.
            _ => assert!(matches!(ended, Ended::Exit(_)), "input {index}: {ended}"),
        }
    }
}

#[test]
fn a_persistent_program_crashes_hangs_and_goes_on_afresh() {
    let Some(program) = instrumented("afl_branches", &["-DPERSISTENT"]) else {
        return;
    };
    let mut executor = by(&target(&program), Way::Forkserver, Freshness::Shared);
    for _ in 0..3 {
        for (input, expected) in [
            (b"y".as_slice(), Ended::Exit(0)),
            (b"a", Ended::Signal(libc::SIGABRT)),
            (b"y", Ended::Exit(0)),
            (b"l", Ended::Timeout),
            (b"x", Ended::Exit(7)),
            (b"c", Ended::Signal(libc::SIGSEGV)),
            (b"k", Ended::Signal(libc::SIGKILL)),
        ] {
            assert_eq!(executor.run(input).unwrap().ended, expected, "{input:?}");
        }
    }
}

#[test]
fn the_map_has_its_real_size_and_tells_inputs_apart() {
    for flags in [&[][..], &["-DDEFERRED"], &["-DPERSISTENT"]] {
        let Some(program) = instrumented("afl_branches", flags) else {
            return;
        };
        let told = Command::new(&program.path)
            .env("AFL_DUMP_MAP_SIZE", "1")
            .output()
            .unwrap();
        let size = String::from_utf8(told.stdout).unwrap().trim().parse();
        let mut executor = by(&target(&program), Way::Forkserver, Freshness::Shared);
        let mut covered = |input: &[u8]| {
            executor.run(input).unwrap();
            executor.coverage().unwrap().to_vec()
        };
        covered(b"q"); // a first run may pass what leads to the loop
        let (one, other) = (covered(b"qyyy"), covered(b"qqqq"));
        assert_eq!(Ok(one.len()), size);
        assert!(one.iter().any(|count| *count > 0));
        assert_ne!(one, other);
        covered(b"a");
        covered(b"q"); // the same of a new process
        for _ in 0..3 {
            assert_eq!(covered(b"qyyy"), one, "{flags:?}");
            assert_eq!(covered(b"qqqq"), other, "{flags:?}");
        }
    }
}

#[test]
fn a_long_input_goes_by_file_and_ends_as_elsewhere() {
    let Some(program) = instrumented("afl_branches", &["-DPERSISTENT"]) else {
        return;
    };
    let target = target(&program);
    for length in [1 << 20, (1 << 20) + 1, 3 << 20] {
        let mut input = vec![b'z'; length];
        input[(1 << 20) - 1] = 5; // the last that the program's own buffer takes
        let mut command = by(&target, Way::Command, Freshness::Fresh);
        let mut own = by(&target, Way::Forkserver, Freshness::Fresh);
        let expected = command.run(&input).unwrap().ended;
        assert_eq!(expected, Ended::Exit(5));
        assert_eq!(own.run(&input).unwrap().ended, expected, "{length} bytes");
        assert_eq!(own.run(b"yy").unwrap().ended, Ended::Exit(2));
    }
}

#[test]
fn the_cpu_time_of_a_run_is_told_in_every_mode() {
    for flags in [&[][..], &["-DPERSISTENT"]] {
        let Some(program) = instrumented("afl_branches", flags) else {
            return;
        };
        let target = target(&program);
        let mut executor = by(&target, Way::Forkserver, Freshness::Shared);
        let quick = executor.run(b"y").unwrap().cpu;
        assert!(quick > Duration::ZERO && quick < Duration::from_millis(100));
        let hung = executor.run(b"l").unwrap();
        assert_eq!(hung.ended, Ended::Timeout);
        assert!(hung.cpu >= target.limits.cpu * 5 / 6, "{:?}", hung.cpu);
    }
}

#[test]
fn auto_takes_the_own_fork_server_also_of_stripped_programs_and_says_so() {
    let Some(program) = instrumented("afl_branches", &[]) else {
        return;
    };
    let started = start(&target(&program), None, Freshness::Shared).unwrap();
    assert_eq!(started.executor.way(), Way::Forkserver);
    assert!(started.why.contains("AFL++"), "{}", started.why);
    drop(started); // a program that runs cannot be written
    strip(&program.path);
    let mut started = start(&target(&program), None, Freshness::Shared).unwrap();
    assert_eq!(started.executor.way(), Way::Forkserver);
    assert_eq!(started.executor.run(b"yyy").unwrap().ended, Ended::Exit(3));
}

fn strip(path: &Path) {
    let status = Command::new("strip").arg(path).status().unwrap();
    assert!(status.success());
}

#[test]
fn auto_falls_back_where_no_fork_server_comes_up_and_says_why() {
    let Some(program) = instrumented("afl_branches", &[]) else {
        return;
    };
    let mut target = target(&program);
    target.env = vec![("AFL_DISABLE_LLVM_INSTRUMENTATION".into(), "1".into())];
    let mut started = start(&target, None, Freshness::Shared).unwrap();
    assert_eq!(started.executor.way(), Way::Snapshot, "{}", started.why);
    assert!(started.why.contains("fork server"), "{}", started.why);
    assert_eq!(started.executor.run(b"yy").unwrap().ended, Ended::Exit(2));
}
