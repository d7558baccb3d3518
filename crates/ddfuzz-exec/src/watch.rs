//! Waits for a server's reply, and enforces limits without an rlimit: CPU time of a process tree,
//! wall time, resident memory.

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{Signal, kill};
use nix::{sys::time::TimeSpec, unistd::Pid};
use std::time::{Duration, Instant};
use std::{collections::HashMap, fs::File, os::fd::AsFd, path::Path};

use crate::hang_detector::{HangDetector, ObservedProcess};
use crate::{AbandonWhen, Ended, Limits, proc_tree, sandbox::is_overfull, shared_page::Page};

/// Time between two checks whether a run exceeds its limits. Runs that end sooner are never
/// checked.
pub(crate) const SLICE: Duration = Duration::from_millis(10);
/// Maximum number of time slices (10 ms each) for which a run over its limits is observed further
/// before it is killed, if hang detection has no signature of it yet (hash of the code in which it
/// loops).
const MOST_SLICES: u32 = 20;
/// How long a fork server may take to answer after the run that it was making was killed.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// Why waiting for a fork server's reply has ended: the reply is there (perhaps after a run was
/// killed), the server does not answer, or it has not even taken the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitOutcome {
    /// Waiting ended because the fork server's reply can be read; no run was killed.
    Ready,
    /// Waiting ended because the fork server's reply can be read, after a run was killed at a
    /// limit; holds that run and the limit.
    Killed(Killed),
    /// Waiting ended without a reply: the run was killed at a limit, and the fork server does not
    /// answer.
    Silent(Ended),
    /// Waiting ended because the run was abandoned; the run goes on until its fork server is
    /// stopped.
    Abandoned,
    /// Waiting ended because the fork server did not accept the request within the limits of a run.
    Untaken,
}

/// A run that ddfuzz killed at a limit: which limit, which run, and its CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Killed {
    /// How the run counts as ended, according to the exceeded limit: time or memory.
    pub(crate) why: Ended,
    /// Number of the run that was killed. A fast next run of the same request may have begun before
    /// the kill.
    pub(crate) run: u64,
    /// CPU time of all processes of the run, including those that nobody has waited for, which the
    /// run's wait status leaves out; 0 if the run was killed because it hangs like a known hang.
    pub(crate) cpu: Duration,
}

/// A request to a fork server that is not answered yet, with what is needed to wait for the reply,
/// and to kill the run at its limits.
pub(crate) struct Watch<'a> {
    pub(crate) reply: &'a File,
    /// The memory shared with the fork server, which shows which run has begun; `None` if the
    /// server has none.
    pub(crate) page: Option<&'a Page>,
    /// Number of the first run that the awaited request is for.
    pub(crate) first: u64,
    /// Process id of the fork server; all its descendants belong to the run.
    pub(crate) server: Pid,
    /// An ancestor process of the fork server, which distinguishes the server from a later process
    /// with the same id.
    pub(crate) supervisor: Pid,
    /// Whether the target's process has made earlier runs; their CPU time is then subtracted.
    pub(crate) warm: bool,
    /// The target's scratch directory, if ddfuzz must check its size; `None` if the kernel limits
    /// it.
    pub(crate) scratch: Option<&'a Path>,
    /// Threads of ddfuzz that empty the pipes to which the run writes.
    pub(crate) output_readers: &'a [Pid],
    /// Conditions under which the run is abandoned, whatever its limits are.
    pub(crate) abandon_when: &'a AbandonWhen,
}

/// The hang detector and the process that it observes; by them a long run is recognised as a known
/// hang while ddfuzz waits for the fork server's reply.
pub(crate) struct HangCheck<'a> {
    pub(crate) detector: &'a mut HangDetector,
    pub(crate) process: &'a dyn ObservedProcess,
}

