//! Programs that stay large: what many bytes depend on goes first, in few tests.

use ddfuzz_delta::{Full, Structure};
use ddfuzz_structure::structure_named;

use crate::searches::{Reduced, reduce_by};

/// Numbers of the calls that the failure needs.
const NEEDED: std::ops::Range<usize> = 100..170;

/// A program in which most declarations are used by themselves only.
fn program() -> String {
    let unused = (0..40).map(|index| {
        format!("var UNUSED_CODE_{index} = codes.UNUSED_CODE_{index} = {index};\n\n   \n")
    });
    let calls = NEEDED.map(|index| format!("announce_message({index});\n"));
    let known = "function announce_message(text) { return text; }\n".to_owned();
    let all = unused.chain(std::iter::once(known)).chain(calls);
    all.collect()
}

/// Checks whether a function is declared and called with all needed numbers, and whether names that are
/// assigned to are declared.
fn calls_what_is_declared(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let Some((_, rest)) = text.split_once("function ") else {
        return false;
    };
    let name = rest.split('(').next().unwrap_or_default();
    let count = |sign: char| text.matches(sign).count();
    let is_called = |number: usize| text.contains(&format!("{name}({number});"));
    !name.is_empty()
        && NEEDED.into_iter().all(is_called)
        && count('(') == count(')')
        && count('{') == count('}')
        && text.matches('=').count() == text.matches("var ").count() * 2
}

pub fn reduced(structure: Structure) -> Reduced {
    let program = program();
    let search = Full::structured(program.as_bytes(), structure);
    reduce_by(
        Box::new(search),
        program.as_bytes(),
        &calls_what_is_declared,
        false,
    )
}

#[test]
fn unused_declarations_go_and_names_become_short_before_small_nodes() {
    let reduced = reduced(structure_named("javascript").expect("a known grammar"));
    let text = String::from_utf8_lossy(&reduced.text);
    assert!(
        !text.contains("var") && !text.contains("announce"),
        "{text}"
    );
    println!("{} tests, {} bytes", reduced.tests, reduced.text.len());
}

#[test]
fn names_become_short_before_lines_without_a_grammar() {
    let reduced = reduced(Structure::Text);
    let text = String::from_utf8_lossy(&reduced.text);
    assert!(!text.contains("announce"), "{text}");
    println!("{} tests, {} bytes", reduced.tests, reduced.text.len());
}
