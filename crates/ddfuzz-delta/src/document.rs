//! The structure of an input, as far as somebody knows it before the search: a [`Format`] takes a
//! text apart into a [`Document`], and the document is put together again without some of its parts.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// What is known of the structure of an input before the search [`Full`](crate::Full) begins.
#[derive(Clone, Default)]
pub enum Structure {
    /// Nothing is known: the search looks for brackets, quotes, separators, lines, lengths, counts
    /// and checksums itself.
    #[default]
    Unknown,
    /// The input is a text: `<tags>` and the indentation of lines are used, too.
    Text,
    /// The input is binary, of no known format: what [`Unknown`](Structure::Unknown) says, and
    /// shorter inputs with other bytes are tried.
    Binary,
    /// The input is a file of a known format.
    Format(Arc<dyn Format>),
    /// The input is a text in a language whose grammar is known.
    Syntax(Arc<dyn Grammar>),
}

impl Structure {
    /// Name of [`Structure::Text`] on command lines and in logs.
    pub const TEXT: &'static str = "text";

    /// Name of [`Structure::Binary`] on command lines and in logs.
    pub const BINARY: &'static str = "binary";

    /// Returns the name of the structure on command lines and in logs; `None` if nothing is known.
    pub fn name(&self) -> Option<&str> {
        match self {
            Structure::Unknown => None,
            Structure::Text => Some(Structure::TEXT),
            Structure::Binary => Some(Structure::BINARY),
            Structure::Format(format) => Some(format.name()),
            Structure::Syntax(grammar) => Some(grammar.name()),
        }
    }
}

impl fmt::Debug for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Structure").field(&self.name()).finish()
    }
}

/// A file format, such as PNG or ZIP.
///
/// All methods are pure functions: a search that is resumed or replayed must see the same documents.
pub trait Format: Send + Sync {
    /// Returns the name of the format on command lines and in logs.
    fn name(&self) -> &str;

    /// Takes a text apart; `None` if the text is not of this format. The [text](Document::text) of
    /// the document equals `text`.
    fn open(&self, text: &[u8]) -> Option<Arc<dyn Document>>;
}

/// A text that was taken apart into parts, which can be deleted, and payloads, whose bytes can be
/// changed. The numbers of the format (lengths, counts, offsets, checksums) that agreed with the
/// text agree with every text that is made of the document.
pub trait Document: Send + Sync {
    /// Returns the tree of the deletable parts in pre-order: for each part, the index after its last
    /// descendant.
    fn parts(&self) -> Vec<usize>;

    /// Returns the payloads in the order of the text. A compressed payload is decompressed.
    fn payloads(&self) -> Vec<Arc<[u8]>>;

    /// Returns the document without the parts with these indices, which ascend; parts inside of them
    /// go, too.
    fn without(&self, parts: &[usize]) -> Arc<dyn Document>;

    /// Returns the document with other payloads; there are as many as
    /// [`payloads`](Document::payloads) returns.
    fn with(&self, payloads: &[Arc<[u8]>]) -> Arc<dyn Document>;

    /// Returns the document with each compressed payload compressed anew, and with the parts of a
    /// divided payload joined; `None` if nothing is compressed or divided.
    fn repacked(&self) -> Option<Arc<dyn Document>>;

    /// Returns the document with its compressed payloads as they are, so that only their compressed
    /// bytes can be changed.
    fn opaque(&self) -> Arc<dyn Document>;

    /// Returns the sizes, in bytes, of the regions that the document refers to by offsets and that have
    /// no parts inside.
    fn regions(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Returns the document without the bytes of a region, given by its index; what refers to the region
    /// refers to the beginning of another one instead (`with`), or to that of the file. `None` if that
    /// is impossible.
    fn sharing(&self, _region: usize, _with: Option<usize>) -> Option<Arc<dyn Document>> {
        None
    }

    /// Puts the text of the document together.
    fn text(&self) -> Vec<u8>;
}

/// A grammar of a language, by which a search parses the texts that it reduces.
///
/// All methods are pure functions, as those of a [`Format`].
pub trait Grammar: Send + Sync {
    /// Returns the name of the grammar on command lines and in logs.
    fn name(&self) -> &str;

    /// Parses a text; `None` if it is too large.
    fn parse(&self, text: &[u8]) -> Option<SyntaxTree>;

    /// Returns the number of errors in the syntax tree of a text; `None` if the text is too large.
    fn errors(&self, text: &[u8]) -> Option<usize> {
        self.parse(text).map(|tree| tree.errors)
    }
}

/// The syntax tree of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyntaxTree {
    /// The nodes in pre-order.
    pub nodes: Vec<SyntaxNode>,
    /// Number of errors: places that do not fit the grammar, and tokens that are missing.
    pub errors: usize,
}

/// A node of a syntax tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxNode {
    /// The bytes of the node, as a range of the text.
    pub place: Range<usize>,
    /// Kind of the node, such as "call of a function", as a number of the grammar.
    pub kind: u16,
    /// What the node is, as far as passes treat it in a way of its own.
    pub class: SyntaxClass,
    /// Index of the parent; `None` for the root.
    pub parent: Option<usize>,
    /// Index after the last descendant.
    pub last: usize,
}

/// Classes of nodes of syntax trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyntaxClass {
    /// A token that belongs to its parent, such as a keyword, a bracket or a comma.
    Punctuation,
    /// A name.
    Identifier,
    /// A literal number.
    Number,
    /// A literal text.
    Text,
    /// Something with a value, such as a call.
    Expression,
    /// Something that is executed.
    Statement,
    /// Something that introduces names, such as a function.
    Declaration,
    /// Any other node.
    Other,
}
