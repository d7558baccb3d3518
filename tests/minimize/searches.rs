//! Every search: its log, resumed, replayed and verified; what is proven by whom.

use ddfuzz::delta::{Caching, Outcome};
use ddfuzz::minimize::log::{EditRecord, Line, Log, LogError, Phase, StartLine, TestLine};
use ddfuzz::minimize::{
    Claim, Counts, MinimizeError, Minimized, Options, SEARCHES, replay, search_by_name, verify,
};
use proptest::prelude::*;

use crate::failures::{all_of, odd, subsequence, without_times};
use crate::fixed;
use crate::scripted::{outcomes, resume_with, run_with, start_by};

const INPUT: &[u8] = b"12345678";

/// Minimizes; gives the result and the log.
fn minimized(
    start: StartLine,
    input: &[u8],
    test: &dyn Fn(&[u8]) -> Outcome,
) -> (Minimized, Vec<u8>) {
    let mut oracle = outcomes(test);
    let (result, log) = run_with(input, start, &mut oracle, &mut Options::default());
    (result.expect("a result"), log)
}

/// Minimizes by the search of this name.
fn by(search: &str, input: &[u8], test: &dyn Fn(&[u8]) -> Outcome) -> (Minimized, Vec<u8>) {
    minimized(start_by(input, search), input, test)
}

fn tests(log: &[u8]) -> Vec<TestLine> {
    let lines = Log::parse(log).expect("a log").lines.into_iter();
    lines
        .filter_map(|(_, line)| match line {
            Line::Test(test) => Some(test),
            _ => None,
        })
        .collect()
}

/// The tests of the proof.
fn proof(log: &[u8]) -> usize {
    let tests = tests(log);
    tests
        .iter()
        .filter(|test| test.phase == Some(Phase::Proof))
        .count()
}

fn answered(counts: Counts) -> u64 {
    counts.executed + counts.cached + counts.repeated
}

#[test]
fn each_search_is_known_by_its_name() {
    for name in SEARCHES {
        assert!(search_by_name(name, INPUT).is_ok(), "{name}");
    }
    assert_eq!(
        SEARCHES,
        [
            "full",
            "subset",
            "ddmin",
            "ddmin-2002",
            "dd",
            "dd-1999",
            "dd-plus"
        ]
    );
}

#[test]
fn each_search_ends_1_minimal_and_proven() {
    for search in SEARCHES {
        for (input, needed) in [
            (INPUT, &b"178"[..]),
            (b"a<b>c</b>d", b"<>/"),
            (b"aXaaYaaZ", b"XYZ"),
        ] {
            let (result, _) = by(search, input, &all_of(needed));
            assert_eq!(result.text.len(), needed.len(), "{search}");
            assert_eq!(result.claim, Claim::OneMinimal, "{search}");
            assert_eq!(result.proved.done, result.proved.of, "{search}");
        }
    }
}

#[test]
fn only_searches_whose_outcomes_prove_nothing_need_a_proof() {
    for search in ["ddmin", "ddmin-2002", "dd"] {
        let (_, log) = by(search, INPUT, &all_of(b"178"));
        assert_eq!(proof(&log), 0, "{search}");
    }
    for search in ["dd-1999", "dd-plus"] {
        let (result, log) = by(search, INPUT, &subsequence(b"36"));
        assert_eq!(
            (result.text.as_slice(), proof(&log)),
            (&b"36"[..], 2),
            "{search}"
        );
    }
}

#[test]
fn the_proof_goes_on_where_the_search_ends_too_early() {
    // Where outcomes are neither monotone nor unambiguous, the result of these two need not be
    // minimal.
    for search in ["dd-1999", "dd-plus"] {
        let further = (0..200).filter(|seed| {
            let (result, log) = by(search, INPUT, &odd(*seed, INPUT));
            assert_eq!(result.claim, Claim::OneMinimal, "{search} {seed}");
            let reduced = without_times(&log);
            reduced.iter().any(|line| line["rule"] == "proof")
        });
        assert!(further.count() > 0, "{search}");
    }
}

#[test]
fn dd_logs_what_it_keeps_of_the_original() {
    for search in ["dd", "dd-1999", "dd-plus"] {
        let (_, log) = by(search, INPUT, &subsequence(b"36"));
        let asked = tests(&log).into_iter().filter(|test| test.phase.is_none());
        for test in asked {
            let EditRecord::Keep(ranges) = test.edit else {
                panic!("{search}: {:?}", test.edit);
            };
            let size: u64 = ranges.iter().map(|[start, end]| end - start).sum();
            assert_eq!(size, test.size);
        }
    }
    for search in ["ddmin", "ddmin-2002"] {
        let (_, log) = by(search, INPUT, &subsequence(b"36"));
        let cuts = |test: &TestLine| matches!(test.edit, EditRecord::Cut(_));
        assert!(tests(&log).iter().all(cuts), "{search}");
    }
}

