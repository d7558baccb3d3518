//! Finds identifiers in program texts by their form alone: those that occur in a text, and those
//! that a line seems to define.

use std::collections::HashSet;

/// Words of programming languages (C, Rust, Python, Go, JavaScript …) after which an identifier
/// counts as defined, such as `struct` or `def`.
const DEFINERS: [&str; 36] = [
    "define",
    "fn",
    "struct",
    "enum",
    "union",
    "class",
    "def",
    "func",
    "function",
    "type",
    "typedef",
    "trait",
    "interface",
    "mod",
    "const",
    "static",
    "let",
    "var",
    "val",
    "int",
    "char",
    "long",
    "unsigned",
    "double",
    "float",
    "bool",
    "size_t",
    "auto",
    "void",
    "short",
    "sub",
    "macro_rules",
    "namespace",
    "local",
    "signed",
    "inline",
];

/// Endings of the names of files that a build seldom reads: documents, images, files for git.
const UNREAD: [&str; 14] = [
    ".md",
    ".txt",
    ".rst",
    ".adoc",
    ".html",
    ".texi",
    ".1",
    ".3",
    ".5",
    ".7",
    ".8",
    ".gitignore",
    ".gitattributes",
    ".png",
];

/// Checks by the path of a file whether a build probably does not read it: true for documents
/// (`README`, `.md`), images, and files for git alone.
pub fn is_unread(path: &[u8]) -> bool {
    let path = String::from_utf8_lossy(path);
    let name = path.rsplit('/').next().unwrap_or(&path);
    let is_build_file = name == "CMakeLists.txt" || name.starts_with("requirements");
    let is_named = [
        "README",
        "ChangeLog",
        "NEWS",
        "AUTHORS",
        "COPYING",
        "LICENSE",
        "CHANGES",
        "THANKS",
    ]
    .iter()
    .any(|known| name.starts_with(known));
    !is_build_file && (is_named || UNREAD.iter().any(|ending| name.ends_with(ending)))
}

/// The set of all identifiers that occur in some texts.
#[derive(Clone, Debug, Default)]
pub struct Words {
    seen: HashSet<String>,
}

impl Words {
    /// Adds all identifiers in `text` to this set of identifiers.
    pub fn add(&mut self, text: &[u8]) {
        self.seen.extend(Words::of(text));
    }

    /// Returns true if the identifier `word` occurs in one of the texts from which this set was
    /// made by [`add`](Words::add).
    pub fn has(&self, word: &str) -> bool {
        self.seen.contains(word)
    }

    /// Returns the identifiers in a text that are longer than one character, each once, in the
    /// order in which they first occur.
    pub fn of(text: &[u8]) -> Vec<String> {
        let mut seen = HashSet::new();
        let words = tokens(text).filter(|token| token.is_word && token.text.len() > 1);
        words
            .filter(|token| seen.insert(token.text))
            .map(|token| String::from_utf8_lossy(token.text).into_owned())
            .collect()
    }

    /// Returns the identifiers that a program text seems to define, line by line, in their order,
    /// possibly repeated: those after a word such as `struct`, before the `(` of a function, or
    /// before `=`.
    pub fn defined(text: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        for line in text.split(|byte| *byte == b'\n') {
            let indented = line.first().is_some_and(u8::is_ascii_whitespace);
            let line: Vec<Token<'_>> = tokens(line).collect();
            for (at, token) in line
                .iter()
                .enumerate()
                .filter(|(_, token)| token.is_word && token.text.len() > 1)
            {
                let before = line[..at]
                    .iter()
                    .rev()
                    .find(|token| token.is_word || token.text != b"*");
                let is_after_definer = before.is_some_and(|before| {
                    DEFINERS.iter().any(|word| word.as_bytes() == before.text)
                });
                let next = line.get(at + 1).map(|token| token.text);
                let is_function =
                    !indented && next == Some(b"(") && before.is_some_and(|token| token.is_word);
                let is_alone = at == 0 && matches!(next, Some(b"=" | b","));
                if is_after_definer || is_function || is_alone {
                    found.push(String::from_utf8_lossy(token.text).into_owned());
                }
            }
        }
        found
    }
}

/// A token of a program text: a word (identifier or keyword), or a single other character.
struct Token<'a> {
    text: &'a [u8],
    is_word: bool,
}

/// Splits a program text into words and single other characters; white space and words that begin
/// with a digit are left out.
fn tokens(text: &[u8]) -> impl Iterator<Item = Token<'_>> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    text.chunk_by(move |one, next| is_word(one) && is_word(next))
        .filter_map(move |text| {
            let first = text[0];
            match is_word(&first) {
                true => (!first.is_ascii_digit()).then_some(Token {
                    text,
                    is_word: true,
                }),
                false => (!first.is_ascii_whitespace()).then_some(Token {
                    text,
                    is_word: false,
                }),
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_told_from_uses() {
        for (line, defined) in [
            ("#define LIMIT 5", vec!["LIMIT"]),
            (
                "static const char *name_of(int kind)",
                vec!["const", "char", "name_of", "kind"],
            ),
            (
                "struct point *make_point(void) {",
                vec!["point", "make_point"],
            ),
            ("    if (make_point(LIMIT))", vec![]),
            ("    total = total + 1", vec!["total"]),
            ("pub fn parse(text: &str) -> usize {", vec!["parse"]),
            ("  RED,", vec!["RED"]),
            ("#define f(x) x", vec![]),
        ] {
            assert_eq!(Words::defined(line.as_bytes()), defined, "{line}");
        }
    }

    #[test]
    fn documents_are_told_from_sources() {
        for path in ["README", "docs/a.md", ".gitignore", "x/NEWS.old", "prog.1"] {
            assert!(is_unread(path.as_bytes()), "{path}");
        }
        for path in [
            "a.c",
            "CMakeLists.txt",
            "src/readme.rs",
            "Makefile",
            "requirements.txt",
        ] {
            assert!(!is_unread(path.as_bytes()), "{path}");
        }
    }
}
