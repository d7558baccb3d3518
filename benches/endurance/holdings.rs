//! What ddfuzz and its servers hold at one moment.

use std::fmt::{self, Display};
use std::fs;
use std::time::{Duration, Instant};

use crate::system::Before;

/// Resident memory may vary by so much, in KiB: what libc and the kernel keep at hand.
const SLACK: u64 = 1024;
/// How long the number of processes may take to come back to what it was.
const SETTLE_TIME: Duration = Duration::from_secs(5);

/// Everything that could grow. Memory in KiB.
pub struct Holdings {
    our_memory: u64,
    our_descriptors: u64,
    our_threads: u64,
    server_memory: u64,
    server_descriptors: u64,
    /// Mappings of the servers' memory.
    server_maps: u64,
    processes: u64,
    /// In the private directory of this process.
    files: u64,
    /// In the directories for shared memory and temporary files, since before.
    strays: u64,
    /// System V segments of ours, since before.
    segments: u64,
}

impl Holdings {
    /// The head of the table.
    pub const TITLES: &str =
        "  our KiB  fds  threads | servers KiB  fds  maps  processes | files  strays  segments";

    /// Looks, when there are as many processes as in `first`: the child for the next run is
    /// forked after the answer to the last.
    pub fn look(first: Option<&Holdings>, before: &Before) -> Holdings {
        let began = Instant::now();
        std::thread::sleep(Duration::from_millis(50));
        while let Some(first) = first {
            if descendants().len() as u64 == first.processes || began.elapsed() > SETTLE_TIME {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let (us, below) = (std::process::id(), descendants());
        let sum = |of: fn(u32) -> u64| below.iter().map(|pid| of(*pid)).sum();
        Holdings {
            our_memory: memory(us),
            our_descriptors: listed(us, "fd"),
            our_threads: listed(us, "task"),
            server_memory: sum(memory),
            server_descriptors: sum(|pid| listed(pid, "fd")),
            server_maps: sum(maps),
            processes: below.len() as u64,
            files: private_files(),
            strays: before.strays(),
            segments: before.segments(us, &below),
        }
    }

    /// The names of what there is more of than in `first`.
    pub fn grown_since(&self, first: &Holdings) -> Vec<&'static str> {
        let compared = [
            ("our memory", self.our_memory, first.our_memory + SLACK),
            (
                "our descriptors",
                self.our_descriptors,
                first.our_descriptors,
            ),
            ("our threads", self.our_threads, first.our_threads),
            (
                "the servers' memory",
                self.server_memory,
                first.server_memory + SLACK,
            ),
            (
                "the servers' descriptors",
                self.server_descriptors,
                first.server_descriptors,
            ),
            ("the servers' mappings", self.server_maps, first.server_maps),
            ("processes", self.processes, first.processes),
            ("private files", self.files, first.files),
            ("stray files", self.strays, first.strays),
            ("shared memory segments", self.segments, first.segments),
        ];
        let grown = compared.into_iter().filter(|(_, now, then)| now > then);
        grown.map(|(name, ..)| name).collect()
    }
}

impl Display for Holdings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>9}{:>5}{:>9} |{:>12}{:>5}{:>6}{:>11} |{:>6}{:>8}{:>10}",
            self.our_memory,
            self.our_descriptors,
            self.our_threads,
            self.server_memory,
            self.server_descriptors,
            self.server_maps,
            self.processes,
            self.files,
            self.strays,
            self.segments,
        )
    }
}

/// Resident memory in KiB; 0 of a process that has ended.
fn memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}

/// Number of mappings of a process; 0 of one that has ended.
fn maps(pid: u32) -> u64 {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"));
    maps.map_or(0, |maps| maps.lines().count() as u64)
}

fn listed(pid: u32, what: &str) -> u64 {
    fs::read_dir(format!("/proc/{pid}/{what}")).map_or(0, |entries| entries.count() as u64)
}

/// Files in the private directory of this process, which it holds by a lock.
fn private_files() -> u64 {
    let held = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    held.filter_map(|entry| fs::read_link(entry.path()).ok())
        .filter(|path| path.ends_with("lock"))
        .filter_map(|path| fs::read_dir(path.parent()?).ok())
        .map(|entries| entries.count() as u64)
        .sum()
}

/// All processes below this one, by their parents.
pub fn descendants() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let parents: Vec<(u32, u32)> = entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let rest = stat.get(stat.rfind(')')? + 2..)?;
            Some((pid, rest.split_whitespace().nth(1)?.parse().ok()?))
        })
        .collect();
    let mut found = vec![std::process::id()];
    let mut at = 0;
    while at < found.len() {
        let children = parents.iter().filter(|(_, parent)| *parent == found[at]);
        let children: Vec<u32> = children.map(|(pid, _)| *pid).collect();
        found.extend(children);
        at += 1;
    }
    found.split_off(1)
}
