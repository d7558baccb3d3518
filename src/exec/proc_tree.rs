//! What a process and its descendants use, read from /proc. Looked at only when a run takes
//! longer than most.

use std::time::Duration;

use nix::unistd::Pid;

/// Usage of a process tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// CPU time, user and system, with that of reaped children.
    pub(crate) cpu: Duration,
    /// Resident memory, in bytes.
    pub(crate) memory: u64,
}

/// No tree is followed further than this many processes.
const MOST: usize = 4096;

/// The usage of `root` and all that descend from it and are still its relatives.
pub(crate) fn usage(root: Pid) -> Usage {
    let mut total = Usage::default();
    let mut todo = vec![root.as_raw()];
    let mut seen = 0;
    while let Some(pid) = todo.pop() {
        seen += 1;
        if seen > MOST {
            break;
        }
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
            continue;
        };
        if let Some(own) = parse_stat(&stat) {
            total.cpu += own.cpu;
            total.memory += own.memory;
        }
        todo.extend(children(pid));
    }
    total
}

fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| {
            list.split_whitespace()
                .flat_map(str::parse)
                .collect::<Vec<i32>>()
        })
        .collect()
}

/// Reads a line of /proc/PID/stat: utime, stime, cutime, cstime (ticks) and rss (pages).
fn parse_stat(stat: &str) -> Option<Usage> {
    // The command's name stands in brackets and may hold anything, brackets too.
    let fields: Vec<&str> = stat
        .get(stat.rfind(')')? + 2..)?
        .split_whitespace()
        .collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let ticks = number(14)? + number(15)? + number(16)? + number(17)?;
    Some(Usage {
        cpu: Duration::from_millis(ticks.saturating_mul(10)),
        memory: number(24)? * 4096,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_shift_the_fields() {
        let stat = "7 (a) b) c) S 1 7 7 0 -1 0 0 0 0 0 3 4 5 6 20 0 1 0 99 1000 25 1 1";
        let usage = parse_stat(stat).unwrap();
        assert_eq!(usage.cpu, Duration::from_millis(180));
        assert_eq!(usage.memory, 25 * 4096);
    }

    #[test]
    fn our_own_usage_is_not_nothing() {
        assert!(usage(Pid::this()).memory > 0);
    }
}
