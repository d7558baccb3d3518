//! A test that calls a function of the crate under test.

use super::{Input, Reproducer};

/// A `#[test]` that evaluates the expression `call`, in which `INPUT` is the input: it fails when
/// that panics. What would end the process ends all tests with it.
pub fn rust_call_test(of: &Reproducer, input: Input<'_>, call: &str) -> String {
    format!(
        "// {}\n\n\
         /// The input that causes the failure.\n{}\n\
         #[test]\nfn {}() {{\n    let _ = {};\n}}\n",
        of.title(),
        input.constant(),
        of.identifier(),
        call.trim(),
    )
}
