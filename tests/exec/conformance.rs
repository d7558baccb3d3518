//! All ways run a bundled target alike.

use ddfuzz::exec::{Executor, Freshness, Program, Target, Way, start};

use crate::kinds::of_all_kinds;
use crate::programs::patient;
use crate::stream::stream;

/// Inputs of all sizes up to some thousands of bytes: random bytes, printable characters, and
/// lines of both.
pub fn inputs(count: u64) -> impl Iterator<Item = Vec<u8>> {
    (0..count).map(|seed| {
        let length = (seed * seed * 7) % 4000;
        let bytes = stream(seed, length as usize).into_iter();
        match seed % 3 {
            0 => bytes.collect(),
            1 => bytes.map(|byte| b' ' + byte % 95).collect(),
            _ => bytes
                .map(|byte| if byte < 8 { b'\n' } else { byte & 0x7f })
                .collect(),
        }
    })
}

fn executor(target: &Target, way: Way, freshness: Freshness) -> Box<dyn Executor> {
    start(target, Some(way), freshness).unwrap().executor
}

#[test]
fn a_harness_ends_as_the_program_does_on_500_inputs_of_each_bundled_target() {
    for name in ["crtplot", "flex", "nroff", "troff", "ul", "units"] {
        let target = patient(Program::Bundled(name.to_owned()));
        let mut command = executor(&target, Way::Command, Freshness::Fresh);
        let mut others = [
            executor(&target, Way::Inject, Freshness::Fresh),
            executor(&target, Way::Harness, Freshness::Fresh),
            executor(&target, Way::Harness, Freshness::Shared),
        ];
        let mut crashes = 0;
        for (index, input) in inputs(250).chain(of_all_kinds(0, 250)).enumerate() {
            let expected = command.run(&input).unwrap().ended;
            crashes += usize::from(expected.is_crash(None));
            for (which, other) in others.iter_mut().enumerate() {
                let ended = other.run(&input).unwrap().ended;
                assert_eq!(ended, expected, "{name}, input {index}, way {which}");
            }
        }
        assert!(crashes > 0 || name == "flex", "{name} never crashed");
        assert!(crashes < 500, "{name} always crashed");
    }
}
