//! What a source line has: comparisons with their operands, numbers, and steps by one. Pure.

/// A comparison by order in a source line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Relation<'a> {
    /// The operator: `<`, `<=`, `>` or `>=`.
    pub operator: &'a str,
    /// Text of the operand on the left of the operator.
    pub left: &'a str,
    /// Text of the operand on the right of the operator.
    pub right: &'a str,
}

impl<'a> Relation<'a> {
    /// Returns the operator with which the comparison means the same when its operands are exchanged:
    /// `>` for `<`.
    pub fn turned(&self) -> &'static str {
        match self.operator {
            "<" => ">",
            "<=" => ">=",
            ">" => "<",
            _ => "<=",
        }
    }

    /// Returns the operand that does not vary, with the operator that stands before it when it is
    /// on the right: a number, a character, a name in capital letters, or a size by `sizeof`.
    /// `None` if there is no such operand, or if both are.
    pub fn limit(&self) -> Option<(&'static str, &'a str)> {
        match [self.left, self.right].map(is_constant) {
            [false, true] => Some((same(self.operator), self.right)),
            [true, false] => Some((self.turned(), self.left)),
            _ => None,
        }
    }

    /// Returns in words that a comparison has another result than this one if both operands are equal,
    /// and the same otherwise, such as `` `<=` in place of `<` ``.
    pub fn words(&self) -> String {
        let (was, is) = (self.operator, with_other_equality(self.operator));
        format!("with `{is}` in place of `{was}`")
    }
}

/// Returns `operator` as a text that outlives the source line.
fn same(operator: &str) -> &'static str {
    match operator {
        "<" => "<",
        "<=" => "<=",
        ">" => ">",
        _ => ">=",
    }
}

/// Returns the relational operator that differs from `operator` only for equal operands.
fn with_other_equality(operator: &str) -> &'static str {
    match operator {
        "<" => "<=",
        "<=" => "<",
        ">" => ">=",
        _ => ">",
    }
}

/// Returns the comparisons by order in the source text `source`, from left to right. Shifts (`<<`,
/// `>>`) and arrows (`->`, `=>`) are left out.
pub(super) fn relations(source: &str) -> Vec<Relation<'_>> {
    let bytes = source.as_bytes();
    let at = |index: usize| bytes.get(index).copied().unwrap_or(b' ');
    let mut found = Vec::new();
    for (index, byte) in bytes.iter().enumerate() {
        let before = at(index.wrapping_sub(1));
        let is_it = matches!(byte, b'<' | b'>') && before != *byte && at(index + 1) != *byte;
        if is_it && !(*byte == b'>' && matches!(before, b'-' | b'=')) {
            let end = index + if at(index + 1) == b'=' { 2 } else { 1 };
            found.push(Relation {
                operator: &source[index..end],
                left: left_operand(&source[..index]),
                right: right_operand(&source[end..]),
            });
        }
    }
    found
}

/// Returns true for a character that ends an operand of a comparison.
fn ends_operand(it: char) -> bool {
    matches!(
        it,
        ';' | '&' | '|' | '?' | ':' | ',' | '{' | '}' | '=' | '<' | '>' | '!'
    )
}

/// Returns the operand at the end of `text`, which ends at a relational operator.
fn left_operand(text: &str) -> &str {
    let mut open = 0;
    // An arrow before a field ends nothing.
    let arrow = |at: usize| text[..at].ends_with('-') && text[at..].starts_with('>');
    let start = text.char_indices().rev().find(|(at, it)| {
        match it {
            ')' | ']' => open += 1,
            '(' | '[' if open > 0 => open -= 1,
            '(' | '[' => return true,
            _ => return open == 0 && ends_operand(*it) && !arrow(*at),
        }
        false
    });
    let text = start
        .map_or(text, |(at, it)| &text[at + it.len_utf8()..])
        .trim();
    let keywords = ["if ", "while ", "return ", "assert ", "let "];
    let keyword = keywords.iter().find_map(|it| text.strip_prefix(it));
    keyword.unwrap_or(text).trim()
}

/// Returns the operand at the beginning of `text`, which begins after a relational operator.
fn right_operand(text: &str) -> &str {
    let mut open = 0;
    let arrow = |at: usize| text[..at].ends_with('-') && text[at..].starts_with('>');
    let end = text.char_indices().find(|(at, it)| {
        match it {
            '(' | '[' => open += 1,
            ')' | ']' if open > 0 => open -= 1,
            ')' | ']' => return true,
            _ => return open == 0 && ends_operand(*it) && !arrow(*at),
        }
        false
    });
    end.map_or(text, |(at, _)| &text[..at]).trim()
}

fn is_of_name(it: char) -> bool {
    it.is_ascii_alphanumeric() || it == '_'
}

/// Returns true if the operand `text` does not vary: a number, a character, a name in capital
/// letters, or a size by `sizeof`.
fn is_constant(text: &str) -> bool {
    let is_character = text.len() >= 3 && text.starts_with('\'') && text.ends_with('\'');
    let is_capital = |it: char| it.is_ascii_uppercase() || it.is_ascii_digit() || it == '_';
    let is_name = text.len() > 1
        && text.starts_with(|it: char| it.is_ascii_uppercase())
        && text.chars().all(is_capital);
    let size = text.strip_prefix("sizeof");
    let is_size = size.is_some_and(|it| !it.contains(['+', '-', '*', '/']));
    is_character || is_name || is_size || parsed(text).is_some()
}

