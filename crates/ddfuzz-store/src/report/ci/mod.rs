//! Findings for CI servers: as a Markdown summary, as SARIF for code scanning, and as JUnit XML for
//! lists of tests.

mod junit;
mod markdown;
mod sarif;

pub use junit::junit;
pub(super) use markdown::fenced;
pub use markdown::markdown;
pub use sarif::sarif;

pub use super::view::Finding;

/// All groups of failures that a command has found, in the form that the CI formats share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Name of the fuzzed program, for people.
    pub target: String,
    /// One line of text that summarizes the findings.
    pub summary: String,
    /// The groups of failures (crashes, hangs, …) found.
    pub groups: Vec<Finding>,
}
