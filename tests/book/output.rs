//! What a document says that a command says, against what it says.

/// Whether these lines are said: a line `...` stands for any number of lines, `[..]` in a line for
/// any text.
pub fn fits(expected: &[String], said: &[&str]) -> bool {
    let Some((first, rest)) = expected.split_first() else {
        return said.is_empty();
    };
    if first.trim() == "..." {
        return (0..=said.len()).any(|from| fits(rest, &said[from..]));
    }
    said.split_first().is_some_and(|(line, more)| {
        line_fits(first.trim_end(), line.trim_end()) && fits(rest, more)
    })
}

fn line_fits(expected: &str, line: &str) -> bool {
    let parts: Vec<&str> = expected.split("[..]").collect();
    let [first, middle @ .., last] = &parts[..] else {
        return expected == line;
    };
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[test]
fn only_what_is_elided_may_differ() {
    let fits = |expected: &str, said: &str| {
        let expected: Vec<String> = expected.lines().map(str::to_owned).collect();
        super::output::fits(&expected, &said.lines().collect::<Vec<_>>())
    };
    assert!(fits("a\nb", "a\nb  "));
    assert!(fits("a\n...\nd", "a\nb\nc\nd"));
    assert!(fits("a\n...", "a"));
    assert!(fits("in [..] s, [..] runs", "in 1.5 s, 12 runs"));
    assert!(!fits("in [..] s, [..] runs", "in 1.5 s, 12 tests"));
    assert!(!fits("a\nb", "a"));
    assert!(!fits("a", "a\nb"));
    assert!(!fits("...\nx", "a\nb"));
}
