//! Tests of runs over their time limit, and of chunks (results of successive runs) that are made
//! again.

use super::hangs::outlasts;
use super::*;
use crate::PauseGate;
use ddfuzz_exec::{Channel, Program, Run, Sandbox};
use ddfuzz_triage::Class;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

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
    let (looks, began) = (Arc::new(AtomicU32::new(0)), Instant::now());
    let looked = Arc::clone(&looks);
    let stopped = AbandonWhen::default().or(move || looked.fetch_add(1, Ordering::Relaxed) >= 20);
    let answer = outlasts(b"", limits, &subject, &stopped);
    assert!(matches!(answer, Err(ExecError::Abandoned)), "{answer:?}");
    assert!(began.elapsed() < limits.cpu && looks.load(Ordering::Relaxed) > 20);
}

/// An executor whose runs all end by SIGSEGV, and which reports once that one of its runs differed
/// from the same run in a new process.
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

/// Returns a chunk of `runs` runs that all crash. The worker has made it twice, since its executor
/// reported after the first time that a run differed from the same run in a new process.
fn chunk_of_crashes(runs: u64) -> Chunk {
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
        freeze_start: false,
        abandon_when: AbandonWhen::default(),
    };
    let (stop, gate) = (AtomicBool::new(false), PauseGate::default());
    let shared = WorkerContext {
        utility: &utility,
        program,
        baselines: &[],
        plan: &plan,
        environment: &environment,
        end: runs,
        stop_condition: StopCondition::new(&stop, None, &gate),
    };
    let mut worker = Worker::new(&shared);
    let corrected = vec![(Vec::new(), Run::ended(Ended::Exit(0)))];
    worker.started(shared.call_of(0)).unwrap().executor = Box::new(Doubtful { corrected });
    worker.run_chunk(0, runs).unwrap()
}

#[test]
fn a_chunk_that_is_made_again_has_the_crashes_of_the_dropped_one() {
    let chunk = chunk_of_crashes(1);
    assert!(matches!(&chunk.findings[..], [one] if one.what.has_full_record()));
}

#[test]
fn crashes_of_a_chunk_are_kept_if_the_stop_leaves_a_hang_undecided() {
    let mut chunk = chunk_of_crashes(3);
    let Classified::Crash(crash) = &chunk.findings[0].what else {
        panic!("the first crash has a record");
    };
    let mut hang = crash.clone();
    hang.class = Class("hang".to_owned());
    chunk.findings[1].what = Classified::Crash(hang);
    let (mut hangs, stopped) = (Hangs::default(), AbandonWhen::default().or(|| true));
    let undecided = take_out_slow(&mut chunk, &mut hangs, &stopped);
    assert_eq!(
        (undecided.as_slice(), &hangs),
        (&[1][..], &Hangs::default())
    );
    assert_eq!((chunk.findings.len(), chunk.runs), (3, 3));
    chunk.take_out(&undecided);
    let left: Vec<u64> = chunk.findings.iter().map(|finding| finding.run).collect();
    assert_eq!((left, chunk.runs, chunk.tallies.len()), (vec![0, 2], 2, 2));
    assert!(chunk.tallies.iter().all(|tally| tally.slow == 0));
}

#[test]
fn only_a_run_that_may_have_failed_has_a_triager_made_for_it() {
    let missing = Target::new(Program::Path("/does/not/exist".into()));
    let mut classifier = RunClassifier::of_target(&missing, Way::Command);
    let executor = Doubtful {
        corrected: Vec::new(),
    };
    let mut judge = |ended| classifier.judge(ended, b"", &executor);
    assert!(judge(Ended::Exit(1)).unwrap().is_none());
    assert!(judge(Ended::Signal(libc::SIGSEGV)).is_err());
}
