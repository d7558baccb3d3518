//! One processor for the tracing thread and the process that it traces. Only one of them runs at a
//! time: if they used two processors, each stop and each resumption would have to wake the other
//! processor, which takes longer than the work in between.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The processors on which the tracing thread may run. Dropping it lets the thread run on all of
/// them again.
pub(super) struct OneCpu {
    /// The processors that the thread may use when it traces nothing; `None` where the kernel does
    /// not say.
    allowed: Option<CpuSet>,
}

impl OneCpu {
    /// Returns the processors on which the calling thread, which is going to trace, may run.
    pub fn of_thread() -> OneCpu {
        let allowed = sched_getaffinity(Pid::from_raw(0)).ok();
        OneCpu { allowed }
    }

    /// Lets the thread run on all of its processors again: processes that it starts may then also
    /// use all of them, and the thread need not stay on a busy processor.
    pub fn leave(&self) {
        if let Some(allowed) = &self.allowed {
            let _ = sched_setaffinity(Pid::from_raw(0), allowed);
        }
    }

    /// Keeps the thread on the processor on which it runs now, together with the process `pid` and
    /// the forks that are made of it later. If the kernel refuses this, tracing is only slower.
    pub fn enter(&self, pid: Pid) {
        // SAFETY: the call takes nothing, and gives a number.
        let Ok(here) = usize::try_from(unsafe { libc::sched_getcpu() }) else {
            return;
        };
        let mut one = CpuSet::new();
        if self.allowed.is_some() && one.set(here).is_ok() {
            let _ = sched_setaffinity(Pid::from_raw(0), &one);
            let _ = sched_setaffinity(pid, &one);
        }
    }
}

impl Drop for OneCpu {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_thread_and_its_process_share_one_processor_until_it_is_left() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let (own, pid) = (Pid::from_raw(0), Pid::from_raw(child.id() as i32));
        let count = |set: CpuSet| {
            let all = 0..CpuSet::count();
            all.filter(|at| set.is_set(*at) == Ok(true)).count()
        };
        let before = sched_getaffinity(own).unwrap();
        let one_cpu = OneCpu::of_thread();
        one_cpu.enter(pid);
        let both = [own, pid].map(|it| sched_getaffinity(it).unwrap());
        assert_eq!(both[0], both[1]);
        assert_eq!(count(both[0]), 1);
        drop(one_cpu);
        assert_eq!(sched_getaffinity(own).unwrap(), before);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
