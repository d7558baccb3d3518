//! The lines of a minimization log, as far as they do not depend on chance.

use serde_json::Value;

/// The lines without times and without the number of tests that were run ahead in vain.
pub fn lasting(log: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(log).unwrap();
    let line = |line: &str| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        for time in ["us", "cpu_us", "spent_ms"] {
            value.as_object_mut().unwrap().remove(time);
        }
        if let Some(tests) = value.get_mut("tests") {
            *tests = without_speculative(tests);
        }
        value
    };
    text.lines().map(line).collect()
}

/// Counts of tests without those that were run ahead in vain.
pub fn without_speculative(tests: &Value) -> Value {
    let mut tests = tests.clone();
    tests["speculative"] = Value::Null;
    tests
}