impl Watch<'_> {
    /// Waits until the fork server's reply can be read, and returns why waiting ended. Kills the
    /// run if it exceeds `limits`, or if `look` (hang detection) recognises it as a known hang.
    /// Ends without killing the run if the run is abandoned (`abandon_when`).
    pub(crate) fn wait(&self, limits: &Limits, mut look: Option<HangCheck<'_>>) -> WaitOutcome {
        let began = Instant::now();
        let first = look.as_ref().and_then(|look| look.detector.first_pause());
        if wait_until_readable(self.reply, first.unwrap_or(SLICE)) {
            return WaitOutcome::Ready;
        }
        if first.is_some()
            && let Some(waited) = self.slice(&mut look)
        {
            return waited;
        }
        let (mut before, mut run) = (None, self.taken());
        let mut delay = self.delay_since(began);
        loop {
            if self.abandon_when.is_met() {
                return WaitOutcome::Abandoned;
            }
            // Limits apply to each run of a request separately.
            let now = self.taken();
            if now > run.max(self.first) {
                before = None;
                delay = self.delay_since(Instant::now());
            }
            run = now;
            let usage = proc_tree::usage_below(self.server);
            let base = *before.get_or_insert_with(|| self.used_before(usage.cpu));
            let cpu = usage.cpu.saturating_sub(base);
            let wall_is_over = delay.wall_is_over(limits.wall);
            let over = if self.exceeds_memory(usage.memory, limits) || self.fills_scratch() {
                Some(Ended::OutOfMemory)
            } else if cpu >= limits.cpu || wall_is_over {
                Some(Ended::Timeout)
            } else {
                None
            };
            match over {
                Some(_) if run < self.first => return WaitOutcome::Untaken,
                Some(why) => {
                    let run = run.max(self.first);
                    if let Some(ready) = self.identify(run, &mut look) {
                        return ready;
                    }
                    return self.kill(Killed { why, run, cpu }, look.as_ref());
                }
                None => {}
            }
            if let Some(waited) = self.slice(&mut look) {
                return waited;
            }
        }
    }

    /// Returns a measurement, which starts now, of how long a run that began at `began` is delayed
    /// because its processes, or the threads that read its output, wait for a processor.
    fn delay_since(&self, began: Instant) -> SchedulingDelay {
        SchedulingDelay::new(self.server, began).with_readers(self.output_readers.to_vec())
    }

    /// Lets a run that is over its limits go on a little longer, if hang detection (`look`) has no
    /// signature of it yet (hash of the code in which it loops), because the machine was busy.
    /// Returns why waiting ended if the run ends meanwhile. Otherwise returns `None`, and the
    /// caller kills the run: it has a signature now, or gets none in this time.
    fn identify(&self, run: u64, look: &mut Option<HangCheck<'_>>) -> Option<WaitOutcome> {
        for _ in 0..MOST_SLICES {
            let lacks = |look: &HangCheck<'_>| look.detector.lacks_signature(run);
            if self.taken() != run || !look.as_ref().is_some_and(lacks) {
                return None;
            }
            if let Some(waited) = self.slice(look) {
                return Some(waited);
            }
        }
        None
    }

    /// Waits for the fork server's reply for 10 ms at most, and kills the run if `look` finds that
    /// it hangs like a known hang. Returns why waiting ended; `None` if no reply came and nothing
    /// was killed.
    fn slice(&self, look: &mut Option<HangCheck<'_>>) -> Option<WaitOutcome> {
        let end = Instant::now() + SLICE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let pause = look.as_ref().and_then(|look| look.detector.pause());
            if wait_until_readable(self.reply, pause.unwrap_or(SLICE).min(left)) {
                return Some(WaitOutcome::Ready);
            }
            let (run, why, cpu) = (self.taken(), Ended::Timeout, Duration::ZERO);
            if let Some(look) = look.as_mut().filter(|_| run >= self.first)
                && look.detector.look(run, look.process)
            {
                return Some(self.kill(Killed { why, run, cpu }, Some(look)));
            }
            if left.is_zero() || pause.is_none() {
                return None;
            }
        }
    }

    /// Returns how much of `all`, the CPU time of all processes below the fork server, earlier runs
    /// have used; called when the present run is looked at for the first time. That is all of it if
    /// the run's process has made earlier runs. Otherwise it is the CPU time of dead processes,
    /// because those that were killed in earlier runs stay as zombies: the fork server reaps only
    /// the child of its run.
    fn used_before(&self, all: Duration) -> Duration {
        match self.warm {
            true => all,
            false => proc_tree::dead_cpu(self.server),
        }
    }

    /// Returns the number of the last run that the fork server has begun, according to the shared
    /// memory.
    fn taken(&self) -> u64 {
        self.page.map_or(self.first, Page::started)
    }

    /// Whether the run exceeds its memory limit; `memory` counts shared pages for each process. If
    /// that exceeds the limit, counts each shared page once.
    fn exceeds_memory(&self, memory: u64, limits: &Limits) -> bool {
        memory > limits.memory
            && proc_tree::shared_memory_below(self.server).unwrap_or(memory) > limits.memory
    }

    /// Whether the files in the run's scratch directory, which are kept in memory, exceed the
    /// directory's size limit; false where the kernel enforces it.
    fn fills_scratch(&self) -> bool {
        self.scratch.is_some_and(is_overfull)
    }

    /// Kills the current run for the reason `killed`, and waits up to 10 s for the server's reply.
    /// Kills only the run's own process if `look` (hang detection) knows it, else all processes
    /// that the fork server has started. Returns `Killed` with the reason if the reply came, else
    /// `Silent`.
    fn kill(&self, killed: Killed, look: Option<&HangCheck<'_>>) -> WaitOutcome {
        let deadline = Instant::now() + GRACE;
        let mut known = look.and_then(|look| look.process.process());
        while Instant::now() < deadline && proc_tree::descends(self.server, self.supervisor) {
            let all = proc_tree::children(self.server);
            let only = known.take().filter(|known| all.contains(known));
            for pid in only.map_or(all, |only| vec![only]) {
                let _ = kill(pid, Signal::SIGKILL);
            }
            // The target may have stopped the server.
            let _ = kill(self.server, Signal::SIGCONT);
            if wait_until_readable(self.reply, SLICE) {
                return WaitOutcome::Killed(killed);
            }
        }
        match wait_until_readable(self.reply, SLICE) {
            true => WaitOutcome::Killed(killed),
            false => WaitOutcome::Silent(killed.why),
        }
    }
}

