//! Languages with a tree-sitter grammar, and the choice of the one that a text is written in.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::RangeInclusive;

use tree_sitter::{Language, Node};

use crate::grammar::{DEEPEST, LARGEST, TreeSitter, visit};
use crate::library;

/// Number of bytes at the beginning of a text by which its language is chosen.
const SAMPLE: usize = 1 << 14;
/// Minimum number of kinds of named syntax nodes in the tree of a text for the text to be
/// recognized as written in a language; fewer kinds may fit by chance.
const FEWEST_KINDS: usize = 6;
/// Minimum number of different kinds of named syntax nodes that a text must have to be taken for
/// JSON, which has few kinds.
const FEWEST_KINDS_OF_JSON: usize = 3;
/// Minimum number of named syntax nodes in the tree of a text for the text to be recognized as
/// written in a language.
const FEWEST_NODES: usize = 12;

/// A language with a tree-sitter grammar, built in or loaded.
pub struct KnownLanguage {
    /// Name of the grammar in options such as `--grammar` and in logs, for example `python`.
    name: Cow<'static, str>,
    source: Source,
    /// Bytes of which a text must contain at least one to be recognized as written in the language;
    /// empty for languages loaded from a shared library, which are never recognized by a text.
    needs: &'static [u8],
    /// Bytes with which a text must begin to be recognized as written in the language, because
    /// other languages resemble it; empty for most languages.
    begins: &'static [u8],
    /// Extensions (without the dot) of the names of files in this language.
    endings: &'static [&'static str],
}

/// What shows that a text is written in a language: the extension of its file's name, or only the
/// text itself. This decides how few syntax errors it may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Evidence {
    /// The extension of the file's name says which language it is. More syntax errors are allowed
    /// than for [`Evidence::Text`].
    Name,
    /// Only the text itself shows which language it is, so that few syntax errors are allowed.
    Text,
}

impl Evidence {
    /// Returns how many bytes a text must have for each byte that belongs to a syntax error; in a
    /// shorter text, there are too many errors.
    fn bytes_per_error(self) -> usize {
        match self {
            Evidence::Name => 20,
            Evidence::Text => 100,
        }
    }

    /// Returns how many named syntax nodes a text must have for each syntax error after the first;
    /// with fewer nodes, there are too many errors.
    fn nodes_per_error(self) -> usize {
        match self {
            Evidence::Name => 40,
            Evidence::Text => 60,
        }
    }
}

/// Where the grammar of a language comes from: it is built in, or loaded from a shared library.
enum Source {
    /// A grammar that is linked into the program; the function returns it.
    BuiltIn(fn() -> Language),
    /// A grammar that was loaded from a shared library (`--grammar FILE.so`).
    Loaded(Language),
}

/// Describes a language whose grammar is linked into the program: its name, its grammar, the bytes
/// that a text in it needs or begins with to be recognized, and the endings of its file names.
const fn built_in(
    name: &'static str,
    language: fn() -> Language,
    needs: &'static [u8],
    begins: &'static [u8],
    endings: &'static [&'static str],
) -> KnownLanguage {
    KnownLanguage {
        name: Cow::Borrowed(name),
        source: Source::BuiltIn(language),
        needs,
        begins,
        endings,
    }
}

/// The languages whose grammars are linked into the program, in the order in which they are tried:
/// those with stricter grammars first.
static LANGUAGES: &[KnownLanguage] = &[
    built_in(
        "json",
        || tree_sitter_json::LANGUAGE.into(),
        b"{[",
        b"",
        &["json"],
    ),
    built_in(
        "c",
        || tree_sitter_c::LANGUAGE.into(),
        b";#",
        b"",
        &["c", "h"],
    ),
    built_in(
        "javascript",
        || tree_sitter_javascript::LANGUAGE.into(),
        b"(=",
        b"",
        &["js", "mjs", "cjs"],
    ),
    built_in(
        "python",
        || tree_sitter_python::LANGUAGE.into(),
        b"(=",
        b"",
        &["py"],
    ),
    #[cfg(feature = "grammars")]
    built_in(
        "rust",
        || tree_sitter_rust::LANGUAGE.into(),
        b"{;",
        b"",
        &["rs"],
    ),
    #[cfg(feature = "grammars")]
    built_in(
        "lua",
        || tree_sitter_lua::LANGUAGE.into(),
        b"(=",
        b"",
        &["lua"],
    ),
    // Prose is a command, too.
    #[cfg(feature = "grammars")]
    built_in(
        "bash",
        || tree_sitter_bash::LANGUAGE.into(),
        b"#",
        b"#!",
        &["sh", "bash"],
    ),
    // Tags serve markup as well as its grammars.
    #[cfg(feature = "grammars")]
    built_in(
        "html",
        || tree_sitter_html::LANGUAGE.into(),
        b"<",
        b"<",
        &[],
    ),
    #[cfg(feature = "grammars")]
    built_in(
        "xml",
        || tree_sitter_xml::LANGUAGE_XML.into(),
        b"<",
        b"<",
        &[],
    ),
];

