//! Draws an input in HTML, as hex and as text, with marked ranges of bytes; long stretches without
//! a mark are left out.

use maud::{Markup, PreEscaped, html};

use crate::report::html::text;
use crate::report::size;

/// Numbers of bytes in a line of an input's hex view: for inputs of at most [`SHORT`] bytes, and
/// for longer ones.
const LINE: (usize, usize) = (8, 16);
/// An input of at most this many bytes is short: its hex view has 8 bytes per line instead of 16.
const SHORT: usize = 64;
/// Maximum number of lines of the hex view of an input.
const MOST_LINES: usize = 96;
/// Approximate maximum number of input bytes that the text view of an input shows.
const MOST_TEXT: usize = 4096;
/// Number of bytes without a mark that the text view of an input shows at both ends of each long
/// stretch between marked bytes.
const AROUND: usize = 48;

/// An input to be shown on a page, and the byte ranges of it that are marked.
#[derive(Clone, Copy)]
pub(super) struct Marked<'a> {
    pub(super) bytes: &'a [u8],
    /// The marked byte ranges of the input, ascending and without overlap; `None` if it is not
    /// known which bytes to mark.
    pub(super) ranges: Option<&'a [[u64; 2]]>,
    /// CSS class with which the page shows the input's marked bytes.
    pub(super) class: &'static str,
}

impl Marked<'_> {
    /// Returns whether the input is mostly text in UTF-8, so that a text view of it is readable.
    pub(super) fn is_text(&self) -> bool {
        let head = &self.bytes[..self.bytes.len().min(MOST_TEXT)];
        let lossy = String::from_utf8_lossy(head);
        let odd = |character: &char| {
            *character == '\u{fffd}' || character.is_control() && !"\n\t\r".contains(*character)
        };
        let strange = lossy.chars().filter(odd).count();
        !head.is_empty() && strange * 10 <= lossy.chars().count()
    }

    /// Splits the bytes `from..to` of the input at the borders of the marked ranges. Returns the
    /// parts in order, each with a bool that is true for a marked part.
    fn parts(&self, from: usize, to: usize) -> Vec<(&[u8], bool)> {
        let mut parts = Vec::new();
        let mut at = from;
        let ranges = self.ranges.unwrap_or_default();
        let first = ranges.partition_point(|[_, end]| *end as usize <= from);
        for [start, end] in &ranges[first..] {
            let (start, end) = ((*start as usize).max(at), (*end as usize).min(to));
            if start >= to {
                break;
            }
            if start > at {
                parts.push((&self.bytes[at..start], false));
            }
            if end > start {
                parts.push((&self.bytes[start..end], true));
            }
            at = end.max(at);
        }
        if at < to {
            parts.push((&self.bytes[at..to], false));
        }
        parts
    }

    fn has_mark(&self, from: usize, to: usize) -> bool {
        let ranges = self.ranges.unwrap_or_default();
        let first = ranges.partition_point(|[_, end]| *end as usize <= from);
        ranges
            .get(first)
            .is_some_and(|[start, _]| (*start as usize) < to)
    }

    /// Draws the input as hex with characters beside it, 96 lines at most. If the input has more
    /// lines, shows those with marks and their neighbours or, without marks, the first lines.
    pub(super) fn hex(&self) -> Markup {
        let wide = if self.bytes.len() <= SHORT {
            LINE.0
        } else {
            LINE.1
        };
        let all = self.bytes.len().div_ceil(wide);
        let bounds = |line: usize| (line * wide, self.bytes.len().min((line + 1) * wide));
        let mut shown: Vec<usize> = match all <= MOST_LINES {
            true => (0..all).collect(),
            false => {
                let is_close = |line: &usize| {
                    let from = line.saturating_sub(1) * wide;
                    self.has_mark(from, bounds((line + 1).min(all - 1)).1)
                };
                let mut lines: Vec<usize> = (0..all).filter(is_close).collect();
                // Without marks, the beginning.
                if lines.is_empty() {
                    lines = (0..MOST_LINES).collect();
                }
                lines
            }
        };
        shown.truncate(MOST_LINES);
        let mut out = String::new();
        let mut next = 0;
        for line in shown {
            if line > next {
                out += &gap((line - next) * wide);
            }
            let (from, to) = bounds(line);
            out += &self.line(from, to, wide);
            next = line + 1;
        }
        if next < all {
            out += &gap(self.bytes.len() - next * wide);
        }
        html! {
            pre class="hex" tabindex="0" {
                @if self.bytes.is_empty() { "(empty)" } @else { (PreEscaped(out)) }
            }
        }
    }

    fn line(&self, from: usize, to: usize, wide: usize) -> String {
        let parts = self.parts(from, to);
        let mut out = format!("<s>{from:06x}</s> ");
        for (bytes, marked) in &parts {
            let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            out += &self.wrapped(&hex.join(" "), *marked);
            out.push(' ');
        }
        out += &"   ".repeat(wide - (to - from));
        out.push(' ');
        for (bytes, marked) in &parts {
            let shown: String = (bytes.iter())
                .map(|byte| match byte {
                    b' '..=b'~' => *byte as char,
                    _ => '·',
                })
                .collect();
            out += &self.wrapped(&text(&shown).into_string(), *marked);
        }
        out.push('\n');
        out
    }

    fn wrapped(&self, escaped: &str, marked: bool) -> String {
        match marked {
            true => format!("<b class=\"{}\">{escaped}</b>", self.class),
            false => escaped.to_owned(),
        }
    }

    /// Draws the input as text of about 4 KiB at most. Shows only the ends of a long stretch
    /// between marks, 48 bytes at each end.
    pub(super) fn text(&self) -> Markup {
        let mut out = String::new();
        let mut left = MOST_TEXT;
        let mut shown = 0;
        for (bytes, marked) in self.parts(0, self.bytes.len()) {
            if left == 0 {
                break;
            }
            let is_long = !marked && self.ranges.is_some() && bytes.len() > 3 * AROUND;
            let taken = match is_long {
                true => {
                    let end = bytes.len() - AROUND;
                    out += &lines(&bytes[..AROUND]);
                    out += &format!("<s>⋯ {} ⋯</s>", size::bytes((end - AROUND) as u64));
                    out += &lines(&bytes[end..]);
                    2 * AROUND
                }
                false => {
                    let part = &bytes[..bytes.len().min(left)];
                    out += &self.wrapped(&lines(part), marked);
                    part.len()
                }
            };
            shown += match is_long {
                true => bytes.len(),
                false => taken,
            };
            left = left.saturating_sub(taken);
        }
        if shown < self.bytes.len() {
            out += &gap(self.bytes.len() - shown);
        }
        html! { pre class="text" tabindex="0" { (PreEscaped(out)) } }
    }
}

