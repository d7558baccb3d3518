//! Somebody kills what runs a target, at any moment.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ddfuzz::exec::{Ended, Executor, Freshness, Limits, Program, Target, Way, start};

use crate::endurance::descendants;
use crate::programs::{compile, running};
use crate::stage;

/// What a run may take at most, whatever is killed: a silent server is given up on in time.
const MOST: Duration = Duration::from_secs(30);

/// A small generator of fixed sequences (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

fn kill(pid: u32) {
    // SAFETY: kill takes two numbers.
    unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
}

fn is_keeper(pid: u32) -> bool {
    let held = std::fs::read_link(format!("/proc/{pid}/fd/194"));
    held.is_ok_and(|what| what.to_string_lossy().starts_with("socket:"))
}

/// What the thread that kills knows of the runs.
#[derive(Default)]
struct Fire {
    done: AtomicBool,
    /// Number of calls that have returned.
    returned: AtomicUsize,
}

/// Numbers of kills between two calls that return, one of which is drawn: however slow the machine
/// is, most runs are left alone, and no server is killed as often as it takes to give up on it.
const KILLS: [u32; 7] = [0, 0, 0, 0, 1, 2, 8];

/// Kills one descendant after the other until it is done.
fn kill_at_random(seed: u64, fire: &Fire) {
    let mut random = Random(seed);
    let (mut returned, mut left) = (0, 1);
    while !fire.done.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_micros(500 + random.below(15_000)));
        let now = fire.returned.load(Ordering::Relaxed);
        if now != returned {
            (returned, left) = (now, KILLS[random.below(KILLS.len() as u64) as usize]);
        }
        if left == 0 {
            continue;
        }
        let victims = descendants();
        if victims.is_empty() {
            continue;
        }
        let victim = victims[random.below(victims.len() as u64) as usize];
        let keeper = is_keeper(victim);
        kill(victim);
        left -= 1;
        if keeper {
            // The other one keeps what this one kept, but not if it dies in the same moment.
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn cases() -> [(&'static [u8], Ended); 5] {
    [
        (b"crash\n".as_slice(), Ended::Signal(11)),
        (b"abort\n", Ended::Signal(6)),
        (b"children\n", Ended::Exit(0)),
        (b"litter\n", Ended::Exit(0)),
        (b"\x05\n", Ended::Exit(5)),
    ]
}

/// Runs while a thread kills. Gives how often an ending was another than the target's own.
fn runs_under_fire(
    executor: &mut dyn Executor,
    seed: u64,
    cases: &[(&'static [u8], Ended)],
) -> usize {
    let fire = Fire::default();
    let mut killed = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| kill_at_random(seed, &fire));
        for (input, expected) in cases.iter().copied().cycle().take(300) {
            let began = Instant::now();
            let ended = executor.run(input).map(|run| run.ended);
            fire.returned.fetch_add(1, Ordering::Relaxed);
            assert!(began.elapsed() < MOST, "{:?}", began.elapsed());
            match ended {
                // From outside, a run that was killed is one that died so.
                Ok(Ended::Signal(libc::SIGKILL)) => killed += 1,
                Ok(ended) if ended == expected => {}
                other => {
                    fire.done.store(true, Ordering::Relaxed);
                    panic!("{input:?}: {other:?}");
                }
            }
        }
        fire.done.store(true, Ordering::Relaxed);
    });
    for (input, expected) in cases {
        assert_eq!(executor.run(input).unwrap().ended, *expected);
    }
    killed
}

#[test]
fn whatever_is_killed_each_run_is_reported_or_repeated() {
    let program = compile("hostile", &[]);
    for scene in [
        "command under fire",
        "inject under fire",
        "snapshot under fire",
        "harness under fire",
        "batches under fire",
    ] {
        let tests = ["faults::under_fire_every_run"];
        stage::play(&mut stage::command(scene, &tests, &program.path));
        assert_eq!(running(&program.path), 0, "{scene}");
    }
}

#[test]
fn under_fire_every_run_has_its_own_ending() {
    let mut target = Target::new(Program::Path(stage_program()));
    target.limits = Limits::with_cpu(Duration::from_millis(500));
    let way = match () {
        () if stage::plays("command under fire") => Way::Command,
        () if stage::plays("inject under fire") => Way::Inject,
        () if stage::plays("snapshot under fire") => Way::Snapshot,
        () if stage::plays("harness under fire") => return harness_under_fire(),
        () if stage::plays("batches under fire") => return batches_under_fire(),
        () => return,
    };
    let mut executor = start(&target, Some(way), Freshness::Shared)
        .unwrap()
        .executor;
    let killed = runs_under_fire(&mut *executor, 7, &cases());
    assert!(killed < 150, "{killed} of 300 runs were killed");
    drop(executor);
    assert!(descendants().is_empty());
}

fn stage_program() -> std::path::PathBuf {
    std::env::var_os("DDFUZZ_TEST_GIVEN")
        .unwrap_or_default()
        .into()
}

fn harness_under_fire() {
    let target = Target::new(Program::Bundled("crtplot".to_owned()));
    for freshness in [Freshness::Shared, Freshness::Fresh] {
        let mut executor = start(&target, Some(Way::Harness), freshness)
            .unwrap()
            .executor;
        let fire = Fire::default();
        std::thread::scope(|scope| {
            scope.spawn(|| kill_at_random(11, &fire));
            for index in 0..2000 {
                let (input, expected) = match index % 4 {
                    0 => (b"t".as_slice(), Ended::Signal(11)),
                    _ => (b"".as_slice(), Ended::Exit(0)),
                };
                let ended = executor.run(input).map(|run| run.ended);
                fire.returned.fetch_add(1, Ordering::Relaxed);
                let fine =
                    matches!(ended, Ok(ended) if ended == expected || ended == Ended::Signal(9));
                if !fine {
                    fire.done.store(true, Ordering::Relaxed);
                    panic!("{freshness:?}, run {index}: {ended:?}");
                }
            }
            fire.done.store(true, Ordering::Relaxed);
        });
        drop(executor);
        assert!(descendants().is_empty());
    }
}

/// Many inputs a request: each has its run once, in order, whatever is killed in mid-batch.
fn batches_under_fire() {
    let target = Target::new(Program::Bundled("crtplot".to_owned()));
    let mut executor = start(&target, Some(Way::Harness), Freshness::Shared)
        .unwrap()
        .executor;
    let inputs: Vec<&[u8]> = [b"".as_slice(), b"", b"", b"", b"", b"", b"t"]
        .into_iter()
        .cycle()
        .take(5000)
        .collect();
    let fire = Fire::default();
    let mut endings = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| kill_at_random(13, &fire));
        while endings.len() < inputs.len() {
            let ended = executor.run_some(&inputs[endings.len()..]);
            fire.returned.fetch_add(1, Ordering::Relaxed);
            match ended {
                Ok(runs) => endings.extend(runs.iter().map(|run| run.ended)),
                Err(error) => {
                    fire.done.store(true, Ordering::Relaxed);
                    panic!("behind run {}: {error}", endings.len());
                }
            }
        }
        fire.done.store(true, Ordering::Relaxed);
    });
    assert_eq!(endings.len(), inputs.len());
    for (index, (ended, input)) in endings.iter().zip(&inputs).enumerate() {
        let expected = match input.is_empty() {
            true => Ended::Exit(0),
            false => Ended::Signal(libc::SIGSEGV),
        };
        let fine = *ended == expected || *ended == Ended::Signal(libc::SIGKILL);
        assert!(fine, "run {index}: {ended}");
    }
    drop(executor);
    assert!(descendants().is_empty());
}