impl KnownLanguage {
    /// Returns the language of this name; `None` for an unknown name. A grammar that was loaded
    /// from a shared library has precedence.
    pub fn named(name: &str) -> Option<&'static KnownLanguage> {
        let mut all = library::loaded().chain(LANGUAGES);
        all.find(|known| known.name == name)
    }

    /// Returns all languages with grammars: the built-in ones in the order in which they are tried,
    /// then those whose grammars were loaded.
    pub fn all() -> impl Iterator<Item = &'static KnownLanguage> {
        LANGUAGES.iter().chain(library::loaded())
    }

    /// Makes the description of a language from a grammar in a shared library. Texts are never
    /// recognized as written in it: it is used only where it is named.
    pub fn loaded(name: String, language: Language) -> KnownLanguage {
        KnownLanguage {
            name: Cow::Owned(name),
            source: Source::Loaded(language),
            needs: b"",
            begins: b"",
            endings: &[],
        }
    }

    /// Returns the name of the language.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the tree-sitter grammar of the language.
    pub fn language(&self) -> Language {
        match &self.source {
            Source::BuiltIn(language) => language(),
            Source::Loaded(language) => language.clone(),
        }
    }

    /// Returns the built-in language whose files have the extension of the file name `name`; `None`
    /// if no language has this extension, or `name` has none.
    pub fn of_file(name: &[u8]) -> Option<&'static KnownLanguage> {
        let (_, ending) = std::str::from_utf8(name).ok()?.rsplit_once('.')?;
        LANGUAGES
            .iter()
            .find(|known| known.endings.contains(&ending))
    }

    /// Returns the built-in language of the extension of the file name `name`, if `text` fits it:
    /// less than 5 % of its bytes are syntax errors (as macros of C are); short texts are accepted,
    /// too. `None` if the text does not fit, is larger than 1 MiB, or no language has the
    /// extension.
    pub fn of_file_and_text(name: &[u8], text: &[u8]) -> Option<&'static KnownLanguage> {
        let sample = &text[..text.len().min(SAMPLE)];
        let is_small = text.len() <= LARGEST;
        KnownLanguage::of_file(name).filter(|known| {
            let whole = if known.name() == "json" { text } else { sample };
            is_small && known.misfit(whole, Evidence::Name).is_some()
        })
    }

    /// Returns the built-in language that a text fits best: the one with the fewest bytes that are
    /// syntax errors (less than 1 %), among those with enough syntax nodes of enough kinds. `None`
    /// if it fits none, or is larger than 1 MiB.
    pub fn of(text: &[u8]) -> Option<&'static KnownLanguage> {
        if text.len() > LARGEST {
            return None;
        }
        let sample = &text[..text.len().min(SAMPLE)];
        // JavaScript's grammar has elements of markup, too; and tags serve markup as well as its
        // grammars, which are used only by their names.
        if sample.trim_ascii_start().starts_with(b"<") {
            return None;
        }
        // Programs have several lines or statements; a line of words and brackets is no program.
        let has_lines = sample.iter().any(|byte| b"\n;".contains(byte));
        let fits = LANGUAGES.iter().filter_map(|known| {
            if !has_lines && known.name() != "json" {
                return None;
            }
            let has_signs = sample.iter().any(|byte| known.needs.contains(byte));
            if !has_signs || !sample.starts_with(known.begins) {
                return None;
            }
            // Of a long line of JSON, the first bytes are one error.
            let whole = if known.name() == "json" { text } else { sample };
            Some((known.misfit(whole, Evidence::Text)?, known))
        });
        let best = fits.min_by_key(|(misfit, _)| *misfit);
        best.map(|(_, known)| known)
    }

    /// Returns false if `text` surely has no keyword of the language, and so cannot be recognized as
    /// written in it: parsing a text in a language that it does not fit takes ten times as long as
    /// in one that it fits.
    fn may_have_keyword(&self, text: &[u8]) -> bool {
        if self.name() == "json" {
            return true;
        }
        let language = self.language();
        let kinds = (0..=u16::MAX).take(language.node_kind_count());
        let unnamed = kinds.filter(|kind| !language.node_kind_is_named(*kind));
        let kinds = unnamed.filter_map(|kind| language.node_kind_for_id(kind));
        let mut keywords: HashSet<&[u8]> = kinds.map(str::as_bytes).collect();
        keywords.extend(
            primitive_types(self.name())
                .iter()
                .map(|name| name.as_bytes()),
        );
        let mut words = text.split(|byte| !byte.is_ascii_alphabetic());
        words.any(|word| !word.is_empty() && keywords.contains(word))
    }

    /// Returns the number of bytes of `text` that are syntax errors in the language. `None` if the
    /// text does not fit the language: there are too many errors for the `evidence`, or too few
    /// syntax nodes or keywords that show the language.
    fn misfit(&self, text: &[u8], evidence: Evidence) -> Option<usize> {
        if evidence == Evidence::Text && !self.may_have_keyword(text) {
            return None;
        }
        let grammar = TreeSitter::new(self)?;
        if evidence == Evidence::Text && begins_with_errors(&grammar, text) {
            return None;
        }
        let (mut misfit, mut errors) = (0, 0);
        let mut kinds = Vec::new();
        let mut named = 0;
        let mut has_keyword = self.name() == "json";
        let mut is_deep = false;
        visit(&grammar.tree(text)?, &mut |node, depth| {
            is_deep |= depth > DEEPEST;
            if is_deep {
                return false;
            }
            if node.is_error() {
                errors += 1;
                misfit += misfit_of(node, text);
                return misfit * evidence.bytes_per_error() < text.len();
            }
            misfit += usize::from(node.is_missing());
            has_keyword |= is_keyword(node);
            if node.is_named() {
                named += 1;
                if !kinds.contains(&node.kind_id()) {
                    kinds.push(node.kind_id());
                }
            }
            true
        });
        let fewest = match self.name() {
            "json" => FEWEST_KINDS_OF_JSON,
            _ => FEWEST_KINDS,
        };
        let is_various = evidence == Evidence::Name
            || has_keyword && kinds.len() >= fewest && named >= FEWEST_NODES;
        let has_few_errors = misfit * evidence.bytes_per_error() < text.len()
            && errors <= 1 + named / evidence.nodes_per_error();
        (!is_deep && is_various && has_few_errors).then_some(misfit)
    }
}

