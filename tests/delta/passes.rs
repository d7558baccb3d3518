//! What `subset` and `full` guarantee, on random failures of texts, unresolved outcomes among them.

use std::collections::HashMap;

use ddfuzz::delta::{Comparison, Full, Hints, Outcome, Search, Subset, minimize};
use proptest::prelude::*;

use crate::random::failures;
use crate::trace::run;

/// A failure of texts by rule: the needed bytes in order; what else is odd is decided by a hash of
/// the text.
#[derive(Clone, Debug)]
struct Failure {
    text: Vec<u8>,
    needed: Vec<u8>,
    seed: u64,
    /// Of 16 texts, how many fail without reason, and how many are unresolved.
    odd: (u64, u64),
}

impl Failure {
    fn test(&self, text: &[u8]) -> Outcome {
        let mut rest = text.iter();
        let whole = self
            .needed
            .iter()
            .all(|wanted| rest.any(|byte| byte == wanted));
        if text == self.text || whole && !text.is_empty() {
            return Outcome::Fail;
        }
        let mixed = text.iter().fold(self.seed, |hash, byte| {
            (hash ^ (u64::from(*byte) + 1))
                .wrapping_mul(0x0000_0100_0000_01b3)
                .rotate_left(23)
        });
        match mixed >> 60 {
            _ if text.is_empty() => Outcome::Pass,
            odd if odd < self.odd.0 => Outcome::Fail,
            odd if odd < self.odd.0 + self.odd.1 => Outcome::Unresolved,
            _ => Outcome::Pass,
        }
    }
}

impl Failure {
    /// What a run would have compared: numbers that stand in the text, with others near or far.
    fn hints(&self, text: &[u8]) -> Hints {
        let number = |at: usize, width: usize| {
            let mut bytes: Vec<u8> = text.iter().copied().cycle().skip(at).take(width).collect();
            bytes.resize(width, 0);
            bytes
        };
        let pair = |turn: u64| {
            let mixed = (self.seed ^ text.len() as u64).rotate_left(turn as u32 * 9);
            let width = [1, 2, 4, 8, 3][mixed as usize % 5];
            let left = number(mixed as usize >> 8 & 0xff, width);
            let right = number(mixed as usize >> 16 & 0xff, width);
            Comparison { left, right }
        };
        Hints {
            read: None,
            comparisons: (0..self.seed % 5).map(pair).collect(),
        }
    }
}

fn texts() -> impl Strategy<Value = Failure> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 1..80),
        prop::collection::vec(prop::sample::select(&b"ab01(){}[],:\"\n "[..]), 1..80),
        prop::collection::vec(prop::sample::select(&b"aab"[..]), 1..120),
        Just(br#"{"a": [1, 2, {"b": "c d"}], "e": {"f": [[], {}], "g": null}}"#.to_vec()),
        Just(b"line one\nline (two)\n\nline [three]\n{}\nfive\nsix\n7\n8\n9\n10\n".to_vec()),
        prop::collection::vec(0u8..4, 0..40).prop_map(|body| {
            let mut frame = vec![body.len() as u8, 0];
            frame.extend(body);
            frame
        }),
        prop::collection::vec(any::<u8>(), 0..60).prop_map(|body| {
            let sum: u32 = body.iter().map(|byte| u32::from(*byte)).sum();
            let mut frame = (body.len() as u16).to_be_bytes().to_vec();
            frame.extend(body);
            frame.extend(sum.to_le_bytes());
            frame
        }),
        prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 3..8).prop_map(|bodies| {
            let mut file = vec![bodies.len() as u8];
            for body in bodies {
                file.push(body.len() as u8);
                file.extend(body);
            }
            file
        }),
    ];
    (
        bytes,
        any::<u64>(),
        (0u64..4, 0u64..4),
        prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    )
        .prop_map(|(text, seed, odd, mut needed)| {
            needed.sort_by_key(|index| index.index(text.len()));
            let needed = needed
                .iter()
                .map(|index| text[index.index(text.len())])
                .collect();
            Failure {
                text,
                needed,
                seed,
                odd,
            }
        })
}

