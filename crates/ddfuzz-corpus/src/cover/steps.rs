//! Time, counted in steps.

/// How many steps are left. Steps and not time, so that a slow machine finds the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steps(pub u64);

impl Steps {
    /// Takes so many; false when there were fewer: then none are left.
    pub fn take(&mut self, steps: usize) -> bool {
        let enough = self.0 >= steps as u64;
        self.0 = self.0.saturating_sub(steps as u64);
        enough
    }
}
