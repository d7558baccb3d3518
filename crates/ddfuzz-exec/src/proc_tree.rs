//! Reads from /proc what a process and its descendants use and do. Only long runs are looked at.

use nix::unistd::{Pid, SysconfVar, sysconf};
use std::fs::{DirEntry, File};
use std::{collections::HashMap, io::Read, path::Path, sync::LazyLock, time::Duration};

/// CPU time and memory that a process, or several together, use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// CPU time (user and system), including that of ended children whose parent has waited for
    /// them.
    pub(crate) cpu: Duration,
    /// Resident memory in bytes; a page that several of the processes share counts once for each of
    /// them.
    pub(crate) memory: u64,
}

/// Maximum number of processes of one tree of processes whose CPU time or memory is read from
/// /proc.
const MOST: usize = 4096;

/// Number of the clock of a process's CPU time as the scheduler measures it; combined with a
/// process id, it makes the clock id for `clock_gettime`, as `clock_getcpuclockid` does.
const SCHEDULED: libc::clockid_t = 2;

/// Returns the CPU time (user and system) of all threads of a process, without children; `None` if
/// the process is gone.
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

/// Returns CPU time and memory of all descendants of `root` together, without those of `root`
/// itself.
pub(crate) fn usage_below(root: Pid) -> Usage {
    let mut total = Usage::default();
    for pid in descendants(root) {
        if let Some(own) = usage(pid) {
            total.cpu += own.cpu;
            total.memory = total.memory.saturating_add(own.memory);
        }
    }
    total
}

/// Returns the CPU time of `root` and of its descendants, including reaped children.
pub fn tree_cpu(root: Pid) -> Duration {
    usage(root).unwrap_or_default().cpu + usage_below(root).cpu
}

/// Returns CPU time and memory of a process, with the CPU time of its reaped children; `None` if
/// the process is gone. The CPU time of a living process is exact, not rounded down to clock ticks
/// of 10 ms: otherwise hundreds of processes that each run for less than a tick would seem to use
/// none.
fn usage(pid: Pid) -> Option<Usage> {
    let stat = stat(pid)?;
    let mut usage = stat.usage()?;
    if !stat.has_ended()
        && let Some(exact) = cpu_of(pid)
    {
        usage.cpu = exact + stat.reaped()?;
    }
    Some(usage)
}

/// Whether `root` and its descendants together have more than `limit` bytes of resident memory. A
/// page that several processes share is counted once.
pub fn tree_exceeds(root: Pid, limit: u64) -> bool {
    let resident = |pid| stat(pid).and_then(|stat| stat.usage()).map(|it| it.memory);
    let own = resident(root).unwrap_or(0);
    let sum = own.saturating_add(usage_below(root).memory);
    sum > limit && shared_memory_below(root).is_none_or(|below| below.saturating_add(own) > limit)
}

/// Returns the resident memory of one process in bytes; 0 after it has ended.
pub fn resident_memory(pid: Pid) -> u64 {
    let usage = stat(pid).and_then(|stat| stat.usage());
    usage.map_or(0, |usage| usage.memory)
}

/// Returns the resident memory of all descendants of `root` in bytes, with each shared page counted
/// once; `None` where the kernel does not report it.
pub(crate) fn shared_memory_below(root: Pid) -> Option<u64> {
    descendants(root).into_iter().try_fold(0u64, |sum, pid| {
        match std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) {
            Ok(text) => Some(sum.saturating_add(proportional(&text))),
            // The process has ended.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Some(sum),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(sum),
            Err(_) => None,
        }
    })
}