#[test]
fn what_is_killed_between_runs_is_started_again_unseen() {
    let program = compile("hostile", &[]);
    let scene = "killed between runs";
    let tests = ["faults::between_runs"];
    stage::play(&mut stage::command(scene, &tests, &program.path));
    assert_eq!(running(&program.path), 0);
}

#[test]
fn between_runs_any_process_may_die() {
    if !stage::plays("killed between runs") {
        return;
    }
    let target = Target::new(Program::Path(stage::given()));
    for way in [Way::Command, Way::Inject, Way::Snapshot] {
        let mut executor = start(&target, Some(way), Freshness::Shared)
            .unwrap()
            .executor;
        for round in 0..12 {
            assert_eq!(
                executor.run(b"children\n").unwrap().ended,
                Ended::Exit(0),
                "{way}"
            );
            assert_eq!(
                executor.run(b"crash\n").unwrap().ended,
                Ended::Signal(11),
                "{way}"
            );
            let below = descendants();
            kill(below[round % below.len()]);
        }
        drop(executor);
        assert!(descendants().is_empty(), "{way}");
    }
}

#[test]
fn whatever_is_killed_no_crash_of_a_descendant_is_missed() {
    let program = compile("family", &["-pthread"]);
    for scene in [
        "command tree under fire",
        "inject tree under fire",
        "snapshot tree under fire",
    ] {
        let tests = ["faults::under_fire_every_tree"];
        stage::play(&mut stage::command(scene, &tests, &program.path));
        assert_eq!(running(&program.path), 0, "{scene}");
    }
}

#[test]
fn under_fire_every_tree_has_its_own_ending() {
    let way = match () {
        () if stage::plays("command tree under fire") => Way::Command,
        () if stage::plays("inject tree under fire") => Way::Inject,
        () if stage::plays("snapshot tree under fire") => Way::Snapshot,
        () => return,
    };
    let mut target = Target::new(Program::Path(stage_program()));
    target.limits = Limits::with_cpu(Duration::from_millis(500));
    let mut executor = start(&target, Some(way), Freshness::Shared)
        .unwrap()
        .executor;
    // Each ends in a way that no killed descendant could change.
    let cases: [(&[u8], Ended); 3] = [
        (b"own\n", Ended::Signal(6)),
        (b"nothing\n", Ended::Exit(1)),
        (b"well\n", Ended::Exit(0)),
    ];
    let killed = runs_under_fire(&mut *executor, 13, &cases);
    assert!(killed < 150, "{killed} of 300 runs were killed");
    // A descendant that was killed before it could crash has died of that; so only what all runs
    // together say is sure.
    let fire = Fire::default();
    let mut crashes = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| kill_at_random(17, &fire));
        for word in ["fork\n", "exec\n", "system\n"].iter().cycle().take(150) {
            let began = Instant::now();
            let ended = executor.run(word.as_bytes()).map(|run| run.ended);
            fire.returned.fetch_add(1, Ordering::Relaxed);
            crashes += u32::from(matches!(ended, Ok(Ended::Signal(libc::SIGSEGV))));
            let fine = ended.is_ok() && began.elapsed() < MOST;
            if !fine {
                fire.done.store(true, Ordering::Relaxed);
                panic!("{word:?}: {ended:?} after {:?}", began.elapsed());
            }
        }
        fire.done.store(true, Ordering::Relaxed);
    });
    assert!(crashes > 75, "{crashes} of 150");
    for word in ["fork\n", "exec\n", "system\n"] {
        let ended = executor.run(word.as_bytes()).unwrap().ended;
        assert_eq!(ended, Ended::Signal(libc::SIGSEGV), "{word:?}");
    }
    drop(executor);
    assert!(descendants().is_empty());
}
