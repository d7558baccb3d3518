//! Time limits: a thread that kills processes which take too long, and the time that parts of an
//! explanation may take.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::unistd::Pid;

/// A thread that kills processes which take too long. One serves all processes of an explanation.
#[derive(Clone)]
pub struct Watchdog {
    armed: Arc<(Mutex<Armed>, Condvar)>,
    /// How long the whole explanation may take: all processes are killed when it is over.
    whole: Allowance,
}

#[derive(Default)]
struct Armed {
    next: Option<Deadline>,
    /// Whether the last process with a time limit was killed because its time was over.
    fired: bool,
    closed: bool,
    /// When the thread wakes by itself for its next check; `None` before the first check.
    wakes: Option<Instant>,
}

/// Time limit of a process. The process is killed when it has used the CPU time `cpu`; when it
/// sleeps or waits after the wall time `wall`; and after 40 times `wall` in any case.
#[derive(Clone, Copy, Debug)]
pub struct TimeLimit {
    /// Maximum CPU time of the process and its descendants.
    pub cpu: Duration,
    /// Wall time after which a process that waits is killed.
    pub wall: Duration,
}

impl TimeLimit {
    /// Returns a limit of `time` for both the CPU time and the wall time.
    pub fn of(time: Duration) -> TimeLimit {
        TimeLimit {
            cpu: time,
            wall: time,
        }
    }

    /// Returns this limit with a quarter of its CPU time, for kinds of tests that are made in large
    /// numbers.
    pub fn shorter(self) -> TimeLimit {
        TimeLimit {
            cpu: (self.cpu / 4).max(LEAST_TIME),
            ..self
        }
    }

    /// Returns a limit that is `factor` times as long, for a process that is stopped often.
    pub fn times(self, factor: u32) -> TimeLimit {
        TimeLimit {
            cpu: self.cpu * factor,
            wall: self.wall * factor,
        }
    }
}

