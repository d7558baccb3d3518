//! The house rules: what the tree must look like.

mod documents;
mod functions;
mod limits;
mod names;
mod programs;
mod text;
#[path = "../tree/mod.rs"]
mod tree;
mod unfinished;

/// Fails with everything that was found, one finding a line.
fn assert_none(rule: &str, findings: &[String]) {
    assert!(findings.is_empty(), "{rule}:\n  {}", findings.join("\n  "));
}
