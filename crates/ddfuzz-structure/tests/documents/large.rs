//! Programs that stay large: what takes few tests for many bytes is deleted first.

use std::ops::Range;

use ddfuzz_delta::{Full, Outcome, Search, Structure};
use ddfuzz_structure::structure_named;

/// A program in which most declarations are used only by themselves, and one function is called with
/// all numbers of `calls`.
fn program(calls: Range<usize>) -> String {
    let unused = (0..40).map(|index| {
        format!("var UNUSED_CODE_{index} = codes.UNUSED_CODE_{index} = {index};\n\n   \n")
    });
    let calls = calls.map(|index| format!("announce_message({index});\n"));
    let known = "function announce_message(text) { return text; }\n".to_owned();
    let all = unused.chain(std::iter::once(known)).chain(calls);
    all.collect()
}

/// Checks whether a function is declared and called with all numbers of `calls`, whether its brackets
/// match, and whether variables that are assigned to are declared.
fn calls_what_is_declared(text: &str, mut calls: Range<usize>) -> bool {
    let name = text.split_once("function ").map(|(_, rest)| rest);
    let name = name.and_then(|rest| rest.split('(').next());
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return false;
    };
    let count = |sign: char| text.matches(sign).count();
    calls.all(|number| text.contains(&format!("{name}({number});")))
        && count('(') == count(')')
        && count('{') == count('}')
        && count('=') == text.matches("var ").count() * 2
}

/// Returns the number of tests after which the text has at most `size` bytes.
fn tests_until(size: usize, structure: Structure, calls: Range<usize>) -> usize {
    let text = program(calls.clone());
    let mut search = Full::structured(text.as_bytes(), structure);
    let (mut best, mut candidate_text) = (text.clone().into_bytes(), Vec::new());
    let mut tests = 0;
    while best.len() > size {
        let candidate = search.next().expect("the text becomes so small");
        candidate.write_into(text.as_bytes(), &best, &mut candidate_text);
        tests += usize::from(search.predicted().is_none());
        let outcome = match std::str::from_utf8(&candidate_text) {
            Ok(text) if calls_what_is_declared(text, calls.clone()) => Outcome::Fail,
            _ => Outcome::Pass,
        };
        search.tell(outcome);
        if outcome == Outcome::Fail {
            best.clone_from(&candidate_text);
        }
    }
    tests
}

#[test]
fn unused_declarations_go_and_names_become_short_before_small_nodes() {
    let javascript = structure_named("javascript").expect("a known grammar");
    // The smallest text has 1,059 bytes, and blanks are left.
    let tests = tests_until(1500, javascript, 100..250);
    assert!(tests <= 80, "{tests} tests");
}

#[test]
fn names_become_short_before_lines_and_words_without_a_grammar() {
    let tests = tests_until(1300, Structure::Text, 100..250);
    assert!(tests <= 600, "{tests} tests");
}