thread_local! {
    /// CPU time, counted so far, of the processes that this thread has traced.
    static TRACED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Returns the CPU time of this thread and of the processes that it has traced.
pub(crate) fn cpu_spent() -> Duration {
    clock(libc::CLOCK_THREAD_CPUTIME_ID) + TRACED.get()
}

/// Adds `time`, the CPU time of a traced process, to the sum that this thread keeps for all
/// processes that it has traced.
pub(super) fn count_traced(time: Duration) {
    TRACED.set(TRACED.get() + time);
}

/// Returns the time that the system's clock `id` shows; zero if there is no such clock.
pub(super) fn clock(id: libc::clockid_t) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the time; the call has no other effect.
    unsafe { libc::clock_gettime(id, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// How long a part of an explanation may take: the CPU time of the tracing thread and of the traced
/// processes, and a wall time, which counts on a busy machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    cpu: Duration,
    wall: Instant,
}

/// Limit on the wall time of an explanation, or of a part of it, as a multiple of its limit on CPU
/// time. On a machine that is busier than that, the explanation ends early.
const BUSY: u32 = 4;

impl Allowance {
    /// Returns the allowance of a whole explanation from now on: `budget` of CPU time, and
    /// [`BUSY`] times as much wall time.
    pub fn of_budget(budget: Duration) -> Allowance {
        Allowance::share(budget, (1, 1))
    }

    /// Returns an allowance that starts now, for a part of an explanation whose CPU time is
    /// `budget`: the CPU time `budget / cpu`, and the wall time `budget * BUSY / wall`.
    pub fn share(budget: Duration, (cpu, wall): (u32, u32)) -> Allowance {
        Allowance::new(budget / cpu, Instant::now() + budget * BUSY / wall)
    }

    /// Returns this allowance, limited further: from now on, no more than the CPU time `cpu` may be
    /// used.
    pub fn within(self, cpu: Duration) -> Allowance {
        let cpu = self.cpu.min(cpu_spent().saturating_add(cpu));
        Allowance { cpu, ..self }
    }

    /// Returns an allowance that is over as soon as this one or `other` is over.
    pub fn and(self, other: Allowance) -> Allowance {
        Allowance {
            cpu: self.cpu.min(other.cpu),
            wall: self.wall.min(other.wall),
        }
    }

    /// Returns an allowance that starts now: it is over when this thread and the processes that it
    /// traces have used the CPU time `cpu`, or at the moment `wall`, whichever comes first.
    pub fn new(cpu: Duration, wall: Instant) -> Allowance {
        let cpu = cpu_spent().saturating_add(cpu);
        Allowance { cpu, wall }
    }

    /// Returns true if the CPU time or the wall time of this allowance is used up.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.wall || cpu_spent() >= self.cpu
    }

    /// Returns the CPU time and the wall time that remain of this allowance.
    pub fn left(&self) -> (Duration, Duration) {
        let wall = self.wall.saturating_duration_since(Instant::now());
        (self.cpu.saturating_sub(cpu_spent()), wall)
    }

    /// Returns an allowance for a part of the remaining time: the CPU time and the wall time that
    /// remain of this allowance, each divided by `divisor`.
    pub fn part(&self, divisor: u32) -> Allowance {
        self.parts(1, divisor)
    }

    /// Returns an allowance for the remaining time without one part in `divisor`: 3/4 of the CPU
    /// time and wall time that remain of this allowance if `divisor` is 4.
    pub fn but(&self, divisor: u32) -> Allowance {
        self.parts(divisor - 1, divisor)
    }

    fn parts(&self, parts: u32, divisor: u32) -> Allowance {
        let (cpu, wall) = self.left();
        let wall = Instant::now() + wall / divisor * parts;
        Allowance::new(cpu / divisor * parts, wall)
    }
}

/// The time limit of one running process, with what is needed to check it and to kill the process.
struct Deadline {
    process: OwnedFd,
    pid: Pid,
    limit: TimeLimit,
    began: Instant,
    next_look: Instant,
    /// The time at which the whole explanation must be over: the process is then killed in any
    /// case.
    latest: Instant,
}

/// CPU time by which a process may exceed the remaining CPU time of the whole explanation, because
/// the kernel's counts of CPU time are not exact.
const INEXACT: Duration = Duration::from_millis(20);

/// Smallest CPU time of a limit that [`shorter`](TimeLimit::shorter) returns.
const LEAST_TIME: Duration = Duration::from_millis(8);

/// On a machine that is too busy to run a process, the process is killed only after this many times
/// its limit on wall time.
const PATIENCE: u32 = 40;

impl Deadline {
    /// Kills the process and returns true if its time is over; else returns false. Sets the time of
    /// the next check.
    fn look(&mut self) -> bool {
        let path = format!("/proc/{}/stat", self.pid);
        let text = std::fs::read_to_string(path).unwrap_or_default();
        // Behind the name of the program: the state comes first.
        let state = text
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.chars().next());
        let waits = !matches!(state, Some('R' | 't' | 'T'));
        let used = ddfuzz_exec::tree_cpu(self.pid);
        let (TimeLimit { cpu, wall }, passed) = (self.limit, self.began.elapsed());
        let is_over = waits && passed >= wall
            || used >= cpu
            || passed >= wall * PATIENCE
            || Instant::now() >= self.latest;
        if is_over {
            // SAFETY: the call takes numbers and a null pointer for no details.
            unsafe {
                let none = std::ptr::null::<libc::siginfo_t>();
                let call = libc::SYS_pidfd_send_signal;
                libc::syscall(call, self.process.as_raw_fd(), libc::SIGKILL, none, 0);
            }
        }
        let left = cpu.saturating_sub(used);
        let next = Instant::now() + left.max(Duration::from_millis(10));
        self.next_look = next.min(self.latest);
        is_over
    }
}

