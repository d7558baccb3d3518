//! Minimizations from start to end.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};

use ddfuzz::delta::{Caching, Outcome};
use ddfuzz::minimize::log::{Line, Log, Source};
use ddfuzz::minimize::{Claim, MinimizeError, Options, Rate, Warning};

use crate::failures::{all_of, subsequence, without_times};
use crate::scripted::{outcomes, run, run_with, start, start_caching};

#[test]
fn the_result_is_minimal_and_the_claim_is_proven_by_the_search_itself() {
    let mut oracle = outcomes(subsequence(b"<>"));
    let (result, log) = run(b"some <b>bold</b> text", &mut oracle);
    let result = result.expect("a result");
    assert_eq!(result.text, b"<>");
    assert_eq!(result.claim, Claim::OneMinimal);
    assert_eq!((result.proved.done, result.proved.of), (2, 2));
    assert_eq!(result.warnings, []);
    let log = Log::parse(&log).expect("a log");
    assert!(
        log.lines
            .iter()
            .all(|(_, line)| !matches!(line, Line::Test(test) if test.phase.is_some()))
    );
}

#[test]
fn the_axiom_comes_before_the_search_and_the_confirmation_after_it() {
    let mut oracle = outcomes(subsequence(b"x"));
    let (_, log) = run(b"abxc", &mut oracle);
    let kinds: Vec<String> = without_times(&log)
        .iter()
        .map(|line| {
            line["what"]
                .as_str()
                .or(line["kind"].as_str())
                .expect("a kind")
                .to_owned()
        })
        .collect();
    let (before, rest) = kinds.split_at(5);
    assert_eq!(
        before,
        ["start", "baseline", "baseline", "baseline", "axiom"]
    );
    assert_eq!(
        rest[rest.len() - 4..],
        ["confirm", "confirm", "confirm", "end"]
    );
    assert_eq!(oracle.asked[0], b"abxc");
    let fresh: [&[u8]; 4] = [b"", b"x", b"x", b"x"];
    assert_eq!(oracle.asked_fresh, fresh);
}

#[test]
fn a_single_byte_is_proven_by_the_axiom() {
    let (result, log) = run(b"abxc", &mut outcomes(subsequence(b"x")));
    let result = result.expect("a result");
    assert_eq!(
        (result.text.as_slice(), result.claim),
        (b"x".as_slice(), Claim::OneMinimal)
    );
    let end = without_times(&log).pop().expect("an end");
    assert_eq!(end["proof"], serde_json::json!(["axiom"]));
}

