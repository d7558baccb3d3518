//! The CPU time of another process, to the nanosecond, by one system call.

use std::time::Duration;

use nix::unistd::Pid;

/// What `clock_getcpuclockid` adds to a process id: the clock of what the scheduler has counted.
const SCHEDULED: libc::clockid_t = 2;

/// CPU time (user and system) of all threads of the process, children not counted; `None` if it
/// is gone.
pub(crate) fn cpu_of(pid: Pid) -> Option<Duration> {
    let clock = (!pid.as_raw() << 3) | SCHEDULED;
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it writes one timespec, which is ours.
    let answer = unsafe { libc::clock_gettime(clock, &raw mut now) };
    let seconds = u64::try_from(now.tv_sec).ok()?;
    let nanos = u32::try_from(now.tv_nsec).ok()?;
    (answer == 0).then(|| Duration::new(seconds, nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_clock_has_run_and_that_of_nobody_is_none() {
        assert!(cpu_of(Pid::this()).unwrap() > Duration::ZERO);
        // Above the highest that Linux gives.
        assert_eq!(cpu_of(Pid::from_raw(1 << 24)), None);
    }
}
