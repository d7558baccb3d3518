//! `ddfuzz.toml`: a project that was fetched from somewhere brings it along. Each setting must
//! stand in a line of the text, behind the one before it, and so must each mistake.
#![no_main]

use libfuzzer_sys::fuzz_target;

// The file of the command line's own: reading the settings needs nothing of the rest of it, and
// no other program has to.
#[path = "../../src/cli/config/file.rs"]
mod file;

use file::{Setting, Value};

fuzz_target!(|text: &str| {
    let lines = 1 + text.bytes().filter(|byte| *byte == b'\n').count();
    match file::parse(text) {
        Ok(settings) => check(&settings, lines),
        Err(error) => {
            assert!((1..=lines).contains(&error.line), "{error:?}");
            assert!(!error.why.is_empty());
        }
    }
});

fn check(settings: &[Setting], lines: usize) {
    let mut last = 1;
    for setting in settings {
        assert!((last..=lines).contains(&setting.line), "{setting:?}");
        last = setting.line;
        check_value(&setting.value, lines);
    }
}

fn check_value(value: &Value, lines: usize) {
    assert!(!value.kind().is_empty());
    match value {
        Value::Table(settings) => check(settings, lines),
        Value::List(values) => values.iter().for_each(|value| check_value(value, lines)),
        Value::Text(_) | Value::Number(_) | Value::Flag(_) | Value::DateTime => {}
    }
}