#[test]
fn an_input_that_does_not_fail_is_an_error() {
    for outcome in [Outcome::Pass, Outcome::Unresolved] {
        let mut oracle = outcomes(move |_| outcome);
        let (result, _) = run(b"harmless", &mut oracle);
        match result {
            Err(MinimizeError::NotFailing { last, tries }) => {
                assert_eq!((last, tries), (outcome, 12))
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(oracle.asked.len(), 12);
    }
}

#[test]
fn where_the_empty_input_fails_it_is_the_result_and_the_user_is_warned() {
    let mut oracle = outcomes(|_| Outcome::Fail);
    let best = RefCell::new(None);
    let on_reduce = Box::new(|text: &[u8]| {
        *best.borrow_mut() = Some(text.to_vec());
        Ok(())
    });
    let mut options = Options {
        on_reduce,
        ..Options::default()
    };
    let (result, _) = run_with(b"anything", start(b"anything"), &mut oracle, &mut options);
    let result = result.expect("a result");
    assert_eq!((result.text.len(), result.claim), (0, Claim::OneMinimal));
    assert_eq!(result.warnings, [Warning::EmptyInputFails]);
    assert_eq!(result.counts.executed, 0);
    drop(options);
    assert_eq!(best.into_inner(), Some(Vec::new()));
}

#[test]
fn an_empty_input_that_fails_is_minimal_already() {
    let (result, _) = run(b"", &mut outcomes(|_| Outcome::Fail));
    assert_eq!(result.expect("a result").claim, Claim::OneMinimal);
}

/// Minimizes four MiB of which two bytes are needed, up to reduction number `most`; returns the sizes
/// that were handed over, and those that the log has.
fn sizes_of_large(most: usize) -> (Vec<usize>, Vec<u64>) {
    let mut input = vec![b'-'; 4 << 20];
    (input[1000], input[(4 << 20) - 1000]) = (b'x', b'y');
    let (handed, logged) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let stop = AtomicBool::new(false);
    let mut options = Options {
        on_reduce: Box::new(|text: &[u8]| {
            handed.borrow_mut().push(text.len());
            Ok(())
        }),
        on_line: Box::new(|line| {
            if let Line::Reduce(reduce) = line {
                logged.borrow_mut().push(reduce.size);
                stop.store(logged.borrow().len() == most, Ordering::Relaxed);
            }
        }),
        stop: Some(&stop),
        ..Options::default()
    };
    let mut oracle = outcomes(subsequence(b"xy"));
    let (result, _) = run_with(&input, start(&input), &mut oracle, &mut options);
    let is_interrupted = matches!(result, Err(MinimizeError::Interrupted { .. }));
    assert_eq!(is_interrupted, most < usize::MAX);
    drop(options);
    (handed.into_inner(), logged.into_inner())
}

#[test]
fn a_large_reduction_is_handed_over_if_it_has_halved_and_at_the_end() {
    for most in [3, 4, usize::MAX] {
        let (handed, logged) = sizes_of_large(most);
        assert_eq!(
            handed.last().copied(),
            logged.last().map(|size| *size as usize)
        );
        assert!(handed.len() < logged.len(), "{handed:?} {logged:?}");
        let (last, before) = handed.split_last().unwrap();
        assert!(before.is_sorted_by(|one, next| *next < 1 << 20 || next * 2 <= *one));
        assert!(before.iter().all(|size| size > last));
    }
}

#[test]
fn each_reduction_is_handed_over_smaller_than_the_one_before() {
    let sizes = RefCell::new(Vec::new());
    let on_reduce = Box::new(|text: &[u8]| {
        sizes.borrow_mut().push(text.len());
        Ok(())
    });
    let mut options = Options {
        on_reduce,
        ..Options::default()
    };
    let input = b"1234567890abcdefghij<xyz>";
    let (result, log) = run_with(
        input,
        start(input),
        &mut outcomes(subsequence(b"<>")),
        &mut options,
    );
    drop(options);
    let sizes = sizes.into_inner();
    assert_eq!(sizes.last(), Some(&result.expect("a result").text.len()));
    assert!(sizes.windows(2).all(|pair| pair[1] < pair[0]));
    let logged: Vec<u64> = without_times(&log)
        .iter()
        .filter(|line| line["kind"] == "reduce")
        .map(|line| line["size"].as_u64().expect("a size"))
        .collect();
    assert_eq!(
        logged,
        sizes.iter().map(|size| *size as u64).collect::<Vec<_>>()
    );
}

#[test]
fn repeated_configurations_and_equal_texts_are_counted_apart() {
    let input = b"aXaaYaaZ";
    let test = all_of(b"XYZ");
    let counts = [Caching::Text, Caching::Configuration, Caching::Off].map(|caching| {
        let mut oracle = outcomes(test.clone());
        let mut options = Options::default();
        let (result, log) = run_with(
            input,
            start_caching(input, caching),
            &mut oracle,
            &mut options,
        );
        let result = result.expect("a result");
        assert_eq!(result.text, b"XYZ");
        assert_eq!(result.claim, Claim::OneMinimal);
        let log = Log::parse(&log).expect("a log");
        let executed = log
            .lines
            .iter()
            .filter(|(_, line)| matches!(line, Line::Test(test) if test.source == Source::Run));
        assert_eq!(result.counts.executed, executed.count() as u64);
        // The baseline beside the tests; axiom and confirmations in fresh processes.
        assert_eq!(result.counts.executed + 3, oracle.asked.len() as u64);
        assert_eq!(result.counts.checks, 7);
        result.counts
    });
    let [text, configuration, off] = counts;
    let steps = text.executed + text.cached + text.repeated;
    assert_eq!((off.executed, off.cached, off.repeated), (steps, 0, 0));
    assert_eq!(configuration.executed + configuration.repeated, steps);
    assert_eq!(configuration.cached, 0);
    assert!(text.cached > 0 && text.repeated == configuration.repeated && text.repeated > 0);
}

#[test]
fn the_second_table_of_issta_takes_17_tests_of_27() {
    let input = b"12345678";
    let (result, _) = run(input, &mut outcomes(all_of(b"178")));
    let result = result.expect("a result");
    assert_eq!(result.text, b"178");
    assert_eq!(
        (
            result.counts.executed,
            result.counts.repeated,
            result.counts.cached
        ),
        (17, 10, 0)
    );
}

#[test]
fn the_same_outcomes_give_the_same_log() {
    let input = b"no two runs of this may differ in <anything> but time";
    let logs = [(); 2].map(|()| without_times(&run(input, &mut outcomes(subsequence(b"<n>"))).1));
    assert_eq!(logs[0], logs[1]);
}

#[test]
fn a_result_that_does_not_fail_every_time_makes_no_claim() {
    let mut confirmations = 0;
    let mut oracle = crate::scripted::answers(|text, fresh| {
        confirmations += u32::from(fresh);
        let outcome = match fresh && confirmations == 2 {
            true => Outcome::Pass,
            false => subsequence(b"x")(text),
        };
        Ok(ddfuzz::minimize::Answer::of(outcome))
    });
    let (result, _) = run(b"abxc", &mut oracle);
    let result = result.expect("a result");
    assert_eq!(result.claim, Claim::BestSoFar);
    let rate = Rate { hits: 2, tries: 3 };
    assert_eq!(result.warnings, [Warning::FlakyResult { rate }]);
    assert_eq!(result.confirmed, rate);
}

#[test]
fn an_unknown_search_is_named_beside_those_that_exist() {
    let mut oracle = outcomes(|_| Outcome::Fail);
    let start = ddfuzz::minimize::log::StartLine {
        search: "quickest".to_owned(),
        ..start(b"x")
    };
    let (result, _) = run_with(b"x", start, &mut oracle, &mut Options::default());
    let message = result.expect_err("no such search").to_string();
    assert_eq!(
        message,
        "there is no search \"quickest\"; there are: full, subset, ddmin, ddmin-2002, dd, dd-1999, dd-plus"
    );
}

#[test]
fn with_log_inputs_each_test_holds_its_candidate() {
    let mut options = Options {
        log_inputs: true,
        ..Options::default()
    };
    let (_, log) = run_with(
        b"ax",
        start(b"ax"),
        &mut outcomes(subsequence(b"x")),
        &mut options,
    );
    let tests: Vec<_> = without_times(&log)
        .into_iter()
        .filter(|line| line["kind"] == "test")
        .collect();
    assert_eq!(tests[0]["input"], "YQ==");
    assert_eq!(tests[1]["input"], "eA==");
}