#[test]
fn the_tests_of_the_published_tables_are_those_of_the_log() {
    let history = |text: &[u8]| match text.contains(&b'7') {
        true => Outcome::Fail,
        false => Outcome::Pass,
    };
    let (_, log) = by("dd-1999", INPUT, &history);
    let texts = texts(&log);
    assert_eq!(texts, ["1234", "5678", "56", "78", "7"]);
    let (_, log) = by("dd-1999", INPUT, &subsequence(b"36"));
    let steps = [
        "1234", "5678", "125678", "345678", "35678", "123456", "12345", "12346", "36",
    ];
    assert_eq!(self::texts(&log), steps);
}

/// The candidates of the search, rebuilt from the ranges kept.
fn texts(log: &[u8]) -> Vec<String> {
    let asked = tests(log).into_iter().filter(|test| test.phase.is_none());
    asked
        .map(|test| match test.edit {
            EditRecord::Keep(ranges) => ranges
                .iter()
                .flat_map(|[start, end]| &INPUT[*start as usize..*end as usize])
                .map(|byte| char::from(*byte))
                .collect(),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn a_failing_candidate_that_is_no_smaller_is_no_reduction() {
    let (_, log) = by("dd-1999", INPUT, &subsequence(b"36"));
    let lines = without_times(&log);
    let failed = lines
        .iter()
        .filter(|line| line["kind"] == "test" && line["outcome"] == "FAIL");
    let sizes: Vec<u64> = lines
        .iter()
        .filter(|line| line["kind"] == "reduce")
        .map(|line| line["size"].as_u64().expect("a size"))
        .collect();
    assert_eq!(sizes, [6, 5, 2]);
    assert_eq!(failed.count(), 5);
    let rules = lines.iter().filter(|line| line["kind"] == "reduce");
    let rules: Vec<_> = rules.map(|line| line["rule"].clone()).collect();
    assert_eq!(rules, ["subset", "subset", "result"]);
}

#[test]
fn what_ddmin_2002_asks_again_is_repeated_and_without_cache_is_run() {
    // The book's package runs 14 inputs, the whole one among them, and some of them twice.
    let test = all_of(b"178");
    let counts = [Caching::Text, Caching::Off].map(|cache| {
        let start = StartLine {
            cache,
            ..start_by(INPUT, "ddmin-2002")
        };
        minimized(start, INPUT, &test).0.counts
    });
    let [cached, off] = counts;
    assert_eq!((off.executed, off.repeated, off.cached), (13, 0, 0));
    assert_eq!(
        (cached.executed, cached.repeated, cached.cached),
        (11, 2, 0)
    );
    assert_eq!(answered(cached), answered(off));
}

/// Whether what is left of a log at each of these cuts leads to the whole log again.
fn resumes(
    search: &str,
    input: &[u8],
    test: &dyn Fn(&[u8]) -> Outcome,
    cuts: impl Fn(&[u8]) -> Vec<usize>,
) {
    let (result, whole) = by(search, input, test);
    let expected = without_times(&whole);
    for cut in cuts(&whole) {
        let mut oracle = outcomes(test);
        let mut options = Options::default();
        let start = start_by(input, search);
        let (resumed, log) = resume_with(input, start, &whole[..cut], &mut oracle, &mut options);
        assert_eq!(resumed.expect("a result"), result, "{search} cut at {cut}");
        assert_eq!(without_times(&log), expected, "{search} cut at {cut}");
    }
}

#[test]
fn a_log_of_any_search_cut_at_any_byte_resumes_to_the_same_log() {
    for search in SEARCHES {
        resumes(search, b"12345", &subsequence(b"24"), |whole| {
            (0..=whole.len()).collect()
        });
    }
}

#[test]
fn a_log_of_any_search_cut_behind_any_line_resumes_to_the_same_log() {
    for search in SEARCHES {
        for seed in 0..8 {
            resumes(search, INPUT, &odd(seed, INPUT), |whole| {
                let newlines = whole.iter().enumerate();
                let ends = newlines.filter(|(_, byte)| **byte == b'\n');
                ends.map(|(at, _)| at + 1).collect()
            });
        }
    }
}

#[test]
fn a_budget_ends_any_search_with_the_best_so_far() {
    for search in SEARCHES {
        for tests in 0..12 {
            let bounded = || Options {
                budget_tests: Some(tests),
                ..Options::default()
            };
            let start = || start_by(INPUT, search);
            let mut oracle = outcomes(all_of(b"178"));
            let (result, whole) = run_with(INPUT, start(), &mut oracle, &mut bounded());
            let result = result.expect("a result");
            assert!(result.counts.executed <= tests, "{search}");
            assert_eq!(all_of(b"178")(&result.text), Outcome::Fail, "{search}");
            let replayed = replay(INPUT, &Log::parse(&whole).expect("a log"));
            assert_eq!(replayed.expect("it holds").minimized, Some(result));
            let left = &whole[..whole.len() / 2];
            let mut oracle = outcomes(all_of(b"178"));
            let (_, again) = resume_with(INPUT, start(), left, &mut oracle, &mut bounded());
            assert_eq!(without_times(&again), without_times(&whole), "{search}");
        }
    }
}

#[test]
fn a_claim_of_any_search_is_verified_and_a_false_one_found_out() {
    for search in SEARCHES {
        let (_, log) = by(search, INPUT, &subsequence(b"36"));
        let log = Log::parse(&log).expect("a log");
        let mut oracle = outcomes(subsequence(b"36"));
        let verified = verify(INPUT, &log, &mut oracle, |_| ()).expect("verified");
        assert!(
            verified.holds() && verified.claim == Claim::OneMinimal,
            "{search}"
        );
        let mut oracle = outcomes(subsequence(b"3"));
        let verified = verify(INPUT, &log, &mut oracle, |_| ()).expect("verified");
        assert!(!verified.holds(), "{search}");
    }
}

#[test]
fn a_changed_keep_is_found() {
    let (_, log) = by("dd", INPUT, &all_of(b"178"));
    let log = String::from_utf8(log).expect("UTF-8");
    let number = log
        .lines()
        .position(|line| line.contains("\"i\":2,"))
        .expect("the line") as u64;
    let changed = log.replacen("\"i\":2,\"hash\":", "\"i\":2, \"hash\":", 1);
    assert!(replay(INPUT, &Log::parse(changed.as_bytes()).expect("a log")).is_ok());
    let line = log.lines().nth(number as usize).expect("the line");
    let wrong = line.replacen("\"keep\":[[", "\"keep\":[[0,0],[", 1);
    let changed = log.replacen(line, &wrong, 1);
    match replay(INPUT, &Log::parse(changed.as_bytes()).expect("a log")) {
        Err(MinimizeError::Log(LogError::Disagrees { line, .. })) => assert_eq!(line, number + 1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_log_of_another_search_is_refused() {
    let (_, log) = by("dd", INPUT, &all_of(b"178"));
    let log = String::from_utf8(log).expect("UTF-8");
    let other = log.replacen("\"search\":\"dd\"", "\"search\":\"dd-plus\"", 1);
    let other = Log::parse(other.as_bytes()).expect("a log");
    assert!(matches!(
        replay(INPUT, &other),
        Err(MinimizeError::Log(LogError::Disagrees { .. }))
    ));
}

#[test]
fn one_byte_and_the_empty_input_end_at_once_by_any_search() {
    for search in SEARCHES {
        let (result, log) = by(search, b"x", &subsequence(b"x"));
        // What is left is tried as `0`.
        let values = usize::from(search == &"full");
        assert_eq!(
            (result.claim, tests(&log).len()),
            (Claim::OneMinimal, values),
            "{search}"
        );
        let (result, _) = by(search, b"", &|_| Outcome::Fail);
        assert_eq!(
            (result.claim, result.text.len()),
            (Claim::OneMinimal, 0),
            "{search}"
        );
        let (result, _) = by(search, INPUT, &|_| Outcome::Fail);
        assert_eq!(
            (result.claim, result.text.len()),
            (Claim::OneMinimal, 0),
            "{search}"
        );
    }
}

proptest! {
    #![proptest_config(fixed::seed(2002))]

    #[test]
    fn any_search_ends_with_a_replayable_proven_result(
        input in prop::collection::vec(prop::sample::select(b"aabc".as_slice()), 1..40),
        seed in any::<u64>(),
        search in prop::sample::select(SEARCHES),
        cut in any::<prop::sample::Index>(),
    ) {
        let test = odd(seed, &input);
        let (result, whole) = by(search, &input, &test);
        prop_assert_eq!(test(&result.text), Outcome::Fail);
        prop_assert_eq!(result.claim, Claim::OneMinimal);
        prop_assert!(result.text.len() <= input.len());
        let mut letters = input.iter();
        let is_part = result.text.iter().all(|one| letters.any(|letter| letter == one));
        prop_assert!(is_part || search == "full", "only full replaces bytes");
        for gone in 0..result.text.len() {
            let mut fewer = result.text.clone();
            fewer.remove(gone);
            prop_assert_ne!(test(&fewer), Outcome::Fail);
        }
        let log = Log::parse(&whole).expect("a log");
        let replayed = replay(&input, &log).expect("it holds");
        prop_assert_eq!(replayed.minimized.as_ref(), Some(&result));
        let mut oracle = outcomes(&test);
        prop_assert!(verify(&input, &log, &mut oracle, |_| ()).expect("verified").holds());
        let left = &whole[..cut.index(whole.len() + 1)];
        let mut oracle = outcomes(&test);
        let start = start_by(&input, search);
        let (_, again) = resume_with(&input, start, left, &mut oracle, &mut Options::default());
        prop_assert_eq!(without_times(&again), without_times(&whole));
    }

    #[test]
    fn what_dd_and_ddmin_prove_themselves_needs_no_further_test(
        input in prop::collection::vec(any::<u8>(), 1..40),
        seed in any::<u64>(),
        search in prop::sample::select(vec!["ddmin", "ddmin-2002", "dd"]),
    ) {
        let (_, log) = by(search, &input, &odd(seed, &input));
        prop_assert_eq!(proof(&log), 0);
    }
}
