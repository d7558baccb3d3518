//! Descriptions of the tables of OpenType layout to which offsets lead: subtables of GSUB and GPOS,
//! and the tables of GDEF.

use super::subtables::Item::{
    Block, Count, Coverage, Extension, Glyph, Keep, List, Lookup, Offset, Repeat, Set, Start, Value,
};

/// The shape of an OpenType layout table: its items in order. Some tables have several formats,
/// counted from 1; a two-byte number at their beginning states which one.
pub enum Shape {
    /// The table has only one format, without a number that states it; holds the items of the
    /// table.
    Plain(&'static [Item]),
    /// The table has several formats, and begins with a number that states which one; holds the
    /// items that follow in each format, format 1 first.
    Formats(&'static [&'static [Item]]),
}

/// An item in the description of a table: what its next bytes are. Items are tied by numbers. A
/// count has the number of the list whose elements it counts. A list and a coverage table (a list
/// of glyphs) may have the same number as their *tie*: the list then has one element for each
/// glyph, which is deleted together with the glyph. Some items set numbered variables, which give
/// the sizes of later items.
pub enum Item {
    /// An item of the given number of bytes, which stay as they are.
    Keep(usize),
    /// A number of two bytes that stays as it is and becomes the value of the variable with this
    /// number.
    Set(usize),
    /// The index of a glyph, in two bytes.
    Glyph,
    /// The index of the first glyph of a list, in two bytes; a count follows. The elements of the
    /// list with this tie (a number) belong to this glyph and to those after it, and are deleted
    /// together with them.
    Start(u8),
    /// The index of a lookup, in two bytes.
    Lookup,
    /// A number of two bytes that states how many elements the list with the first number has, plus
    /// the second number.
    Count(u8, usize),
    /// The elements of a list, each of which consists of the given items. The first number
    /// identifies the list. The second one is its tie: the elements are deleted together with the
    /// glyphs of the coverage table that has the same number, or by themselves if the number is 0.
    List(u8, u8, &'static [Item]),
    /// The given items, repeated as often as the value of the variable with this number.
    Repeat(usize, &'static [Item]),
    /// A GPOS value record, two bytes for each bit that is set in the variable with this number (a
    /// value format). It stays as it is.
    Value(usize),
    /// As many pairs of GPOS value records as the product of the variables with the numbers 2 and
    /// 3; the value formats, which give the sizes of the two records, are the variables 0 and 1.
    Block,
    /// An offset, of this many bytes, that leads to a table with this shape; if it is 0, there is
    /// no such table.
    Offset(usize, &'static Shape),
    /// An offset, of two bytes, that leads to a coverage table (a list of glyphs). The number is
    /// its tie: elements of the list with the same number are deleted together with these glyphs;
    /// with 0, no list is tied to them.
    Coverage(u8),
    /// A lookup type of two bytes, and an offset of four bytes that leads to a subtable of this
    /// type.
    Extension,
}

/// Index, among the variables in which the numbers of a subtable are kept while it is read, of the
/// variable with the number of mark classes.
const CLASSES: usize = 4;

/// Returns the shape of the subtables of lookups of the type `kind`, in GSUB if `substitutes`, else
/// in GPOS; `None` for unknown types.
pub fn subtable(kind: usize, substitutes: bool) -> Option<&'static Shape> {
    Some(match (substitutes, kind) {
        (true, 1) => &SINGLE,
        (true, 2 | 3) => &SEQUENCES,
        (true, 4) => &LIGATURES,
        (true, 5) | (false, 7) => &CONTEXT,
        (true, 6) | (false, 8) => &CHAIN,
        (true, 7) | (false, 9) => &EXTENSION,
        (true, 8) => &REVERSE,
        (false, 1) => &SINGLE_POSITION,
        (false, 2) => &PAIRS,
        (false, 3) => &CURSIVE,
        (false, 4 | 6) => &MARKS,
        (false, 5) => &LIGATURE_MARKS,
        _ => return None,
    })
}

static SINGLE: Shape = Shape::Formats(&[
    &[Coverage(1), Keep(2)],
    &[Coverage(1), Count(1, 0), List(1, 1, &[Glyph])],
]);

static SEQUENCES: Shape = Shape::Formats(&[&[
    Coverage(1),
    Count(1, 0),
    List(1, 1, &[Offset(2, &SEQUENCE)]),
]]);
static SEQUENCE: Shape = Shape::Plain(&[Count(1, 0), List(1, 0, &[Glyph])]);

static LIGATURES: Shape = Shape::Formats(&[&[
    Coverage(1),
    Count(1, 0),
    List(1, 1, &[Offset(2, &LIGATURE_SET)]),
]]);
static LIGATURE_SET: Shape = Shape::Plain(&[Count(1, 0), List(1, 0, &[Offset(2, &LIGATURE)])]);
static LIGATURE: Shape = Shape::Plain(&[Glyph, Count(1, 1), List(1, 0, &[Glyph])]);

static REVERSE: Shape = Shape::Formats(&[&[
    Coverage(1),
    Count(2, 0),
    List(2, 0, &[Coverage(0)]),
    Count(3, 0),
    List(3, 0, &[Coverage(0)]),
    Count(1, 0),
    List(1, 1, &[Glyph]),
]]);

static LOOKUPS: &[Item] = &[Keep(2), Lookup];
static RULE_SETS: &[Item] = &[Offset(2, &RULE_SET)];
static CONTEXT: Shape = Shape::Formats(&[
    &[Coverage(1), Count(1, 0), List(1, 1, RULE_SETS)],
    &[
        Coverage(0),
        Offset(2, &CLASS_DEFINITION),
        Count(1, 0),
        List(1, 0, &[Offset(2, &CLASS_RULE_SET)]),
    ],
    &[
        Count(1, 0),
        Count(2, 0),
        List(1, 0, &[Coverage(0)]),
        List(2, 0, LOOKUPS),
    ],
]);
static RULE_SET: Shape = Shape::Plain(&[Count(1, 0), List(1, 0, &[Offset(2, &RULE)])]);
static RULE: Shape = Shape::Plain(&[
    Count(1, 1),
    Count(2, 0),
    List(1, 0, &[Glyph]),
    List(2, 0, LOOKUPS),
]);
static CLASS_RULE_SET: Shape = Shape::Plain(&[Count(1, 0), List(1, 0, &[Offset(2, &CLASS_RULE)])]);
static CLASS_RULE: Shape = Shape::Plain(&[
    Count(1, 1),
    Count(2, 0),
    List(1, 0, &[Keep(2)]),
    List(2, 0, LOOKUPS),
]);

static CHAIN: Shape = Shape::Formats(&[
    &[
        Coverage(1),
        Count(1, 0),
        List(1, 1, &[Offset(2, &CHAIN_RULE_SET)]),
    ],
    &[
        Coverage(0),
        Offset(2, &CLASS_DEFINITION),
        Offset(2, &CLASS_DEFINITION),
        Offset(2, &CLASS_DEFINITION),
        Count(1, 0),
        List(1, 0, &[Offset(2, &CHAIN_CLASS_RULE_SET)]),
    ],
    &[
        Count(1, 0),
        List(1, 0, &[Coverage(0)]),
        Count(2, 0),
        List(2, 0, &[Coverage(0)]),
        Count(3, 0),
        List(3, 0, &[Coverage(0)]),
        Count(4, 0),
        List(4, 0, LOOKUPS),
    ],
]);
static CHAIN_RULE_SET: Shape = Shape::Plain(&[Count(1, 0), List(1, 0, &[Offset(2, &CHAIN_RULE)])]);
static CHAIN_RULE: Shape = Shape::Plain(&[
    Count(1, 0),
    List(1, 0, &[Glyph]),
    Count(2, 1),
    List(2, 0, &[Glyph]),
    Count(3, 0),
    List(3, 0, &[Glyph]),
    Count(4, 0),
    List(4, 0, LOOKUPS),
]);
static CHAIN_CLASS_RULE_SET: Shape =
    Shape::Plain(&[Count(1, 0), List(1, 0, &[Offset(2, &CHAIN_CLASS_RULE)])]);
static CHAIN_CLASS_RULE: Shape = Shape::Plain(&[
    Count(1, 0),
    List(1, 0, &[Keep(2)]),
    Count(2, 1),
    List(2, 0, &[Keep(2)]),
    Count(3, 0),
    List(3, 0, &[Keep(2)]),
    Count(4, 0),
    List(4, 0, LOOKUPS),
]);

static EXTENSION: Shape = Shape::Formats(&[&[Extension]]);

static SINGLE_POSITION: Shape = Shape::Formats(&[
    &[Coverage(1), Set(0), Value(0)],
    &[Coverage(1), Set(0), Count(1, 0), List(1, 1, &[Value(0)])],
]);

static PAIRS: Shape = Shape::Formats(&[
    &[
        Coverage(1),
        Set(0),
        Set(1),
        Count(1, 0),
        List(1, 1, &[Offset(2, &PAIR_SET)]),
    ],
    &[
        Coverage(0),
        Set(0),
        Set(1),
        Offset(2, &CLASS_DEFINITION),
        Offset(2, &CLASS_DEFINITION),
        Set(2),
        Set(3),
        Block,
    ],
]);
static PAIR_SET: Shape = Shape::Plain(&[Count(1, 0), List(1, 0, &[Glyph, Value(0), Value(1)])]);

static ANCHORS: &[Item] = &[Offset(2, &ANCHOR)];
static CURSIVE: Shape = Shape::Formats(&[&[
    Coverage(1),
    Count(1, 0),
    List(1, 1, &[Offset(2, &ANCHOR), Offset(2, &ANCHOR)]),
]]);
static MARKS: Shape = Shape::Formats(&[&[
    Coverage(1),
    Coverage(2),
    Set(CLASSES),
    Offset(2, &MARK_ARRAY),
    Offset(2, &BASE_ARRAY),
]]);
static LIGATURE_MARKS: Shape = Shape::Formats(&[&[
    Coverage(1),
    Coverage(2),
    Set(CLASSES),
    Offset(2, &MARK_ARRAY),
    Offset(2, &LIGATURE_ARRAY),
]]);
static MARK_ARRAY: Shape = Shape::Plain(&[Count(1, 0), List(1, 1, &[Keep(2), Offset(2, &ANCHOR)])]);
static BASE_ARRAY: Shape = Shape::Plain(&[Count(1, 0), List(1, 2, &[Repeat(CLASSES, ANCHORS)])]);
static LIGATURE_ARRAY: Shape =
    Shape::Plain(&[Count(1, 0), List(1, 2, &[Offset(2, &LIGATURE_ANCHORS)])]);
static LIGATURE_ANCHORS: Shape =
    Shape::Plain(&[Count(1, 0), List(1, 0, &[Repeat(CLASSES, ANCHORS)])]);
static ANCHOR: Shape = Shape::Formats(&[
    &[Keep(4)],
    &[Keep(6)],
    &[Keep(4), Offset(2, &UNKNOWN), Offset(2, &UNKNOWN)],
]);

/// Returns the shape of the table GDEF of the version `1.minor`.
pub fn definitions(minor: usize) -> &'static Shape {
    match minor {
        0 | 1 => &DEFINITIONS,
        2 => &DEFINITIONS_AND_SETS,
        _ => &DEFINITIONS_AND_VARIATIONS,
    }
}

static DEFINITIONS: Shape = Shape::Plain(&[
    Keep(4),
    Offset(2, &CLASS_DEFINITION),
    Offset(2, &ATTACHMENTS),
    Offset(2, &CARETS),
    Offset(2, &CLASS_DEFINITION),
]);
static DEFINITIONS_AND_SETS: Shape = Shape::Plain(&[
    Keep(4),
    Offset(2, &CLASS_DEFINITION),
    Offset(2, &ATTACHMENTS),
    Offset(2, &CARETS),
    Offset(2, &CLASS_DEFINITION),
    Offset(2, &GLYPH_SETS),
]);
static DEFINITIONS_AND_VARIATIONS: Shape = Shape::Plain(&[
    Keep(4),
    Offset(2, &CLASS_DEFINITION),
    Offset(2, &ATTACHMENTS),
    Offset(2, &CARETS),
    Offset(2, &CLASS_DEFINITION),
    Offset(2, &GLYPH_SETS),
    Offset(4, &UNKNOWN),
]);
static GLYPH_SETS: Shape = Shape::Formats(&[&[Count(1, 0), List(1, 0, &[Offset(4, &UNKNOWN)])]]);
/// The shape of a table that is not parsed: its bytes, up to the beginning of the next table,
/// become a payload (changeable bytes).
static UNKNOWN: Shape = Shape::Plain(&[]);

static CLASS_DEFINITION: Shape = Shape::Formats(&[
    &[Start(9), Count(1, 0), List(1, 9, &[Keep(2)])],
    &[Count(1, 0), List(1, 0, &[Glyph, Glyph, Keep(2)])],
]);
static ATTACHMENTS: Shape =
    Shape::Plain(&[Coverage(1), Count(1, 0), List(1, 1, &[Offset(2, &POINTS)])]);
static POINTS: Shape = Shape::Plain(&[Count(1, 0), List(1, 0, &[Keep(2)])]);
static CARETS: Shape = Shape::Plain(&[
    Coverage(2),
    Count(1, 0),
    List(1, 2, &[Offset(2, &LIGATURE_CARETS)]),
]);
static LIGATURE_CARETS: Shape = Shape::Plain(&[Count(1, 0), List(1, 0, &[Offset(2, &CARET)])]);
static CARET: Shape = Shape::Formats(&[&[Keep(2)], &[Keep(2)], &[Keep(2), Offset(2, &UNKNOWN)]]);
