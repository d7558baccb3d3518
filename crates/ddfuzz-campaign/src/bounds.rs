//! Until when the workers of a campaign in order go on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::room::Gate;
use ddfuzz_exec::Ended;

/// What ends the work of all workers.
pub(crate) struct Bounds<'a> {
    /// The user's patience.
    stop: &'a AtomicBool,
    /// The end of the time.
    deadline: Option<Instant>,
    /// One of them has failed, or what comes behind is not committed.
    broken: AtomicBool,
    /// Closed while nothing can be stored.
    gate: &'a Gate,
}

impl<'a> Bounds<'a> {
    /// Until `stop` turns true, or `deadline` is over.
    pub(crate) fn new(
        stop: &'a AtomicBool,
        deadline: Option<Instant>,
        gate: &'a Gate,
    ) -> Bounds<'a> {
        Bounds {
            stop,
            deadline,
            broken: AtomicBool::new(false),
            gate,
        }
    }

    /// Ends it, if `so`; what is broken stays so.
    pub(crate) fn break_off(&self, so: bool) {
        self.broken.fetch_or(so, Ordering::Relaxed);
    }

    /// Whether there is more to be done, once it can be stored.
    pub(crate) fn go_on(&self) -> bool {
        self.gate.pass(|| self.are_over());
        !self.are_over()
    }

    /// Whether nothing more is to be done.
    pub(crate) fn are_over(&self) -> bool {
        self.has_ended() || self.is_late()
    }

    /// Whether a run over its limits is to be named, which takes as long again and more: not when
    /// the user has stopped, or the whole time is over. It is made again by the call that goes on.
    pub(crate) fn name(&self, ended: Ended) -> bool {
        ended != Ended::Timeout || !self.stop.load(Ordering::Relaxed)
    }

    /// Whether the time is over.
    pub(crate) fn is_late(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn has_ended(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.broken.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hang_is_not_named_when_the_whole_time_is_over_and_a_crash_is() {
        let (stop, gate) = (AtomicBool::new(false), Gate::default());
        // The time for fuzzing ends no run that is under way.
        let bounds = Bounds::new(&stop, Some(Instant::now()), &gate);
        assert!(bounds.are_over() && bounds.name(Ended::Timeout));
        stop.store(true, Ordering::Relaxed);
        assert!(!bounds.name(Ended::Timeout));
        assert!(bounds.name(Ended::Signal(11)) && bounds.name(Ended::Exit(0)));
    }
}
