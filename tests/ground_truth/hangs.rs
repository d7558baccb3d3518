//! Hangs and memory blow-ups keep their groups: on each repeat, whatever the limits are, stripped
//! or not, and beside a program that wants the processor as well.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ddfuzz::exec::Limits;
use ddfuzz::triage::{Key, Quick, Triager};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::bugs::first_of_each_route;
use crate::builds::{
    Build, GCC_O2, LOOPING, RUST_RELEASE, RUST_STRIPPED, SPINNING, STRIPPED, Source,
};
use crate::runs::{Canary, looping, tight, way_of};

/// Processor, wall and memory limits, in milliseconds and MiB: those of the repeats.
const LIMITS: [(u64, u64, u64); 2] = [(30, 400, 48), (60, 800, 100)];

/// A program that uses as much as it gets of the processor that the calling thread and all that it
/// starts run on from then on: they share one, so that the other processors stay free.
struct Hog(Child);

impl Hog {
    fn start() -> Hog {
        let calling = Pid::from_raw(0);
        let allowed = sched_getaffinity(calling).expect("a thread has processors");
        let is_allowed = |at: &usize| allowed.is_set(*at).is_ok_and(|is_set| is_set);
        let last = (0..CpuSet::count()).rfind(is_allowed).expect("it has one");
        let mut one = CpuSet::new();
        one.set(last).expect("a processor that is allowed");
        sched_setaffinity(calling, &one).expect("it may have fewer");
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        Hog(command.stdin(Stdio::null()).spawn().expect("there is a sh"))
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        // It runs until it is killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn limits((cpu, wall, memory): (u64, u64, u64)) -> Limits {
    Limits {
        cpu: Duration::from_millis(cpu),
        wall: Duration::from_millis(wall),
        memory: memory << 20,
        ..tight()
    }
}

/// Class and major key.
type Name = (String, Option<Key>);

/// The name of each input, by its bug.
fn named(build: &Build, source: &Source, limits: Limits) -> Vec<(String, Name)> {
    let program = build.program(source);
    let canary = Canary::new();
    let mut all = Vec::new();
    for (inputs, limits) in looping(first_of_each_route(&source.planted(), 1), limits) {
        let target = canary.target(&program, limits);
        let mut triager = Triager::of_target(&target, way_of(&program)).expect("it can be started");
        for planted in inputs {
            let name = match triager.key(&planted.input).expect("the target runs") {
                Quick::Crash { class, major, .. } => (class.0, Some(major)),
                Quick::Ended(ended) => (ended.to_string(), None),
            };
            all.push((planted.bug, name));
        }
    }
    all
}

/// What is named otherwise than it is `expected` to be, at the limits of a repeat.
fn unsteady(
    source: &Source,
    expected: &[(String, Name)],
    later: &Build,
    repeat: (u64, u64, u64),
) -> Vec<String> {
    let got = named(later, source, limits(repeat));
    let both = expected.iter().zip(&got);
    let differing = both.filter(|((_, expected), (_, got))| expected != got);
    differing
        .map(|((bug, expected), (_, got))| format!("{bug}: {got:?}, not {expected:?}"))
        .collect()
}

const NONE: Vec<String> = Vec::new();

#[test]
fn hangs_keep_their_groups_beside_a_busy_program_on_the_same_processor() {
    let _alone = crate::alone_with_hangs();
    let [looping, spinning] = [&LOOPING[0], &SPINNING[0]];
    // What nothing disturbs.
    let optimized = named(&GCC_O2, looping, tight());
    let released = named(&RUST_RELEASE, spinning, tight());
    let _hog = Hog::start();
    let [short, long] = LIMITS;
    assert_eq!(unsteady(looping, &optimized, &STRIPPED, short), NONE);
    assert_eq!(unsteady(looping, &optimized, &GCC_O2, long), NONE);
    assert_eq!(unsteady(spinning, &released, &RUST_STRIPPED, long), NONE);
}
