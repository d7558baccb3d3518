//! ddfuzz is killed while its targets run.

use std::time::{Duration, Instant};

use ddfuzz::exec::{Freshness, Limits, Program, Traceable, Way, start};

use crate::programs::{compile, patient, running};
use crate::stage;

/// Waits until `count` processes run the program; false if that does not come.
fn comes_to(program: &std::path::Path, within: Duration, is_so: impl Fn(usize) -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < within {
        if is_so(running(program)) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

#[test]
fn a_killed_ddfuzz_takes_its_targets_along_within_two_seconds() {
    for scene in ["command", "inject", "snapshot", "trace"] {
        let program = compile("hostile", &[]);
        let mut command = stage::command(
            scene,
            &["killed::a_run_goes_on_until_its_ddfuzz"],
            &program.path,
        );
        let mut ddfuzz = stage::begin(&mut command);
        // The run itself and its ten descendants in sessions of their own.
        let came = comes_to(&program.path, Duration::from_secs(20), |count| count >= 11);
        ddfuzz.kill().unwrap();
        ddfuzz.wait().unwrap();
        assert!(came, "{scene}");
        let gone = comes_to(&program.path, Duration::from_secs(2), |count| count == 0);
        assert!(gone, "{scene}");
    }
}

#[test]
fn a_run_goes_on_until_its_ddfuzz_is_killed() {
    let way = match () {
        () if stage::plays("command") => Some(Way::Command),
        () if stage::plays("inject") => Some(Way::Inject),
        () if stage::plays("snapshot") => Some(Way::Snapshot),
        () if stage::plays("trace") => None,
        () => return,
    };
    let mut target = patient(Program::Path(stage::given()));
    target.limits = Limits::with_cpu(Duration::from_secs(60));
    match way {
        Some(way) => {
            let mut executor = start(&target, Some(way), Freshness::Shared)
                .unwrap()
                .executor;
            let _ = executor.run(b"family\n");
        }
        None => {
            let traceable = Traceable::new(&target, Way::Command).unwrap();
            let mut traced = traceable.start(b"family\n", false).unwrap();
            traced.release().unwrap();
            let _ = traced.wait();
        }
    }
    panic!("a run of a minute has ended");
}