/// Returns true if the source text `source` has a constant whose value it does not show: a name in
/// capital letters, or a size by `sizeof`.
pub(super) fn has_hidden_constant(source: &str) -> bool {
    words(source).any(|(_, word, _)| is_constant(word) && parsed(word).is_none())
}

/// Returns true if the source text `source` has the size of something, by `sizeof`.
pub(super) fn has_size(source: &str) -> bool {
    words(source).any(|(_, word, _)| word == "sizeof")
}

/// Returns true if `text` is a number or a character.
pub(super) fn is_literal(text: &str) -> bool {
    text.starts_with('\'') || parsed(text).is_some()
}

/// Returns the value of `word`, a decimal or hexadecimal number; `None` if it is something else.
fn parsed(word: &str) -> Option<i64> {
    let plain = word.replace('_', "");
    let plain = plain.trim_end_matches(['u', 'U', 'l', 'L']);
    match plain.strip_prefix("0x").or(plain.strip_prefix("0X")) {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => plain.parse().ok(),
    }
}

/// Returns the words of letters, digits and `_` in `source`, each with the text before and after.
fn words(source: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + source[at..].find(is_of_name)?;
        let end = source[start..].find(|it| !is_of_name(it));
        at = end.map_or(source.len(), |it| start + it);
        Some((&source[..start], &source[start..at], &source[at..]))
    })
}

/// Returns true if the number `value` is in the source text `source`: as a decimal or hexadecimal
/// number, or as a character.
pub(super) fn has_number(source: &str, value: i64) -> bool {
    is_quoted(source, value) || words(source).any(|it| parsed(it.1) == Some(value))
}

/// Returns true if the source text `source` adds or subtracts the number `value`.
pub(super) fn adds(source: &str, value: i64) -> bool {
    let is_sign = |it: Option<char>| matches!(it, Some('+' | '-'));
    words(source).any(|(before, word, after)| {
        let before = before.trim_end();
        let before = before.strip_suffix('=').unwrap_or(before);
        let after = after.trim_start();
        let follows = is_sign(after.chars().next()) && !after.starts_with("->");
        parsed(word) == Some(value) && (is_sign(before.chars().next_back()) || follows)
    })
}

/// Returns true if the source text `source` has a step by one (`++` or `--`).
pub(super) fn has_step(source: &str) -> bool {
    source.contains("++") || source.contains("--")
}

/// Returns true if the source text `source` changes the variable `name` by a step by one, or by an
/// assignment.
pub(super) fn steps(source: &str, name: &str) -> bool {
    words(source).any(|(before, word, after)| {
        let (before, after) = (before.trim_end(), after.trim_start());
        let operators = ["++", "--", "+=", "-="];
        let is_assigned = after.starts_with('=') && !after.starts_with("==");
        let is_stepped = operators.iter().any(|it| after.starts_with(it));
        let is_before = before.ends_with("++") || before.ends_with("--");
        word == name && (is_assigned || is_stepped || is_before)
    })
}

/// Returns true if the source text `source` has the character with the code `value` in single
/// quotes.
pub(super) fn is_quoted(source: &str, value: i64) -> bool {
    let character = u8::try_from(value).ok().map(char::from);
    let known = character.map(|it| [it.to_string(), it.escape_default().to_string()]);
    let known = known.into_iter().flatten();
    let zero = (value == 0).then(|| "\\0".to_owned());
    (known.chain(zero)).any(|it| source.contains(&format!("'{it}'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_have_their_operands() {
        let told = |source| {
            let all = relations(source);
            let all = all.iter().map(|it| (it.left, it.operator, it.right));
            all.map(|it| [it.0, it.1, it.2].join(" "))
                .collect::<Vec<_>>()
        };
        assert_eq!(told("for (i = 0; i <= n; i++)"), ["i <= n"]);
        assert_eq!(told("while (p->at < n << 2)"), ["p->at < n"]);
        assert_eq!(
            told("if (f(a, b) >= LIMIT && t[i + 1] < q->size) {"),
            ["f(a, b) >= LIMIT", "t[i + 1] < q->size"]
        );
        assert_eq!(told("return 5 > x"), ["5 > x"]);
        assert_eq!(told("if row >= self.height {"), ["row >= self.height"]);
        assert!(told("it->next = other; f = |x| => x").is_empty());
    }

    #[test]
    fn constants_may_hide_their_values() {
        assert!(has_hidden_constant("n = len < sizeof l->host ? len : 3"));
        assert!(has_hidden_constant("if (n > MAX_LINES)"));
        assert!(!has_hidden_constant("if (n > 20 && N < p->x)"));
    }

    #[test]
    fn what_does_not_vary_is_the_limit() {
        let limit = |source| relations(source)[0].limit();
        assert_eq!(limit("if (n >= MAXSTOPS)"), Some((">=", "MAXSTOPS")));
        assert_eq!(limit("if (5 > x)"), Some(("<", "5")));
        assert_eq!(limit("if (x < '0')"), Some(("<", "'0'")));
        assert_eq!(limit("if (i < n)"), None);
        assert_eq!(limit("if (i < n + 1)"), None);
    }

    #[test]
    fn numbers_are_added_only_where_a_sign_says_so() {
        assert!(adds("n + 1", 1) && adds("n -= 0x10u", 16) && adds("1 + n", 1));
        assert!(!adds("for (k = 1; k <= n; k++)", 1) && !adds("1->x", 1));
        assert!(steps("for (i = 0; i <= n; i++)", "i") && steps("--n", "n"));
        assert!(!steps("for (i = 0; i <= n; i++)", "n") && !steps("n == 1", "n"));
    }
}