fn proportional(rollup: &str) -> u64 {
    rollup
        .lines()
        .find_map(|line| line.strip_prefix("Pss:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
        .unwrap_or(0)
        .saturating_mul(1024)
}

/// Returns, by thread id, how long each thread of `root` and its descendants has waited for a
/// processor since it started. Empty where the kernel does not report it.
pub(crate) fn run_delays(root: Pid) -> HashMap<Pid, Duration> {
    each_thread(root, "schedstat", run_delay)
}

/// Returns how long the thread `thread` of this process has waited for a processor since it
/// started; `None` where the kernel does not report it.
pub(crate) fn own_run_delay(thread: Pid) -> Option<Duration> {
    run_delay(&proc_text(
        format!("/proc/self/task/{thread}/schedstat").as_ref(),
    )?)
}

/// Reads from `line`, the text of /proc/PID/schedstat, how long a thread has waited for a
/// processor; `None` if the text is not as expected.
fn run_delay(line: &str) -> Option<Duration> {
    let waited = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(waited))
}

/// Whether the thread `thread` of this process is running or runnable.
pub fn own_thread_is_runnable(thread: Pid) -> bool {
    let stat = proc_text(format!("/proc/self/task/{thread}/stat").as_ref());
    stat.is_some_and(|line| Stat { line }.state() == Some("R"))
}

/// Returns, by thread id, the lines of /proc in which the kernel counts the context switches of
/// each thread of `root` and its descendants.
pub fn switches(root: Pid) -> HashMap<Pid, String> {
    each_thread(root, "status", |status| {
        let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
        Some(counts.collect())
    })
}

/// Applies `read` to the /proc file `name` of each thread of `root` and its descendants; returns
/// the results by thread id.
fn each_thread<T>(root: Pid, name: &str, read: impl Fn(&str) -> Option<T>) -> HashMap<Pid, T> {
    let processes = descendants(root).into_iter().chain([root]);
    processes
        .flat_map(threads)
        .filter_map(|thread| {
            let pid = thread.file_name().to_str()?.parse().ok()?;
            let text = proc_text(&thread.path().join(name))?;
            Some((Pid::from_raw(pid), read(&text)?))
        })
        .collect()
}

fn threads(process: Pid) -> impl Iterator<Item = DirEntry> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    threads.into_iter().flatten().flatten()
}

/// Whether a thread of `root` or of its descendants is running or runnable.
pub fn is_runnable(root: Pid) -> bool {
    let processes = descendants(root).into_iter().chain([root]);
    let mut threads = processes.flat_map(threads);
    threads.any(|thread| {
        let stat = proc_text(&thread.path().join("stat")).unwrap_or_default();
        let state = stat.rfind(')').and_then(|end| stat.get(end + 2..));
        state.is_some_and(|state| state.starts_with('R'))
    })
}

/// Returns the CPU time of all children that `root` has reaped, and of their reaped children;
/// `None` if `root` is gone.
pub(crate) fn reaped_cpu(root: Pid) -> Option<Duration> {
    stat(root)?.reaped()
}

/// Returns the CPU time of the children of `root` that are zombies.
pub(crate) fn dead_cpu(root: Pid) -> Duration {
    let children = children(root).into_iter().filter_map(stat);
    let dead = children.filter(Stat::has_ended);
    dead.filter_map(|stat| stat.usage())
        .map(|usage| usage.cpu)
        .sum()
}

pub(crate) fn children(root: Pid) -> Vec<Pid> {
    listed_children(root).unwrap_or_else(|| scanned_children(root))
}

pub(crate) fn descends(pid: Pid, ancestor: Pid) -> bool {
    let mut at = pid;
    for _ in 0..MOST {
        match parent(at) {
            Some(parent) if parent == ancestor => return true,
            Some(parent) if parent.as_raw() > 0 => at = parent,
            _ => return false,
        }
    }
    false
}

/// Whether the process `pid` exists and is not a zombie.
pub fn lives(pid: Pid) -> bool {
    stat(pid).is_some_and(|stat| !stat.has_ended())
}

/// Whether `parent` is the parent of `pid`.
pub fn is_child(pid: Pid, parent: Pid) -> bool {
    self::parent(pid) == Some(parent)
}

/// Returns the parent of the process `pid`; `None` if the process is gone.
pub(crate) fn parent(pid: Pid) -> Option<Pid> {
    stat(pid).and_then(|stat| stat.parent())
}

/// Returns the state of each thread of the descendants of `root`, as a letter of proc(5).
pub(crate) fn states_below(root: Pid) -> Vec<u8> {
    let mut states = Vec::new();
    for pid in descendants(root) {
        let Some(stat) = stat(pid) else { continue };
        match stat.field(20) {
            Some(0 | 1) | None => states.push(stat.state_letter()),
            Some(_) => states.extend(threads(pid).filter_map(|thread| {
                let line = proc_text(&thread.path().join("stat"))?;
                Some(Stat { line }.state_letter())
            })),
        }
    }
    states
}

/// Returns the lines of `/proc/PID/syscall` of the threads of all descendants of `root`: in which
/// system call each sleeps. Those that the kernel does not show are missing.
pub(crate) fn calls_below(root: Pid) -> Vec<String> {
    let threads = descendants(root).into_iter().flat_map(threads);
    threads
        .filter_map(|thread| proc_text(&thread.path().join("syscall")))
        .collect()
}