fn gap(bytes: usize) -> String {
    format!("<s>  ⋯ {} more</s>\n", size::bytes(bytes as u64))
}

/// Escapes bytes as HTML text of several lines; `↵` stands before each line feed, `→` for a tab.
fn lines(bytes: &[u8]) -> String {
    let whole = String::from_utf8_lossy(bytes);
    let lines: Vec<String> = (whole.split('\n'))
        .map(|line| text(&line.replace('\t', "→   ")).into_string())
        .collect();
    lines.join("<s>↵</s>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked<'a>(bytes: &'a [u8], ranges: &'a [[u64; 2]]) -> Marked<'a> {
        Marked {
            bytes,
            ranges: Some(ranges),
            class: "k",
        }
    }

    #[test]
    fn marks_split_lines_and_cover_every_byte_once() {
        let bytes: Vec<u8> = (0..40).collect();
        let ranges = [[1, 2], [7, 9], [15, 33]];
        let input = marked(&bytes, &ranges);
        for (from, to) in [(0, 16), (16, 32), (32, 40), (5, 8)] {
            let parts = input.parts(from, to);
            let whole: Vec<u8> = parts.iter().flat_map(|(bytes, _)| bytes.to_vec()).collect();
            assert_eq!(whole, bytes[from..to]);
            for (part, is_marked) in parts {
                let is_kept =
                    |at: &u8| ranges.iter().any(|[a, b]| (*a..*b).contains(&(*at).into()));
                assert!(part.iter().all(|byte| is_kept(byte) == is_marked));
            }
        }
    }

    #[test]
    fn markup_in_an_input_is_text() {
        let bytes = b"<script>alert(1)</script>\x1b[2J\xe2\x80\xae\"'&";
        let ranges = [[3, 5]];
        let page = marked(bytes, &ranges).hex().into_string()
            + &marked(bytes, &ranges).text().into_string();
        assert!(
            !page.contains("<script") && !page.contains("<sc<b"),
            "{page}"
        );
        assert!(
            !page.contains('\u{202e}') && !page.contains('\x1b'),
            "{page}"
        );
    }

    #[test]
    fn a_huge_input_is_shown_in_few_bytes() {
        let bytes = vec![b'<'; 10 << 20];
        let ranges: Vec<[u64; 2]> = (0..100_000).map(|at| [at * 100, at * 100 + 1]).collect();
        let page = marked(&bytes, &ranges).hex().into_string()
            + &marked(&bytes, &ranges).text().into_string();
        assert!(page.len() < 100_000, "{}", page.len());
    }
}
