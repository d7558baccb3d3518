//! What it costs to look ahead.

use std::time::{Duration, Instant};

/// A look ahead has to be followed by so many times its own time before the next one.
const TIMES: u32 = 8;

/// A look ahead begins with a copy of the search, which may take as long as the search itself took
/// so far. Where outcomes are foreseen badly, as where every other test fails, copies would take
/// more time than workers save: then tests are made one after the other for a while.
#[derive(Debug, Default)]
pub(super) struct Toll {
    last: Option<(Instant, Duration)>,
}

impl Toll {
    /// Whether enough time has gone by since the last one.
    pub fn is_paid_off(&self) -> bool {
        self.last
            .is_none_or(|(ended, cost)| ended.elapsed() >= cost * TIMES)
    }

    /// Makes one, and keeps in mind what it cost.
    pub fn pay<T>(&mut self, look: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let seen = look();
        self.last = Some((Instant::now(), began.elapsed()));
        seen
    }
}
