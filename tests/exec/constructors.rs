//! Programs that do odd things before their main function.

use std::time::{Duration, Instant};

use ddfuzz::exec::{Ended, Executor, Freshness, Target, Way, start};

use crate::programs::{Compiled, compile, running, target};

fn with(program: &Compiled, word: &str) -> Target {
    let mut target = target(program);
    target.env.push(("CONSTRUCTOR".into(), word.into()));
    target
}

fn assert_runs(executor: &mut dyn Executor, what: &str) {
    for _ in 0..3 {
        let ended = |executor: &mut dyn Executor, input: &[u8]| executor.run(input).unwrap().ended;
        assert_eq!(ended(executor, b"crash\n"), Ended::Signal(11), "{what}");
        assert_eq!(ended(executor, b"x\n"), Ended::Exit(7), "{what}");
        assert_eq!(ended(executor, b""), Ended::Exit(3), "{what}");
    }
}

#[test]
fn what_a_fork_server_survives_is_served_by_one() {
    let program = compile("constructor", &[]);
    for word in [
        "nothing",
        "starts-program",
        "executes-itself",
        "ignores-children",
        "handles-children",
        "leaves-session",
        "has-no-death-signal",
        "is-undumpable",
        "limits-itself",
        "blocks-signals",
    ] {
        let mut started = start(&with(&program, word), None, Freshness::Shared).unwrap();
        // Both ways run it in a process that a server forks; `snapshot` many times in one.
        let way = started.executor.way();
        assert!(
            matches!(way, Way::Inject | Way::Snapshot),
            "{word}: {way:?}, {}",
            started.why
        );
        assert_runs(&mut *started.executor, word);
        drop(started);
        assert_eq!(running(&program.path), 0, "{word}");
    }
}

#[test]
fn what_no_fork_server_survives_runs_by_command_and_says_why() {
    let program = compile("constructor", &[]);
    for (word, why) in [
        ("closes-all", "exited before"),
        ("closes-input", "closes file descriptors"),
        ("leaves-child", "starts processes"),
        ("nonsense", "does not speak"),
    ] {
        let mut started = start(&with(&program, word), None, Freshness::Shared).unwrap();
        assert_eq!(started.executor.way(), Way::Command, "{word}");
        assert!(started.why.contains(why), "{word}: {}", started.why);
        if word != "nonsense" {
            assert_runs(&mut *started.executor, word);
        }
        drop(started);
        assert_eq!(running(&program.path), 0, "{word}");
    }
}

#[test]
fn a_program_that_never_comes_to_its_main_function_is_a_named_error_in_time() {
    let program = compile("constructor", &[]);
    let assert_named = |word: &str, why: &str| {
        let began = Instant::now();
        let error = start(&with(&program, word), Some(Way::Inject), Freshness::Shared)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(why), "{word}: {error}");
        assert!(began.elapsed() < Duration::from_secs(20), "{word}");
    };
    std::thread::scope(|scope| {
        for (word, why) in [
            ("is-silent", "did not start"),
            ("half-a-hello", "did not start"),
            ("daemonizes", "exited before"),
            ("kills-group", "exited before"),
        ] {
            let assert_named = &assert_named;
            scope.spawn(move || assert_named(word, why));
        }
    });
    assert_eq!(running(&program.path), 0);
}

#[test]
fn one_that_never_comes_there_is_run_by_command_which_says_why() {
    let program = compile("constructor", &[]);
    for (word, why) in [
        ("is-silent", "did not start within"),
        ("daemonizes", "exited before"),
        ("dies", "exited before"),
    ] {
        let mut started = start(&with(&program, word), None, Freshness::Shared).unwrap();
        assert_eq!(started.executor.way(), Way::Command, "{word}");
        assert!(started.why.contains(why), "{word}: {}", started.why);
        if word == "dies" {
            let ended = started.executor.run(b"").unwrap().ended;
            assert_eq!(ended, Ended::Signal(libc::SIGABRT));
        }
    }
}

#[test]
fn the_programs_own_answer_to_ended_children_is_kept() {
    let program = compile("constructor", &[]);
    for (word, status) in [
        ("ignores-children", 20),
        ("nothing", 21),
        ("handles-children", 22),
    ] {
        for way in [Way::Command, Way::Inject] {
            let target = with(&program, word);
            let mut executor = start(&target, Some(way), Freshness::Shared)
                .unwrap()
                .executor;
            let ended = executor.run(b"on-child\n").unwrap().ended;
            assert_eq!(ended, Ended::Exit(status), "{word} by {way}");
        }
    }
}
