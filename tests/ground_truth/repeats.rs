//! The same partition on every repeat, stripped or not, with and without randomized addresses.

use std::collections::BTreeMap;
use std::path::Path;

use ddfuzz::exec::{ExecError, Limits, Traceable, Way};
use ddfuzz::triage::{Key, Quick, Start, Tracee, Triager, Untraced};

use crate::bugs::{Planted, first_of_each_route};
use crate::builds::{CRASHING, GCC_O2, STRIPPED};
use crate::runs::{Canary, generous, way_of};

const REPEATS: usize = 20;

/// Starts every run with randomized addresses, whatever is asked for.
struct Randomized(Traceable);

impl Start for Randomized {
    fn start(&mut self, input: &[u8], _: bool) -> Result<Box<dyn Tracee>, ExecError> {
        Start::start(&mut self.0, input, true)
    }

    fn run_untraced(&mut self, input: &[u8], _: bool) -> Result<Untraced, ExecError> {
        self.0.run_untraced(input, true)
    }

    fn way(&self) -> Way {
        Start::way(&self.0)
    }

    fn limits(&self) -> Limits {
        Start::limits(&self.0)
    }

    fn crash_exit(&self) -> Option<i32> {
        Start::crash_exit(&self.0)
    }
}

/// The keys of each input, in their order.
type AllKeys = Vec<(String, Option<(Key, Key)>)>;

fn keys(triager: &mut Triager, all: &[Planted]) -> AllKeys {
    let keyed = all.iter().map(|planted| {
        let quick = triager.key(&planted.input).expect("the target runs");
        let keys = match quick {
            Quick::Crash { major, minor, .. } => Some((major, minor)),
            Quick::Ended(_) => None,
        };
        (planted.bug.clone(), keys)
    });
    keyed.collect()
}

fn fixed(program: &Path) -> Triager {
    let target = Canary::new().target(program, generous());
    Triager::of_target(&target, way_of(program)).expect("it can be started")
}

fn randomized(program: &Path) -> Triager {
    let target = Canary::new().target(program, generous());
    let traceable = Traceable::new(&target, way_of(program)).expect("it can be started");
    Triager::new(Box::new(Randomized(traceable)))
}

/// Fails where the two have other keys, and says of which bugs.
fn assert_same(what: &str, expected: &AllKeys, got: &AllKeys) {
    let differing: BTreeMap<&str, _> = expected
        .iter()
        .zip(got)
        .filter(|(a, b)| a != b)
        .map(|(a, b)| (a.0.as_str(), (a.1, b.1)))
        .collect();
    assert!(differing.is_empty(), "{what}: {differing:#?}");
}

#[test]
fn the_partition_is_the_same_on_each_of_twenty_repeats() {
    std::thread::scope(|scope| {
        for randomly in [false, true] {
            scope.spawn(move || {
                for source in &CRASHING {
                    let all = first_of_each_route(&source.planted(), 1);
                    let expected = keys(&mut fixed(&GCC_O2.program(source)), &all);
                    let program = STRIPPED.program(source);
                    let mut triager = match randomly {
                        true => randomized(&program),
                        false => fixed(&program),
                    };
                    for repeat in 0..REPEATS / 2 {
                        let got = keys(&mut triager, &all);
                        let what = format!("{}, {randomly}, {repeat}", source.name);
                        assert_same(&what, &expected, &got);
                    }
                }
            });
        }
    });
}

#[test]
fn all_inputs_have_the_same_keys_stripped_or_not_random_or_not() {
    for source in &CRASHING {
        let all = source.planted();
        let plain = GCC_O2.program(source);
        let expected = keys(&mut fixed(&plain), &all);
        assert_same("random", &expected, &keys(&mut randomized(&plain), &all));
        let stripped = keys(&mut fixed(&STRIPPED.program(source)), &all);
        assert_same("stripped", &expected, &stripped);
    }
}
