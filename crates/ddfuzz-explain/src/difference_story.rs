//! The sentence of the text about the difference between the failing and the passing input. Pure.

use crate::report::{Explanation, InputDifference};

/// Longest line of an input, in bytes, that the text shows as a whole.
const WHOLE: usize = 48;
/// Number of bytes of a longer line that the text shows before and after the first difference.
const AROUND: usize = 20;

/// Returns the sentence that says in how many bytes the inputs differ, and shows the first line
/// that differs; `None` if they do not differ.
pub(crate) fn difference(it: &Explanation) -> Option<String> {
    let input = &it.input;
    let all = &input.difference;
    let at = all.first()?.at[0] as usize;
    let bytes = differing(all);
    let plural = if bytes == 1 { "" } else { "s" };
    let failing = input.failing.as_ref().map_or(&[][..], |it| &it.0);
    let passing = input.passing.as_ref().map_or(&[][..], |it| &it.0);
    // Lines are of no help where there are none.
    let (place, [told, other], more) = match [failing, passing].iter().all(|it| is_text(it)) {
        true => {
            let (line, told) = around(failing, at);
            let more = lines(failing, all).saturating_sub(1);
            (format!("line {line}"), [told, around(passing, at).1], more)
        }
        false => {
            let bytes = [around_byte(failing, at), around_byte(passing, at)];
            (format!("byte {at} ({at:#x})"), bytes, 0)
        }
    };
    let inputs = match input.is_closer {
        true => "The failing input and a passing one, closer than the given one,",
        false => "The failing and the passing input",
    };
    let more = match more {
        0 => String::new(),
        1 => "   (and 1 more line)".to_owned(),
        more => format!("   (and {more} more lines)"),
    };
    Some(format!(
        "{inputs} differ in {bytes} byte{plural}:   {place}: {told} fails   {other} passes{more}"
    ))
}

/// Returns the number of bytes that differ in the ranges `all`: those of the longer of both texts
/// in each.
pub(crate) fn differing(all: &[InputDifference]) -> usize {
    let bytes = all
        .iter()
        .map(|it| it.removed.0.len().max(it.inserted.0.len()));
    bytes.sum()
}

/// Returns the number of lines in which two inputs differ: `failing` is one of them, and `all` are
/// the ranges of it that differ. A line that only one of them has counts.
fn lines(failing: &[u8], all: &[InputDifference]) -> usize {
    let ends = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
    // A line with its end is one line.
    let within = |text: &[u8]| {
        let is_whole = text.first() == Some(&b'\n') || text.last() == Some(&b'\n');
        ends(text) + 1 - usize::from(is_whole)
    };
    let (mut count, mut last) = (0, None);
    for it in all {
        let line = |at: u64| ends(&failing[..(at as usize).min(failing.len())]);
        let is_same = last == Some(line(it.at[0]));
        count += within(&it.removed.0).max(within(&it.inserted.0)) - usize::from(is_same);
        last = Some(line(it.at[1].max(it.at[0] + 1) - 1));
    }
    count
}

/// Returns true if an input is a text: valid UTF-8 without control characters other than those that
/// end and indent lines.
fn is_text(bytes: &[u8]) -> bool {
    let is_plain = |it: char| !it.is_control() || matches!(it, '\n' | '\r' | '\t');
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(is_plain))
}

/// Returns the bytes of an input from the offset `at` on, at most eight, as hexadecimal numbers.
fn around_byte(bytes: &[u8], at: usize) -> String {
    let shown = &bytes[at.min(bytes.len())..bytes.len().min(at.saturating_add(8))];
    let hex: Vec<String> = shown.iter().map(|byte| format!("{byte:02x}")).collect();
    match shown.is_empty() {
        true => "its end".to_owned(),
        false => hex.join(" "),
    }
}

/// Returns the number of the line with the byte at offset `at` of a text, and the line, quoted and
/// escaped: of a line longer than [`WHOLE`] bytes only the part around the byte, with `…` where it
/// is cut.
fn around(text: &[u8], at: usize) -> (usize, String) {
    let at = at.min(text.len());
    let line = text[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
    let start = text[..at]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let end = text[at..]
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(text.len(), |end| at + end);
    let (from, to) = match end - start > WHOLE {
        true => (start.max(at.saturating_sub(AROUND)), end.min(at + AROUND)),
        false => (start, end),
    };
    let cut = |is_cut: bool| if is_cut { "…" } else { "" };
    let (before, after) = (cut(from > start), cut(to < end));
    let shown = text[from..to].escape_ascii();
    (line, format!("{before}\"{shown}\"{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::input_difference;

    #[test]
    fn bytes_are_told_where_an_input_has_no_lines() {
        assert!(is_text(b"one\n\ttwo\r\n") && is_text("é".as_bytes()));
        assert!(!is_text(b"PK\x03\x04") && !is_text(b"\xc2"));
        assert_eq!(around_byte(b"ab\x80\xff", 2), "80 ff");
        assert_eq!(around_byte(&[7; 20], 4), "07 07 07 07 07 07 07 07");
        assert_eq!(around_byte(b"ab", 2), "its end");
    }

    #[test]
    fn only_the_bytes_that_differ_count_and_other_lines_are_announced() {
        let told = |failing: &[u8], passing: &[u8]| {
            let all = input_difference(failing, passing);
            (differing(&all), lines(failing, &all))
        };
        assert_eq!(told(b"-care\n#\n-dog\n", b"-car\n#\ndog\n"), (2, 2));
        assert_eq!(told(b"a\nb\nc\n", b"a\nc\n"), (2, 1));
        assert_eq!(told(b"a\nc\n", b"a\nb\nc\n"), (2, 1));
        assert_eq!(told(b"a\nb\nc\n", b"a\nx\nc\n"), (1, 1));
        assert_eq!(told(b"abc abc\n", b"xbc abx\n"), (2, 1));
        assert_eq!(told(b"a\nb\nc\nd\n", b"d\n"), (6, 3));
    }

    #[test]
    fn a_line_that_is_cut_says_so() {
        let long = [b'x'; 60];
        let text = [b"ab\n".as_slice(), &long, b"\ncd"].concat();
        let x = "x".repeat(20);
        assert_eq!(around(&text, 1), (1, "\"ab\"".to_owned()));
        assert_eq!(around(&text, 3), (2, format!("\"{x}\"…")));
        assert_eq!(around(&text, 30), (2, format!("…\"{x}{x}\"…")));
        assert_eq!(around(&text, 63), (2, format!("…\"{x}\"")));
    }
}
