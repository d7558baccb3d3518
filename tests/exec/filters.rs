//! Installed programs end and write alike by the injected runtime and by `execve`.

pub mod list;

use std::collections::BTreeSet;
use std::time::Duration;

use ddfuzz::exec::{Program, Target, Way};

use crate::captured::{Captured, library};
use crate::kinds::of_all_kinds;
use crate::needs;
use crate::programs::{Compiled, patient};
use list::FILTERS;

/// Inputs of each row of the list.
const INPUTS: u64 = 36;

/// Compares the two ways on inputs that begin with number `first`; gives how many wrote anything.
fn compare(what: &str, target: &Target, library: &Compiled, first: u64) -> usize {
    let executor = |way| {
        let started = Captured::start(target, library, way);
        started.unwrap_or_else(|error| panic!("{what}: {error}"))
    };
    let (mut command, mut inject) = (executor(Way::Command), executor(Way::Inject));
    // The first run that starts another program is made twice, and so writes twice.
    for captured in [&mut command, &mut inject] {
        captured.run(b"first\n");
    }
    let mut spoke = 0;
    for (index, input) in of_all_kinds(first, INPUTS).enumerate() {
        let expected = command.run(&input);
        let outcome = inject.run(&input);
        assert!(
            outcome == expected,
            "{what}, input {index} {:?}\ninject: {outcome:?}\ncommand: {expected:?}",
            String::from_utf8_lossy(&input),
        );
        spoke += usize::from(outcome.written.values().any(|bytes| !bytes.is_empty()));
    }
    spoke
}

/// Some of them are slow to start.
fn unhurried(program: Program) -> Target {
    let mut target = patient(program);
    target.limits.cpu = Duration::from_secs(10);
    target
}

#[test]
fn the_list_names_forty_five_programs_and_asks_2000_inputs_of_them() {
    let names: BTreeSet<&str> = FILTERS.iter().map(|(name, _)| *name).collect();
    assert!(names.len() >= 45, "{}", names.len());
    assert!(FILTERS.len() as u64 * INPUTS >= 2000, "{}", FILTERS.len());
}

#[test]
fn installed_filters_end_and_write_alike_by_inject_and_by_command() {
    let library = library();
    for (index, (name, args)) in FILTERS.iter().enumerate() {
        let Some(path) = needs::program(name) else {
            continue;
        };
        let mut target = unhurried(Program::Path(path));
        target.args = args.iter().map(Into::into).collect();
        let what = format!("{name} {args:?}");
        let spoke = compare(&what, &target, &library, index as u64 * INPUTS);
        assert!(spoke > 0, "{what} wrote nothing, so nothing was compared");
    }
}

#[test]
fn bundled_targets_write_alike_by_inject_and_by_command() {
    let library = library();
    for name in ["crtplot", "flex", "nroff", "troff", "ul", "units"] {
        let target = unhurried(Program::Bundled(name.to_owned()));
        let spoke = compare(name, &target, &library, 1200);
        assert!(spoke > 0, "{name} wrote nothing, so nothing was compared");
    }
}
