//! The planted bugs: which parser has them, and what each of them is hidden behind.

use std::path::{Path, PathBuf};

/// A bug of a parser.
#[derive(Clone, Copy, Debug)]
pub struct Bug {
    /// Its name, which is what it writes into the file CANARY, and that of its witness.
    pub name: &'static str,
    /// The parser that it is in: the name of its file and of its folder of seeds.
    pub parser: &'static str,
    /// Its number in `parsers/planted.h`.
    pub number: i32,
    /// What it is hidden behind, in a few words.
    pub behind: &'static str,
}

const fn bug(name: &'static str, parser: &'static str, number: i32, behind: &'static str) -> Bug {
    Bug {
        name,
        parser,
        number,
        behind,
    }
}

/// All of them.
pub const BUGS: [Bug; 16] = [
    bug("archive_magic", "archive", 1, "magics of 8 and 4 bytes"),
    bug("archive_name", "archive", 2, "off by one at one length"),
    bug("chunk_palette", "chunks", 3, "CRC-32, a length"),
    bug("chunk_order", "chunks", 4, "two CRC-32 in a row"),
    bug(
        "sentence_fields",
        "sentences",
        5,
        "sum in hex, equal fields",
    ),
    bug("vault_door", "vault", 6, "states, six bytes deep"),
    bug("tree_product", "tree", 7, "overflow of a product"),
    bug("tree_depth", "tree", 8, "recursion six deep"),
    bug("ledger_total", "ledger", 9, "a decimal number"),
    bug("ledger_free", "ledger", 10, "double free, odd order"),
    bug("script_loop", "script", 11, "three keywords, nested"),
    bug("packet_reply", "packets", 12, "four Adler-32 in a row"),
    bug("picture_alpha", "picture", 13, "PNG: a length, CRC-32"),
    bug("picture_times", "picture", 14, "PNG: three CRC-32 in order"),
    bug("layout_depth", "layout", 15, "JSON: eight deep"),
    bug("layout_rows", "layout", 16, "JSON: thirteen in a list"),
];

/// Where the sources, the seeds and the witnesses are.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/campaigns")
}

/// The source of a parser, or of what all of them are linked with (`planted`, `stdin`).
pub fn source(name: &str) -> PathBuf {
    folder().join("parsers").join(format!("{name}.c"))
}

/// The folder of a parser's seeds.
pub fn seeds(parser: &str) -> PathBuf {
    folder().join("inputs/seeds").join(parser)
}

/// The file with an input that sets a bug off.
#[allow(dead_code, reason = "only the test runs witnesses")]
pub fn witness(bug: &Bug) -> PathBuf {
    folder().join("inputs/witnesses").join(bug.name)
}
