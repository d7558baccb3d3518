//! A line as words, as a shell would see them: `run.py` hands its lines to one.

/// What a shell does something with, outside of quotes.
const SHELL: &str = "|&;<>()$`*?!{}";
/// What a shell does something with between double quotes.
const EXPANDED: &str = "$`";

/// Splits a text at blanks; quotes and backslashes keep blanks and are taken away.
///
/// # Errors
/// Where a quote stays open, or a shell would do more than split.
pub fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    // `Some("")` is the empty word of '' or "".
    let mut word: Option<String> = None;
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => quoted(&mut rest, '\'', word.get_or_insert_default())?,
            '"' => quoted(&mut rest, '"', word.get_or_insert_default())?,
            '\\' => match rest.next() {
                Some(next) => word.get_or_insert_default().push(next),
                None => return Err("it ends with a backslash; write \\\\ for one".to_owned()),
            },
            '#' if word.is_none() => return Err(does_more('#')),
            other if SHELL.contains(other) => return Err(does_more(other)),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

fn quoted(rest: &mut std::str::Chars, mark: char, word: &mut String) -> Result<(), String> {
    while let Some(character) = rest.next() {
        match character {
            end if end == mark => return Ok(()),
            '\\' if mark == '"' => {
                let next = rest.next().unwrap_or('\\');
                if !"\"\\$`".contains(next) {
                    word.push('\\');
                }
                word.push(next);
            }
            other if mark == '"' && EXPANDED.contains(other) => return Err(does_more(other)),
            other => word.push(other),
        }
    }
    Err(format!("a quote is not closed; close it with {mark}"))
}

fn does_more(character: char) -> String {
    format!(
        "{character:?} is special for a shell, but no shell is used; quote it with single \
             quotes to pass it to the utility"
    )
}
