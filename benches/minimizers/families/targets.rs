//! The table of targets: what is promised for each family.

/// What is promised for a family. Figures are executed tests to a proved result, proof included,
/// checks aside, with one worker.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Name of the family.
    pub name: &'static str,
    /// What it is, with its known minimum in bytes.
    pub title: &'static str,
    /// What the best existing tool was found to need when the targets were set.
    pub best_before: &'static str,
    /// Most tests of the search `full`; nothing is promised for inputs whose bar was set on others.
    pub full: Option<u64>,
    /// Most tests of the search `subset`; nothing is promised where it cannot get there.
    pub subset: Option<u64>,
}

impl Family {
    /// The figure of a search, where one is promised.
    pub fn promised(&self, search: &str) -> Option<u64> {
        match search {
            "full" => self.full,
            "subset" => self.subset,
            _ => None,
        }
    }
}

const fn of(
    name: &'static str,
    title: &'static str,
    best_before: &'static str,
    full: Option<u64>,
    subset: Option<u64>,
) -> Family {
    Family {
        name,
        title,
        best_before,
        full,
        subset,
    }
}

/// All families.
pub const FAMILIES: &[Family] = &[
    of(
        "run-100k",
        "a run of 2121 bytes without newline in 10⁵ [2121]",
        "afl-tmin 165",
        Some(60),
        Some(2200),
    ),
    of(
        "run-1m",
        "the same in 10⁶ [2121]",
        "afl-tmin 198",
        Some(65),
        Some(2200),
    ),
    of(
        "line",
        "516 printable bytes before a newline in 10⁵ [517]",
        "afl-tmin 173",
        Some(85),
        Some(2500),
    ),
    of(
        "one-byte",
        "one byte of 10⁶ [1]",
        "lithium 41",
        Some(25),
        Some(25),
    ),
    of(
        "two-bytes",
        "two far bytes of 10⁶ [2]",
        "lithium 82",
        Some(50),
        Some(50),
    ),
    of(
        "scattered",
        "8 bytes in order, scattered over 20 000 [8]",
        "lithium 174",
        Some(125),
        Some(120),
    ),
    of(
        "brackets",
        "nested brackets, unbalanced is refused, 4 KB [12]",
        "shrinkray 585",
        Some(90),
        Some(90),
    ),
    of(
        "records",
        "count and length-prefixed records, 2 KB [3]",
        "libFuzzer ends at 1028 bytes",
        Some(45),
        None,
    ),
    of(
        "checksum",
        "length- and checksum-protected payload, 1 KB [10]",
        "nobody moves",
        Some(170),
        None,
    ),
    of(
        "all-needed",
        "all 300 bytes needed [300]",
        "picire 607",
        Some(325),
        Some(320),
    ),
    of(
        "every-other",
        "every other byte of 400 needed [200]",
        "lithium 978",
        Some(240),
        Some(235),
    ),
    of(
        "header-line",
        "a header line and one of 1000 lines [14]",
        "lithium 79",
        Some(85),
        Some(78),
    ),
    of(
        "two-bugs",
        "two bugs, which of them a parity decides, 8 KB [2]",
        "shrinkray 611",
        Some(105),
        Some(105),
    ),
    of(
        "json",
        "a JSON text, 4 KB [22]",
        "shrinkray 1259",
        Some(130),
        Some(130),
    ),
    of(
        "select",
        "<SELECT NAME=\"priority\" MULTIPLE SIZE=7> [8]",
        "27",
        Some(30),
        Some(27),
    ),
    of(
        "element",
        "another line with an element, of which `<SELECT>` is needed [8]",
        "nothing",
        None,
        None,
    ),
    of(
        "shell",
        "deeply nested commands of a shell, 12 KB",
        "chunk halving 17 on real inputs",
        None,
        None,
    ),
    of(
        "regex",
        "deeply nested groups of a regex, 10 KB",
        "chunk halving 76 on real inputs",
        None,
        None,
    ),
    of(
        "interpreter",
        "deeply nested blocks of a program, 17 KB",
        "chunk halving 123 on real inputs",
        None,
        None,
    ),
    of(
        "toml",
        "an array of strings below one header of a TOML file, 4 KB [23]",
        "not known",
        None,
        None,
    ),
    of(
        "graphql",
        "a null argument deep in a GraphQL document, 4 KB [19]",
        "not known",
        None,
        None,
    ),
    of(
        "sql",
        "HAVING without GROUP BY in a subquery of a known table, 4 KB [66]",
        "not known",
        None,
        None,
    ),
    of(
        "lua",
        "a loop in a function in a table of a Lua program, 4 KB [32]",
        "not known",
        None,
        None,
    ),
    of(
        "sh",
        "a loop with two commands in a substitution of a script, 4 KB [23]",
        "not known",
        None,
        None,
    ),
    of(
        "scheme",
        "an unbound name that is set two scopes deep, 4 KB [27]",
        "not known",
        None,
        None,
    ),
    of(
        "wav",
        "a date without a digit in a WAV file, 4 KB [56]",
        "not known",
        None,
        None,
    ),
    of(
        "png",
        "a gamma of 0 behind a palette in a PNG file, 4 KB [76]",
        "not known",
        None,
        None,
    ),
    of(
        "protobuf",
        "a number four messages deep, 4 KB [11]",
        "not known",
        None,
        None,
    ),
    of(
        "der",
        "a boolean of an extension in a certificate, 4 KB [10]",
        "not known",
        None,
        None,
    ),
    of(
        "real",
        "a file of this machine at which an installed program fails",
        "not known",
        None,
        None,
    ),
];

/// The family of this name.
pub fn family(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.name == name)
}
