//! Languages whose grammars are known, and which of them a text fits.

use std::borrow::Cow;

use tree_sitter::{Language, Node};

use crate::grammar::{DEEPEST, LARGEST, TreeSitter, visit};
use crate::library;

/// Size, in bytes, of the beginning of a text by which its grammar is chosen.
const SAMPLE: usize = 1 << 14;
/// Fewest kinds of named nodes in a text that shows a language.
const FEWEST_KINDS: usize = 6;
/// Fewest kinds of named nodes in a JSON text, which has few.
const FEWEST_KINDS_OF_JSON: usize = 3;
/// Fewest named nodes in a text that shows a language.
const FEWEST_NODES: usize = 12;

/// A language whose grammar is known.
pub struct KnownLanguage {
    /// Name of the grammar on command lines and in logs.
    name: Cow<'static, str>,
    source: Source,
    /// Bytes of which each text in the language has one.
    needs: &'static [u8],
    /// Bytes with which texts in the language begin, where other languages are like it.
    begins: &'static [u8],
    /// Endings of the names of files in the language.
    endings: &'static [&'static str],
}

/// What speaks for a language.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Evidence {
    /// The name of the file, so that the text need only have few errors.
    Name,
    /// The text alone.
    Text,
}

impl Evidence {
    /// Least number of bytes of a text for each byte of it that is an error.
    fn bytes_per_error(self) -> usize {
        match self {
            Evidence::Name => 20,
            Evidence::Text => 100,
        }
    }

    /// Least number of named nodes for each error after the first.
    fn nodes_per_error(self) -> usize {
        match self {
            Evidence::Name => 40,
            Evidence::Text => 200,
        }
    }
}

/// Where a grammar comes from.
enum Source {
    /// It is linked into the program.
    BuiltIn(fn() -> Language),
    /// It was loaded from a shared library.
    Loaded(Language),
}

/// Describes a language that is built in.
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

/// The languages that are built in, those of stricter grammars first.
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
    /// Returns the language of this name; `None` for an unknown name. A grammar that was loaded from
    /// a shared library has precedence.
    pub fn named(name: &str) -> Option<&'static KnownLanguage> {
        let mut all = library::loaded().chain(LANGUAGES);
        all.find(|known| known.name == name)
    }

    /// Returns all languages: those that are built in, in the order in which they are tried, and
    /// those that were loaded.
    pub fn all() -> impl Iterator<Item = &'static KnownLanguage> {
        LANGUAGES.iter().chain(library::loaded())
    }

    /// Makes a language of a grammar that is not built in. It is used only by its name.
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

    /// Returns the grammar of the language.
    pub fn language(&self) -> Language {
        match &self.source {
            Source::BuiltIn(language) => language(),
            Source::Loaded(language) => language.clone(),
        }
    }

    /// Returns the language that the ending of a file's name says; `None` if it says none.
    pub fn of_file(name: &[u8]) -> Option<&'static KnownLanguage> {
        let (_, ending) = std::str::from_utf8(name).ok()?.rsplit_once('.')?;
        LANGUAGES
            .iter()
            .find(|known| known.endings.contains(&ending))
    }

    /// Returns the language that the ending of a file's name says, if less than 5 % of the bytes of
    /// the text are errors in it (as macros of C are); short texts need not show it.
    pub fn of_file_and_text(name: &[u8], text: &[u8]) -> Option<&'static KnownLanguage> {
        let sample = &text[..text.len().min(SAMPLE)];
        let is_small = text.len() <= LARGEST;
        KnownLanguage::of_file(name)
            .filter(|known| is_small && known.misfit(sample, Evidence::Name).is_some())
    }

    /// Returns the language that a text fits best: less than 1 % of its bytes are errors, and it has
    /// enough nodes of enough kinds to show its language. `None` if it fits none.
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
            Some((known.misfit(sample, Evidence::Text)?, known))
        });
        let best = fits.min_by_key(|(misfit, _)| *misfit);
        best.map(|(_, known)| known)
    }

    /// Returns the number of bytes of a text that are errors; `None` if the text is not in the
    /// language.
    fn misfit(&self, text: &[u8], evidence: Evidence) -> Option<usize> {
        let grammar = TreeSitter::new(self)?;
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

/// Checks whether a node is a keyword or a built-in type. Without one, words and brackets are calls
/// in many languages.
fn is_keyword(node: Node<'_>) -> bool {
    let is_word = |kind: &str| kind.bytes().all(|byte| byte.is_ascii_alphabetic());
    !node.is_named() && is_word(node.kind()) || node.kind() == "primitive_type"
}

/// Returns the number of bytes of an error in a text, without blanks and whole nodes in it: where the
/// end of a text is missing, an error contains nearly all of it.
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