/// Waits until `fd` can be read or its other end is closed, for at most `timeout`; returns false if
/// the time is over.
pub(crate) fn wait_until_readable(fd: impl AsFd, timeout: Duration) -> bool {
    let deadline = Instant::now() + timeout;
    loop {
        let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
        let left = deadline.saturating_duration_since(Instant::now());
        match ppoll(&mut fds, Some(TimeSpec::from(left)), None) {
            Err(nix::errno::Errno::EINTR) => {}
            answer => return answer.is_ok_and(|count| count > 0),
        }
    }
}

/// Maximum wall time of a run, as a multiple of its limit on wall time: the run ends then even if
/// it waited for a processor most of the time. With the usual limits (1 s of CPU time, 2 s of wall
/// time), a run that gets 0.5 % of a processor still reaches its limit on CPU time before that.
const WALL_FACTOR: u32 = 100;

/// Measures a run's scheduling delay: how long it has waited for a processor. A wall clock cannot
/// distinguish a sleeping process from a process that a busy machine keeps from running
/// (docs/decisions/0024).
pub struct SchedulingDelay {
    root: Pid,
    began: Instant,
    /// The time up to which scheduling delays have been added to `total`; `None` before the first
    /// measurement.
    counted: Option<Instant>,
    /// How long each thread had waited for a processor, as the kernel reported it at the last
    /// measurement, by thread id.
    before: HashMap<Pid, Duration>,
    /// ddfuzz's threads that empty the pipes to which the run writes.
    readers: Vec<Pid>,
    total: Duration,
}

impl SchedulingDelay {
    /// Starts measuring the scheduling delay of `root` and its descendants, in a run that began at
    /// `began`.
    pub fn new(root: Pid, began: Instant) -> SchedulingDelay {
        SchedulingDelay {
            root,
            began,
            counted: None,
            before: HashMap::new(),
            readers: Vec::new(),
            total: Duration::ZERO,
        }
    }