/// Returns the letters with which those built-in types of a language begin (such as `uint8_t`,
/// `size_t`, `u8`) that have no kind of syntax nodes of their own.
fn primitive_types(language: &str) -> &'static [&'static str] {
    match language {
        "c" => &[
            "bool", "char", "charptr", "double", "float", "int", "intptr", "max", "nullptr",
            "ptrdiff", "size", "ssize", "uint", "uintptr", "void",
        ],
        "rust" => &["bool", "char", "f", "i", "isize", "str", "u", "usize"],
        _ => &[],
    }
}

/// Sizes, in bytes, of texts whose beginning is parsed before the whole text, to find out early
/// that they do not fit a grammar. The beginning of a larger text, which may have more errors,
/// hardly ever shows this.
const WITH_BEGINNING: RangeInclusive<usize> = 1 << 10..=5000;
/// Minimum size, in bytes, of the beginning of a text that is parsed before the whole text; if a
/// quarter of the text is larger than this, the quarter is parsed.
const BEGINNING: usize = 512;

/// Returns how many syntax errors the beginning of a text of `size` bytes may have: more than the
/// whole text may have, because the cut itself causes some.
const fn most_errors_of_beginning(size: usize) -> usize {
    8 + size / 100
}

/// Returns true if the beginning of `text` has so many syntax errors that the text does not fit the
/// grammar. A parser takes long for each error, and lines of random words have many.
fn begins_with_errors(grammar: &TreeSitter, text: &[u8]) -> bool {
    if !WITH_BEGINNING.contains(&text.len()) {
        return false;
    }
    let beginning = &text[..BEGINNING.max(text.len() / 4)];
    let most = most_errors_of_beginning(text.len());
    let Some(tree) = grammar.tree(beginning) else {
        return false;
    };
    let mut errors = 0;
    visit(&tree, &mut |node, depth| {
        errors += usize::from(node.is_error());
        depth <= DEEPEST && errors <= most
    });
    errors > most
}

