//! What a search is told about the structure of its input. A [`Format`] parses a text into a
//! [`Document`], from which the text without some of its parts can be written; a [`Grammar`] parses
//! a text into a [`SyntaxTree`].

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// What the caller of the search [`Full`](crate::Full) knows of the structure of the input:
/// nothing, that it is text or binary, its file format or its grammar.
#[derive(Clone, Default)]
pub enum Structure {
    /// Nothing is known of the input: the search looks for brackets, quotes, separators, lines,
    /// lengths, counts and checksums itself.
    #[default]
    Unknown,
    /// The input is a text: in addition to brackets, quotes and lines, the search uses `<tags>` and
    /// the indentation of lines.
    Text,
    /// The input is binary, of no known format: the search proceeds as for
    /// [`Unknown`](Structure::Unknown), and also tries shorter inputs with other bytes.
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
/// All methods are pure functions: a search that is resumed or replayed must see the same
/// documents.
pub trait Format: Send + Sync {
    /// Returns the name of this file format on command lines and in logs.
    fn name(&self) -> &str;

    /// Parses a text of this format into a document of deletable parts and payloads; `None` if the
    /// text is not of this format. The [text](Document::text) of the document equals `text`.
    fn open(&self, text: &[u8]) -> Option<Arc<dyn Document>>;

    /// Returns a document whose text has the same content as `text`, written in as few bytes as
    /// possible. What remains after deletions from this document is written in as few bytes as
    /// possible, too. Only some formats allow this, such as databases, whose pages can be filled
    /// up. Returns `None` for other formats, and if the compact text would be longer than `text`.
    fn compact(&self, _text: &[u8]) -> Option<Arc<dyn Document>> {
        None
    }

    /// Returns the files of known formats inside of the file `text`, such as the Exif data of a
    /// photo or the members of an archive; outer ones come before those inside of them. A search
    /// tests each in place of the whole file. Empty by default.
    fn files(&self, _text: &[u8]) -> Vec<Vec<u8>> {
        Vec::new()
    }
}

/// A file that was parsed by its format into parts, which can be deleted, and payloads, whose bytes
/// can be changed. The numbers of the format (lengths, counts, offsets, checksums) that were
/// correct in the file are correct in every text that is made of the document.
pub trait Document: Send + Sync {
    /// Returns the tree of the deletable parts in pre-order: for each part, the index of the part
    /// that follows its last descendant.
    fn parts(&self) -> Vec<usize>;

    /// Returns the contents of the payloads (data whose bytes can be changed) in the order of the
    /// text. A compressed payload is decompressed.
    fn payloads(&self) -> Vec<Arc<[u8]>>;

    /// Returns a copy of the document without the parts whose indices, in ascending order, are
    /// `parts`. All parts inside of a deleted part are deleted, too, and so are all groups of bytes
    /// that the format requires to go with it, such as its entry in a directory.
    fn without(&self, parts: &[usize]) -> Arc<dyn Document>;

    /// Returns the number of *tied* groups of bytes. [`without`](Document::without) deletes such a
    /// group only together with a part, such as the directory entry of a file together with the
    /// file. 0 by default.
    fn tied(&self) -> usize {
        0
    }

    /// Returns a copy of the document without those tied groups (bytes that are mostly deleted
    /// together with a part) whose indices are in `_groups`, in ascending order; their parts stay.
    /// [`tied`](Document::tied) says how many there are. By default, there are none.
    fn without_tied(&self, _groups: &[usize]) -> Arc<dyn Document> {
        self.without(&[])
    }

    /// Returns a copy of the document with the contents `payloads`, one for each payload
    /// (changeable bytes), in the order of [`payloads`](Document::payloads).
    fn with(&self, payloads: &[Arc<[u8]>]) -> Arc<dyn Document>;

    /// Returns a copy of the document with each compressed payload (changeable bytes) compressed
    /// anew, with padded numbers as short as they can be, and with the parts of a divided payload
    /// joined; `None` if nothing is compressed, padded or divided.
    fn repacked(&self) -> Option<Arc<dyn Document>>;

    /// Returns a copy of the document in which compressed payloads (changeable bytes) are not
    /// decompressed: their compressed bytes are what searches change.
    fn opaque(&self) -> Arc<dyn Document>;

    /// Returns how many pieces of the file can be replaced by shorter ones that are valid in any
    /// file of the format, such as the body of a function by one without instructions. 0 by
    /// default.
    fn reducible(&self) -> usize {
        0
    }

