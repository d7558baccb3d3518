//! Class and keys of a crash at the signal of a thread that another tracer has stopped.

use nix::unistd::Pid;

use crate::capture::{describe, handles};
use crate::class::class_and_keys;
use crate::keys::DEPTH;
use crate::messages::Diagnostics;
use crate::modules::ModuleCache;
use crate::snapshot::Event;
use crate::snapshot_reader::{Cause, read};
use crate::{Class, Key};

/// The result of classifying a crash at its signal: class, major key, and the faulting address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoppedCrash {
    /// Class of the classified crash, such as `segv`.
    pub class: Class,
    /// Major key of the crash: a hash that identifies the bug.
    pub major: Key,
    /// Address of the faulting memory access; `None` where the kernel reports none: for a signal
    /// that was sent, and for an access to a non-canonical address.
    pub address: Option<u64>,
}

/// Classifies crashes of threads that the calling thread traces by ptrace and has stopped at a
/// signal. The classifier does not know what the process printed. Class and keys of a crash that
/// only a printed message identifies, such as a panic, therefore differ from those that a
/// [`Triager`](crate::Triager) computes.
pub struct StoppedClassifier {
    cache: ModuleCache,
}

impl Default for StoppedClassifier {
    fn default() -> StoppedClassifier {
        StoppedClassifier {
            cache: ModuleCache::new(Vec::new()),
        }
    }
}

impl StoppedClassifier {
    /// Records the executable that `process` runs now as the fuzzing target's own.
    pub fn know_target(&mut self, process: Pid) {
        self.cache.know_target(process);
    }

    /// Checks whether the process of thread `tid` has installed a handler for `signal`.
    pub fn is_handled(&self, tid: Pid, signal: i32) -> bool {
        handles(tid, signal)
    }

    /// Returns the address of the memory access at which thread `tid` was stopped by a signal;
    /// `None` where the kernel reports none: for a signal that was sent, and for an access to a
    /// non-canonical address.
    pub fn fault_address(&self, tid: Pid) -> Option<u64> {
        describe(tid).1
    }

    /// Classifies the crash of the stopped thread `tid`, which is about to receive `signal`:
    /// returns its class, its major key and the fault address.
    pub fn classify(&mut self, tid: Pid, signal: i32) -> StoppedCrash {
        let (code, address) = describe(tid);
        let event = Event::Signal {
            number: signal,
            code,
        };
        let snapshot = read(tid, Cause { event, address }, &mut self.cache);
        let named = class_and_keys(&snapshot, DEPTH, &Diagnostics::default());
        StoppedCrash {
            class: named.class,
            major: named.keys.major,
            address,
        }
    }
}