/// Whether a traced descendant of `root` is a zombie whose tracer has not noticed its end yet: the
/// kernel tells the tracer of the end before it tells the parent.
pub(crate) fn ends_at_tracer(root: Pid) -> bool {
    descendants(root).into_iter().any(|pid| {
        let status = proc_text(format!("/proc/{pid}/status").as_ref()).unwrap_or_default();
        let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let is_traced = value("TracerPid:").is_some_and(|tracer| tracer.trim() != "0");
        is_traced && value("State:").is_some_and(|state| state.trim().starts_with('Z'))
    })
}

/// Returns all descendants of `root`, parents before their children.
pub(crate) fn descendants(root: Pid) -> Vec<Pid> {
    let mut found = children(root);
    let mut at = 0;
    while at < found.len() && found.len() < MOST {
        found.extend(children(found[at]));
        at += 1;
    }
    found
}

/// Returns the children that the kernel lists for each thread of `root`; `None` without
/// `CONFIG_PROC_CHILDREN`.
fn listed_children(root: Pid) -> Option<Vec<Pid>> {
    static LISTS: LazyLock<bool> =
        LazyLock::new(|| Path::new("/proc/thread-self/children").exists());
    if !*LISTS {
        return None;
    }
    let lists = threads(root)
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let mut children = Vec::new();
    for list in lists {
        let ids = list.split_whitespace().flat_map(str::parse);
        children.extend(ids.map(Pid::from_raw));
    }
    Some(children)
}

/// Finds the children of `root` by reading the parent of every process.
fn scanned_children(root: Pid) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Pid::from_raw))
        .filter(|pid| parent(*pid) == Some(root))
        .collect()
}

/// The content of /proc/PID/stat of one process, from which its CPU time and memory are read.
struct Stat {
    line: String,
}

fn stat(pid: Pid) -> Option<Stat> {
    let line = proc_text(format!("/proc/{pid}/stat").as_ref())?;
    Some(Stat { line })
}

