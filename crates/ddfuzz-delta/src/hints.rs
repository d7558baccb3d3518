//! What a run tells besides its outcome.

/// What a run told besides its outcome. Searches may use it, none needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// How far the input was read, in bytes; `None` where nobody knows.
    pub read: Option<usize>,
    /// The last comparisons whose operands differed, oldest first.
    pub comparisons: Vec<Comparison>,
}

/// Two operands that a run compared, and that differed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Comparison {
    /// One operand: of an integer of 1, 2, 4 or 8 bytes, its bytes in little-endian order; of a
    /// comparison of memory or strings, the bytes compared.
    pub left: Vec<u8>,
    /// The other operand.
    pub right: Vec<u8>,
}
