//! Which thread is of which process, in a tree of processes that is traced.

use std::collections::HashMap;

use nix::unistd::Pid;

use ddfuzz_exec::tracing::process_of;

/// The threads that were met, and their processes.
#[derive(Debug, Default)]
pub(crate) struct Family {
    process_of: HashMap<Pid, Pid>,
    /// The threads that live, in the order in which they were met.
    threads: Vec<Pid>,
}

impl Family {
    /// The process of a thread that is stopped. Of one that is gone, what was learned before;
    /// else it counts as a process of its own.
    pub(crate) fn process(&mut self, tid: Pid) -> Pid {
        let threads = &mut self.threads;
        *self.process_of.entry(tid).or_insert_with(|| {
            threads.push(tid);
            process_of(tid).unwrap_or(tid)
        })
    }

    /// The threads that live, in the order in which they were met, each with its process.
    pub(crate) fn threads(&self) -> Vec<(Pid, Pid)> {
        let process = |tid: &Pid| self.process_of.get(tid).copied().unwrap_or(*tid);
        self.threads
            .iter()
            .map(|tid| (*tid, process(tid)))
            .collect()
    }

    /// Forgets a thread that has ended: its id may come again. Gives its process.
    pub(crate) fn bury(&mut self, tid: Pid) -> Pid {
        self.threads.retain(|it| *it != tid);
        self.process_of.remove(&tid).unwrap_or(tid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_belongs_to_its_process_also_when_it_is_gone() {
        let (sender, met) = std::sync::mpsc::channel();
        let mut family = Family::default();
        std::thread::scope(|scope| {
            let (go, wait) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                sender.send(nix::unistd::gettid()).unwrap();
                wait.recv().unwrap_err();
            });
            let tid = met.recv().unwrap();
            assert_ne!(tid, Pid::this());
            assert_eq!(family.process(tid), Pid::this());
            drop(go);
            assert_eq!(family.bury(tid), Pid::this());
            assert_eq!(family.bury(Pid::from_raw(i32::MAX)).as_raw(), i32::MAX);
        });
    }
}
