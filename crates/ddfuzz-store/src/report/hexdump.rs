//! Inputs as hex and text.

/// One line with at most `shown` bytes from the beginning: hex, then text in bars with `.` for
/// what is not printable ASCII, then how many more there are.
/// `41 0a  |A.|`, `41 41  |AA| and 98 more`, and `(empty)`.
pub fn line(bytes: &[u8], shown: usize) -> String {
    use std::fmt::Write;
    if bytes.is_empty() {
        return "(empty)".to_owned();
    }
    let head = &bytes[..bytes.len().min(shown.max(1))];
    let mut line = String::with_capacity(head.len() * 4 + 24);
    for byte in head {
        // Writing to a string never fails.
        let _ = write!(line, "{byte:02x} ");
    }
    line.push_str(" |");
    line.extend(head.iter().map(|&byte| match byte {
        b' '..=b'~' => byte as char,
        _ => '.',
    }));
    line.push('|');
    if head.len() < bytes.len() {
        let _ = write!(
            line,
            " and {} more",
            super::size::grouped((bytes.len() - head.len()) as u64)
        );
    }
    line
}