/// Checks whether a syntax node is a keyword of the text or a built-in type. A text without any
/// keyword is not taken for a language, because in many languages mere words and brackets are valid
/// calls.
fn is_keyword(node: Node<'_>) -> bool {
    if node.is_missing() {
        return false;
    }
    let is_word = |kind: &str| kind.bytes().all(|byte| byte.is_ascii_alphabetic());
    !node.is_named() && is_word(node.kind()) || node.kind() == "primitive_type"
}

/// Returns the number of bytes of a syntax error: those of the error node, without blanks and
/// without the complete nodes inside of it. If the end of a text is missing, nearly all of the text
/// is such complete nodes in one error node.
fn misfit_of(error: Node<'_>, text: &[u8]) -> usize {
    let inked = |from: usize, to: usize| {
        let bytes = text.get(from..to).unwrap_or_default();
        bytes
            .iter()
            .filter(|byte| !byte.is_ascii_whitespace())
            .count()
    };
    let (mut misfit, mut at) = (0, error.start_byte());
    let mut cursor = error.walk();
    let whole = error
        .children(&mut cursor)
        .filter(|node| node.is_named() && !node.is_error());
    for node in whole {
        misfit += inked(at, node.start_byte());
        at = node.end_byte();
    }
    misfit + inked(at, error.end_byte())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_words_and_signs_are_in_no_language() {
        const LINES: &str = "=k ,s\n+l adcr,ytodtskfy\n=k yd\n\n+b wfz rxeprk\n=l fj\n+h vmc,kb\n=h \
                             sfcw\n+e  q wopemr\n+d ozd  r y, hia\n?h  hz\n+i yhli,,b\n=l v\n-f y,\n";
        let text = format!("{}if in\n", LINES.repeat(12));
        assert!(WITH_BEGINNING.contains(&text.len()));
        assert!(KnownLanguage::of(text.as_bytes()).is_none());
        for name in ["python", "javascript"] {
            let known = KnownLanguage::named(name).unwrap();
            assert!(known.may_have_keyword(text.as_bytes()));
            let grammar = TreeSitter::new(known).unwrap();
            assert!(begins_with_errors(&grammar, text.as_bytes()), "{name}");
        }
    }

    #[test]
    fn only_words_of_a_language_make_a_text_one_of_it() {
        let of = |text: &str| KnownLanguage::of(text.as_bytes()).map(KnownLanguage::name);
        let calls: String = (0..40)
            .map(|at| format!("call{at}(a[{at}], \"b\", {at} + 1);\n"))
            .collect();
        assert_eq!(of(&calls), None);
        let program = format!("uint8_t g(size_t a) {{\n{calls}return a ? 1 : -2.0;\n}}\n");
        assert_eq!(of(&program), Some("c"));
        let c = KnownLanguage::named("c").unwrap();
        assert!(!c.may_have_keyword(calls.as_bytes()));
        for word in ["int8_t", "max_align_t", "struct", "x=sizeof(y)", "1else"] {
            assert!(c.may_have_keyword(word.as_bytes()), "{word}");
        }
    }

    #[test]
    fn a_long_line_of_json_is_json() {
        let items: Vec<String> = (0..1000)
            .map(|item| format!("{{\"name{item}\":{{\"list\":[{item},true]}}}}"))
            .collect();
        let text = format!("[{}]", items.join(","));
        assert!(text.len() > SAMPLE);
        let name = |text: &str| KnownLanguage::of(text.as_bytes()).map(KnownLanguage::name);
        assert_eq!(name(&text), Some("json"));
        let of_file = |text: &str| KnownLanguage::of_file_and_text(b"a.json", text.as_bytes());
        assert!(of_file(&text).is_some());
    }
}
