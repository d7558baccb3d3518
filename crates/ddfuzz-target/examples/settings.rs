//! An example target: a parser of `name=value` lines with a bug.
//!
//! ```text
//! cargo build -p ddfuzz-target --example settings
//! ddfuzz run --time 5s --exec harness -- target/debug/examples/settings
//! ```

use std::collections::BTreeMap;

/// Reason why a text is not a valid list of settings (`name=value`, one per line).
#[derive(Debug)]
#[allow(
    dead_code,
    reason = "the number is read where the error is told to the user"
)]
enum Refused {
    /// The line with this number, counted from 1, has no `=`.
    NoValue(usize),
    /// The text is not UTF-8.
    NoText,
}

/// Parses settings (`name=value`, one per line) to a map from names to values.
fn parse(text: &str) -> Result<BTreeMap<&str, &str>, Refused> {
    let mut settings = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let (name, value) = line.split_once('=').ok_or(Refused::NoValue(index + 1))?;
        settings.insert(name, unquoted(value));
    }
    Ok(settings)
}

/// Returns the value without the quotes around it, if it has any.
#[inline(never)]
fn unquoted(value: &str) -> &str {
    if value.starts_with('"') {
        // The bug: a lone quote is its own end, and the range is turned around.
        return &value[1..value.len() - 1];
    }
    value
}

ddfuzz_target::target!(|data: &[u8]| -> Result<(), Refused> {
    let text = std::str::from_utf8(data).map_err(|_| Refused::NoText)?;
    parse(text)?;
    Ok(())
});
