//! Messages of compilers and linkers: which identifiers and places they name as missing or wrong.

/// What the messages of a failed build point to: identifiers, and places in source files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildMessages {
    /// Identifiers that compiler or linker messages name as missing or wrong, each once, in the
    /// order in which they occur.
    pub named: Vec<String>,
    /// Places that compiler messages name: paths of files, each with a line, counted from 1, or 0
    /// for a file that is missing. Each place occurs once.
    pub at: Vec<(Vec<u8>, u64)>,
}

/// Maximum number of identifiers that are read from the messages of one build.
const MOST_NAMED: usize = 200;
/// Maximum number of places (file and line) that are read from the messages of one build.
const MOST_PLACES: usize = 64;
/// Maximum length in bytes of a quoted text in a build message that is searched for identifiers.
const LONGEST_QUOTE: usize = 200;

/// Words by which a line of a build's output is recognized as a message about a failure.
const FAILURES: [&str; 12] = [
    "error",
    "Error",
    "undefined",
    "undeclared",
    "unresolved",
    "not found",
    "cannot find",
    "unknown",
    "multiple definition",
    "o such file",
    "not declared",
    "duplicate",
];

/// Words that are not taken for identifiers of the program when build messages quote them:
/// keywords, type names and common English words.
const COMMON: [&str; 20] = [
    "int", "char", "void", "const", "struct", "union", "enum", "static", "unsigned", "long",
    "float", "double", "main", "if", "else", "for", "while", "return", "the", "self",
];

impl BuildMessages {
    /// Parses the output `text` of a failed build for the identifiers and places that its messages
    /// name. Understands messages of GCC, Clang, TinyCC, rustc, Go, Python and the GNU linker, and
    /// ignores other text.
    pub fn parse(text: &[u8]) -> BuildMessages {
        let text = String::from_utf8_lossy(text);
        let mut found = BuildMessages::default();
        for line in text.lines() {
            let is_failure = FAILURES.iter().any(|word| line.contains(word));
            if is_failure {
                quotes(line).for_each(|quote| found.name(quote));
                for before in ["undefined: ", "not found: "] {
                    if let Some((_, rest)) = line.split_once(before) {
                        found.name(rest);
                    }
                }
                if let Some(file) = missing_file(line) {
                    found.place(file, 0);
                }
            }
            if let Some((file, line)) = place(line).filter(|_| is_failure || line.contains("-->")) {
                found.place(file, line);
            }
        }
        found
    }

    fn name(&mut self, text: &str) {
        let is_word = |byte: char| byte.is_ascii_alphanumeric() || byte == '_';
        for word in text.split(|byte| !is_word(byte)) {
            let is_name = word.starts_with(|byte: char| byte.is_ascii_alphabetic() || byte == '_');
            let is_known = COMMON.contains(&word) || self.named.iter().any(|known| known == word);
            if is_name && word.len() > 1 && !is_known && self.named.len() < MOST_NAMED {
                self.named.push(word.to_owned());
            }
        }
    }

    fn place(&mut self, file: &str, line: u64) {
        let place = (file.trim_start_matches("./").as_bytes().to_vec(), line);
        if self.at.len() < MOST_PLACES && !self.at.contains(&place) {
            self.at.push(place);
        }
    }
}

/// Returns the quoted texts in a line of a build message, in any of these forms: ``‘text’, `text',
/// `text`, 'text', "text"``. A quote that is not closed, or longer than `LONGEST_QUOTE` bytes,
/// gives an empty text.
fn quotes(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let open = rest.find(['‘', '`', '\'', '"'])?;
        let quote = rest[open..].chars().next()?;
        let inside = &rest[open + quote.len_utf8()..];
        let ends: &[char] = match quote {
            '‘' => &['’'],
            '`' => &['`', '\''],
            '\'' => &['\''],
            _ => &['"'],
        };
        let Some(end) = inside.find(ends) else {
            rest = inside;
            return Some("");
        };
        let next = inside[end..].chars().next().map_or(0, char::len_utf8);
        rest = &inside[end + next..];
        Some(if end <= LONGEST_QUOTE {
            &inside[..end]
        } else {
            ""
        })
    })
}

/// Returns the source place that a line of a build message names, as path and line number:
/// `FILE:LINE:` at its beginning, or the place after `-->`; `None` if it names none.
fn place(line: &str) -> Option<(&str, u64)> {
    let text = match line.split_once("--> ") {
        Some((_, place)) => place,
        None => line,
    };
    let mut parts = text.trim_start().splitn(3, ':');
    let (file, number) = (parts.next()?, parts.next()?);
    let is_path = !file.is_empty() && !file.contains(' ');
    let number = number.trim().parse().ok()?;
    is_path.then_some((file, number))
}

/// Returns the path of the file that a line of a build message says does not exist (`… No such
/// file`, `… file not found`); `None` for other lines.
fn missing_file(line: &str) -> Option<&str> {
    let (before, _) = line
        .split_once(": No such file")
        .or_else(|| line.split_once("' file not found"))?;
    before
        .rsplit([' ', '\'', ':'])
        .next()
        .filter(|file| !file.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Vec<String> {
        BuildMessages::parse(text.as_bytes()).named
    }

    #[test]
    fn messages_of_several_compilers_name_their_identifiers() {
        for (message, names) in [
            (
                "a.c:3:5: error: ‘limit’ undeclared (first use in this function)",
                vec!["limit"],
            ),
            (
                "a.c:3:5: error: use of undeclared identifier 'limit'",
                vec!["limit"],
            ),
            ("a.c:3: error: 'limit' undeclared", vec!["limit"]),
            (
                "/usr/bin/ld: a.o: in function `main':\na.c:(.text+0x5): undefined reference to `helper'",
                vec!["helper"],
            ),
            (
                "error[E0425]: cannot find function `helper` in this scope",
                vec!["helper"],
            ),
            ("./a.go:3:2: undefined: helper", vec!["helper"]),
            ("a.c:3: error: field not found: helper", vec!["helper"]),
            ("NameError: name 'helper' is not defined", vec!["helper"]),
            (
                "a.c:3:5: error: too few arguments to function ‘int scale(int, int)’",
                vec!["scale"],
            ),
            ("cc -c 'strange name.c'", vec![]),
        ] {
            assert_eq!(named(message), names, "{message}");
        }
    }

    #[test]
    fn places_and_missing_files_are_read() {
        let text = "src/a.c:12:3: error: expected ‘;’\nerror: x\n  --> src/main.rs:4:9\n\
                    b.c:1:10: fatal error: sub/new.h: No such file or directory\nmake: *** [Makefile:3: a.o] Error 1";
        let at = BuildMessages::parse(text.as_bytes()).at;
        let expected: [(&[u8], u64); 4] = [
            (b"src/a.c", 12),
            (b"src/main.rs", 4),
            (b"sub/new.h", 0),
            (b"b.c", 1),
        ];
        let found: Vec<(&[u8], u64)> = at.iter().map(|(file, line)| (&file[..], *line)).collect();
        assert_eq!(found, expected);
    }
}
