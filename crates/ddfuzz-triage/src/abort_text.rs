//! What a program says when it aborts, as far as keys take it in.

/// The text of a failed assertion: what stands in ``Assertion `…' failed``, numbers removed.
/// `said` is the C library's message, or what the program wrote to stderr.
pub fn assertion(said: &str) -> Option<String> {
    let begin = said.rfind("Assertion `")? + "Assertion `".len();
    let rest = &said[begin..];
    let end = rest.find("' failed").unwrap_or(rest.len());
    Some(without_numbers(&rest[..end]))
}

/// The last line that says something, numbers removed.
pub fn last_line(said: &str) -> Option<String> {
    said.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .map(without_numbers)
}

/// The text without decimal and `0x` numbers, which often are addresses or lengths.
pub fn without_numbers(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let hex = rest
            .strip_prefix("0x")
            .filter(|digits| digits.starts_with(|digit: char| digit.is_ascii_hexdigit()));
        rest = match hex {
            Some(digits) => digits.trim_start_matches(|digit: char| digit.is_ascii_hexdigit()),
            None if first.is_ascii_digit() => {
                rest.trim_start_matches(|digit: char| digit.is_ascii_digit())
            }
            None => {
                result.push(first);
                &rest[first.len_utf8()..]
            }
        };
    }
    result
}
