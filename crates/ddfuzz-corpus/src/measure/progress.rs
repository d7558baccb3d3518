//! How far measuring is.

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Files that were read, or could not be.
    pub files: u64,
    /// Their bytes, as far as they are known.
    pub bytes: u64,
    /// Different contents among them.
    pub contents: u64,
    /// Contents that were run.
    pub runs: u64,
    /// Contents of which the journal knew.
    pub reused: u64,
    /// Contents that did not end well.
    pub suspicious: u64,
}
