//! HTML pages: their head, sortable tables, and escaping. A page is one file that loads nothing and
//! is read without its script, which only sorts and filters tables.

use ddfuzz_model::files::escaped_markup as escaped;
use maud::{Markup, PreEscaped, html};

use super::size;

/// Start of every HTML page, with a policy that makes browsers load nothing and run no script but
/// [`SCRIPT`]. Its second line is a comment that marks the file as written by ddfuzz, so that a
/// later call may overwrite it.
const HEAD: &str = include_str!("head.html");

/// The only script of a page, which sorts and filters tables.
const SCRIPT: &str = include_str!("sort_and_filter.js");

/// Hash of the page's only script, [`SCRIPT`], as a content security policy names it.
const SCRIPT_HASH: &str = "sha256-DOUHZ323D0zCbNy77nQg0IuuwXXqhEYsT4WYUfJlHDQ=";

const END: &str = "</body>\n</html>\n";

/// Makes an HTML page with the script that sorts and filters tables. `title` is shown by the
/// browser, `body` is the content of the body.
pub(super) fn page(title: &str, body: &Markup) -> String {
    let head = HEAD.replace("SCRIPT-HASH", SCRIPT_HASH);
    // The title comes last: nothing in it is replaced.
    let head = head.replace("SCRIPT", SCRIPT);
    head.replacen("TITLE", &escaped(title), 1) + &body.0 + END
}

/// Makes an HTML page without a script. `title` is shown by the browser, `style` is added to the
/// style that all pages have, `body` is the content of the body.
pub fn page_without_script(title: &str, style: &str, body: &str) -> String {
    let head = HEAD.replace(" script-src 'SCRIPT-HASH';", "");
    let head = head.replace("<script>SCRIPT</script>\n", "");
    let head = head.replace("</style>", &format!("{style}</style>"));
    // The title comes last: nothing in it is replaced.
    head.replacen("TITLE", &escaped(title), 1) + body + END
}

/// Makes text of unknown origin part of a page: control characters and markup are shown as text.
pub(super) fn text(text: &str) -> Markup {
    PreEscaped(escaped(text))
}

/// A cell of an HTML table: the text shown, and the key by which the table's lines are sorted.
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) key: String,
    /// CSS class: `n` for a number, `long` for a text of many words; `None` for a short text.
    class: Option<&'static str>,
}

/// Minimum number of characters of a cell's text for which the text is broken into lines in a wide
/// column.
const LONG: usize = 40;

impl Cell {
    pub(super) fn text(text: &str) -> Cell {
        let class = (text.chars().count() >= LONG).then_some("long");
        let text = text.to_owned();
        let key = text.clone();
        Cell { text, key, class }
    }

    pub(super) fn number(number: u64) -> Cell {
        Cell::value(size::grouped(number), number.to_string())
    }

    /// Makes a table cell that shows the quantity `text` and is sorted by the number `key`.
    pub(super) fn value(text: String, key: String) -> Cell {
        let class = Some("n");
        Cell { text, key, class }
    }
}

/// Formats an HTML table whose lines the reader of the page can sort by a click on a column head.
/// `heads` are the column heads, separated by `, `; columns without any text are left out.
pub(super) fn table(heads: &str, lines: impl Iterator<Item = Vec<Cell>>) -> Markup {
    table_of(Some("sorted"), heads, lines)
}

/// Formats an HTML table like [`table`], but one that cannot be sorted: its lines keep their order.
pub(super) fn fixed_table(heads: &str, lines: impl Iterator<Item = Vec<Cell>>) -> Markup {
    table_of(None, heads, lines)
}

fn table_of(class: Option<&str>, heads: &str, lines: impl Iterator<Item = Vec<Cell>>) -> Markup {
    let lines: Vec<Vec<Cell>> = lines.collect();
    let has_text = |column: usize| {
        let mut cells = lines.iter().filter_map(|line| line.get(column));
        lines.is_empty() || cells.any(|cell| !cell.text.is_empty())
    };
    let heads: Vec<(&str, bool)> = (heads.split(", ").enumerate())
        .map(|(column, head)| (head, has_text(column)))
        .collect();
    let shown = |line: usize| lines[line].iter().zip(&heads).filter(|(_, (_, is))| *is);
    html! {
        div class="scroll" {
            table class=[class] {
                thead { tr { @for (head, _) in heads.iter().filter(|(_, is)| *is) { th { (text(head)) } } } }
                tbody {
                    @for line in 0..lines.len() {
                        tr {
                            @for (cell, _) in shown(line) {
                                @let key = (cell.key != cell.text).then(|| text(&cell.key));
                                td class=[cell.class] data-key=[key] { (text(&cell.text)) }
                            }
                        }
                        "\n"
                    }
                }
            }
        }
    }
}

/// Makes an HTML list of facts from lines such as `name: text`, with each name as a term.
pub(super) fn facts(lines: impl Iterator<Item = String>) -> Markup {
    html! {
        dl {
            @for line in lines {
                @let (name, rest) = line.split_once(": ").unwrap_or(("", &line));
                dt { (text(name)) } dd { (text(rest)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_the_script_and_the_title_is_text() {
        let page = page("</title><script>SCRIPT TITLE", &PreEscaped(String::new()));
        assert_eq!(page.matches("<script>").count(), 1);
        assert!(page.contains(&format!("script-src '{SCRIPT_HASH}'")));
        assert!(page.contains("ddfuzz: &lt;/title&gt;&lt;script&gt;SCRIPT TITLE"));
        assert!(page.contains(&format!("<script>{SCRIPT}</script>")));
    }
}