    /// Counts the delays of `readers`, too: ddfuzz's threads that empty the pipes to which the run
    /// writes. While such a thread waits for a processor, a run that has filled its pipe cannot go
    /// on.
    pub fn with_readers(mut self, readers: Vec<Pid>) -> SchedulingDelay {
        self.readers = readers;
        self
    }

    /// Whether the run has used up its limit on wall time. Time that it waited for a processor does
    /// not count, and the limit is not used up while a thread of the run, or one that reads its
    /// output, runs or waits for a processor: only a run that sleeps is over the limit. A run that
    /// has taken 100 times the limit is over it in any case.
    pub fn wall_is_over(&mut self, limit: Duration) -> bool {
        let now = Instant::now();
        let readers = self.readers.iter();
        let readers = readers
            .filter_map(|reader| Some((*reader, proc_tree::own_run_delay(*reader)?)))
            .collect();
        self.note(proc_tree::run_delays(self.root), readers, now);
        let elapsed = now.duration_since(self.began);
        elapsed >= limit.saturating_mul(WALL_FACTOR)
            || elapsed.saturating_sub(self.total) >= limit && !self.is_runnable()
    }

    /// Whether a thread of the run, or one that reads its output, runs or waits for a processor at
    /// this moment. The kernel reports a delay only once it is over, so that the delay of such a
    /// thread may be unknown yet.
    fn is_runnable(&self) -> bool {
        let reader_is = |reader: &Pid| proc_tree::own_thread_is_runnable(*reader);
        proc_tree::is_runnable(self.root) || self.readers.iter().any(reader_is)
    }