/// What a search came to, and its tests: rule, size, outcome.
#[derive(Debug, PartialEq, Eq)]
struct Course {
    result: Vec<u8>,
    tests: Vec<(&'static str, Vec<u8>, Outcome)>,
}

fn course(mut search: Box<dyn Search>, failure: &Failure, copies: bool) -> Course {
    let mut known = HashMap::new();
    let mut best = failure.text.clone();
    let mut text = Vec::new();
    let mut tests = Vec::new();
    while let Some(candidate) = search.next() {
        candidate.write_into(&failure.text, &best, &mut text);
        assert!(
            text.len() <= best.len(),
            "never longer: {candidate:?} of {best:?}"
        );
        let outcome = *known
            .entry(text.clone())
            .or_insert_with(|| failure.test(&text));
        if copies && tests.len() % 7 == 3 {
            search = search.boxed();
            assert_eq!(search.next().as_ref(), Some(&candidate));
        }
        if candidate.observed {
            search.hint(&failure.hints(&text));
        }
        search.tell(outcome);
        tests.push((candidate.rule.name(), text.clone(), outcome));
        if outcome == Outcome::Fail {
            best.clone_from(&text);
        }
        assert_eq!(search.best().len(), best.len(), "the positions left");
        let len = failure.text.len();
        assert!(
            tests.len() < 50 * (len + 10) * (len + 10),
            "it comes to an end"
        );
    }
    Course {
        result: best,
        tests,
    }
}

fn is_subsequence(part: &[u8], whole: &[u8]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|wanted| rest.any(|byte| byte == wanted))
}

/// Whether no byte can go alone; the empty text is part of the axiom.
fn is_1_minimal(text: &[u8], failure: &Failure) -> bool {
    text.len() == 1
        || (0..text.len()).all(|gone| {
            let mut fewer = text.to_vec();
            fewer.remove(gone);
            failure.test(&fewer) != Outcome::Fail
        })
}

proptest! {
    #![proptest_config(crate::fixed::seed())]

    #[test]
    fn subset_ends_at_a_failing_1_minimal_subsequence(failure in texts()) {
        let course = course(Box::new(Subset::new(&failure.text)), &failure, false);
        prop_assert_eq!(failure.test(&course.result), Outcome::Fail);
        prop_assert!(is_subsequence(&course.result, &failure.text));
        prop_assert!(is_1_minimal(&course.result, &failure));
    }

    #[test]
    fn full_ends_at_a_failing_1_minimal_text(failure in texts()) {
        let course = course(Box::new(Full::new(&failure.text)), &failure, false);
        prop_assert_eq!(failure.test(&course.result), Outcome::Fail);
        prop_assert!(is_1_minimal(&course.result, &failure));
    }

    #[test]
    fn each_single_deletion_is_among_the_tests(failure in texts()) {
        for search in [Box::new(Full::new(&failure.text)) as Box<dyn Search>, Box::new(Subset::new(&failure.text))] {
            let course = course(search, &failure, false);
            for gone in 0..course.result.len() {
                let mut fewer = course.result.clone();
                fewer.remove(gone);
                prop_assert!(fewer.is_empty() || course.tests.iter().any(|(_, text, _)| *text == fewer));
            }
        }
    }

    #[test]
    fn a_copy_goes_on_as_the_machine_itself(failure in texts()) {
        let undisturbed = course(Box::new(Full::new(&failure.text)), &failure, false);
        let copied = course(Box::new(Full::new(&failure.text)), &failure, true);
        prop_assert_eq!(undisturbed, copied);
    }

    #[test]
    fn units_of_any_kind_end_1_minimal(failure in failures()) {
        let trace = run(Subset::of_units(failure.units), |kept| failure.test(kept));
        prop_assert_eq!(failure.test(&trace.result), Outcome::Fail);
        prop_assert!(trace.result.windows(2).all(|pair| pair[0] < pair[1]));
        for gone in 0..trace.result.len() {
            let mut fewer = trace.result.clone();
            fewer.remove(gone);
            prop_assert!(fewer.is_empty() || failure.test(&fewer) != Outcome::Fail);
        }
    }
}

#[test]
fn what_was_not_read_goes_in_one_test() {
    let text = vec![b'x'; 10_000];
    let mut search = Full::new(&text);
    search.hint(&Hints {
        read: Some(4096),
        comparisons: Vec::new(),
    });
    let first = search.next().expect("a first test");
    assert_eq!(first.rule.name(), "unread");
    let mut kept = Vec::new();
    first.write_into(&text, &text, &mut kept);
    assert_eq!(kept.len(), 4096);
}

#[test]
fn subset_minimizes_any_sequence() {
    let words = ["one", "two", "three", "four", "five"];
    let fails = |kept: &[&str]| match kept.contains(&"two") && kept.contains(&"five") {
        true => Outcome::Fail,
        false => Outcome::Pass,
    };
    assert_eq!(
        minimize(&words, Subset::of_units, fails),
        Ok(vec!["two", "five"])
    );
}
