//! Where a record stands.

/// Where a record stands in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its offset, in bytes.
    pub at: u64,
    /// Its length with all that stands before its body, in bytes.
    pub length: u32,
}
