//! Tests of the session without any build.

use ddfuzz_exec::Sandbox;

use super::*;
use crate::recipe::{Recipe, TestKind};

/// Makes a session between two versions of one file, with the lines `past` of an earlier log, and a
/// folder that holds the repository and the new log `log`.
fn session(past: Vec<(u64, Line)>) -> (tempfile::TempDir, Session<'static>) {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let repository = Repository::empty(&at("repository"), "sha1").expect("a repository");
    let commit = |name: &str| {
        std::fs::create_dir(at(name)).expect("a folder");
        std::fs::write(at(name).join("file"), name).expect("a file");
        repository.import(&at(name), name, None).expect("a commit")
    };
    let versions = (commit("old"), commit("new"));
    let repository = Arc::new(repository);
    let stop = Arc::new(AtomicBool::new(false));
    let recipe = Recipe {
        build: Some("false".to_owned()),
        test: TestKind::Command {
            line: "false".to_owned(),
            expect: None,
        },
        input: Vec::new(),
        sandbox: Sandbox::Off,
        env: Vec::new(),
        build_time: Duration::from_secs(3600),
        test_time: Duration::from_secs(60),
        keep_build_time: false,
        keep_test_time: false,
        memory: 1 << 30,
    };
    let workers = Workers::start(1, &recipe, &repository, folder.path(), &stop);
    let workers = Some(workers.expect("workers"));
    let writer = Some(LogWriter::create(&at("log")).expect("a log"));
    let session = Session::new(repository, versions, past, writer, workers, stop);
    (folder, session)
}

#[test]
fn nothing_is_logged_after_the_budget_is_used_up() {
    let (folder, mut session) = session(Vec::new());
    session.limit(Budget {
        tests: Some(0),
        time: None,
    });
    let (old, new) = (session.old.clone(), session.new.clone());
    let set = session.compare(&old, &new).expect("a set");
    let candidate = Candidate {
        on: old,
        kept: vec![(set, Config::all(1))],
    };
    session.probe(&candidate, "hunk", &[]).expect("no test");
    assert!(session.is_spent());
    session.predict(&candidate).expect("no line");
    let log = std::fs::read(folder.path().join("log")).expect("the log");
    assert_eq!(String::from_utf8_lossy(&log), "");
}

/// Returns the time limits of builds and of tests, in seconds, that a session learns from three
/// checks in a log; each of `slowest` has the times of the slowest build and test that a check
/// records.
fn learned_limits(slowest: [Option<[u64; 2]>; 3]) -> [u64; 2] {
    let check = |slowest: Option<[u64; 2]>| {
        let report = Report {
            outcome: Some(Outcome::Pass),
            took: Duration::from_secs(2),
            ..Report::default()
        };
        let slowest = slowest.map(|times| times.map(Duration::from_secs));
        Line::Check(report.check_line(What::Axiom, slowest))
    };
    let past = slowest.map(check);
    let (_folder, mut session) = session((2..).zip(past).collect());
    let tree = session.tree(&session.old.clone()).expect("a tree");
    for _ in 0..3 {
        session.check(What::Axiom, &tree, false).expect("a line");
    }
    let workers = session.workers.as_mut().expect("workers");
    workers.learn_limits();
    [workers.limits.0.as_secs(), workers.limits.1.as_secs()]
}

#[test]
fn limits_on_time_are_learned_from_the_times_in_a_log() {
    let times = [Some([90, 2]), Some([90, 3]), Some([90, 3])];
    assert_eq!(learned_limits(times), [900, 30]);
    // The times of the checks themselves do not tell how long a build from scratch takes.
    assert_eq!(learned_limits([None; 3]), [3600, 60]);
}
