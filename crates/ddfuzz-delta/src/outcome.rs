//! What a test says.

/// The outcome of testing a configuration (POSIX 1003.3; *Why Programs Fail* A.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "UPPERCASE"))]
pub enum Outcome {
    /// ✓ The failure does not occur.
    Pass,
    /// ✗ *The* failure occurs.
    Fail,
    /// ? Neither can be said: another failure, a time-out, a target that could not be started.
    Unresolved,
}

impl Outcome {
    /// The name used in logs: `PASS`, `FAIL` or `UNRESOLVED`.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Pass => "PASS",
            Outcome::Fail => "FAIL",
            Outcome::Unresolved => "UNRESOLVED",
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
