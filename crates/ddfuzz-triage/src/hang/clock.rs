//! How long a thread has had to do something: wall clocks lie on a busy machine.

use std::time::{Duration, Instant};

use nix::unistd::Pid;

/// What the scheduler says of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scheduled {
    /// CPU time that it has used.
    pub cpu: Duration,
    /// Time that it has waited for a processor.
    waited: Duration,
}

impl Scheduled {
    /// Looks; zeros of a thread that is gone.
    pub fn of(tid: Pid) -> Scheduled {
        match std::fs::read_to_string(format!("/proc/{tid}/schedstat")) {
            Ok(line) => Scheduled::parse(&line).unwrap_or_default(),
            // Kernels may be built without it.
            Err(_) => Scheduled {
                cpu: ticks(tid).unwrap_or_default(),
                waited: Duration::ZERO,
            },
        }
    }

    fn parse(line: &str) -> Option<Scheduled> {
        let mut fields = line.split_whitespace().map(str::parse);
        let mut next = || fields.next()?.ok().map(Duration::from_nanos);
        Some(Scheduled {
            cpu: next()?,
            waited: next()?,
        })
    }
}

/// What the kernel counts in coarse steps.
fn ticks(tid: Pid) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
    let rest = stat.get(stat.rfind(')')? + 2..)?;
    let mut fields = rest.split_whitespace().skip(11).map(str::parse::<u64>);
    let count = fields.next()?.ok()? + fields.next()?.ok()?;
    Some(Duration::from_millis(count * 10))
}

/// Whether it waits for something else than a processor.
pub(crate) fn sleeps(tid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    let state = stat.rfind(')').and_then(|end| stat.get(end + 2..));
    state.is_some_and(|state| state.starts_with(['S', 'D']))
}

/// The time that a thread was running, or asleep by its own will: that in which a busy machine
/// kept it from running does not count.
#[derive(Debug)]
pub(super) struct ActiveTime {
    tid: Pid,
    before: Scheduled,
    looked: Instant,
    active: Duration,
}

impl ActiveTime {
    /// Begins to count.
    pub fn of(tid: Pid) -> ActiveTime {
        ActiveTime {
            tid,
            before: Scheduled::of(tid),
            looked: Instant::now(),
            active: Duration::ZERO,
        }
    }

    /// Looks, and says how much it is so far.
    pub fn look(&mut self) -> Duration {
        let (now, at) = (Scheduled::of(self.tid), Instant::now());
        let cpu = now.cpu.saturating_sub(self.before.cpu);
        let waited = now.waited.saturating_sub(self.before.waited);
        self.active += cpu;
        if sleeps(self.tid) {
            self.active += (at - self.looked).saturating_sub(cpu + waited);
        }
        (self.before, self.looked) = (now, at);
        self.active
    }

    /// Goes on counting from here: the thread was stopped by us.
    pub fn go_on(&mut self) {
        (self.before, self.looked) = (Scheduled::of(self.tid), Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_scheduler_says_is_read() {
        let said = Scheduled::parse("1000 20 3\n").unwrap();
        assert_eq!(said.cpu, Duration::from_micros(1));
        assert_eq!(said.waited, Duration::from_nanos(20));
        assert_eq!(Scheduled::parse("nonsense"), None);
    }

    #[test]
    fn our_own_thread_does_not_sleep_and_has_run() {
        let us = nix::unistd::gettid();
        assert!(!sleeps(us));
        assert!(ticks(us).is_some());
    }
}
