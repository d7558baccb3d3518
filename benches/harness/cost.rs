//! What something costs.

use std::time::{Duration, Instant};

/// Wall time, and CPU time of this process and of all its children that have ended.
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
    let (cpu, began) = (cpu_so_far(), Instant::now());
    let result = work();
    let wall = began.elapsed();
    let cpu = cpu_so_far().saturating_sub(cpu);
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

fn cpu_so_far() -> Duration {
    [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN]
        .into_iter()
        .map(cpu_of)
        .sum()
}

fn cpu_of(who: libc::c_int) -> Duration {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes no more than the structure that it is given, which is valid as
    // zeroes, too.
    let usage = unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    };
    let time = |value: libc::timeval| {
        Duration::from_secs(value.tv_sec.unsigned_abs())
            + Duration::from_micros(value.tv_usec.unsigned_abs())
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}
