//! HTML pages: their head, sortable tables, and escaping. A page is one file that loads nothing.

use super::size;
use super::text::{entity, printable};

/// Start of every HTML page, with a policy that makes browsers load nothing. Its second line is a
/// comment that marks the file as written by ddfuzz, so that a later call may overwrite it.
const HEAD: &str = include_str!("head.html");

pub(super) const END: &str = "</body>\n</html>\n";

pub(super) fn head(title: &str) -> String {
    HEAD.replace("TITLE", &escaped(title))
}

/// A cell of an HTML table: the text shown, and the key by which its column is sorted.
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) key: String,
}

impl Cell {
    pub(super) fn text(text: &str) -> Cell {
        let text = text.to_owned();
        let key = text.clone();
        Cell { text, key }
    }

    pub(super) fn number(number: u64) -> Cell {
        let (text, key) = (size::grouped(number), number.to_string());
        Cell { text, key }
    }
}

/// Formats an HTML table that the reader of the page sorts by a click on a column head. `heads` are
/// the column heads, separated by `, `.
pub(super) fn table(heads: &str, lines: impl Iterator<Item = Vec<Cell>>) -> String {
    let heads: String = heads
        .split(", ")
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

/// Escapes text for HTML, in an element or a quoted attribute.
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
