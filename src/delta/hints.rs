//! What a run told besides its outcome: where a search may look for what refused a candidate.

/// What a run told besides its outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// How far the input was read, in bytes.
    pub read: Option<usize>,
    /// The last comparisons, oldest first.
    pub comparisons: Vec<Comparison>,
}

/// Two operands that a run compared, and that differed: little-endian bytes of integers of 1, 2, 4
/// or 8 bytes, or the bytes compared by `memcmp` and its like.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Comparison {
    /// The first operand, in bytes.
    pub left: Vec<u8>,
    /// The second.
    pub right: Vec<u8>,
}
