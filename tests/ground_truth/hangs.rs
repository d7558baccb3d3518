//! Hangs and memory blow-ups keep their groups: on each repeat, whatever the limits are, stripped
//! or not, and beside programs that want the processor as well.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ddfuzz::exec::Limits;
use ddfuzz::triage::{Key, Quick, Triager};

use crate::bugs::first_of_each_route;
use crate::builds::{
    Build, GCC_O0, GCC_O2, LOOPING, RUST_RELEASE, RUST_STRIPPED, SPINNING, STRIPPED, Source,
};
use crate::runs::{Canary, looping, tight, way_of};

/// Processor, wall and memory limits, in milliseconds and MiB: those of the repeats.
const LIMITS: [(u64, u64, u64); 2] = [(50, 400, 96), (100, 800, 200)];

/// Programs that use as much of the processor as they get.
struct Hogs(Vec<Child>);

impl Hogs {
    fn start() -> Hogs {
        let hog = |_| {
            let mut command = Command::new("sh");
            command.args(["-c", "while :; do :; done"]);
            command.stdin(Stdio::null()).spawn().expect("there is a sh")
        };
        Hogs((0..2).map(hog).collect())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            // It runs until it is killed.
            let _ = hog.kill();
            let _ = hog.wait();
        }
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
fn hangs_keep_their_groups_beside_two_busy_programs() {
    let _alone = crate::alone_with_hangs();
    let [looping, spinning] = [&LOOPING[0], &SPINNING[0]];
    // What nothing disturbs.
    let optimized = named(&GCC_O2, looping, tight());
    let plain = named(&GCC_O0, looping, tight());
    let released = named(&RUST_RELEASE, spinning, tight());
    let _hogs = Hogs::start();
    let [short, long] = LIMITS;
    assert_eq!(unsteady(looping, &optimized, &STRIPPED, short), NONE);
    assert_eq!(unsteady(looping, &optimized, &GCC_O2, long), NONE);
    assert_eq!(unsteady(looping, &plain, &GCC_O0, short), NONE);
    assert_eq!(unsteady(spinning, &released, &RUST_STRIPPED, long), NONE);
}
