//! The machine of ddmin.

use ddfuzz::delta::{Ddmin, Outcome, Rule, Search};

use crate::trace::{indices, run};

fn fails(yes: bool) -> Outcome {
    if yes { Outcome::Fail } else { Outcome::Pass }
}

#[test]
fn one_unit_or_none_needs_no_test() {
    for units in [0, 1] {
        let trace = run(Ddmin::new(units), |_| Outcome::Fail);
        assert!(trace.tests.is_empty());
        assert_eq!(trace.result.len(), units);
    }
}

#[test]
fn at_two_parts_complements_are_skipped() {
    let trace = run(Ddmin::new(2), |_| Outcome::Pass);
    assert_eq!(
        trace.tests,
        [(vec![0], Outcome::Pass), (vec![1], Outcome::Pass)]
    );
}

#[test]
fn one_deciding_unit_takes_two_tests_a_halving_at_most() {
    for units in 2..200usize {
        let rounds = (units as f64).log2().ceil() as usize;
        for unit in 0..units {
            let trace = run(Ddmin::new(units), |kept| fails(kept.contains(&unit)));
            assert_eq!(trace.result, [unit]);
            assert!(
                trace.tests.len() <= 2 * rounds,
                "{units} units, unit {unit}"
            );
        }
    }
}

#[test]
fn one_deciding_unit_of_a_million_takes_forty_tests_at_most() {
    let mut machine = Ddmin::new(1_000_000);
    let mut tests = 0;
    while let Some(candidate) = machine.next() {
        let config = candidate
            .edit
            .apply(machine.best())
            .expect("a search that deletes");
        let hit = config.ranges().any(|range| range.contains(&777_777));
        machine.tell(fails(hit));
        tests += 1;
    }
    assert_eq!(indices(machine.best()), [777_777]);
    assert!(tests <= 40, "{tests}");
}

#[test]
fn the_worst_case_stays_below_the_bound() {
    for units in 2..40usize {
        let all_needed = run(Ddmin::new(units), |_| Outcome::Unresolved);
        assert_eq!(all_needed.result.len(), units);
        assert!(all_needed.tests.len() <= units * units + 3 * units);
        // Only the last complement of each round fails, until two units are left.
        let last = run(Ddmin::new(units), |kept| {
            fails(kept.len() >= 2 && kept.contains(&0) && kept.iter().max() < Some(&(units - 1)))
        });
        assert!(last.tests.len() <= units * units + 3 * units);
    }
}

#[test]
fn a_clone_goes_its_own_way() {
    let mut machine: Box<dyn Search> = Box::new(Ddmin::new(8));
    let asked = machine.next();
    let mut ahead = machine.clone();
    ahead.tell(Outcome::Fail);
    assert_eq!(ahead.best().len(), 4);
    assert_eq!(machine.best().len(), 8);
    assert_eq!(machine.next(), asked);
    machine.tell(Outcome::Pass);
    assert_ne!(machine.next(), asked);
}

#[test]
fn telling_after_the_end_changes_nothing() {
    let mut machine = Ddmin::new(1);
    machine.tell(Outcome::Fail);
    machine.tell(Outcome::Pass);
    assert_eq!(machine.next(), None);
    assert_eq!(machine.best().len(), 1);
}

#[test]
fn a_failing_complement_lowers_the_granularity_by_one() {
    let mut machine = Ddmin::new(8);
    let mut told = Vec::new();
    while told.len() < 8 {
        let candidate = machine.next().expect("not at its end");
        let outcome = fails(machine.granularity() == 4 && candidate.rule == Rule::Complement);
        told.push(candidate.rule);
        machine.tell(outcome);
        if outcome == Outcome::Fail {
            break;
        }
    }
    assert_eq!(told.iter().filter(|rule| **rule == Rule::Subset).count(), 6);
    assert_eq!(told.last(), Some(&Rule::Complement));
    assert_eq!((machine.granularity(), machine.best().len()), (3, 6));
}