/// Reads a file of /proc that contains the name of a process, such as `/proc/PID/status`; `None` if
/// the process is gone. The kernel cuts names after 15 bytes, also inside a character: bytes that
/// are not UTF-8 are replaced.
pub fn proc_text(path: &Path) -> Option<String> {
    let bytes = proc_bytes(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads a file of /proc, a page at a time, which is as much as the kernel gives. The kernel
/// reports its size as 0, so that `std::fs::read` would begin with reads of 32 bytes.
///
/// # Errors
/// When the process is gone, or may not be read.
pub fn proc_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let (mut bytes, mut page) = (Vec::new(), [0; 4096]);
    loop {
        match file.read(&mut page) {
            Ok(0) => return Ok(bytes),
            Ok(length) => bytes.extend_from_slice(&page[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

impl Stat {
    /// Returns a numeric field of /proc/PID/stat by its number in proc(5), from 4 on; `None` if
    /// there is no such number.
    fn field(&self, number: usize) -> Option<u64> {
        // The command name is in brackets and may contain brackets.
        let rest = self.line.get(self.line.rfind(')')? + 2..)?;
        rest.split_whitespace().nth(number - 3)?.parse().ok()
    }

    fn state(&self) -> Option<&str> {
        let rest = self.line.get(self.line.rfind(')')? + 2..)?;
        rest.split_whitespace().next()
    }

    /// Returns the letter of the process's state in proc(5); `R` (running) if it is missing.
    fn state_letter(&self) -> u8 {
        let letter = self.state().and_then(|state| state.bytes().next());
        letter.unwrap_or(b'R')
    }

    fn has_ended(&self) -> bool {
        self.state()
            .is_none_or(|state| state.starts_with(['Z', 'X']))
    }

    fn parent(&self) -> Option<Pid> {
        Some(Pid::from_raw(i32::try_from(self.field(4)?).ok()?))
    }

    /// Returns the CPU time of the children that the process has reaped, and of their reaped
    /// children. `None` if its /proc/PID/stat lacks these numbers.
    fn reaped(&self) -> Option<Duration> {
        Some(ticks(self.field(16)? + self.field(17)?))
    }

    /// Returns the CPU time and memory of this process, with the CPU time of its reaped children,
    /// from its /proc/PID/stat; `None` if the file lacks one of these numbers.
    fn usage(&self) -> Option<Usage> {
        let own = ticks(self.field(14)? + self.field(15)?);
        Some(Usage {
            cpu: own + self.reaped()?,
            memory: self.field(24)?.saturating_mul(units().page),
        })
    }
}

fn ticks(count: u64) -> Duration {
    Duration::from_millis(count.saturating_mul(1000) / units().ticks)
}

struct Units {
    ticks: u64,
    page: u64,
}

fn units() -> &'static Units {
    static UNITS: LazyLock<Units> = LazyLock::new(|| {
        let ask = |what| match sysconf(what) {
            Ok(Some(number)) if number > 0 => Some(number.cast_unsigned()),
            _ => None,
        };
        Units {
            ticks: ask(SysconfVar::CLK_TCK).unwrap_or(100),
            page: ask(SysconfVar::PAGE_SIZE).unwrap_or(4096),
        }
    });
    &UNITS
}

/// Returns the process id, as ddfuzz sees it, of the descendant of `root` whose id in its innermost
/// PID namespace is `inner`; `None` if there is none. All descendants of `root` must be in the same
/// namespace.
pub(crate) fn outer_pid(inner: Pid, root: Pid) -> Option<Pid> {
    let mut deepest_first = descendants(root).into_iter().rev();
    deepest_first.find(|pid| {
        let status = proc_text(format!("/proc/{pid}/status").as_ref());
        status.is_some_and(|status| innermost(&status) == Some(inner.as_raw()))
    })
}

/// Returns the id of the process `pid` as the process itself sees it: that in its innermost PID
/// namespace, as in a sandbox; `pid` if it has no namespace of its own, or no longer exists.
pub fn inner_pid(pid: Pid) -> Pid {
    let status = proc_text(format!("/proc/{pid}/status").as_ref());
    let inner = status.and_then(|status| innermost(&status));
    inner.map_or(pid, Pid::from_raw)
}

/// Reads the id of a process in its innermost PID namespace from its /proc/PID/status; `None` if
/// the process is in ddfuzz's namespace only.
fn innermost(status: &str) -> Option<i32> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().skip(1).last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_shift_the_fields() {
        let line = "7 (a) b) c) S 1 7 7 0 -1 0 0 0 0 0 3 4 5 6 20 0 1 0 99 1000 25 1 1".to_owned();
        let stat = Stat { line };
        let usage = stat.usage().unwrap();
        assert_eq!(stat.parent(), Some(Pid::from_raw(1)));
        assert_eq!(usage.cpu, Duration::from_millis(18 * 1000 / units().ticks));
        assert_eq!(usage.memory, 25 * units().page);
    }

    #[test]
    fn a_child_is_found_by_its_parents_list_and_by_asking_all() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(child.id().cast_signed());
        let listed = listed_children(Pid::this());
        let scanned = scanned_children(Pid::this());
        let below = descends(pid, Pid::this());
        let found = descendants(Pid::this());
        let alive = lives(pid);
        let shared = shared_memory_below(Pid::this());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(listed.is_none_or(|listed| listed.contains(&pid)));
        assert!(scanned.contains(&pid));
        assert!(alive && !lives(pid));
        assert!(below && found.contains(&pid));
        assert!(shared.is_none_or(|shared| shared > 0));
    }

    #[test]
    fn our_own_clock_has_run_and_that_of_nobody_is_none() {
        assert!(cpu_of(Pid::this()).unwrap() > Duration::ZERO);
        // Larger than Linux's largest process id.
        assert_eq!(cpu_of(Pid::from_raw(1 << 24)), None);
    }

    #[test]
    fn our_own_usage_is_not_nothing() {
        assert!(stat(Pid::this()).unwrap().usage().unwrap().memory > 0);
    }

    #[test]
    fn the_scheduler_tells_of_every_thread() {
        // Kernels without CONFIG_SCHEDSTATS report no delays.
        let tells = Path::new("/proc/self/schedstat").exists();
        assert_eq!(run_delays(Pid::this()).contains_key(&Pid::this()), tells);
    }

    #[test]
    fn the_proportional_share_is_read_in_bytes() {
        let rollup = "5-6 ---p 00 00:00 0 [rollup]\nRss:  20 kB\nPss:  12 kB\nPss_Dirty: 1 kB\n";
        assert_eq!(proportional(rollup), 12 * 1024);
        assert_eq!(proportional("nonsense"), 0);
    }

    #[test]
    fn the_id_of_a_process_in_one_namespace_alone_is_no_inner_one() {
        assert_eq!(innermost("Pid:\t7\nNSpid:\t7\n"), None);
        assert_eq!(innermost("Pid:\t7\nNSpid:\t7\t2\n"), Some(2));
        assert_eq!(innermost("Pid:\t7\nNSpid:\t7\t4\t3\n"), Some(3));
        assert_eq!(innermost("Pid:\t7\n"), None);
    }
}
