//! What all pages share: one file that needs nothing else.

use super::size;
use super::text::{entity, printable};

/// What stands before the first hostile text. Nothing is loaded from anywhere, and a browser is
/// told to refuse it. The second line is a comment by which a later call knows the file for one of
/// ddfuzz's.
const HEAD: &str = include_str!("head.html");

/// The end of a page.
pub(super) const END: &str = "</body>\n</html>\n";

/// The beginning of a page with this title.
pub(super) fn head(title: &str) -> String {
    HEAD.replace("TITLE", &escaped(title))
}

/// What is shown, and by what it is sorted.
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) key: String,
}

impl Cell {
    /// A text, sorted as it reads.
    pub(super) fn text(text: &str) -> Cell {
        let text = text.to_owned();
        let key = text.clone();
        Cell { text, key }
    }

    /// A number, sorted by its value.
    pub(super) fn number(number: u64) -> Cell {
        let (text, key) = (size::grouped(number), number.to_string());
        Cell { text, key }
    }
}

/// A table that sorts by a click on a column.
pub(super) fn table(heads: &[&str], lines: impl Iterator<Item = Vec<Cell>>) -> String {
    let heads = heads.iter();
    let heads: String = heads
        .map(|head| format!("<th>{}</th>", escaped(head)))
        .collect();
    let mut text = format!("<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n");
    for line in lines {
        let cells = line.iter();
        let cells: String = cells
            .map(|cell| {
                let (key, shown) = (escaped(&cell.key), escaped(&cell.text));
                format!("<td data-key=\"{key}\">{shown}</td>")
            })
            .collect();
        text += &format!("<tr>{cells}</tr>\n");
    }
    text + "</tbody>\n</table>\n"
}

/// Text that means nothing to HTML, in an element or in an attribute in double quotes.
pub(super) fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in printable(text).chars() {
        match character {
            '"' => shown.push_str("&quot;"),
            '\'' => shown.push_str("&#39;"),
            _ => match entity(character) {
                Some(entity) => shown.push_str(entity),
                None => shown.push(character),
            },
        }
    }
    shown
}
