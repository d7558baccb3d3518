//! How far the compiler has optimized a program, by the options in its debug information.

use super::DebugInfo;

impl DebugInfo {
    /// Returns true unless GCC has compiled all compilation units without optimization.
    pub fn is_optimized(&self) -> bool {
        !self.has_level(|level| level.is_none_or(|level| level == "-O0"))
    }

    /// Returns true if GCC has compiled all compilation units with `-Og`, `-O0` or no `-O` option.
    pub fn is_debuggable(&self) -> bool {
        self.has_level(|level| level.is_none_or(|level| ["-O0", "-Og"].contains(&level)))
    }

    /// Returns true if all units were compiled by GCC at optimization levels for which `is_such`
    /// returns true; for the default level, `is_such` gets `None`.
    fn has_level(&self, is_such: impl Fn(Option<&str>) -> bool) -> bool {
        self.producers.iter().all(|producer| {
            let level = producer.split(' ').rfind(|word| word.starts_with("-O"));
            producer.starts_with("GNU ") && is_such(level)
        })
    }
}