    /// Adds to `total` how long the run has waited for a processor since the last measurement: the
    /// longest delay of any of its threads, plus the delays of all threads that read its output,
    /// since writer and reader of a full pipe wait in turn. `delays` (of the run's threads) and
    /// `readers` state, by thread id, the delay of each thread since its start, as of the time
    /// `now`. Delays before the first measurement are left out. The kernel reports a delay only
    /// once it is over, so what is added is at most the time since something was last added.
    fn note(
        &mut self,
        delays: HashMap<Pid, Duration>,
        readers: HashMap<Pid, Duration>,
        now: Instant,
    ) {
        let counted = *self.counted.get_or_insert(now);
        let since = |(thread, delay): (&Pid, &Duration)| {
            let before = self.before.get(thread).copied().unwrap_or_default();
            delay.saturating_sub(before)
        };
        let longest = delays.iter().map(since).max().unwrap_or_default();
        let waited = longest + readers.iter().map(since).sum::<Duration>();
        if !waited.is_zero() {
            self.total += waited.min(now.duration_since(counted));
            self.counted = Some(now);
        }
        self.before = delays;
        self.before.extend(readers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{io::Read, process::Stdio};

    const SLICE: Duration = Duration::from_millis(10);

    /// Returns the total scheduling delay (time for which threads wait for a processor) of made-up
    /// looks at a run, one every 10 ms. `looks` has for each of them the ids of the threads, and
    /// how long each has waited since its start, in ms.
    fn delay(looks: &[&[(i32, u64)]]) -> Duration {
        let began = Instant::now();
        let mut delay = SchedulingDelay::new(Pid::this(), began);
        for (at, delays) in (1..).zip(looks) {
            let delays = delays
                .iter()
                .map(|(pid, ms)| (Pid::from_raw(*pid), Duration::from_millis(*ms)));
            delay.note(delays.collect(), HashMap::new(), began + SLICE * at);
        }
        delay.total
    }

    #[test]
    fn what_was_waited_before_the_first_look_is_not_of_this_run() {
        assert_eq!(delay(&[&[(7, 900)]]), Duration::ZERO);
        assert_eq!(delay(&[&[(7, 900)], &[(7, 908)]]).as_millis(), 8);
    }

    #[test]
    fn threads_that_wait_at_the_same_time_count_once() {
        let looks: [&[(i32, u64)]; 2] = [&[(7, 0), (8, 5)], &[(7, 9), (8, 11)]];
        assert_eq!(delay(&looks).as_millis(), 9);
    }

    #[test]
    fn what_a_dead_child_has_waited_stays_counted() {
        let looks: [&[(i32, u64)]; 4] = [&[], &[(7, 6)], &[(8, 5)], &[]];
        assert_eq!(delay(&looks).as_millis(), 11);
    }

    #[test]
    fn a_wait_is_told_of_at_its_end_and_counts_from_its_beginning() {
        let looks: [&[(i32, u64)]; 5] = [&[(7, 3)], &[(7, 3)], &[(7, 3)], &[(7, 3)], &[(7, 38)]];
        assert_eq!(delay(&looks).as_millis(), 35);
    }

    #[test]
    fn writer_and_reader_of_a_full_pipe_wait_in_turn() {
        let began = Instant::now();
        let mut delay = SchedulingDelay::new(Pid::this(), began);
        for (at, writer, reader) in [(1, 40, 70), (2, 43, 74), (3, 43, 80), (4, 60, 90)] {
            let of = |id, ms| HashMap::from([(Pid::from_raw(id), Duration::from_millis(ms))]);
            delay.note(of(7, writer), of(8, reader), began + SLICE * at);
        }
        // 3 and 4, 6, and no more than the 10 ms between two measurements.
        assert_eq!(delay.total.as_millis(), 23);
    }

    #[test]
    fn nobody_waits_longer_than_the_clock_runs() {
        assert_eq!(delay(&[&[], &[(7, 500)]]), SLICE);
        let one_after_the_other: [&[(i32, u64)]; 4] = [&[], &[], &[(7, 20)], &[(7, 20), (8, 30)]];
        assert_eq!(delay(&one_after_the_other), SLICE * 3);
    }

    #[test]
    fn a_sleeper_has_its_wall_time_and_the_longest_patience_ends() {
        let ago = |ms| Instant::now().checked_sub(Duration::from_millis(ms));
        let limit = Duration::from_secs(1);
        let over = |ms, total| {
            let mut delay = SchedulingDelay::new(Pid::from_raw(i32::MAX), ago(ms)?);
            delay.total = Duration::from_millis(total);
            Some(delay.wall_is_over(limit))
        };
        assert_eq!(over(1001, 0), Some(true));
        assert_eq!(over(1500, 1400), Some(false));
        assert_eq!(over(99_000, 98_500), Some(false));
        assert_eq!(over(100_001, 100_000), Some(true));
    }

    #[test]
    fn a_run_that_computes_has_wall_time_left_and_one_that_sleeps_has_none() {
        let limit = Duration::from_millis(100);
        // Whether the limit is over by the time that a shell has run `script` up to its output.
        let over = |script: &str, factor: u32| {
            let mut shell = std::process::Command::new("sh");
            let shell = shell.args(["-c", script]).stdout(Stdio::piped());
            let shell = shell.stdin(Stdio::piped());
            let mut child = shell.spawn().expect("there is a shell");
            let mut byte = [0];
            let output = child.stdout.as_mut().expect("its output is a pipe");
            output.read_exact(&mut byte).expect("it writes");
            let pid = Pid::from_raw(child.id().cast_signed());
            let asleep = Instant::now() + Duration::from_secs(60);
            while !script.contains(":;") && proc_tree::is_runnable(pid) && Instant::now() < asleep {
                std::thread::sleep(Duration::from_millis(1));
            }
            let began = Instant::now().checked_sub(limit * factor).expect("a clock");
            let is_over = SchedulingDelay::new(pid, began).wall_is_over(limit);
            child.kill().expect("it runs");
            child.wait().expect("it is reaped");
            is_over
        };
        assert!(!over("echo; while :; do :; done", 2));
        assert!(over("echo; while :; do :; done", WALL_FACTOR));
        assert!(over("echo; read line", 2));
    }
}
