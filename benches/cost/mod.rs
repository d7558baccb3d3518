//! What something costs: wall time, and CPU time of all processes that took part. All benches that
//! measure this include it.
#![allow(dead_code, reason = "each bench that includes this uses a part of it")]

use std::time::{Duration, Instant};

/// Wall time, and CPU time (user and system).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Wall time.
    pub wall: Duration,
    /// CPU time.
    pub cpu: Duration,
}

impl Cost {
    /// The cost of each of `count` parts of this.
    pub fn per(self, count: usize) -> Cost {
        let count = u32::try_from(count).unwrap_or(u32::MAX).max(1);
        Cost {
            wall: self.wall / count,
            cpu: self.cpu / count,
        }
    }
}

/// Measures `work`, whose processes have ended when it comes back.
pub fn measure<T>(work: impl FnOnce() -> T) -> (T, Cost) {
    let (cpu, began) = (cpu(), Instant::now());
    let result = work();
    let wall = began.elapsed();
    let cpu = self::cpu().saturating_sub(cpu);
    (result, Cost { wall, cpu })
}

/// The medians of both.
pub fn median(costs: &[Cost]) -> Cost {
    let middle = |of: fn(&Cost) -> Duration| {
        let mut all: Vec<Duration> = costs.iter().map(of).collect();
        all.sort();
        all.get(all.len() / 2).copied().unwrap_or_default()
    };
    Cost {
        wall: middle(|cost| cost.wall),
        cpu: middle(|cost| cost.cpu),
    }
}

/// CPU time (user and system) of this process and of all its descendants that have ended and
/// were waited for, each by its parent. What else runs on the machine has no part in it.
pub fn cpu() -> Duration {
    cpu_of_this() + cpu_of_children()
}

/// CPU time of this process alone.
pub fn cpu_of_this() -> Duration {
    cpu_in(&usage(libc::RUSAGE_SELF))
}

/// CPU time of all children that have ended and were waited for, and of theirs.
pub fn cpu_of_children() -> Duration {
    cpu_in(&usage(libc::RUSAGE_CHILDREN))
}

fn usage(who: libc::c_int) -> libc::rusage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes no more than the structure that it is given, which is valid as
    // zeroes, too.
    unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    }
}

fn cpu_in(usage: &libc::rusage) -> Duration {
    let time = |value: libc::timeval| {
        Duration::from_secs(value.tv_sec.unsigned_abs())
            + Duration::from_micros(value.tv_usec.unsigned_abs())
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}
