//! Finds the clauses of a `CREATE TABLE` statement for which SQLite makes automatic indices.

use std::ops::Range;

/// A word, bracket, comma or other sign of an SQL statement: its range in the statement, and the
/// number of brackets around it, where a bracket is counted as inside of itself.
struct Token {
    place: Range<usize>,
    depth: usize,
}

/// Returns the ranges of those clauses of a `CREATE TABLE` statement for which SQLite makes an
/// index (`UNIQUE`, and `PRIMARY KEY` unless it is the rowid), in the order of the indices. A range
/// begins with the blanks or comma before the clause, so that the statement stays valid when the
/// range is deleted.
pub fn indexed_clauses(statement: &[u8]) -> Vec<Range<usize>> {
    let tokens = tokens(statement);
    let of = |token: &Token| statement[token.place.clone()].to_ascii_lowercase();
    let mut definitions: Vec<Vec<&Token>> = Vec::new();
    for token in tokens.iter().filter(|token| token.depth > 0) {
        match (&statement[token.place.clone()], token.depth) {
            (b"(", 1) if definitions.is_empty() => definitions.push(Vec::new()),
            (b",", 1) => definitions.push(vec![token]),
            (b")", 1) => break,
            _ => definitions
                .iter_mut()
                .last()
                .into_iter()
                .for_each(|last| last.push(token)),
        }
    }
    let mut clauses = Vec::new();
    for definition in &definitions {
        let words: Vec<Vec<u8>> = definition.iter().map(|token| of(token)).collect();
        let first = usize::from(words.first().is_some_and(|word| word == b","));
        let is_constraint = matches!(
            words.get(first).map(|word| &word[..]),
            Some(b"constraint" | b"primary" | b"unique" | b"check" | b"foreign")
        );
        let mut at = if is_constraint { first } else { first + 1 };
        while let Some(end) = (at < words.len()).then(|| key_end(&words, at)) {
            let Some(end) = end else {
                at += 1;
                continue;
            };
            let is_row = words[at] == b"primary"
                && match is_constraint {
                    true => names_row(&definitions, &words[end..], &of),
                    false => at == first + 2 && words[first + 1] == b"integer",
                };
            let start = match is_constraint {
                true => definition[0].place.start,
                false => definition[at - 1].place.end,
            };
            let last = if is_constraint { definition.len() } else { end };
            if !is_row {
                clauses.push(start..definition[last - 1].place.end);
            }
            at = last;
        }
    }
    clauses
}

/// Returns the index after the last word of the clause `UNIQUE` or `PRIMARY KEY` (with sort order
/// and conflict clause) that begins with the word at `at`; `None` if no such clause begins there.
fn key_end(words: &[Vec<u8>], at: usize) -> Option<usize> {
    let is = |at: usize, word: &[u8]| words.get(at).is_some_and(|other| other == word);
    let mut end = match &words[at][..] {
        b"unique" => at + 1,
        b"primary" if is(at + 1, b"key") => at + 2,
        _ => return None,
    };
    if is(end, b"asc") || is(end, b"desc") {
        end += 1;
    }
    if is(end, b"on") && is(end + 1, b"conflict") && words.len() > end + 2 {
        end += 3;
    }
    Some(end + usize::from(is(end, b"autoincrement")))
}

/// Returns true if the constraint `PRIMARY KEY` of a table names a single column of the type
/// `integer`; that column is then the rowid and needs no index. `definitions` are the definitions
/// in the `CREATE TABLE` statement, `rest` the words after `KEY`; `of` returns the text of a token
/// in lower case.
fn names_row(
    definitions: &[Vec<&Token>],
    rest: &[Vec<u8>],
    of: &dyn Fn(&Token) -> Vec<u8>,
) -> bool {
    let [open, name, close, ..] = rest else {
        return false;
    };
    let is_integer = definitions.iter().any(|definition| {
        let mut words = definition
            .iter()
            .map(|token| of(token))
            .filter(|word| word != b",");
        words.next().as_ref() == Some(name) && words.next().is_some_and(|word| word == b"integer")
    });
    open == b"(" && close == b")" && is_integer
}

/// Splits an SQL statement into words, brackets, commas and other signs. A quoted name or string is
/// one word; comments are skipped.
fn tokens(statement: &[u8]) -> Vec<Token> {
    let (mut tokens, mut depth, mut at) = (Vec::new(), 0_usize, 0);
    while let Some(byte) = statement.get(at) {
        let rest = &statement[at..];
        let until = |end: &[u8], from: usize| {
            let found = rest
                .windows(end.len())
                .skip(from)
                .position(|one| one == end);
            found.map_or(rest.len(), |found| from + found + end.len())
        };
        let size = match byte {
            b'\'' | b'"' | b'`' => until(&[*byte], 1),
            b'[' => until(b"]", 1),
            b'-' if rest.starts_with(b"--") => until(b"\n", 2),
            b'/' if rest.starts_with(b"/*") => until(b"*/", 2),
            _ => {
                let is_word = |byte: &u8| {
                    byte.is_ascii_alphanumeric() || b"_$".contains(byte) || !byte.is_ascii()
                };
                rest.iter().take_while(|byte| is_word(byte)).count().max(1)
            }
        };
        let is_comment = rest.starts_with(b"--") || rest.starts_with(b"/*");
        if !is_comment && !byte.is_ascii_whitespace() {
            depth += usize::from(*byte == b'(');
            tokens.push(Token {
                place: at..at + size,
                depth,
            });
            depth = depth.saturating_sub(usize::from(*byte == b')'));
        }
        at += size;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::indexed_clauses;

    /// Returns the texts of the clauses that [`indexed_clauses`] finds in a statement.
    fn clauses(statement: &str) -> Vec<&str> {
        let clauses = indexed_clauses(statement.as_bytes());
        clauses.into_iter().map(|place| &statement[place]).collect()
    }

    #[test]
    fn keys_and_unique_columns_have_indices() {
        let two =
            "CREATE TABLE a(b TEXT PRIMARY KEY DESC NOT NULL, \"c,\" UNIQUE ON CONFLICT FAIL, d)";
        assert_eq!(
            clauses(two),
            [" PRIMARY KEY DESC", " UNIQUE ON CONFLICT FAIL"]
        );
        let constraints =
            "create table a (b int, c default (1), primary key (b, c), constraint d unique(c))";
        assert_eq!(
            clauses(constraints),
            [", primary key (b, c)", ", constraint d unique(c)"]
        );
    }

    #[test]
    fn numbers_of_rows_have_no_index() {
        for statement in [
            "CREATE TABLE a(b INTEGER PRIMARY KEY AUTOINCREMENT, c)",
            "CREATE TABLE a(b INTEGER, c, PRIMARY KEY(b))",
            "CREATE TABLE a(b -- UNIQUE\n, c /* UNIQUE */ CHECK (c > 'UNIQUE'))",
            "CREATE VIEW a AS SELECT 1",
            "",
            "(((",
            "CREATE TABLE a(unique",
        ] {
            let found = clauses(statement);
            assert!(
                found.is_empty() || statement.ends_with("unique"),
                "{found:?}"
            );
        }
    }
}
