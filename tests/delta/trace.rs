//! Runs a machine against a predicate and writes down what it asked.

use ddfuzz::delta::{Config, Outcome, Search};

/// What a search asked and where it ended.
pub struct Trace {
    /// The kept indices of every test, in order, with the outcome.
    pub tests: Vec<(Vec<usize>, Outcome)>,
    /// The kept indices at the end.
    pub result: Vec<usize>,
}

/// The kept indices of a configuration.
pub fn indices(config: &Config) -> Vec<usize> {
    config.ranges().flatten().collect()
}

/// Runs `machine` to its end; gives the kept indices of every test, in order, with the outcome.
pub fn run_on(
    machine: &mut dyn Search,
    test: impl Fn(&[usize]) -> Outcome,
) -> Vec<(Vec<usize>, Outcome)> {
    let mut tests = Vec::new();
    while let Some(candidate) = machine.next() {
        assert_eq!(
            machine.next().as_ref(),
            Some(&candidate),
            "asking again changes nothing"
        );
        let config = candidate
            .edit
            .apply(machine.best())
            .expect("a search that deletes");
        assert_eq!(
            candidate.config,
            Some(config.id()),
            "the candidate names its configuration"
        );
        let kept = indices(&config);
        let outcome = test(&kept);
        tests.push((kept, outcome));
        machine.tell(outcome);
    }
    tests
}

/// Runs `machine` to its end.
pub fn run(mut machine: impl Search, test: impl Fn(&[usize]) -> Outcome) -> Trace {
    let tests = run_on(&mut machine, test);
    Trace {
        tests,
        result: indices(machine.best()),
    }
}
