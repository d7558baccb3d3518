//! Counts the tests that a search takes to a proved result.

use std::collections::HashMap;

use ddfuzz::delta::{Comparison, Full, Hints, Outcome, Rule, Search, Subset};

/// What a run of a case's program says.
pub type Judge = Box<dyn Fn(&[u8]) -> Outcome>;

/// What an observed run compares.
pub type Compared = Box<dyn Fn(&[u8]) -> Vec<Comparison>>;

/// One input with its program.
pub struct Case {
    pub input: Vec<u8>,
    pub judge: Judge,
    pub compared: Option<Compared>,
}

impl Case {
    pub fn new(input: Vec<u8>, judge: impl Fn(&[u8]) -> Outcome + 'static) -> Case {
        Case {
            input,
            judge: Box::new(judge),
            compared: None,
        }
    }
}

/// A result and what it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduced {
    pub text: Vec<u8>,
    /// Tests run for the search, until its result was proved: those behind it, in which values get
    /// their last form, are not counted.
    pub searched: usize,
    /// Tests run for the proof, beside those of the search that belong to it.
    pub proved: usize,
}

impl Reduced {
    pub fn tests(&self) -> usize {
        self.searched + self.proved
    }
}

/// Runs a search of this name, answering what is known from a cache, and proves its result.
pub fn reduce(search: &str, case: &Case) -> Reduced {
    let mut machine: Box<dyn Search> = match search {
        "full" => Box::new(Full::new(&case.input)),
        #[cfg(feature = "engine")]
        "structured" => {
            let structure = ddfuzz::structure::structure_of(&case.input);
            Box::new(Full::structured(&case.input, structure))
        }
        _ => Box::new(Subset::new(&case.input)),
    };
    let mut known = HashMap::from([(Vec::new(), (case.judge)(&[]))]);
    let mut best = case.input.clone();
    let mut text = Vec::new();
    let (mut searched, mut is_proved) = (0, false);
    assert_eq!((case.judge)(&best), Outcome::Fail, "the input fails");
    while let Some(candidate) = machine.next() {
        if let Some(predicted) = machine.predicted() {
            machine.tell(predicted);
            continue;
        }
        candidate.write_into(&case.input, &best, &mut text);
        assert!(text.len() <= best.len(), "never longer");
        let hit = known.get(&text).copied().filter(|_| !candidate.observed);
        let outcome = hit.unwrap_or_else(|| (case.judge)(&text));
        is_proved |= candidate.rule == Rule::Pass("values");
        searched += usize::from(hit.is_none() && !is_proved);
        known.insert(text.clone(), outcome);
        if candidate.observed {
            machine.hint(&Hints {
                read: None,
                comparisons: case
                    .compared
                    .as_ref()
                    .map_or_else(Vec::new, |see| see(&text)),
            });
        }
        machine.tell(outcome);
        if outcome == Outcome::Fail {
            std::mem::swap(&mut best, &mut text);
        }
    }
    let mut reduced = Reduced {
        text: best,
        searched,
        proved: 0,
    };
    prove(case, &mut reduced, &mut known);
    reduced
}

/// Tests each distinct deletion of one byte of the result, and takes what fails.
fn prove(case: &Case, reduced: &mut Reduced, known: &mut HashMap<Vec<u8>, Outcome>) {
    let mut at = reduced.text.len();
    while at > 0 {
        at -= 1;
        let mut text = reduced.text.clone();
        text.remove(at);
        let hit = known.get(&text).copied();
        let outcome = hit.unwrap_or_else(|| (case.judge)(&text));
        reduced.proved += usize::from(hit.is_none());
        known.insert(text.clone(), outcome);
        if outcome == Outcome::Fail {
            reduced.text = text;
            at = reduced.text.len();
        }
    }
}