    /// Returns a copy of the document in which the pieces with the indices `_groups` have their
    /// shortest valid form, such as a function without instructions. Indices are below the number
    /// that [`reducible`](Document::reducible) returns.
    fn reduced(&self, _groups: &[usize]) -> Arc<dyn Document> {
        self.without(&[])
    }

    /// Returns the number of columns of the picture in the file, which can be deleted, each from
    /// all rows at once. 0 by default.
    fn columns(&self) -> usize {
        0
    }

    /// Returns a copy of the document without the columns with the indices `_columns`, which
    /// ascend, among those that [`columns`](Document::columns) counts.
    fn without_columns(&self, _columns: &[usize]) -> Arc<dyn Document> {
        self.without(&[])
    }

    /// Returns how many items of the file contain other items that may take their place, such as a
    /// list in a list. 0 by default.
    fn wrappers(&self) -> usize {
        0
    }

    /// Returns a copy of the document in which the items with the indices `_wrappers` are replaced
    /// by items directly inside of them: by the largest one or by all, as `_kept` says.
    /// [`wrappers`](Document::wrappers) says how many such items there are.
    fn unwrapped(&self, _wrappers: &[usize], _kept: InnerItems) -> Arc<dyn Document> {
        self.without(&[])
    }

    /// Returns the sizes, in bytes, of the regions of the file that [`sharing`](Document::sharing)
    /// can remove. A region is a range of bytes to which offsets in the file refer; it can be
    /// removed if it contains no deletable parts. Empty by default.
    fn regions(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Returns a copy of the document without the region that has the index `_region` in
    /// [`regions`](Document::regions). Offsets that referred to it refer to the region with the
    /// index `_with` instead or, if that is `None`, to the place from which they count, mostly the
    /// beginning of the file. Returns `None` if the region cannot be removed in this way.
    fn sharing(&self, _region: usize, _with: Option<usize>) -> Option<Arc<dyn Document>> {
        None
    }

    /// Returns the text of the document, written from its parts and payloads (changeable bytes).
    fn text(&self) -> Vec<u8>;
}

/// How [`Document::unwrapped`] replaces an item: by which of the items directly inside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InnerItems {
    /// Of the items directly inside of an item, the largest one takes its place.
    Largest,
    /// All items directly inside of an item take its place, one after the other.
    All,
}

/// A grammar of a language, by which a search parses the texts that it reduces.
///
/// All methods are pure functions, as those of a [`Format`].
pub trait Grammar: Send + Sync {
    /// Returns the name of this grammar on command lines and in logs.
    fn name(&self) -> &str;

    /// Parses a text into a syntax tree, in which errors are marked and counted; `None` if the text
    /// is too large.
    fn parse(&self, text: &[u8]) -> Option<SyntaxTree>;

    /// Returns the number of syntax errors in a text; `None` if the text is too large.
    fn errors(&self, text: &[u8]) -> Option<usize> {
        self.parse(text).map(|tree| tree.errors)
    }
}

/// A syntax tree: the nodes of a parsed text, and how many errors it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyntaxTree {
    /// The nodes of the syntax tree, in pre-order.
    pub nodes: Vec<SyntaxNode>,
    /// Number of syntax errors: places of the text that do not fit the grammar, and tokens that are
    /// missing.
    pub errors: usize,
}

/// A node of a syntax tree: its range of the text, kind, class and relatives in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxNode {
    /// The range of the text that the syntax node covers, in bytes.
    pub place: Range<usize>,
    /// Kind of the syntax node, such as "call of a function", as a number that the grammar defines.
    pub kind: u16,
    /// Class of the syntax node, the same for all grammars, by which passes choose how to reduce
    /// the node.
    pub class: SyntaxClass,
    /// Index of the syntax node's parent in the tree; `None` for the root.
    pub parent: Option<usize>,
    /// Index, in the pre-order of the tree, of the node that follows the last descendant of this
    /// syntax node.
    pub last: usize,
}

/// The class of a node of a syntax tree (punctuation, comment, name, expression, statement and
/// others), which is the same for all grammars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyntaxClass {
    /// A token that belongs to the node around it, such as a keyword, a bracket or a comma.
    Punctuation,
    /// A comment, which the program's execution ignores.
    Comment,
    /// A name of something in a program, such as a variable.
    Identifier,
    /// A number that stands in the program text (a literal), such as `42`.
    Number,
    /// A string literal, such as `"text"`.
    Text,
    /// An expression: something with a value, such as a call.
    Expression,
    /// A statement: something that is executed.
    Statement,
    /// A declaration: something that introduces names, such as a function.
    Declaration,
    /// A syntax node that belongs to none of the other classes.
    Other,
}
