//! The word between who watches a run's limits and who traces it.

use std::sync::atomic::{AtomicU8, Ordering};

/// Why a run is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Its time is up, and it runs, if only now and then.
    Running,
    /// Its time is up, and none of its threads has run for some time.
    Asleep,
    /// It uses more memory than it may.
    Memory,
}

/// What the `SIGSTOP` that interrupts a run carries, by which it is told from the target's own.
pub(crate) const COOKIE: usize = 0xddf2;

const TAKEN: u8 = 8;

/// An order to find out where a run is, given once by one thread and taken by another.
#[derive(Debug)]
pub(crate) struct Order {
    word: AtomicU8,
    /// Resident memory that a process may have, in bytes: who traces it looks as well when it
    /// dies.
    memory: u64,
}

impl Order {
    /// None yet, for a run with this memory limit, in bytes.
    pub(crate) fn within(memory: u64) -> Order {
        Order {
            word: AtomicU8::new(0),
            memory,
        }
    }

    /// The memory limit, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    /// Gives it; only the first one counts.
    pub(crate) fn give(&self, cut: Cut) {
        let code = match cut {
            Cut::Running => 1,
            Cut::Asleep => 2,
            Cut::Memory => 3,
        };
        // If there is one already, that one stays.
        let _ = self
            .word
            .compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Takes it, once.
    pub(crate) fn take(&self) -> Option<Cut> {
        match self.word.fetch_or(TAKEN, Ordering::AcqRel) {
            1 => Some(Cut::Running),
            2 => Some(Cut::Asleep),
            3 => Some(Cut::Memory),
            _ => None,
        }
    }

    /// Whether it was taken.
    pub(crate) fn is_taken(&self) -> bool {
        self.word.load(Ordering::Acquire) & TAKEN != 0
    }

    /// What was given.
    pub(crate) fn given(&self) -> Option<Cut> {
        match self.word.load(Ordering::Acquire) & !TAKEN {
            1 => Some(Cut::Running),
            2 => Some(Cut::Asleep),
            3 => Some(Cut::Memory),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_order_counts_and_is_taken_once() {
        let order = Order::within(0);
        order.give(Cut::Memory);
        order.give(Cut::Running);
        assert!(!order.is_taken());
        assert_eq!(order.take(), Some(Cut::Memory));
        assert_eq!(order.take(), None);
        assert!(order.is_taken());
        assert_eq!(order.given(), Some(Cut::Memory));
    }
}