/// The time limit of the current process; dropping this value ends the limit.
pub struct Limit {
    watchdog: Watchdog,
}

impl Watchdog {
    /// Starts the thread that kills processes which take too long. When the time `whole` is over,
    /// it kills the current process in any case.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn start(whole: Allowance) -> io::Result<Watchdog> {
        let armed = Arc::new((Mutex::new(Armed::default()), Condvar::new()));
        let shared = Arc::clone(&armed);
        let watch = move || {
            let (state, changed) = &*shared;
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            while !state.closed {
                let now = Instant::now();
                let until = match &mut state.next {
                    Some(next) if next.next_look <= now => {
                        if next.look() {
                            (state.next, state.fired) = (None, true);
                        }
                        continue;
                    }
                    Some(next) => next.next_look,
                    None => now + LEAST_TIME,
                };
                state.wakes = Some(until);
                let woken = changed.wait_timeout(state, until - now);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
        };
        std::thread::Builder::new()
            .name("ddfuzz-limits".to_owned())
            .spawn(watch)?;
        Ok(Watchdog { armed, whole })
    }

    pub(crate) fn arm(&self, process: &OwnedFd, pid: Pid, limit: TimeLimit) -> Limit {
        let (state, changed) = &*self.armed;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.fired = false;
        let left = self.whole.cpu.saturating_sub(cpu_spent());
        let limit = TimeLimit {
            cpu: limit.cpu.min(left.saturating_add(INEXACT)),
            ..limit
        };
        // Without a descriptor left there is no limit, and the budget of the whole is the limit.
        state.next = process.try_clone().ok().map(|process| Deadline {
            process,
            pid,
            limit,
            began: Instant::now(),
            next_look: (Instant::now() + limit.cpu.min(limit.wall)).min(self.whole.wall),
            latest: self.whole.wall,
        });
        // To wake it for each of many short runs would cost more than they do.
        let next = state.next.as_ref().map(|it| it.next_look);
        if next.is_some() && (state.wakes.is_none() || state.wakes > next) {
            changed.notify_one();
        }
        Limit {
            watchdog: self.clone(),
        }
    }

    /// Returns true if the last process with a time limit was killed because of this limit.
    pub fn has_fired(&self) -> bool {
        let (state, _) = &*self.armed;
        state.lock().unwrap_or_else(PoisonError::into_inner).fired
    }

    /// Ends the watchdog's thread, which kills processes that take too long.
    pub fn close(&self) {
        let (state, changed) = &*self.armed;
        state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        changed.notify_one();
    }
}

impl Limit {
    /// Returns true if the process was killed by its time limit.
    pub fn is_over(&self) -> bool {
        self.watchdog.has_fired()
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        let (state, _) = &*self.watchdog.armed;
        state.lock().unwrap_or_else(PoisonError::into_inner).next = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_does_not_end_an_explanation() {
        let whole = Allowance::of_budget(Duration::from_secs(900));
        assert!(whole.wall > Instant::now() + Duration::from_secs(1800));
        let over = Allowance::of_budget(Duration::ZERO);
        assert!(over.is_over() && whole.and(over).is_over() && over.and(whole).is_over());
        let share = Allowance::share(Duration::from_secs(900), (10, 2));
        assert!(share.cpu < whole.cpu && share.wall < whole.wall);
    }

    #[test]
    fn an_allowance_is_over_by_cpu_time_or_by_wall_time() {
        let far = Instant::now() + Duration::from_secs(900);
        assert!(!Allowance::new(Duration::from_secs(900), far).is_over());
        assert!(!Allowance::new(Duration::MAX, far).part(2).is_over());
        assert!(Allowance::new(Duration::from_secs(900), Instant::now()).is_over());
        let short = Allowance::new(Duration::from_millis(2), far);
        let mut rounds = 0_u64;
        while !short.is_over() {
            rounds = std::hint::black_box(rounds + 1);
        }
        assert!(rounds > 0);
    }
}
