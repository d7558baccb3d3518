//! What general delta debugging returns.

/// A passing and a failing side, and what makes them differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference<S> {
    /// The passing side. Where the test of nothing is UNRESOLVED, it may be nothing.
    pub pass: S,
    /// The failing side, which holds the passing one.
    pub fail: S,
    /// The units that only the failing side has.
    pub difference: S,
}
