//! Tests of runs over their time limit, and of chunks that are made again.

use super::*;
use crate::PauseGate;
use ddfuzz_exec::{Channel, Program, Run, Sandbox};

#[test]
fn nobody_waits_for_the_answer_who_has_been_stopped() {
    let target = Target {
        args: vec!["1000".into()],
        ..Target::new(Program::Path("/bin/sleep".into()))
    };
    let subject = Subject {
        utility: "sleep".to_owned(),
        target: TargetRecord::new(&target, Way::Command),
    };
    let limits = Limits::with_cpu(Duration::from_secs(1000));
    let (stop, began) = (AtomicBool::new(true), Instant::now());
    assert!(!outlasts(b"", limits, &subject, &stop).unwrap());
    assert!(began.elapsed() < limits.cpu);
}

/// An executor whose runs all end by SIGSEGV, and which reports once that a run of it differed from
/// a new process.
struct Doubtful {
    corrected: Vec<(Vec<u8>, Run)>,
}

impl Executor for Doubtful {
    fn run(&mut self, _: &[u8]) -> Result<Run, ExecError> {
        Ok(Run::ended(Ended::Signal(11)))
    }

    fn way(&self) -> Way {
        Way::Command
    }

    fn freshness(&self) -> Freshness {
        Freshness::Fresh
    }

    fn corrected(&mut self) -> Vec<(Vec<u8>, Run)> {
        std::mem::take(&mut self.corrected)
    }
}

#[test]
fn a_chunk_that_is_made_again_has_the_crashes_of_the_dropped_one() {
    let invocation = Invocation {
        channel: Channel::Plain,
        args: vec!["-c".into(), "kill -SEGV $$".into()],
        pool: Vec::new(),
        pool_at: 0,
    };
    let program = Path::new("/bin/sh");
    let utility = Utility {
        name: "sh".to_owned(),
        place: 0,
        package: None,
        version: None,
        path: Some(program.into()),
        skip_reason: None,
        interactive_only: false,
        invocations: vec![invocation],
        runs: None,
    };
    let plan = StudyPlan {
        seed: 1,
        max_len: 100,
        set: Vec::new().into(),
    };
    let environment = RunEnvironment {
        limits: Limits::with_cpu(Duration::from_secs(1)),
        sandbox: Sandbox::Off,
        path: "/bin".into(),
    };
    let (stop, gate) = (AtomicBool::new(false), PauseGate::default());
    let shared = WorkerContext {
        utility: &utility,
        program,
        baselines: &[],
        plan: &plan,
        environment: &environment,
        end: 1,
        stop_condition: StopCondition::new(&stop, None, &gate),
    };
    let mut worker = Worker::new(&shared);
    let corrected = vec![(Vec::new(), Run::ended(Ended::Exit(0)))];
    worker.started(shared.call_of(0)).unwrap().executor = Box::new(Doubtful { corrected });
    let chunk = worker.run_chunk(0, 1).unwrap();
    assert!(matches!(&chunk.findings[..], [one] if one.what.is_new()));
}
